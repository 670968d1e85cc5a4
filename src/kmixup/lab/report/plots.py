"""Plots that several reports share. Every function returns what draws into axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from kmixup.lab.plotting import BLACK, BLUE, DASHES, FAINT, RED, k_axis, shade
from kmixup.lab.report.cells import Cell
from kmixup.lab.report.document import Figure
from kmixup.lab.report.stats import Ranking

MARKERS = "osD^vPX*"  # of lines: neighbours differ most
Draw = Callable[[Axes], None]


@dataclass(frozen=True)
class Curve:
    """One line of a plot, with error bars if there are any."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    errors: tuple[float, ...] = ()

    @property
    def top(self) -> float:
        """The highest point with its error bar, 0 without points."""
        return max((y + e for y, e in zip_longest(self.y, self.errors, fillvalue=0.0)), default=0.0)


def against_k(
    curves: Sequence[Curve], *, ylabel: str, top: float | None = None, erm: float | None = None
) -> Draw:
    """Error against k, with a line for ERM, which has no k. Plots of equal `top` compare."""

    def draw(axes: Axes) -> None:
        if erm is not None:
            axes.axhline(erm, color=BLACK, ls="dashed", linewidth=1.2, label="ERM")
        _with_bars(axes, curves)
        k_axis(axes, sorted({k for curve in curves for k in curve.x}))
        axes.set_ylim(0, top)
        axes.set_ylabel(ylabel)

    return draw


def against_alpha(curves: Sequence[Curve], *, ylabel: str) -> Draw:
    """Error against alpha on a logarithmic scale."""

    def draw(axes: Axes) -> None:
        _with_bars(axes, curves)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(0, 1.08 * max((curve.top for curve in curves), default=1.0) or 1.0)
        axes.set(xlabel="alpha", ylabel=ylabel)

    return draw


def _with_bars(axes: Axes, curves: Sequence[Curve]) -> None:
    for i, curve in enumerate(curves):
        axes.errorbar(
            curve.x,
            curve.y,
            yerr=curve.errors if any(curve.errors) else None,
            label=curve.label,
            color=shade(i, len(curves)),
            marker=MARKERS[i % len(MARKERS)],
            markersize=4.5,
            linewidth=1.4,
            capsize=2.5,
        )


def training(curves: Sequence[Curve], *, ylabel: str) -> Draw:
    """A number of every epoch, one line for each method."""

    def draw(axes: Axes) -> None:
        for i, curve in enumerate(curves):
            colour, dash = shade(i, len(curves)), DASHES[:4][i % 4]
            axes.plot(curve.x, curve.y, label=curve.label, color=colour, ls=dash, linewidth=1.6)
        axes.set_ylim(bottom=0)
        axes.set(xlabel="epoch", ylabel=ylabel)

    return draw


def training_curve(cell: Cell, label: str, what: str) -> Curve | None:
    """The mean over trials of a stored curve, "loss" or "error", at epochs that all have."""
    stored = [row.curve for row in cell.done if row.curve is not None]
    if not stored:
        return None
    trials = [dict(zip(curve.epoch, getattr(curve, what), strict=True)) for curve in stored]
    epochs = sorted(set.intersection(*map(set, trials)))
    if not epochs:
        return None
    scale = cell.unit.factor if what == "error" else 1
    means = tuple(scale * fmean(trial[epoch] for trial in trials) for epoch in epochs)
    return Curve(label, tuple(epochs), means)


LINE = 0.26  # inches of a method in the diagram of ranks
HEAD = 1.2  # lines between the scale and the critical difference above it
GAP = 0.55  # lines between two bars


def critical_difference(ranking: Ranking) -> Figure:
    """Mean ranks on a scale, best to the left; bars join methods without significant difference."""
    n, bars = len(ranking.names), ranking.groups
    start = GAP * (len(bars) + 1)  # of the first method
    right = max(float(n), 1 + (ranking.critical or 0.0))

    def draw(axes: Axes) -> None:
        axes.grid(False)
        for i, rank in enumerate(ranking.ranks):
            y = start + i
            axes.plot([0.8, rank, rank], [y, y, 0], color=FAINT, linewidth=0.9, zorder=1)
            axes.plot(rank, y, "o", color=BLUE, zorder=3)
            axes.annotate(
                f"{rank:.2f}", (rank, y), xytext=(5, 0), textcoords="offset points", va="center",
                fontsize=8,
            )  # fmt: skip
        for i, (first, last) in enumerate(bars):
            ends = [ranking.ranks[first] - 0.07, ranking.ranks[last] + 0.07]
            axes.plot(ends, [GAP * (i + 1)] * 2, color=BLACK, linewidth=3.5, zorder=2)
        if ranking.critical is not None:
            ends = [1.0, 1 + ranking.critical]
            axes.plot(ends, [-HEAD] * 2, color=RED, linewidth=1.6, marker="|", clip_on=False)
            axes.text(
                sum(ends) / 2, -HEAD - 0.2, f"critical difference {ranking.critical:.2f}",
                ha="center", va="bottom", fontsize=8.5, color=RED,
            )  # fmt: skip
        axes.set(xlim=(0.8, right + 0.5), ylim=(start + n - 0.4, -HEAD - 1.2))
        axes.set_xticks(range(1, math.ceil(right) + 1))
        axes.spines[["left", "bottom"]].set_visible(False)
        axes.spines["top"].set(visible=True, position=("data", 0), bounds=(1, math.ceil(right)))
        axes.tick_params(axis="x", top=True, bottom=False, labeltop=True, labelbottom=False, pad=1)
        axes.set_yticks([start + i for i in range(n)], list(ranking.names))
        axes.tick_params(axis="y", length=0)

    note = "1 is the lowest error on every data set."
    if ranking.critical is not None:
        note += (
            " Black bars join methods whose mean ranks are less than the critical difference apart "
            "(Nemenyi, 95 %): no significant difference."
        )
    return Figure("Mean ranks", draw, note, size=(4.6, LINE * (start + n + HEAD + 2)))
