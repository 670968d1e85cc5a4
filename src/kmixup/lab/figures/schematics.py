"""Sketches: the injectivity radius, and where Lemma 3.3 and Theorem 3.5 fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.ticker import PercentFormatter

from kmixup.lab.figures.clouds import bare, xy
from kmixup.lab.formatting import count as number_of
from kmixup.lab.plotting import BLUE, FAINT, ORANGE, SKY, Array, k_axis, panels, styled
from kmixup.theory import cross_endpoints, islands
from kmixup.theory.clusters import ISLAND, island_centres

WAIST = 0.5  # half the width of the curve where it is narrowest
APART = 10.0  # from cluster to cluster, each of radius 1
DRAWN = 0.07  # radius of an island in the picture, larger than it is
A1, A2, B = range(3)


@styled
def injectivity(eps: Sequence[float] = (0.25, 0.5, 0.6), *, steps: int = 300) -> Figure:
    """Draw neighbourhoods of a closed curve whose injectivity radius is half its waist."""
    from scipy.ndimage import label  # imported here because it loads slowly
    from scipy.spatial import KDTree

    angle = np.linspace(0, 2 * np.pi, 2000, endpoint=False)
    radius = 1 + (1 - WAIST) * np.cos(2 * angle)
    curve = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    reach = np.abs(curve).max(0) + max(eps) + 0.1
    x, y = (np.linspace(-edge, edge, steps) for edge in reach)
    grid = np.stack(np.meshgrid(x, y), 2).reshape(-1, 2)
    distance = np.asarray(KDTree(curve).query(grid)[0]).reshape(steps, steps)
    figure, row = panels(1, len(eps), size=(2.7, 2.2))
    for axes, e in zip(row[0], eps, strict=True):
        axes.contourf(x, y, distance, levels=[0, e], colors=[SKY], alpha=0.6)
        axes.contour(x, y, distance, levels=[e], colors=BLUE, linestyles="dashed", linewidths=1)
        axes.plot(*xy(np.concatenate([curve, curve[:1]])), color="black", lw=2)
        sign = "<" if e < WAIST else "=" if e == WAIST else ">"
        holes = label(distance >= e)[1] - 1  # the rest of the plane is no hole
        what = "the boundary meets itself" if sign == "=" else number_of(holes, "hole")
        axes.set_title(f"ε = {e:g} {sign} $R_S$: {what}")
        bare(axes)
    figure.set_label(
        "ε-neighbourhoods (shaded) of a closed curve S (black). Its injectivity radius is "
        f"R_S = {WAIST:g}, half its waist: for ε < R_S a neighbourhood has one hole as the curve "
        "has, at R_S its boundary meets itself, and beyond it has another topology."
    )
    return figure


@styled
def counterexample() -> Figure:
    """Draw three clusters in a row with the fewest cross matches, and the cheapest matching."""
    from scipy.optimize import linear_sum_assignment  # imported here because it loads slowly

    first, second = _row([3, 2, 2], 0.0), _row([2, 2, 3], 0.5)
    square = np.square(first[:, None] - second[None]).sum(2)
    cluster = [np.rint(points[:, 0] / APART) for points in (first, second)]
    cross = cluster[0][:, None] != cluster[1][None]
    figure, grid = panels(2, 1, size=(6.2, 1.5))
    for axes, title, cost in (
        (grid[0, 0], "As the lemma counts", square + 1e6 * cross),
        (grid[1, 0], "Optimal", square),
    ):
        rows, columns = linear_sum_assignment(cost)
        crossing = cross[rows, columns]
        _arrows(axes, first, second[columns], crossing)
        number, total = int(crossing.sum()), square[rows, columns].sum() / APART**2
        plural = "match" if number == 1 else "matches"
        axes.set_title(f"{title}: {number} cross {plural}, cost {total:.2f} D²")
    grid[0, 0].legend(loc="upper left", ncols=2)
    figure.set_label(
        "Three clusters in a row, D apart. The first batch (circles) has one point more in A than "
        "the second (squares), and one fewer in C. One match from A to C costs about 4D², two via "
        "B cost about 2D²: an optimal matching crosses twice where Lemma 3.3 counts one."
    )
    return figure


def _row(counts: Sequence[int], turn: float) -> Array:
    """Points of three clusters D apart, evenly on circles that are turned by a part of a step."""
    parts = []
    for i, count in enumerate(counts):
        angle = 2 * np.pi * (np.arange(count) + turn) / count + np.pi / 2
        parts.append(np.stack([APART * i + 0.7 * np.cos(angle), 0.7 * np.sin(angle)], 1))
    return np.concatenate(parts)


def _arrows(axes: Axes, first: Array, partner: Array, crossing: Array) -> None:
    for i, name in enumerate("ABC"):
        axes.add_patch(Circle((APART * i, 0), 1.15, facecolor="#f2f2f2", edgecolor=FAINT))
        axes.text(APART * i, -1.35, name, ha="center", va="top")
    for start, end, far in zip(first, partner, crossing, strict=True):
        # bent upwards, so that a long match is seen beside the cluster that it passes
        bend, colour, width = (-0.12, "black", 1.3) if far else (0.0, "gray", 0.9)
        arrow = {"arrowstyle": "->", "connectionstyle": f"arc3,rad={bend}"}
        ends = {"color": colour, "lw": width, "shrinkA": 3, "shrinkB": 3}
        axes.annotate("", xy=end, xytext=start, arrowprops=arrow | ends)
    look: dict[str, Any] = {"s": 26, "edgecolors": "black", "zorder": 3}
    axes.scatter(*xy(first), marker="o", c=ORANGE, label="first batch", **look)
    axes.scatter(*xy(partner), marker="s", c=BLUE, label="second batch", **look)
    bare(axes)
    axes.set(xlim=(-1.6, 2 * APART + 1.6), ylim=(-2.4, 2.9))


@styled
def endpoints(
    ks: Sequence[int] = (16, 32, 64, 128, 256, 512), *, samples: int = 300, seed: int = 0
) -> Figure:
    """Draw the detour, the direct match, and how often points of the far island cross."""
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
        "surplus point in A2 is matched directly with B, because the detour over A1 costs more. "
        "Right: the share of batches with such a match (± two standard errors) stays high."
    )
    return figure


def _map(axes: Axes, centres: Array, reach: float) -> None:
    """Draw the three islands, and the part of the plane within `reach` of B."""
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
