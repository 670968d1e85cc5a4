"""Where Theorem 3.5 fails: a cluster in two pieces, and matches from the far one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.ticker import PercentFormatter

from kmixup.lab.figures.plane import bare
from kmixup.lab.pages.style import BLUE, ORANGE, SKY, Array, k_axis, panels, styled
from kmixup.theory import cross_endpoints, islands
from kmixup.theory.endpoints import ISLAND, island_centres

DRAWN = 0.07  # radius of an island in the picture, larger than it is
A1, A2, B = range(3)


@styled
def endpoints(
    ks: Sequence[int] = (16, 32, 64, 128, 256, 512), *, samples: int = 300, seed: int = 0
) -> Figure:
    """The detour, the direct match, and how often points of the far island cross."""
    generator = torch.Generator().manual_seed(seed)
    points, island = islands(max(6000, 6 * max(ks)), generator=generator)
    crossings = [cross_endpoints(points, island == B, k, samples, generator=generator) for k in ks]
    figure, ((detour, direct, share),) = panels(1, 3, size=(2.7, 2.7))
    centres = island_centres()
    for axes, name, steps in (
        (detour, "By a detour", [(A2, A1), (A1, B)]),
        (direct, "Directly", [(A2, B)]),
    ):
        cost = sum(float(np.square(centres[i] - centres[j]).sum()) for i, j in steps)
        axes.set_title(f"{name}: cost {cost:.2f} D²")
        _map(axes, centres, (1 + crossings[0].epsilon) * crossings[0].gap)
        for start, end in steps:
            arrow = {"arrowstyle": "->", "lw": 1.5, "shrinkA": 5, "shrinkB": 5}
            axes.annotate("", xy=centres[end], xytext=centres[start], arrowprops=arrow)
    broken = np.array([1 - ends.held for ends in crossings])
    error = np.sqrt(broken * (1 - broken) / [ends.batches for ends in crossings])
    share.errorbar(ks, broken, 2 * error, color=ORANGE, marker="o", markeredgecolor="black")
    share.axhline(2 / 3, color="black", ls="dashed", label="2/3")
    k_axis(share, ks)
    share.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    share.set(ylim=(0, 1), title="batches that match A2 with B")
    share.legend(loc="lower right")
    figure.set_label(
        f"A counter-example to Theorem 3.5. The cluster A is two small discs (radius {ISLAND:g}, "
        "drawn larger), and A2 lies outside of A_ε (shaded: the points within (1 + ε) D of B). A "
        "point too many in A2 and one too few in B are matched directly, because a detour over "
        "A1 costs more. Right: the share of pairs of batches in which a cross match begins or "
        "ends in A2, with two standard errors. It does not fall with k: of three equal discs, "
        "in two thirds of all large batches one of A2 and B has too many points and one too few."
    )
    return figure


def _map(axes: Axes, centres: Array, reach: float) -> None:
    """The three islands, and the part of the plane within `reach` of B."""
    axes.add_patch(
        Circle(tuple(centres[B]), reach + ISLAND, facecolor=SKY, alpha=0.3, edgecolor=BLUE, ls="--")
    )
    for centre, name, above in zip(centres, ("A1", "A2", "B"), (-1, 1, -1), strict=True):
        colour = BLUE if name == "B" else ORANGE
        axes.add_patch(Circle(tuple(centre), DRAWN, facecolor=colour, edgecolor="black"))
        axes.text(centre[0], centre[1] + 0.2 * above, name, ha="center", va="center")
    bare(axes)
    low, high = centres.min(0) - 0.5, centres.max(0) + 0.5
    axes.set(xlim=(low[0] - 0.5, high[0] + 0.5), ylim=(low[1], high[1]))
