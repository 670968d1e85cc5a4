"""Grids of trials: the product of their lists.

Trial number t has the same split, first weights and order in every cell, so that cells can
be compared in pairs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from kmixup.lab.data import ENTRIES
from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.train.config import (
    Method,
    Protocol,
    Trial,
    check_whole,
    known_settings,
    shifts_from,
)
from kmixup.lab.train.defaults import defaults_for
from kmixup.lab.train.setup import load_data


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
    memory: int | Sequence[int] | None = None,
    labels: float | Sequence[float] | None = None,
    match_on: str | Sequence[str] | None = None,
    trials: int = 1,
    seed: int = 0,
    limit: int | None = None,
    samples: int | Sequence[int] | None = None,
    scaling: str | Sequence[str] | None = None,
    size: int | None = None,
    target: str | None = None,
    drop: Sequence[str] | None = None,
    task: str | None = None,
    resize: tuple[int, int] | None = None,
    class_weights: str | None = None,
    clean_statistics: bool | None = None,
    protocol: Mapping[str, Any] | None = None,
    **shifts: float | Sequence[float],
) -> list[Trial]:
    """The trials of a grid, each once. A list is swept; a single value is a list of one.

    Args:
        data, limit, samples, scaling, size, target, drop, task, resize: as `kmixup.lab.data.load`
            takes them; the last three are not swept.
        class_weights, clean_statistics: as in `Trial`; not swept.
        model: by default the paper's for the data set.
        method, k, alpha, alpha_rule, pairing, layers, memory, labels, match_on: as in `Method`.
            A setting that a method does not use does not multiply its trials.
        trials: seeds `seed`, `seed + 1`, … of every cell.
        protocol: settings to replace in the paper's protocol for the data set.
        shifts: levels of tests under each of `SHIFTS`, e.g. `noise=[8, 16]`; they are not
            swept, a network takes all.

    >>> len(expand(data="iris", method=["erm", "kmixup"], k=[1, 4], alpha=[0.1, 1], trials=5))
    25
    """
    check_whole("trials", trials)
    tested = shifts_from({name: _list(levels) for name, levels in shifts.items()})
    check_whole("seed", seed, least=0)
    settings = {
        key: [value] if key == "milestones" and not _nested(value) else _values(key, value)
        for key, value in known_settings(Protocol, protocol or {}, "protocol.").items()
    }
    choices = {
        "method": method, "k": k, "alpha": alpha, "alpha_rule": alpha_rule, "pairing": pairing,
        "layers": layers, "memory": memory, "labels": labels, "match_on": match_on,
    }  # fmt: skip
    mixing = product(*(_values(key, value) for key, value in choices.items()))
    # methods that ignore a setting become equal, and are kept once
    methods = dict.fromkeys(Method(*values) for values in mixing)
    reading: dict[str, Any] = {
        "drop": None if drop is None else tuple(_list(drop)),
        "task": task,
        "resize": None if resize is None else tuple(_list(resize)),
        "class_weights": class_weights,
        "clean_statistics": clean_statistics,
    }
    grid = []
    for name in _values("data", data):
        own = None
        if name not in ENTRIES:
            own = load_data(Trial(name, "", limit=limit, target=target, **reading))
        usual = defaults_for(name, own)
        networks = [usual.model] if model is None else _values("model", model)
        for scale, count, network, *values in product(
            _values("scaling", scaling), _values("samples", samples), networks, *settings.values()
        ):
            how = replace(usual.protocol, **dict(zip(settings, values, strict=True)))
            grid += [
                Trial(
                    name, network, mixed, how, number, limit, scale, size, target,
                    tested, samples=count, **reading,
                )
                for number in range(seed, seed + trials)
                for mixed in methods
            ]  # fmt: skip
    return list(dict.fromkeys(grid))


def read_config(path: str | Path) -> list[Trial]:
    """The trials of a grid that a TOML file describes, with the names of `expand`."""
    path = Path(path)
    try:
        with path.open("rb") as stream:
            config = tomllib.load(stream)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be TOML: {error}") from error
    names = [*(expand.__kwdefaults__ or {}), *SHIFTS]
    for key in config:
        if key != "data" and key not in names:
            if key in (field.name for field in fields(Protocol)):
                raise ValueError(f"{key} in {path} must stand below [protocol], stands outside")
            raise ValueError(
                f"{key} in {path} is not a setting: those of a sweep are data, {', '.join(names)}"
            )
    if "data" not in config:
        raise ValueError(f'{path} must name its data, e.g. data = "iris"')
    try:
        return expand(**config)
    except TypeError as error:
        raise ValueError(f"{path} has a value of the wrong kind: {error}") from error


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
