"""One block of k-mixup, step by step: two sets, their distances, the match, the mixed points."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from kmixup.lab.figures.clouds import Cloud
from kmixup.lab.figures.couplings import frame
from kmixup.lab.figures.plane import dots, xy
from kmixup.lab.pages.style import BLACK, FAINT, SCALE, Array, panels, styled
from kmixup.pairing import match


@styled
def steps(cloud: Cloud, *, k: int = 8, lam: float = 0.7, seed: int = 0) -> Figure:
    """Draw how two sets of `k` points of a cloud are matched and averaged with the weight `lam`."""
    k = cloud.block(k)
    order = torch.randperm(len(cloud.x), generator=torch.Generator().manual_seed(seed)).numpy()
    first, second = order[:k], order[k : 2 * k]
    points = torch.from_numpy(cloud.x)
    partner = second[match(points[first], points[second], k=k).numpy()]
    square = np.square(cloud.x[first][:, None] - cloud.x[second][None]).sum(2)
    column = [list(second).index(sample) for sample in partner]
    matched = float(square[np.arange(k), column].mean())

    figure, grid = panels(2, 2, size=(3.2, 3.3))
    draw, cost, pairs, mixed = grid.ravel()
    _sets(draw, cloud, first, second)
    draw.set_title(f"1. Draw two sets of k = {k}")
    _costs(cost, square, column)
    cost.set_title("2. Squared distances")
    _lines(pairs, cloud, first, partner)
    _sets(pairs, cloud, first, second)
    pairs.set_title("3. Match at the least total")
    _lines(mixed, cloud, first, partner)
    ends = lam * cloud.x[first] + (1 - lam) * cloud.x[partner]
    shares = lam * cloud.shares[first] + (1 - lam) * cloud.shares[partner]
    both = np.concatenate([first, partner])
    mixed.scatter(*xy(cloud.plane[both]), s=14, c="white", edgecolors=BLACK, lw=0.7, zorder=3)
    dots(mixed, cloud.show(ends), shares, size=45)
    frame(mixed, cloud)
    mixed.set_title(f"4. Mix with λ = {lam:g}")
    note = f" {cloud.title}: {cloud.note}." if cloud.note else ""
    figure.set_label(
        f"One block of k-mixup on {cloud.title}. Two sets of k = {k} random points, numbers and "
        f"letters, are matched one to one so that the sum of the squared distances (dark is far) "
        f"is the least: {matched:.3g} for a pair, where a random match has {square.mean():.3g}. "
        f"A mixed point is {lam:g} of a numbered point and {1 - lam:.2g} of its partner, and so "
        f"is its label, shown as colour.{note}"
    )
    return figure


def _sets(axes: Axes, cloud: Cloud, first: Array, second: Array) -> None:
    """Both sets by their names, over all points of the cloud."""
    axes.scatter(*xy(cloud.plane), s=2, color=FAINT, zorder=1)
    dots(axes, cloud.plane[first], cloud.shares[first], size=80)
    dots(axes, cloud.plane[second], cloud.shares[second], size=80)
    outline = [withStroke(linewidth=1.4, foreground=BLACK)]  # legible on every colour
    rows = range(len(first))
    names = [_number(row) for row in rows] + [_letter(row) for row in rows]
    for (x, y), name in zip(cloud.plane[[*first, *second]], names, strict=True):
        axes.text(
            x, y, name, color="white", fontsize=7, weight="bold", ha="center",
            va="center_baseline", path_effects=outline, zorder=4,
        )  # fmt: skip
    frame(axes, cloud)


def _costs(axes: Axes, square: Array, column: list[int]) -> None:
    """The matrix of squared distances, with the matched cells in frames."""
    axes.imshow(square, cmap=SCALE)
    for row, at in enumerate(column):
        axes.add_patch(Rectangle((at - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=BLACK, lw=2))
    k = len(square)
    axes.set_yticks(range(k), [_number(row) for row in range(k)])
    axes.set_xticks(range(k), [_letter(row) for row in range(k)])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _lines(axes: Axes, cloud: Cloud, first: Array, partner: Array) -> None:
    ends = np.stack([cloud.plane[first], cloud.plane[partner]], 1)
    axes.scatter(*xy(cloud.plane), s=2, color=FAINT, zorder=1)
    axes.add_collection(LineCollection(list(ends), colors=BLACK, linewidths=1.0, zorder=2))


def _number(row: int) -> str:
    return str(row + 1)


def _letter(row: int) -> str:
    return chr(ord("a") + row) if row < 26 else f"{row + 1}'"
