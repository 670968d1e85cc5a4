"""Figures of the theory: counter-examples, rates in k, and the expansion of the loss."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.ticker import LogLocator, NullLocator, PercentFormatter, StrMethodFormatter
from torch import Tensor, nn

from kmixup import theory
from kmixup.lab import plotting
from kmixup.lab.figures.clouds import bare, xy
from kmixup.lab.plotting import BLUE, DASHES, MARKERS, ORANGE, Array, k_axis, panels, styled
from kmixup.lab.train.streams import drawing_from
from kmixup.theory.clusters import ISLAND, island_centres

WAIST = 0.5  # half the width of the curve where it is narrowest
EPSILONS = {  # neighbourhoods of the curve
    0.25: "< $R_S$: 1 hole",
    WAIST: "= $R_S$: the boundary meets itself",
    0.6: "> $R_S$: 2 holes",
}
APART = 10.0  # from cluster to cluster, each of radius 1
A1, A2, B = range(3)
PLACES = {
    "two clusters": [[0.0, 0.0], [1.0, 0.0]],
    "three, equilateral": [[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]],
    "three in a row": [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]],
}
IN_CLUSTER = 4000  # points
SMALL = 0.01  # slopes of the expansion's remainder are fitted up to this step


@styled
def injectivity() -> Figure:
    """Draw neighbourhoods of a closed curve whose injectivity radius is half its waist."""
    from scipy.spatial import KDTree  # imported here because it loads slowly

    angle = np.linspace(0, 2 * np.pi, 2000)
    radius = 1 + (1 - WAIST) * np.cos(2 * angle)
    curve = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    reach = np.abs(curve).max(0) + max(EPSILONS) + 0.1
    x, y = (np.linspace(-edge, edge, 300) for edge in reach)
    distance = np.asarray(KDTree(curve).query(np.stack(np.meshgrid(x, y), 2))[0])
    figure, row = panels(1, len(EPSILONS), size=(2.7, 2.2))
    for axes, (e, topology) in zip(row[0], EPSILONS.items(), strict=True):
        axes.contourf(x, y, distance, levels=[0, e], colors=[plotting.SKY], alpha=0.6)
        axes.contour(x, y, distance, levels=[e], colors=BLUE, linestyles="dashed", linewidths=1)
        axes.plot(*xy(curve), color="black", lw=2)
        axes.set_title(f"ε = {e:g} {topology}")
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
    surcharge = {"As the lemma counts: 1 cross match": 1e6, "Optimal: 2 cross matches": 0.0}
    for axes, (title, extra) in zip(grid[:, 0], surcharge.items(), strict=True):
        rows, columns = linear_sum_assignment(square + extra * cross)
        _arrows(axes, first, second[columns], cross[rows, columns])
        total = square[rows, columns].sum() / APART**2
        axes.set_title(f"{title}, cost {total:.2f} D²")
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
        axes.add_patch(Circle((APART * i, 0), 1.15, facecolor="#f2f2f2", edgecolor=plotting.FAINT))
        axes.text(APART * i, -1.35, name, ha="center", va="top")
    for start, end, far in zip(first, partner, crossing, strict=True):
        # bent upwards, so that a long match is seen next to the cluster that it passes
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
    points, island = theory.islands(max(6000, 6 * max(ks)), generator=generator)
    crossings = [
        theory.cross_endpoints(points, island == B, k, samples, generator=generator) for k in ks
    ]
    figure, ((detour, direct, share),) = panels(1, 3, size=(2.7, 2.7))
    centres = island_centres()
    for axes, name, steps in (
        (detour, "By a detour", [(A2, A1), (A1, B)]),
        (direct, "Directly", [(A2, B)]),
    ):
        near = Circle(tuple(centres[B]), (1 + crossings[0].epsilon) * crossings[0].gap + ISLAND)
        near.set(facecolor=plotting.SKY, alpha=0.3, edgecolor=BLUE, linestyle="--")
        axes.add_patch(near)
        for (x, y), island_name, above in zip(centres, ("A1", "A2", "B"), (-1, 1, -1), strict=True):
            colour = BLUE if island_name == "B" else ORANGE
            axes.add_patch(Circle((x, y), 0.07, facecolor=colour, edgecolor="black"))
            axes.text(x, y + 0.2 * above, island_name, ha="center", va="center")
        for start, end in steps:
            arrow = {"arrowstyle": "->", "lw": 1.5, "shrinkA": 5, "shrinkB": 5}
            axes.annotate("", xy=centres[end], xytext=centres[start], arrowprops=arrow)
        cost = sum(float(np.square(centres[i] - centres[j]).sum()) for i, j in steps)
        axes.set_title(f"{name}: cost {cost:.2f} D²")
        bare(axes)
        (left, low), (right, high) = centres.min(0), centres.max(0)
        axes.set(xlim=(left - 1, right + 1), ylim=(low - 0.5, high + 0.5))
    broken = np.array([1 - ends.held for ends in crossings])
    error = np.sqrt(broken * (1 - broken) / samples)
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
        "Right: the fraction of batches with such a match (± two standard errors) stays high."
    )
    return figure


@styled
def cross_fraction(
    ks: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128), *, samples: int = 1000, seed: int = 0
) -> Figure:
    """Draw the fraction of cross-cluster matches against k, for distant clusters."""
    figure, grid = panels(1, len(PLACES) + 1, size=(2.4, 2.7))
    number, upper = grid[0, -1], _upper(ks)
    generator = torch.Generator().manual_seed(seed)
    for axes, (name, place), colour, marker in zip(
        grid[0], PLACES.items(), (ORANGE, BLUE, plotting.GREEN), MARKERS, strict=False
    ):
        centres = 1000 * np.array(place)
        label = np.repeat(np.arange(len(centres)), IN_CLUSTER)
        X = centres[label] + np.random.default_rng(seed).uniform(-1, 1, (len(label), 2))
        masses, chain = np.ones(len(centres)), theory.longest_chain(centres)
        options: Any = {"centres": centres, "samples": 4 * samples, "generator": generator}
        seen, exact = [], []
        for k in ks:
            matches = theory.cross_matches(X, label, k, samples, generator=generator)
            seen.append(matches.fraction)
            exact.append(theory.expected_fraction(masses, k, **options).most)
        paper = np.array([theory.fraction_bound(masses, k) for k in ks])
        if chain > 1:
            axes.plot(ks, chain * paper, color=plotting.RED, ls="dashdot", label="corrected bound")
        axes.plot(ks, paper, color="black", ls="dashed", label="paper's bound")
        ratio = exact[-1] / paper[-1]
        axes.plot(ks, exact, color=colour, ls="solid", label=f"expected, {ratio:.2f} of it")
        share, error = np.array([(one.value, one.error) for one in seen]).T
        look = {"color": colour, "marker": marker, "markeredgecolor": "black"}
        axes.errorbar(ks, share, 2 * error, ls="none", label="measured", **look)
        number.plot(ks, share * ks, label=name, **look)
        _log_log(axes, ks)
        axes.set_title(f"{name}: slope {theory.fitted_slope(ks[upper], share[upper]).value:.2f}")
        axes.legend(loc="lower left")
    _log_log(number, ks)
    number.set_title("their number grows")
    number.legend(loc="upper left")
    grid[0, 0].set_ylabel("fraction of cross-cluster matches")
    number.set_ylabel("cross-cluster matches")
    low = min(axes.get_ylim()[0] for axes in grid[0, : len(PLACES)])
    for axes in grid[0, : len(PLACES)]:
        axes.set_ylim(low / 2, 1.3)  # room for the legend; no share is above 1
    for axes in grid[0]:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    figure.set_label(
        f"Fraction of matches between distant clusters of {IN_CLUSTER:,} points, in {samples} "
        "pairs of k-subsets (± two standard errors), with the expected fraction and the bound of "
        "Theorem 3.4. In a row the fraction exceeds the paper's bound; the corrected bound is its "
        "double. The fraction falls like k^(-1/2), their number (right) grows. Slopes are for "
        f"k ≥ {ks[upper][0]}."
    )
    return figure


def _cubes(rng: np.random.Generator, d: int, clusters: int, n: int) -> Array:
    """Return `n` uniform points of unit cubes in a row, ten sides from one to the next."""
    points = rng.random((n, d))
    points[:, 0] += 10 * rng.integers(0, clusters, n)
    return points


@styled
def matched_distance(
    ks: Sequence[int] = (4, 8, 16, 32, 64, 128, 256), *, samples: int = 150, seed: int = 0
) -> Figure:
    """Draw the mean squared distance of matched points against k, for uniform points of cubes."""
    rng = np.random.default_rng(seed)
    figure, grid = panels(1, 1, size=(5.2, 4.2))
    axes = grid[0, 0]
    size = np.asarray(ks, dtype=np.float64)
    upper = _upper(ks)
    looks = zip(plotting.COLOURS, MARKERS, DASHES, strict=False)
    sources = [(1, 1), (2, 1), (3, 1), (5, 1), (1, 2)]  # dimension, number of clusters
    for (d, clusters), (colour, marker, dash) in zip(sources, looks, strict=False):
        distance = theory.matched_distances(partial(_cubes, rng, d, clusters), ks, samples)
        name = f"d = {d}, two clusters" if clusters == 2 else f"d = {d}"
        rate = theory.expected_rate(size, d, clusters)
        rate *= np.exp(np.log(distance.mean[upper] / rate[upper]).mean())
        slope = theory.fitted_slope(ks[upper], distance.mean[upper], distance.error[upper])
        expected = theory.fitted_slope(ks[upper], rate[upper]).value
        axes.plot(size, rate, color=colour, ls=dash, lw=1.2)
        axes.errorbar(
            size, distance.mean, 2 * distance.error, color=colour, marker=marker, ls="none",
            markeredgecolor="black",
            label=f"{name}: {slope.value:.2f} ± {slope.error:.2f} ({expected:.2f})",
        )  # fmt: skip
    _log_log(axes, ks)
    axes.set_ylabel("mean matched squared distance")
    figure.legend(
        loc="outside lower center", ncols=2, title="slope of the points (of the line)",
        title_fontsize=8,
    )  # fmt: skip
    figure.set_label(
        f"Mean squared distance of matched points in {samples} pairs of batches of k points (± two "
        "standard errors), uniform on one or two unit cubes. Lines are the rates 1/k, log k / k, "
        "k^(-2/d) for d = 1, 2 and more, and k^(-1/2) for two clusters, with fitted height. Slopes "
        f"are for k ≥ {ks[upper][0]}; in 2 and 5 dimensions such k are still far from the rate."
    )
    return figure


def _upper(ks: Sequence[int]) -> slice:
    """Select the larger half of the k, but at least the three that a slope needs."""
    return slice(-max(3, len(ks) // 2), None)


def _log_log(axes: Axes, ks: Sequence[int]) -> None:
    k_axis(axes, ks)
    axes.set_yscale("log")
    axes.grid(visible=True)


def _fitted_network(X: Tensor, y: Tensor, steps: int, seed: int) -> nn.Module:
    """Return a smooth network for two classes, one hidden layer of tanh, trained with ERM."""
    with drawing_from(torch.Generator().manual_seed(seed)):
        net = nn.Sequential(nn.Linear(X.shape[1], 24), nn.Tanh(), nn.Linear(24, 1)).double()
    optimiser = torch.optim.Adam(net.parameters(), lr=0.03)
    for _ in range(steps):
        optimiser.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(net(X)[:, 0], y)
        loss.backward()
        optimiser.step()
    return net.requires_grad_(False)


@styled
def remainder(X: Tensor, y: Tensor, *, steps: int, samples: int, seed: int) -> Figure:
    """Draw the remainder of Theorem 4.1 against a = 1 - lam, for points of the classes 0 and 1."""
    points, labels = X.double(), y.double()
    net = _fitted_network(points, labels, steps, seed)
    a = np.geomspace(1e-3, 1, 19)
    figure, grid = panels(1, 1, size=(4.2, 3.2))
    axes = grid[0, 0]
    for k, colour, dash, marker in zip((1, 32), (ORANGE, BLUE), DASHES, MARKERS, strict=False):
        generator = torch.Generator().manual_seed(seed)
        D = theory.matching_distributions(points, k, max(1, samples // k), generator=generator)
        left = np.abs(theory.remainder(net, points, labels, D, a))
        slope = theory.fitted_slope(a[a <= SMALL], left[a <= SMALL]).value
        axes.plot(
            a, left, color=colour, ls=dash, marker=marker, markeredgecolor="black",
            label=f"k = {k}: slope {slope:.2f}",
        )  # fmt: skip
    guide = a[a <= 0.2]
    axes.plot(guide, left[0] * (guide / a[0]) ** 3 / 3, color="gray", lw=1, label="$a^3$")
    axes.set(xscale="log", yscale="log", xlabel="a = 1 − λ", ylabel="|loss − expansion|")
    axes.grid(visible=True)
    axes.legend(loc="upper left")
    figure.set_label(
        "What E_std + R1 + R2 + R3 leaves unexplained of the loss at (1 - a) x + a r, r from the "
        "matching distribution of x, at a fixed a = 1 - λ, for a small trained network. "
        f"Slopes are fitted up to a = {SMALL:g}; third order is 3, a dip is a change of sign."
    )
    return figure
