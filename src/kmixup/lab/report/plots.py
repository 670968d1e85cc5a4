"""Plots of reports. Every function returns what draws into axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pandas as pd
from matplotlib.axes import Axes

from kmixup.lab.plotting import BLACK, BLUE, DASHES, FAINT, RED, shade
from kmixup.lab.report.cells import Cell
from kmixup.lab.report.document import Figure
from kmixup.lab.report.stats import Ranking

LINE = 0.26  # inches of a method in the diagram of ranks
HEAD = 1.2  # lines between the scale and the critical difference above it
GAP = 0.55  # lines between two bars


def training_curve(cell: Cell, what: str) -> pd.Series[float]:
    """The mean over trials of a stored curve, "loss" or "error", at epochs that all have."""
    curves = [dict(zip(r.curve.epoch, getattr(r.curve, what), strict=True)) for r in cell.done]
    mean = pd.DataFrame(curves, dtype=float).dropna(axis=1).mean().sort_index()
    return mean * cell.unit.factor if what == "error" else mean


def training(curves: Mapping[str, pd.Series[float]], *, ylabel: str) -> Callable[[Axes], None]:
    """A number of every epoch, one line for each method."""

    def draw(axes: Axes) -> None:
        for i, (label, curve) in enumerate(curves.items()):
            colour, dash = shade(i, len(curves)), DASHES[:4][i % 4]
            axes.plot(curve.index, curve, label=label, color=colour, ls=dash, linewidth=1.6)
        axes.set_ylim(bottom=0)
        axes.set(xlabel="epoch", ylabel=ylabel)

    return draw


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
