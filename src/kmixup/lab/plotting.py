"""Plots: one style for all figures, written as SVG, PNG and parts of HTML pages.

Colours are those of Okabe and Ito, safe for colour-blind readers. Things that are compared also
differ in lightness, marker or dashes, for print in grey. The same figure always gives the same
bytes.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from kmixup.lab._files import replace_content

Array = NDArray[np.float64]
P = ParamSpec("P")

ORANGE, BLUE, GREEN, PURPLE, SKY, RED, YELLOW, BLACK = (
    "#e69f00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#000000",
)  # fmt: skip
COLOURS = (ORANGE, BLUE, GREEN, PURPLE, SKY, RED, YELLOW, BLACK)
MARKERS = "o^sDvP*"  # one fewer than colours, so that 56 classes look different
DASHES = ("solid", "dashed", "dashdot", "dotted", (0, (6, 1, 1, 1, 1, 1)))
SCALE = "cividis_r"  # light for 0, dark for 1, as are the first two classes
ORDERED = LinearSegmentedColormap.from_list("ordered", ["#d55e00", "#b5579f", "#3f7fd0", "#008f6c"])
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
# in a page: text stays text, to be searched and read aloud, and is a little larger
INLINE: dict[Any, Any] = {
    "svg.fonttype": "none", "font.size": 10, "legend.fontsize": 9, "axes.grid": True,
}  # fmt: skip

DPI = 130
SIZE = (4.2, 3.4)  # inches of an inline drawing, of 72 points
UNDATED = dict.fromkeys(("Date", "Creator"))


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
    """The colour of line `i` of `n` that have an order, readable on white and on dark pages."""
    return tuple(ORDERED(i / max(n - 1, 1)))


def svg(figure: Figure, about: Mapping[str, str]) -> bytes:
    """A figure as an SVG file; `about` has its title and description."""
    return _file(figure, "svg", {**about, **UNDATED})


def png(figure: Figure, about: Mapping[str, str] = {}) -> bytes:
    """A figure as a PNG file with texts `about` it."""
    return _file(figure, "png", {**about, "Software": None})


def _file(figure: Figure, kind: str, about: Mapping[str, str | None]) -> bytes:
    stream = io.BytesIO()
    with in_style():
        figure.savefig(stream, format=kind, dpi=DPI, metadata=about)
    return stream.getvalue()


def data_uri(picture: bytes) -> str:
    """A PNG file as the source of an image of a page."""
    return "data:image/png;base64," + base64.b64encode(picture).decode()


def inline(
    draw: Callable[[Axes], None], name: str, *, ncols: int = 0, size: tuple[float, float] = SIZE
) -> Markup:
    """What `draw` draws as SVG for a page, with a legend of `ncols` columns below, if any.

    `name` goes into all ids, so every drawing of a page has another.
    """
    stream = io.StringIO()
    with in_style(**INLINE, **{"svg.hashsalt": name}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.subplots())
        if ncols:
            figure.legend(loc="outside lower center", ncols=ncols)
        nothing = {**UNDATED, "Format": None, "Type": None}
        figure.savefig(stream, format="svg", transparent=True, metadata=nothing)
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r' id="', f' id="{name}-', text)
    text = re.sub(r"(url\(|href=\")#", rf"\1#{name}-", text)
    return Markup(text.strip())


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as SVG and PNG, and its label as text, each whole or not at all."""
    caption = str(figure.get_label())
    about = {"Title": f"kmixup: {name}", "Description": caption}
    contents: dict[Path, str | bytes] = {
        folder / f"{name}.svg": svg(figure, about),
        folder / f"{name}.png": png(figure, about),
        folder / f"{name}.txt": f"{caption}\n",
    }
    for path, content in contents.items():
        replace_content(path, content)
    return list(contents)
