"""Checks of settings, and the error that they raise."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from typing import Any


class SettingError(ValueError):
    """A setting has a value that it cannot have.

    The setting is kept apart from the rest of the sentence, so that the command line can name
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


def check_whole(name: str, value: object, *, least: int = 1) -> None:
    """Raise unless `value` is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SettingError(name, f"must be a whole number, at least {least}, got {value!r}")


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise unless `value` is one of the choices."""
    if value not in (known := tuple(choices)):
        raise SettingError(name, f"must be one of {', '.join(known)}, got {value!r}")


def known_settings(kind: type, settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return `settings` as a dict; raise where the dataclass `kind` has no such field."""
    names = [field.name for field in fields(kind)]
    for key in settings:
        if key not in names:
            raise ValueError(
                f"{prefix}{key} is not a setting: those of a {kind.__name__} are {', '.join(names)}"
            )
    return dict(settings)
