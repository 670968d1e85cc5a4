"""The partners of one point and how often it meets each: the matching distribution D_i."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from kmixup.lab.figures.clouds import Cloud
from kmixup.lab.figures.couplings import frame
from kmixup.lab.figures.plane import xy
from kmixup.lab.pages.style import FAINT, MARKERS, SCALE, panels, styled
from kmixup.pairing import Nearest, Optimal, Pairing
from kmixup.theory import matching_distribution

WORDS: dict[type[Pairing], str] = {
    Optimal: "matched optimally with a random subset as large",
    Nearest: "with the nearest point of a random subset as large",
}


def some_point(cloud: Cloud, seed: int = 0) -> int:
    """The index of a random point, the same in every figure."""
    return int(np.random.default_rng(seed).integers(len(cloud.x)))


@styled
def partners(
    clouds: Sequence[Cloud],
    *,
    pairing: type[Pairing] = Optimal,
    k: int = 32,
    points: Sequence[int] | None = None,
    samples: int = 10_000,
    seed: int = 0,
) -> Figure:
    """D_i of one point of every cloud: those of `points`, or random ones.

    The scale of colours ends at k / n, the probability of being in a subset at all, so that
    two figures of the same clouds can be compared.
    """
    figure, grid = panels(1, len(clouds), size=(2.9, 2.6))
    chosen = [some_point(cloud, seed) for cloud in clouds] if points is None else points
    for axes, cloud, i in zip(grid[0], clouds, chosen, strict=True):
        n, block = len(cloud.x), cloud.block(k)
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
            *xy(cloud.plane[[i]]), s=210, marker="*", c="white", edgecolors="black",
            linewidths=1.3, zorder=3,
        )  # fmt: skip
        across = float(D.probability[cloud.y != cloud.y[i]].sum())
        axes.set_title(f"{cloud.title}: {across:.1%} in another class")
        frame(axes, cloud)
        bar = figure.colorbar(image, ax=axes, shrink=0.8, aspect=25)
        bar.set_label("probability as a partner", fontsize=8)
    notes = "".join(f" {cloud.title}: {cloud.note}." for cloud in clouds if cloud.note)
    figure.set_label(
        f"Partners of one point (star), in a random subset of {clouds[0].block(k)} that holds it, "
        f"{WORDS[pairing]}: frequencies in {samples:,} draws. Hollow points were never met.{notes}"
    )
    return figure
