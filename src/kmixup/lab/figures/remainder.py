"""The remainder of the expansion of the k-mixup loss, as the mixing gets weak."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from torch import Tensor, nn

from kmixup import theory
from kmixup.lab.pages.style import BLUE, DASHES, MARKERS, ORANGE, panels, styled
from kmixup.lab.train.streams import drawing_from

SMALL = 0.01  # slopes are of steps up to this


def fitted_network(X: Tensor, y: Tensor, *, steps: int = 200, seed: int = 0) -> nn.Module:
    """A smooth network for two classes, one hidden layer of tanh, trained without mixing."""
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
def remainder(
    X: ArrayLike,
    y: ArrayLike,
    *,
    ks: Sequence[int] = (1, 32),
    steps: int = 200,
    samples: int = 2000,
    seed: int = 0,
) -> Figure:
    """Remainder of Theorem 4.1 against a = 1 - lam, for points `X` of the classes 0 and 1."""
    points, labels = torch.as_tensor(np.asarray(X)).double(), torch.as_tensor(y).double()
    net = fitted_network(points, labels, steps=steps, seed=seed)
    a = np.geomspace(1e-3, 1, 19)
    figure, grid = panels(1, 1, size=(4.2, 3.2))
    axes = grid[0, 0]
    for k, colour, dash, marker in zip(ks, (ORANGE, BLUE), DASHES, MARKERS, strict=False):
        generator = torch.Generator().manual_seed(seed)
        D = theory.matching_distributions(points, k, max(1, samples // k), generator=generator)
        left = theory.remainder(net, points, labels, D, a)
        small = a <= SMALL
        slope = theory.fitted_slope(a[small], np.abs(left[small])).value
        axes.plot(
            a, np.abs(left), color=colour, ls=dash, marker=marker, markeredgecolor="black",
            label=f"k = {k}: slope {slope:.2f}",
        )  # fmt: skip
    last = float(np.abs(left[0]))
    guide = a[a <= 0.2]
    axes.plot(guide, last * (guide / a[0]) ** 3 / 3, color="gray", lw=1, label="$a^3$")
    axes.set(xscale="log", yscale="log", xlabel="a = 1 − λ", ylabel="|loss − expansion|")
    axes.grid(visible=True)
    axes.legend(loc="upper left")
    figure.set_label(
        "What E_std + R1 + R2 + R3 leaves unexplained of the loss at (1 - a) x + a r, r from the "
        "matching distribution of x, at a fixed a = 1 - λ, for a small trained network. "
        f"Slopes are fitted up to a = {SMALL:g}; third order is 3, a dip is a change of sign."
    )
    return figure
