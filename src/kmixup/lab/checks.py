"""Checks of settings, which raise `SettingError`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from kmixup._checks import SettingError, check_choice


def known_settings(kind: type, settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return `settings` as a dict; raise where the dataclass `kind` has no such field."""
    names = [field.name for field in fields(kind)]
    for key in settings:
        if key not in names:
            raise ValueError(
                f"{prefix}{key} is not a setting: those of a {kind.__name__} are {', '.join(names)}"
            )
    return dict(settings)


def check_choices(settings: object) -> None:
    """Raise unless fields of a dataclass that declare a `Literal` have one of its words."""
    kind: type = type(settings)
    for name, words, optional in _words(kind):
        if (value := getattr(settings, name)) is not None or not optional:
            check_choice(name, value, words)


@cache
def _words(kind: type) -> tuple[tuple[str, tuple[Any, ...], bool], ...]:
    """Return the fields that declare a `Literal`, its words, and whether None is allowed too."""
    found = []
    for name, hint in _hints(kind):
        parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        words = [get_args(part) for part in parts if get_origin(part) is Literal]
        if words:
            found.append((name, words[0], type(None) in parts))
    return tuple(found)


def check_types(settings: Any) -> None:
    """Raise unless all fields of a dataclass, and of those inside, have the types they declare.

    Settings that come from a file may have any. A whole number may stand for a float.
    """
    kind: type = type(settings)
    for name, hint in _hints(kind):
        if not _fits(value := getattr(settings, name), hint):
            words = hint.__name__ if isinstance(hint, type) else str(hint)
            raise SettingError(name, f"must be {words}, got {value!r}")


@cache
def _hints(kind: type) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, hints[field.name]) for field in fields(kind))


@cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...], bool]:
    return get_origin(hint), get_args(hint), is_dataclass(hint)


def _fits(value: Any, hint: Any) -> bool:
    origin, inside, nested = _parts(hint)
    if nested and isinstance(value, hint):
        check_types(value)
        return True
    if origin in _RULES:
        return _RULES[origin](value, inside)
    if hint in (int, float) and type(value) is int:
        return abs(value) < 1 << 63  # larger ones overflow arrays and floats
    return hint is Any or type(value) is hint


def _fits_one(value: Any, kinds: tuple[Any, ...]) -> bool:
    return any(_fits(value, kind) for kind in kinds)


def _fits_literal(value: Any, words: tuple[Any, ...]) -> bool:
    return any(type(value) is type(word) and value == word for word in words)


def _fits_tuple(value: Any, kinds: tuple[Any, ...]) -> bool:
    if not isinstance(value, tuple):
        return False
    if ... in kinds:
        kinds = kinds[:1] * len(value)
    return len(value) == len(kinds) and all(map(_fits, value, kinds))


def _fits_mapping(value: Any, kinds: tuple[Any, ...]) -> bool:
    return isinstance(value, Mapping) and all(_fits_tuple(item, kinds) for item in value.items())


_RULES: dict[Any, Callable[[Any, tuple[Any, ...]], bool]] = {
    Union: _fits_one,
    UnionType: _fits_one,
    Literal: _fits_literal,
    tuple: _fits_tuple,
    Mapping: _fits_mapping,
}
