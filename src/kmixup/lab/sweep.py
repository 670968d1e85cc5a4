"""Grids of trials, run to the end whatever happens on the way.

A grid is the product of its lists. Trial number t has the same split, first weights and
order in every cell, so that cells can be compared in pairs. A trial that has a row in the
store is not run again, and one that failed is tried once more: starting a sweep a second
time is how it goes on.
"""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from kmixup.lab.data import ENTRIES, load
from kmixup.lab.engines import Engine
from kmixup.lab.prepare import usual_for
from kmixup.lab.protocol import Method, Protocol, Trial, paper_protocol
from kmixup.lab.store import Row, Store, read
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
    noise: Iterable[float] = (),
    fgsm: Iterable[float] = (),
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
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise ValueError(f"trials must be a whole number, at least 1, got {trials!r}")
    names = [field.name for field in fields(Protocol)]
    for key in protocol or {}:
        if key not in names:
            raise ValueError(
                f"protocol.{key} is not a setting: those of a Protocol are {', '.join(names)}"
            )
    settings = {
        key: [value] if key == "milestones" and not _nested(value) else _list(value)
        for key, value in (protocol or {}).items()
    }
    # methods collapse into fewer when a name leaves no choice
    methods = dict.fromkeys(
        Method(*choice)
        for choice in product(*map(_list, (method, k, alpha, alpha_rule, pairing, layers)))
    )
    found = []
    for name, scale in product(_list(data), _list(scaling)):
        kind, usual = usual_for(
            name, None if name in ENTRIES else load(name, limit=limit, target=target)
        )
        for network, *values in product(_list(model or usual), *settings.values()):
            one = replace(paper_protocol(name, kind), **dict(zip(settings, values, strict=True)))
            found += [
                Trial(
                    name, network, mixing, one, number, limit, scale, size, target,
                    tuple(noise), tuple(fgsm),
                )
                for number in range(seed, seed + trials)
                for mixing in methods
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
    wanted = {trial.id: trial for trial in trials}
    with Store(folder) as store:
        known = {row["id"] for row in read(store.folder) if row["status"] == "done"}
        todo = [trial for name, trial in wanted.items() if name not in known]
        started(list(wanted.values()), todo)
        running = store.folder / RUNNING
        running.mkdir(exist_ok=True)
        heavy_first = sorted(units(todo), key=lambda unit: -sum(map(weight, unit)))
        for rows in engine.rows(heavy_first, device=device, running=running):
            store.append(rows)
            for row in rows:
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


def _nested(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(
        isinstance(entry, (list, tuple)) for entry in value
    )
