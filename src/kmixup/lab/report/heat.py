"""Numbers as colours: cells that are read as text and seen as a map.

The scales are safe for colour-blind eyes, and the text on them is black or white, whichever
stands out more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import matplotlib
from matplotlib.colors import to_hex

Tint = Callable[[float | None], str]  # a CSS style, empty for no number


def sequential(values: Iterable[float | None]) -> Tint:
    """From the least value, dark, to the greatest, light.

    The square root spreads the small errors, in which methods differ, over more of the scale.
    """
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)

    def share(value: float) -> float:
        return math.sqrt(min(max(value - low, 0.0) / (high - low), 1.0)) if high > low else 0.0

    return _tint("viridis", share)


def diverging(values: Iterable[float | None]) -> Tint:
    """White at 0, violet below and orange above, as far as the greatest value either way."""
    reach = max((abs(value) for value in values if value is not None), default=0.0)

    def share(value: float) -> float:
        return 0.5 - 0.4 * value / reach if reach else 0.5  # the ends are too dark for text

    return _tint("PuOr", share)


def _tint(name: str, share: Callable[[float], float]) -> Tint:
    colours = matplotlib.colormaps[name]

    def style(value: float | None) -> str:
        if value is None:
            return ""
        red, green, blue, _ = colours(share(value))
        return f"background:{to_hex((red, green, blue))};color:{_ink(red, green, blue)}"

    return style


def _ink(red: float, green: float, blue: float) -> str:
    """Black or white, by the contrast ratio of WCAG 2."""
    linear = [
        v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (red, green, blue)
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    on_black, on_white = (luminance + 0.05) / 0.05, 1.05 / (luminance + 0.05)
    return "#000" if on_black > on_white else "#fff"
