"""The critical-difference diagram."""

from __future__ import annotations

import math

from markupsafe import Markup
from matplotlib.axes import Axes

from kmixup.lab.league.ranking import Ranking
from kmixup.lab.pages.style import BLACK, BLUE, FAINT, RED
from kmixup.lab.pages.svg import inline

WIDTH, LINE = 4.6, 0.26  # inches: of the diagram, and of one of its lines
HEAD = 1.2  # lines between the scale and the critical difference above it
GAP = 0.55  # lines between two bars


def diagram(ranking: Ranking, name: str) -> Markup:
    """Mean ranks on a scale, best to the left; bars join methods that cannot be told apart."""
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

    return inline(draw, name, size=(WIDTH, LINE * (start + n + HEAD + 2)))
