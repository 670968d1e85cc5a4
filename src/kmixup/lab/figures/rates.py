"""Rates: cross-cluster matches and matched distances against k, and the expansion of the loss."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter
from torch import Tensor, nn

from kmixup import theory
from kmixup.lab import plotting
from kmixup.lab.plotting import BLUE, DASHES, GREEN, MARKERS, ORANGE, RED, Array, k_axis, panels
from kmixup.lab.train.streams import drawing_from

PLACES = {
    "two clusters": [[0.0, 0.0], [1.0, 0.0]],
    "three, equilateral": [[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]],
    "three in a row": [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]],
}
SMALL = 0.01  # slopes of the expansion's remainder are fitted up to this step


@plotting.styled
def cross_fraction(
    ks: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128),
    *,
    points: int = 4000,
    samples: int = 1000,
    seed: int = 0,
) -> Figure:
    """Draw the share of cross-cluster matches against k, for distant clusters of `points`."""
    figure, grid = panels(1, len(PLACES) + 1, size=(2.4, 2.7))
    number, upper = grid[0, -1], _upper(ks)
    generator = torch.Generator().manual_seed(seed)
    for axes, (name, place), colour, marker in zip(
        grid[0], PLACES.items(), (ORANGE, BLUE, GREEN), MARKERS, strict=False
    ):
        centres = 1000 * np.array(place)
        label = np.repeat(np.arange(len(centres)), points)
        X = centres[label] + np.random.default_rng(seed).uniform(-1, 1, (len(label), 2))
        sizes, chain = [points] * len(centres), theory.longest_chain(centres)
        seen, exact = [], []
        for k in ks:
            seen.append(theory.cross_matches(X, label, k, samples, generator=generator))
            exact.append(
                theory.expected_fraction(
                    sizes, k, centres=centres, law="independent", samples=4 * samples,
                    generator=generator,
                ).most
            )  # fmt: skip
        paper = np.array([theory.fraction_bound(sizes, k, law="independent") for k in ks])
        if chain > 1:
            axes.plot(ks, chain * paper, color=RED, ls="dashdot", label="corrected bound")
        axes.plot(ks, paper, color="black", ls="dashed", label="paper's bound")
        ratio = exact[-1] / paper[-1]
        axes.plot(ks, exact, color=colour, ls="solid", label=f"expected, {ratio:.2f} of it")
        share = [cross.fraction for cross in seen]
        axes.errorbar(
            ks, share, [2 * cross.error for cross in seen], color=colour, marker=marker, ls="none",
            markeredgecolor="black", label="measured",
        )  # fmt: skip
        number.plot(
            ks, [cross.number for cross in seen], color=colour, marker=marker, label=name,
            markeredgecolor="black",
        )  # fmt: skip
        _log_log(axes, ks)
        axes.set_title(f"{name}: slope {theory.fitted_slope(ks[upper], share[upper]).value:.2f}")
        axes.legend(loc="lower left")
    _log_log(number, ks)
    number.set_title("their number grows")
    number.legend(loc="upper left")
    grid[0, 0].set_ylabel("share of cross-cluster matches")
    number.set_ylabel("cross-cluster matches")
    low = min(axes.get_ylim()[0] for axes in grid[0, : len(PLACES)])
    for axes in grid[0, : len(PLACES)]:
        axes.set_ylim(low / 2, 1.3)  # room for the legend; no share is above 1
    for axes in grid[0]:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    figure.set_label(
        f"Share of matches between distant clusters of {points:,} points, in {samples} pairs of "
        "k-subsets (± two standard errors), beside the expected share and the bound of Theorem "
        "3.4. In a row the share exceeds the paper's bound; the corrected bound is its double. The "
        f"share falls like k^(-1/2), their number (right) grows. Slopes are for k ≥ {ks[upper][0]}."
    )
    return figure


def _cubes(rng: np.random.Generator, d: int, clusters: int, n: int) -> Array:
    """Return `n` uniform points of unit cubes in a row, ten sides from one to the next."""
    points = rng.random((n, d))
    points[:, 0] += 10 * rng.integers(0, clusters, n)
    return points


@plotting.styled
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


@plotting.styled
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
