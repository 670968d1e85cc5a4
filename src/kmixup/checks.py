"""Checks of arguments that several classes take."""

from __future__ import annotations

from operator import index


def check_whole(name: str, value: object, least: int | None = None) -> int:
    """Return `value` as an int, or raise if it is not a whole number of at least `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number, got {value!r}: use an int")
    number = index(value)
    if least is not None and number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    return number


def check_probability(name: str, value: float) -> float:
    """Return `value`, or raise if it is not a probability."""
    if not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(f"{name} must be a probability in [0, 1], got {value!r}")
    return value
