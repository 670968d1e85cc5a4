"""Checks of arguments, and the error that names the argument."""

from __future__ import annotations

from collections.abc import Collection
from operator import index

# control characters but for tabs and line ends: a terminal takes some of them for commands
CONTROLS = dict.fromkeys(set(range(160)) - set(range(32, 127)) - {9, 10, 13})


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
        """Return the sentence with the command-line option in place of the argument."""
        option = f"--{self.setting.replace('_', '-')}"
        return f"{option if option in options else self.setting} {self.problem}"


def check_whole(name: str, value: object, least: int | None = None) -> int:
    """Return `value` as an int, or raise if it is not a whole number of at least `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number, got {value!r}: use an int")
    number = index(value)
    if least is not None and number < least:
        raise SettingError(name, f"must be at least {least}, got {number}")
    return number


def check_probability(name: str, value: float) -> float:
    """Return `value`, or raise if it is not a probability."""
    if not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise SettingError(name, f"must be a probability in [0, 1], got {value!r}")
    return value
