"""Checks of arguments, and the error that names the argument."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from operator import index
from typing import Any

import numpy as np

# control characters but for tabs and line ends: a terminal takes some of them for commands
CONTROLS = dict.fromkeys(set(range(160)) - set(range(32, 127)) - {9, 10, 13})
LISTED = 20  # names in an error message


class SettingError(ValueError):
    """An argument has a value that it cannot have.

    The argument is kept apart from the rest of the sentence, so that the command line can name
    its option instead.

    >>> error = SettingError("batch_size", "must be at least 2, got 1")
    >>> str(error)
    'batch_size must be at least 2, got 1'
    >>> error.as_option(["--batch-size", "--k"])
    '--batch-size must be at least 2, got 1'

    Args:
        setting: name of the argument.
        problem: the rest of the sentence: rule, value and remedy.
    """

    def __init__(self, setting: str, problem: str) -> None:
        super().__init__(setting, problem)
        self.setting, self.problem = setting, problem

    def __str__(self) -> str:
        return f"{self.setting} {self.problem}"

    def as_option(self, options: Collection[str]) -> str:
        """Return the sentence with the argument as a command-line option, if it is in `options`."""
        option = f"--{self.setting.replace('_', '-')}"
        return f"{option if option in options else self.setting} {self.problem}"


def check_whole(name: str, value: object, *, least: int | None = 1) -> int:
    """Return `value` as an int; raise if it is not a whole number of at least `least`."""
    try:
        number = None if _is_flag(value) else index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or (least is not None and number < least):
        bound = "" if least is None else f", at least {least}"
        raise SettingError(name, f"must be a whole number{bound}, got {value!r}")
    return number


def check_number(
    name: str,
    value: object,
    rule: str = "a finite number",
    holds: Callable[[float], bool] = math.isfinite,
) -> float:
    """Return `value` as a float; raise with its `rule` if it is no number for which that holds."""
    try:
        if not _is_flag(value) and holds(number := float(value)):  # type: ignore[arg-type]
            return number
    except (TypeError, ValueError, RuntimeError):  # no number, or several
        pass
    raise SettingError(name, f"must be {rule}, got {value!r}")


def check_probability(name: str, value: object) -> float:
    """Return `value` as a float; raise if it is not a probability."""
    return check_number(name, value, "a probability in [0, 1]", lambda number: 0 <= number <= 1)


def check_fraction(name: str, value: object) -> float:
    """Return `value` as a float; raise if it is not between 0 and 1."""
    rule = "a fraction between 0 and 1, e.g. 0.2"
    return check_number(name, value, rule, lambda number: 0 < number < 1)


def check_range(name: str, value: Any) -> None:
    """Raise unless `value` is a pair of rising fractions."""
    try:
        low, high = value
        rising = 0 <= low <= high <= 1
    except (TypeError, ValueError):  # no pair, or no numbers
        rising = False
    if not rising:
        raise SettingError(
            name, f"must be two rising fractions in [0, 1], got {value}: use e.g. (0.2, 0.8)"
        )


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Raise unless `value` is one of the choices."""
    if value not in (known := tuple(choices)):
        raise SettingError(name, f"must be one of {', '.join(map(str, known))}, got {value!r}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest known names like a name, whatever its case and dashes, or else list the first ones.

    >>> did_you_mean("KMixUp", ["mixup", "kmixup"]), did_you_mean("x", ["mixup", "kmixup"])
    ("did you mean 'kmixup' or 'mixup'?", 'there are mixup, kmixup')
    """
    names = list(known)
    lower = {each.lower().replace("_", "-"): each for each in reversed(names)}
    if close := get_close_matches(name.lower().replace("_", "-"), lower, n=3):
        return f"did you mean {' or '.join(repr(lower[each]) for each in close)}?"
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return f"there are {', '.join(names[:LISTED])}{more}" if names else "there are none"


def _is_flag(value: object) -> bool:
    """Return whether a value is no number though it converts to one: a boolean or a string."""
    return isinstance(value, (bool, np.bool_, str, bytes))
