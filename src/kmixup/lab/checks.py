"""Checks of settings, which raise `SettingError`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from kmixup._checks import SettingError

__all__ = ["SettingError", "check_choice", "check_whole", "known_settings"]


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
