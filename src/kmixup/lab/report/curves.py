"""Curves as small inline SVG drawings: error against k, and the course of training.

The text stays text, so that a page can be searched and read aloud, and equal figures give
equal bytes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import fmean
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from kmixup.lab.report.grids import Cell

MARKERS = "osD^vPX*"
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9,
}
SIZE = (4.2, 3.4)  # inches, of 72 points


@dataclass(frozen=True)
class Line:
    """Points of one line; `errors` are the heights of its error bars, empty for none."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    errors: tuple[float, ...] = ()

    @property
    def top(self) -> float:
        """The greatest height with its error bar, 0 without points."""
        return max((y + e for y, e in zip_longest(self.y, self.errors, fillvalue=0.0)), default=0.0)


def against_k(lines: Sequence[Line], *, name: str, top: float | None = None) -> str:
    """Error against k, a line for each column; `top` makes the axes of several drawings equal."""

    def draw(axes: Axes) -> None:
        _with_bars(axes, lines)
        k_axis(axes, sorted({k for line in lines for k in line.x}))
        axes.set_ylim(0, top)
        axes.set_ylabel("error in per cent")

    return svg(draw, name, ncols=3)


def against_alpha(lines: Sequence[Line], *, name: str) -> str:
    """Error against alpha on a logarithmic scale."""

    def draw(axes: Axes) -> None:
        _with_bars(axes, lines)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_ylim(bottom=0)
        axes.set(xlabel="alpha", ylabel="error in per cent")

    return svg(draw, name, ncols=3)


def _with_bars(axes: Axes, lines: Sequence[Line]) -> None:
    for i, line in enumerate(lines):
        axes.errorbar(
            line.x,
            line.y,
            yerr=line.errors if any(line.errors) else None,
            label=line.label,
            color=_shade(i, len(lines)),
            marker=MARKERS[i % len(MARKERS)],
            markersize=4.5,
            linewidth=1.4,
            capsize=2.5,
        )


def training(lines: Sequence[Line], *, ylabel: str, name: str) -> str:
    """A figure of every epoch, a line for each method."""

    def draw(axes: Axes) -> None:
        for i, line in enumerate(lines):
            style = ("solid", "dashed", "dashdot", "dotted")[i % 4]
            colour = _shade(i, len(lines))
            axes.plot(line.x, line.y, label=line.label, color=colour, ls=style, linewidth=1.6)
        axes.set_ylim(bottom=0)
        axes.set(xlabel="epoch", ylabel=ylabel)

    return svg(draw, name, ncols=2)


def course(cell: Cell, label: str, figure: str) -> Line | None:
    """The mean over trials of a stored curve, "loss" or "error", at epochs that all have."""
    curves = [row["curves"] for row in cell.done if row.get("curves")]
    if not curves:
        return None
    points = [dict(zip(curve["epoch"], curve[figure], strict=True)) for curve in curves]
    epochs = sorted(set.intersection(*map(set, points)))
    scale = 100 if figure == "error" else 1
    means = tuple(scale * fmean(one[epoch] for one in points) for epoch in epochs)
    return Line(label, tuple(epochs), means)


def _shade(i: int, n: int) -> tuple[float, ...]:
    # the light end of the scale is hard to see on white
    return tuple(matplotlib.colormaps["viridis"](0.85 * i / max(n - 1, 1)))


def k_axis(axes: Axes, ks: Sequence[float]) -> None:
    """Make the horizontal axis that of k, by powers of two."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(ks, [f"{k:g}" for k in ks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("k")


def svg(draw: Callable[[Axes], None], name: str, *, ncols: int) -> str:
    """What `draw` draws, with a legend below; `name` tells it from others on the page."""
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.subplots()
        draw(axes)
        figure.legend(loc="outside lower center", ncols=ncols)
        stream = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(stream, format="svg", transparent=True, metadata=nothing)
    return _inline(stream.getvalue(), name)


def _inline(svg: str, name: str) -> str:
    """The drawing itself, its ids told from those of the others on the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r' id="', f' id="{name}-', svg)
    svg = re.sub(r"(url\(|href=\")#", rf"\1#{name}-", svg)
    return svg.strip()
