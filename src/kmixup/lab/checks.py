"""Checks of settings, which raise `SettingError`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from kmixup._checks import SettingError, check_choice, check_number, check_whole, did_you_mean

__all__ = [
    "SettingError",
    "check_choice",
    "check_number",
    "check_whole",
    "did_you_mean",
    "known_settings",
]


def known_settings(kind: type, settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return `settings` as a dict; raise where the dataclass `kind` has no such field."""
    names = [field.name for field in fields(kind)]
    for key in settings:
        if key not in names:
            raise ValueError(
                f"{prefix}{key} is not a setting: those of a {kind.__name__} are {', '.join(names)}"
            )
    return dict(settings)
