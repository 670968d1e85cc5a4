"""Tables on coloured ground: cells that are read as text and seen as a map.

The scales are safe for colour-blind eyes, and the text on them is black or white, whichever
stands out more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import quantiles

import matplotlib
from matplotlib.colors import to_hex

from kmixup.lab.formatting import TextTable

Tint = Callable[[float | None], str]  # a CSS style, empty for no number


@dataclass(frozen=True)
class Box:
    """One cell of a heat map.

    Attributes:
        text: its figure.
        small: stands below the figure in smaller print.
        style: its colours as CSS.
        best: whether it is framed as the best.
    """

    text: str
    small: str = ""
    style: str = ""
    best: bool = False


@dataclass(frozen=True)
class HeatMap:
    """Boxes in rows and columns.

    Attributes:
        title: stands above the map.
        head: one or two lines over every column.
        rows: a label and its boxes; a single box is as wide as all columns.
    """

    title: str
    head: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, tuple[Box, ...]], ...]

    def table(
        self, *, between: str, between_heads: str, best: str = "", caption: str = ""
    ) -> TextTable:
        """The map without colours.

        Args:
            between: stands between the figure of a box and what is below it.
            between_heads: stands between the lines of a heading.
            best: stands before the figure of the best box.
            caption: stands below the table.
        """
        header = [between_heads.join(lines).strip() for lines in self.head]
        rows = [
            (label, *(f"{best * box.best}{box.text}{between}{box.small}".strip() for box in boxes))
            for label, boxes in self.rows
        ]
        return TextTable(["", *header], rows, self.title, caption)


def fence(values: Sequence[float]) -> float:
    """The greatest value, or Tukey's far fence where outliers lie beyond it.

    One cell that failed to learn would otherwise make all others look alike.

    >>> fence([1.0, 2.0, 3.0, 4.0]), fence([1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 90.0])
    (4.0, 8.0)
    """
    top = max(values, default=0.0)
    if len(values) < 5:
        return top
    lower, _, upper = quantiles(values, method="inclusive")
    far = upper + 3 * (upper - lower)
    return min(top, far) if far > min(values) else top


def sequential(values: Iterable[float | None]) -> Tint:
    """From the least value, dark, to the greatest, light.

    The square root spreads the small errors, in which methods differ, over more of the scale.
    """
    known = [value for value in values if value is not None]
    low, high = (min(known), fence(known)) if known else (0.0, 0.0)

    def share(value: float) -> float:
        return math.sqrt(min(max(value - low, 0.0) / (high - low), 1.0)) if high > low else 0.0

    return _tint("viridis", share)


def diverging(values: Iterable[float | None]) -> Tint:
    """White at 0, violet below and orange above, as far as the greatest value either way.

    Outliers have the colour of the end.
    """
    reach = fence([abs(value) for value in values if value is not None])

    def share(value: float) -> float:
        within = max(-1.0, min(value / reach, 1.0)) if reach else 0.0
        return 0.5 - 0.4 * within  # the ends are too dark for text

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
