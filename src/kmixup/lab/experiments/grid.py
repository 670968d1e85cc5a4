"""Grids of trials: the product of their lists.

Trial number t has the same split, first weights and order in every cell, so that cells can
be compared in pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from kmixup._checks import SettingError, check_whole
from kmixup.lab._files import read_toml
from kmixup.lab.checks import check_types, known_settings
from kmixup.lab.data import ENTRIES, Dataset, digest
from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.train.defaults import defaults_for
from kmixup.lab.train.setup import load_data
from kmixup.lab.trial import Method, Protocol, Trial, code_of, shifts_from

METHOD = ("method", *(field.name for field in fields(Method) if field.name != "name"))
SEQUENCES = ("milestones", "drop", "resize")  # one value is a list already
SET_BY_GRID = ("shifts", "split", "digest", "code")  # fields of a trial that a grid sets itself
TRIAL = tuple(
    field.name
    for field in fields(Trial)
    if field.name not in ("data", "model", "method", "protocol", "seed", *SET_BY_GRID)
)
SETTINGS = (*METHOD, *TRIAL, *SHIFTS)
MOST = 100_000  # trials of a grid


def expand(
    *,
    data: str | Sequence[str],
    model: str | Sequence[str] | None = None,
    trials: int = 1,
    seed: int = 0,
    protocol: Mapping[str, Any] | None = None,
    **settings: Any,
) -> list[Trial]:
    """Return the trials of a grid, each once. A list is swept; a single value is a list of one.

    A cell has the seeds `seed`, `seed + 1`, …; `protocol` replaces settings of the paper's for the
    data set. `settings` are `method` and the other fields of a `Method`, fields of a `Trial` such
    as `limit`, and levels of tests under each of `SHIFTS`, e.g. `noise=[8, 16]`, which are not
    swept. A setting that a method does not use does not multiply its trials.

    >>> len(expand(data="iris", method=["erm", "kmixup"], k=[1, 4], alpha=[0.1, 1], trials=5))
    25
    """
    trials, seed = check_whole("trials", trials), check_whole("seed", seed, least=0)
    _check_names(settings)
    protocol = protocol or {}
    named = {"data": data} if model is None else {"data": data, "model": model}
    _check_size(trials, named | settings, protocol)
    tested = shifts_from({key: _list(levels) for key, levels in _given(settings, SHIFTS).items()})
    mixing = {"method": "kmixup"} | _given(settings, METHOD)
    # methods that ignore a setting become equal, and are kept once
    methods = dict.fromkeys(Method(chosen.pop("method"), **chosen) for chosen in _choices(mixing))
    options = list(_choices(_given(settings, TRIAL)))
    changes = list(_choices(known_settings(Protocol, protocol, "protocol.")))
    for chosen in options:
        check_types(Trial("", "", **chosen))
    for part in (*methods, *(replace(Protocol(), **change) for change in changes)):
        check_types(part)
    grid = []
    for name in _values("data", data):
        own = None if name in ENTRIES else load_data(Trial(name, "", **options[0]))
        digests = _digests(name, own, options)
        usual = defaults_for(name, own)
        networks = [usual.model] if model is None else _values("model", model)
        codes = {
            (network, mixed.name): code_of(name, network, mixed.name)
            for network, mixed in product(networks, methods)
        }
        for chosen, network, change in product(options, networks, changes):
            how = replace(usual.protocol, **change)
            common = {"shifts": tested, "digest": digests[chosen.get("test")], **chosen}
            grid += [
                Trial(name, network, mixed, how, number, code=codes[network, mixed.name], **common)
                for number in range(seed, seed + trials)
                for mixed in methods
            ]
    return list(dict.fromkeys(grid))


def read_config(path: str | Path) -> list[Trial]:
    """Return the trials of a grid from a TOML file, whose keys are the arguments of `expand`."""
    path = Path(path)
    config = read_toml(path)
    for key in config:
        if key in (field.name for field in fields(Protocol)):
            raise ValueError(f"{key} in {path} must be below [protocol], is outside")
    if "data" not in config:
        raise ValueError(f'{path} must name its data, e.g. data = "iris"')
    try:
        return expand(**config)
    except (AttributeError, OverflowError, TypeError) as error:
        raise ValueError(f"{path} has a value of the wrong kind: {error}") from error


def named_in(path: str | Path) -> list[str]:
    """Return the data, networks and methods that a grid file names."""
    config = read_toml(Path(path))
    values = [value for key in ("data", "model", "method") for value in _list(config.get(key))]
    return [value for value in values if isinstance(value, str)]


def _check_names(settings: Mapping[str, Any]) -> None:
    for name in settings:
        if name not in SETTINGS:
            known = ", ".join(("data", "model", "trials", "seed", "protocol", *SETTINGS))
            raise ValueError(f"{name} is not a setting: those of a grid are {known}")


def _check_size(trials: int, settings: Mapping[str, Any], protocol: Mapping[str, Any]) -> None:
    """Raise before a grid of too many trials is made."""
    swept = [item for item in settings.items() if item[0] not in SHIFTS]
    values = [_values(name, value) for name, value in (*swept, *protocol.items())]
    if (size := trials * math.prod(map(len, values))) > MOST:
        raise ValueError(
            f"the grid must have at most {MOST:,} trials, has {size:,}: shorten its lists, or make "
            "several grids of it"
        )


def _digests(
    name: str, own: Dataset | None, options: Sequence[Mapping[str, Any]]
) -> dict[str | None, str | None]:
    """Return the digests of your own data with each of their test sets."""
    first = options[0]  # which `load_data` has hashed
    digests = {first.get("test"): None if own is None else own.digest}
    for test in {option.get("test") for option in options} - digests.keys():
        reading = {**first, "test": test}
        digests[test] = digest(name, test=test) or load_data(Trial(name, "", **reading)).digest
    return digests


def _given(settings: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the settings that are among `names`, in the order of these."""
    return {name: settings[name] for name in names if name in settings}


def _choices(settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every combination of the values of the settings."""
    values = [_values(name, value) for name, value in settings.items()]
    for chosen in product(*values):
        yield dict(zip(settings, chosen, strict=True))


def _values(name: str, value: Any) -> list[Any]:
    """Return the values that a setting is swept over."""
    if name in SEQUENCES and not any(isinstance(entry, (list, tuple)) for entry in _list(value)):
        return [tuple(_list(value))]
    if not (values := _list(value)):
        raise SettingError(name, "must have at least one value, got an empty list")
    for entry in values:
        if name in ("data", "model") and not isinstance(entry, str):
            raise SettingError(name, f"must be a string or a list of strings, got {entry!r}")
    return values


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value]
