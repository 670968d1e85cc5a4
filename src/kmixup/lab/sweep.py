"""Grids of trials, run to the end whatever happens on the way.

A grid is the product of its lists. Trial number t has the same split, first weights and
order in every cell, so that cells can be compared in pairs. A trial that has a row in the
store is not run again, and one that failed is tried once more: starting a sweep a second
time is how it goes on.
"""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from kmixup.lab.data import ENTRIES, load
from kmixup.lab.engines import Engine
from kmixup.lab.prepare import usual_for
from kmixup.lab.protocol import (
    Method,
    Protocol,
    Trial,
    check_whole,
    known_settings,
    paper_protocol,
)
from kmixup.lab.store import Row, Store, read
from kmixup.lab.train import DEVICES
from kmixup.lab.unit import units

RUNNING = "running"  # the folder of checkpoints of trials that have not ended


def expand(
    *,
    data: str | Sequence[str],
    model: str | Sequence[str] | None = None,
    method: str | Sequence[str] = "kmixup",
    k: int | Sequence[int] = 16,
    alpha: float | Sequence[float] = 1.0,
    alpha_rule: str | Sequence[str] = "same",
    pairing: str | Sequence[str] = "loaders",
    layers: str | Sequence[str] | None = None,
    trials: int = 1,
    seed: int = 0,
    limit: int | None = None,
    scaling: str | Sequence[str] | None = None,
    size: int | None = None,
    target: str | None = None,
    noise: float | Sequence[float] = (),
    fgsm: float | Sequence[float] = (),
    protocol: Mapping[str, Any] | None = None,
) -> list[Trial]:
    """The trials of a grid, each once: a list is swept, a single value is a list of one.

    Args:
        data, limit, scaling, size, target: as `kmixup.lab.data.load` takes them.
        model: by default the paper's for the data set.
        method, k, alpha, alpha_rule, pairing, layers: as in `Method`; what a method has no
            use for does not multiply it.
        trials: seeds `seed`, `seed + 1`, … of every cell.
        noise, fgsm: levels of further tests, in 255ths; not swept, a network takes all.
        protocol: settings to replace in the paper's protocol for the data set.

    >>> len(expand(data="iris", method=["erm", "kmixup"], k=[1, 4], alpha=[0.1, 1], trials=5))
    25
    """
    check_whole("trials", trials)
    check_whole("seed", seed, least=0)
    settings = {
        key: [value] if key == "milestones" and not _nested(value) else _values(key, value)
        for key, value in known_settings(Protocol, protocol or {}, "protocol.").items()
    }
    choices = {
        "method": method, "k": k, "alpha": alpha, "alpha_rule": alpha_rule, "pairing": pairing,
        "layers": layers,
    }  # fmt: skip
    mixing = product(*(_values(key, value) for key, value in choices.items()))
    # methods collapse into fewer when a name leaves no choice
    methods = dict.fromkeys(Method(*one) for one in mixing)
    found = []
    for name in _values("data", data):
        own = None if name in ENTRIES else load(name, limit=limit, target=target)
        kind, usual = usual_for(name, own)
        networks = [usual] if model is None else _values("model", model)
        for scale, network, *values in product(
            _values("scaling", scaling), networks, *settings.values()
        ):
            one = replace(paper_protocol(name, kind), **dict(zip(settings, values, strict=True)))
            found += [
                Trial(
                    name, network, how, one, number, limit, scale, size, target,
                    tuple(_list(noise)), tuple(_list(fgsm)),
                )
                for number in range(seed, seed + trials)
                for how in methods
            ]  # fmt: skip
    return list(dict.fromkeys(found))


def read_config(path: str | Path) -> list[Trial]:
    """The trials of a grid that a TOML file describes, with the names of `expand`."""
    path = Path(path)
    try:
        with path.open("rb") as stream:
            config = tomllib.load(stream)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be TOML: {error}") from error
    names = expand.__kwdefaults__ or {}
    for key in config:
        if key != "data" and key not in names:
            raise ValueError(
                f"{key} in {path} is not a setting: those of a sweep are data, {', '.join(names)}"
            )
    if "data" not in config:
        raise ValueError(f'{path} must name its data, e.g. data = "iris"')
    try:
        return expand(**config)
    except TypeError as error:
        raise ValueError(f"{path} has a value of the wrong kind: {error}") from error


@dataclass(frozen=True)
class Outcome:
    """How a sweep ended: its rows that count, and how many trials were run just now."""

    rows: list[Row]
    ran: int

    @property
    def failed(self) -> list[Row]:
        return [row for row in self.rows if row["status"] != "done"]


def sweep(
    trials: Sequence[Trial],
    folder: str | Path,
    *,
    engine: Engine,
    device: str = "auto",
    started: Callable[[Sequence[Trial], Sequence[Trial]], object] = lambda all_, todo: None,
    ended: Callable[[Sequence[Row]], object] = lambda rows: None,
) -> Outcome:
    """Run the trials that have no row in `folder` yet, and give the rows of all.

    Args:
        trials: those of `expand` or `read_config`.
        folder: the store; it may hold rows of other sweeps.
        engine: `Local` or `Ray`.
        device: what each worker trains on, as in `train`.
        started: called with all trials, and with those to run.
        ended: called with rows as soon as they are safe.
    """
    if device not in DEVICES:
        raise ValueError(f"device must be one of {', '.join(DEVICES)}, got {device!r}")
    wanted = {trial.id: trial for trial in trials}
    with Store(folder) as store:
        known = {row["id"] for row in read(store.folder) if row["status"] == "done"}
        todo = [trial for name, trial in wanted.items() if name not in known]
        started(list(wanted.values()), todo)
        running = store.folder / RUNNING
        running.mkdir(exist_ok=True)
        for name in known & set(os.listdir(running)):  # a crash came between row and removal
            shutil.rmtree(running / name)
        heavy_first = sorted(units(todo), key=lambda unit: -sum(map(weight, unit)))
        with closing(engine.rows(heavy_first, device=device, running=running)) as ending:
            for rows in ending:
                store.append(rows)
                for row in rows:
                    if row["status"] == "done":
                        shutil.rmtree(running / row["id"], ignore_errors=True)
                ended(rows)
        if not any(running.iterdir()):
            running.rmdir()
    return Outcome([row for row in read(folder) if row["id"] in wanted], len(todo))


def weight(trial: Trial) -> float:
    """Roughly in proportion to the time of a trial, among trials of one network."""
    samples = ENTRIES[trial.data].train if trial.data in ENTRIES else 1000
    return trial.protocol.epochs * min(samples, trial.limit or samples)


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _values(name: str, value: Any) -> list[Any]:
    if not (values := _list(value)):
        raise ValueError(f"{name} must have at least one value, got an empty list")
    return values


def _nested(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(
        isinstance(entry, (list, tuple)) for entry in value
    )
