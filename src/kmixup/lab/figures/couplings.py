"""Figures of who is mixed with whom: couplings, partners of one point, one block in steps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from kmixup.lab.figures.clouds import SIZE, Cloud, class_handles, dots, frame, notes_of, xy
from kmixup.lab.plotting import BLACK, FAINT, MARKERS, SCALE, Array, panels, styled
from kmixup.matching import Nearest, Optimal, Pairing, match
from kmixup.theory import matching_distribution
from kmixup.vicinal import vicinal_dataset

PAIRS = 128  # lines in a panel: four blocks of 32
BLOCK, LAM = 8, 0.7  # of the figure in steps
PARTNER: dict[type[Pairing], str] = {
    Optimal: "matched optimally with",
    Nearest: "with the nearest point of",
}


@styled
def couplings(clouds: Sequence[Cloud], *, seed: int = 0) -> Figure:
    """Draw matched pairs above mixed points, a column for each cloud at k = 1, then at k = 32."""
    columns = 2 * len(clouds)
    figure, grid = panels(2, columns, size=(1.75, 1.85) if columns > 4 else (2.6, 2.7))
    for (upper, lower), (k, cloud) in zip(grid.T, product((1, 32), clouds), strict=True):
        block = cloud.block(k)
        coupling(upper, cloud, block, seed)
        vicinal(lower, cloud, block, 1.0, SIZE, seed)
        upper.set_title(f"{cloud.title}, k = {block}")
    grid[0, 0].set_ylabel("couplings")
    grid[1, 0].set_ylabel("vicinal data set")
    lines = [
        Line2D([], [], color=FAINT, label="same class"),
        Line2D([], [], color=BLACK, ls="dashed", label="different classes"),
    ]
    if len(clouds) == 1:  # the toys' classes have no names
        lines += class_handles(clouds[0].classes)
    figure.legend(handles=lines, loc="outside lower center", ncols=min(len(lines), 2 * columns))
    figure.set_label(
        "Optimal couplings of two random sets of points, in blocks of k = 1 and k = 32 (top), and "
        f"vicinal data sets of {SIZE} points with α = 1 (bottom). Dashed lines join different "
        "classes; a mixed point has the marker of its main class and a mixture of both "
        f"colours.{notes_of(clouds)}"
    )
    return figure


def coupling(axes: Axes, cloud: Cloud, k: int, seed: int) -> None:
    """Draw matched pairs; dashed lines join different classes."""
    first, second = _two_sets(cloud, min(PAIRS, len(cloud.x) // 2), seed)
    pairs = np.stack([first, _partners(cloud, first, second, k)], 1)
    same = cloud.y[pairs[:, 0]] == cloud.y[pairs[:, 1]]
    ends = cloud.plane[pairs]
    axes.add_collection(LineCollection(list(ends[same]), colors=FAINT, linewidths=0.7))
    axes.add_collection(
        LineCollection(list(ends[~same]), colors=BLACK, linewidths=0.6, linestyles="dashed")
    )
    drawn = pairs.T.ravel()
    dots(axes, cloud.plane[drawn], cloud.shares[drawn], size=7)
    frame(axes, cloud)


def vicinal(axes: Axes, cloud: Cloud, k: int, alpha: float, size: int, seed: int) -> None:
    """Draw `size` mixed points."""
    x, shares = vicinal_dataset(cloud.x, cloud.y, k=k, alpha=alpha, size=size, seed=seed)
    dots(axes, cloud.show(x), shares, size=7, edge=0.15)
    frame(axes, cloud)


def _two_sets(cloud: Cloud, size: int, seed: int) -> tuple[Array, Array]:
    """Return the indices of two disjoint random sets of points."""
    order = torch.randperm(len(cloud.x), generator=torch.Generator().manual_seed(seed)).numpy()
    return order[:size], order[size : 2 * size]


def _partners(cloud: Cloud, first: Array, second: Array, k: int) -> Array:
    """Return the optimal partner of each point of `first`, matched in blocks of k."""
    points = torch.from_numpy(cloud.x)
    return np.asarray(second[match(points[first], points[second], k=k).numpy()])


@styled
def partners(
    clouds: Sequence[Cloud],
    *,
    pairing: type[Pairing] = Optimal,
    k: int = 32,
    samples: int = 10_000,
    seed: int = 0,
) -> Figure:
    """Draw the matching distribution of one random point per cloud.

    The colour scale ends at k / n, the probability of being in a subset at all, so that two
    figures of the same clouds can be compared.
    """
    figure, grid = panels(1, len(clouds), size=(2.9, 2.6))
    for axes, cloud in zip(grid[0], clouds, strict=True):
        n, block = len(cloud.x), cloud.block(k)
        i = int(np.random.default_rng(seed).integers(n))
        D = matching_distribution(
            cloud.x, i, block, samples, pairing=pairing,
            generator=torch.Generator().manual_seed(seed),
        )  # fmt: skip
        scale = LogNorm(min(1 / samples, 0.5 * block / n), block / n)
        for label in np.unique(cloud.y):
            marker = MARKERS[label % len(MARKERS)]
            members, met = cloud.y == label, D.probability > 0
            axes.scatter(
                *xy(cloud.plane[members & ~met]), s=9, marker=marker, facecolors="none",
                edgecolors=FAINT, linewidths=0.5,
            )  # fmt: skip
            by_weight = np.flatnonzero(members & met)
            by_weight = by_weight[np.argsort(D.probability[by_weight])]
            image = axes.scatter(
                *xy(cloud.plane[by_weight]), s=24, marker=marker, c=D.probability[by_weight],
                cmap=SCALE, norm=scale, edgecolors="black", linewidths=0.3,
            )  # fmt: skip
        axes.scatter(
            *xy(cloud.plane[[i]]), s=210, marker="*", c="white", edgecolors="black", linewidths=1.3,
            zorder=3,
        )  # fmt: skip
        across = float(D.probability[cloud.y != cloud.y[i]].sum())
        axes.set_title(f"{cloud.title}: {across:.1%} in another class")
        frame(axes, cloud)
        bar = figure.colorbar(image, ax=axes, shrink=0.8, aspect=25)
        bar.set_label("probability as a partner", fontsize=8)
    figure.set_label(
        f"Partners of one point (star), in a random subset of {clouds[0].block(k)} that contains "
        f"it, {PARTNER[pairing]} a random subset of the same size: frequencies in {samples:,} "
        f"draws. Hollow points were never partners.{notes_of(clouds)}"
    )
    return figure


@styled
def steps(cloud: Cloud, *, seed: int = 0) -> Figure:
    """Draw how two sets of points of a cloud are matched and averaged."""
    k = cloud.block(BLOCK)
    first, second = _two_sets(cloud, k, seed)
    partner = _partners(cloud, first, second, k)
    square = np.square(cloud.x[first][:, None] - cloud.x[second][None]).sum(2)
    column = [list(second).index(sample) for sample in partner]
    matched = float(square[np.arange(k), column].mean())
    numbers, letters = [str(row + 1) for row in range(k)], list("abcdefgh"[:k])
    names = list(zip(cloud.plane[[*first, *second]], numbers + letters, strict=True))

    figure, grid = panels(2, 2, size=(3.2, 3.3))
    draw, cost, pairs, mixed = grid.ravel()
    for axes in (draw, pairs, mixed):
        axes.scatter(*xy(cloud.plane), s=2, color=FAINT, zorder=1)
        frame(axes, cloud)
    for axes in (draw, pairs):
        dots(axes, cloud.plane[first], cloud.shares[first], size=80)
        dots(axes, cloud.plane[second], cloud.shares[second], size=80)
        outline = [withStroke(linewidth=1.4, foreground=BLACK)]  # legible on every colour
        for (x, y), name in names:
            axes.text(
                x, y, name, color="white", fontsize=7, weight="bold", ha="center",
                va="center_baseline", path_effects=outline, zorder=4,
            )  # fmt: skip
    for axes in (pairs, mixed):
        lines = list(np.stack([cloud.plane[first], cloud.plane[partner]], 1))
        axes.add_collection(LineCollection(lines, colors=BLACK, linewidths=1.0, zorder=2))
    cost.imshow(square, cmap=SCALE)
    for row, at in enumerate(column):
        cost.add_patch(Rectangle((at - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=BLACK, lw=2))
    cost.set_yticks(range(k), numbers)
    cost.set_xticks(range(k), letters)
    cost.tick_params(length=0)
    cost.spines[:].set_visible(False)
    ends = LAM * cloud.x[first] + (1 - LAM) * cloud.x[partner]
    shares = LAM * cloud.shares[first] + (1 - LAM) * cloud.shares[partner]
    both = np.concatenate([first, partner])
    mixed.scatter(*xy(cloud.plane[both]), s=14, c="white", edgecolors=BLACK, lw=0.7, zorder=3)
    dots(mixed, cloud.show(ends), shares, size=45)
    draw.set_title(f"1. Draw two sets of k = {k}")
    cost.set_title("2. Squared distances")
    pairs.set_title("3. Match at the least total")
    mixed.set_title(f"4. Mix with λ = {LAM:g}")
    figure.set_label(
        f"One block of k-mixup on {cloud.title}. Two sets of k = {k} random points, numbers and "
        f"letters, are matched one to one so that the sum of squared distances (dark is far) is "
        f"least: {matched:.3g} for a pair, where a random match has {square.mean():.3g}. "
        f"A mixed point is {LAM:g} of a numbered point and {1 - LAM:.2g} of its partner, and so "
        f"is its label, shown as colour.{notes_of([cloud])}"
    )
    return figure
