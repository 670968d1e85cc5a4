"""Couplings and vicinal data sets: who is mixed with whom, and the mixed points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from kmixup.lab.figures.clouds import Cloud
from kmixup.lab.figures.plane import bare, class_handles, dots
from kmixup.lab.pages.style import BLACK, FAINT, panels, styled
from kmixup.pairing import match
from kmixup.vicinal import vicinal_dataset

PAIRS = 128  # lines in a panel: four blocks of 32


@styled
def couplings(
    clouds: Sequence[Cloud],
    *,
    ks: Sequence[int] = (1, 32),
    alpha: float = 1.0,
    size: int = 512,
    seed: int = 0,
) -> Figure:
    """Matched pairs above and `size` mixed points below, a column for each k and cloud."""
    columns = len(ks) * len(clouds)
    figure, grid = panels(2, columns, size=(1.75, 1.85) if columns > 4 else (2.6, 2.7))
    for i, k in enumerate(ks):
        for j, cloud in enumerate(clouds):
            upper, lower = grid[:, i * len(clouds) + j]
            block = cloud.block(k)
            coupling(upper, cloud, block, seed)
            vicinal(lower, cloud, block, alpha, size, seed)
            upper.set_title(f"{cloud.title}, k = {block}")
    grid[0, 0].set_ylabel("couplings")
    grid[1, 0].set_ylabel("vicinal data set")
    lines = [
        Line2D([], [], color=FAINT, label="same class"),
        Line2D([], [], color=BLACK, ls="dashed", label="different classes"),
    ]
    if len(clouds) == 1:  # toys have two classes, and no names for them
        lines += class_handles(clouds[0].classes)
    figure.legend(handles=lines, loc="outside lower center", ncols=min(len(lines), 2 * columns))
    notes = "".join(f" {cloud.title}: {cloud.note}." for cloud in clouds if cloud.note)
    figure.set_label(
        "Optimal couplings of two random sets of points, in blocks of "
        f"{' and '.join(f'k = {k}' for k in ks)} (top), and vicinal data sets of {size} points "
        f"with α = {alpha:g} (bottom). Dashed lines join different classes; a mixed point has the "
        f"marker of its main class and a mixture of both colours.{notes}"
    )
    return figure


def coupling(axes: Axes, cloud: Cloud, k: int, seed: int) -> None:
    """Draw matched pairs; dashed lines join different classes."""
    n = len(cloud.x)
    half = min(PAIRS, n // 2)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    first, second = order[:half], order[half : 2 * half]
    points = torch.from_numpy(cloud.x)
    second = second[match(points[first], points[second], k=k)]
    pairs = np.stack([first.numpy(), second.numpy()], 1)
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


def frame(axes: Axes, cloud: Cloud) -> None:
    """A square part of the plane, the same for all panels of a cloud."""
    low, high = cloud.plane.min(0), cloud.plane.max(0)
    (x, y), reach = (low + high) / 2, 0.55 * float((high - low).max())
    axes.set(xlim=(x - reach, x + reach), ylim=(y - reach, y + reach))
    bare(axes)
