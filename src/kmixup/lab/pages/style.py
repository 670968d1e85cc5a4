"""One look for all plots.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart. Things that are
compared also differ in lightness, marker or dashes, for print in grey.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

Array = NDArray[np.float64]
P = ParamSpec("P")

ORANGE, BLUE, GREEN, PURPLE, SKY, RED, YELLOW, BLACK = (
    "#e69f00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#000000",
)  # fmt: skip
COLOURS = (ORANGE, BLUE, GREEN, PURPLE, SKY, RED, YELLOW, BLACK)
MARKERS = "o^sDvP*"  # one fewer than colours, so that 56 classes look different
DASHES = ("solid", "dashed", "dashdot", "dotted", (0, (6, 1, 1, 1, 1, 1)))
SCALE = "cividis_r"  # light for 0, dark for 1, as are the first two classes
FAINT = "#bbbbbb"
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.markersize": 4.5,
    "svg.hashsalt": "kmixup",  # ids that are not random
}
# inside of a page: text stays text, to be searched and read aloud, and is a little larger
INLINE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 10,
    "legend.fontsize": 9,
    "axes.grid": True,
}


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Let a function draw in this style, whatever the caller's settings are."""

    @wraps(draw)
    def call(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with in_style():
            return draw(*args, **kwargs)

    return call


@contextmanager
def in_style(**changes: Any) -> Iterator[None]:
    """Matplotlib's own defaults with `STYLE` on top, and `changes` on top of that."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE | changes)
        yield


def panels(
    rows: int, columns: int, *, size: tuple[float, float] = (2.3, 2.3), **options: Any
) -> tuple[Figure, NDArray[Any]]:
    """A figure with a grid of axes `(rows, columns)`, each `size` inches."""
    figure = Figure(figsize=(columns * size[0], rows * size[1]), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def k_axis(axes: Axes, ks: Sequence[float]) -> None:
    """Make the horizontal axis that of k, by powers of two."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(ks, [f"{k:g}" for k in ks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("k")


def shade(i: int, n: int) -> tuple[float, ...]:
    """The colour of line `i` of `n` that have an order, from dark to light."""
    # the light end of the scale is hard to see on white
    return tuple(matplotlib.colormaps["viridis"](0.85 * i / max(n - 1, 1)))
