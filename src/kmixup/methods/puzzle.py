"""PuzzleMix: the mask of least energy, and patches moved to where they are seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from kmixup.interpolation import Mask, Pair, Size
from kmixup.matching.assignment import Floats, solve
from kmixup.methods.cuts import least_masks
from kmixup.methods.kmixup import PairMixer, PairOptions
from kmixup.methods.masks import Masked, importances_of_images
from kmixup.nests import Nest
from kmixup.randomness import uniforms

GRIDS = (2, 4, 8, 16)
Sides = tuple[Tensor, Tensor]  # of the first images, and of their partners
LEAST_CHANCE = 1e-8  # of a level of the mask, so that its logarithm is finite


@dataclass(frozen=True)
class Puzzle(Masked):
    """The mask and the moves of PuzzleMix.

    The mask z ∈ {0, ½, 1} of the cells of a b × b grid minimises

        Σ (1 - z) s + z s' + β/(16 b) Σ [(z_i - z_j)² + γ φ_ij(z_i, z_j)] - η/b² Σ log p(z).

    s and s' are the saliencies of the two images in a cell, with total 1. The second sum is
    over neighbouring cells. φ is the mean step of colour across their border, in the range of
    the batch: d(x, x) where both cells are 1, d(x, x') where only the first is, and so on.
    For ½ it is continued as the one form a + b z_i + c z_j + e (z_i - z_j)² with these four
    values. p is the law of Binomial(2, lam) / 2. The minimum is exact (`kmixup.methods.cuts`).

    Then every image moves its patches by the permutation that minimises
    Σ `epsilon` |way|² - (saliency of the patch)·(share of its new place that is seen), where
    the side of the image is 1. This is exact as well.

    The attributes are arguments of `PuzzleMix`.
    """

    beta: float = 1.2
    gamma: float = 0.5
    eta: float = 0.2
    epsilon: float = 0.8
    patch: int = 4
    grids: Sequence[int] = GRIDS

    def __post_init__(self) -> None:
        for name in ("beta", "eta", "epsilon"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be 0 or more, got {getattr(self, name)}")
        if not 0 <= self.gamma <= 1:
            raise ValueError(
                f"gamma must lie in [0, 1], where the mask of least energy can be found, "
                f"got {self.gamma}"
            )
        if self.patch < 1:
            raise ValueError(f"patch must be at least 1 pixel, got {self.patch}")
        if not self.grids or min(self.grids) < 2:
            raise ValueError(f"grids must be whole numbers, at least 2, got {list(self.grids)}")

    def sample(self, size: Size, shape: Size = (), generator: Generator | None = None) -> Tensor:
        """A uniform number for every lam, which chooses its grid."""
        return uniforms(size, generator)

    def settle(self, lam: Tensor, spot: Tensor | None, pair: Pair) -> tuple[Tensor, Mask]:
        assert spot is not None
        device = pair.samples[0].device
        own, their = (side.cpu() for side in importances_of_images(pair, "PuzzleMix"))
        n, height, width = own.shape
        grids = [b for b in self.grids if height % b == 0 and width % b == 0]
        if not grids:
            raise ValueError(
                f"PuzzleMix needs a grid that divides height and width, got grids "
                f"{list(self.grids)} and images of {height} x {width}: choose other grids, or "
                "resize the images"
            )
        chosen = (spot * len(grids)).long().cpu().expand(n)
        lam = lam.cpu().expand(n)
        images = _colours(pair)
        weight = torch.empty_like(own)
        moves = torch.arange(height * width).repeat(2, n, 1)
        for number in chosen.unique().tolist():
            grid, rows = grids[number], (chosen == number).nonzero()[:, 0]
            sides = own[rows], their[rows]
            costs = self.costs(grid, lam[rows], sides, (images[0][rows], images[1][rows]))
            cells = torch.from_numpy(least_masks(*costs))
            mask = cells.repeat_interleave(height // grid, 1).repeat_interleave(width // grid, 2)
            weight[rows] = mask
            if self.epsilon < math.inf:
                moves[0, rows] = self._move(grid, sides[0], mask > 0)
                moves[1, rows] = self._move(grid, sides[1], mask < 1)
        sources = moves[0].to(device), moves[1].to(device)
        return weight.mean((1, 2)), Mask(weight.to(device), sources)

    def costs(
        self, grid: int, lam: Tensor, importance: Sides, images: Sides
    ) -> tuple[Floats, Floats, Floats]:
        """The energy of masks on a grid, as `kmixup.methods.cuts.least_masks` takes it.

        Importance `(n, height, width)` and images `(n, channels, height, width)`, with colours
        from 0 to 1, are those of the first images and of their partners; `lam` is `(n,)`.
        """
        height, width = importance[0].shape[-2:]
        cell = (height // grid, width // grid)
        s, other = (F.avg_pool2d(side, cell).cpu().numpy() * math.prod(cell) for side in importance)
        chance = torch.stack([(1 - lam) ** 2, 2 * lam * (1 - lam), lam**2], -1).double().numpy()
        prior = -np.log(np.maximum(chance, LEAST_CHANCE)) * (self.eta / grid**2)
        strength = self.beta / (16 * grid)

        slope, weights = other - s, []
        for axis in (1, 2):
            # φ where both cells show the partner, only the second one the first image, only the
            # first one, and both
            neither, second, first, both = (
                _steps(images[i], images[j], axis, cell)
                for i, j in ((1, 1), (1, 0), (0, 1), (0, 0))
            )
            bend = (first + second - neither - both) / 2
            # rounding may leave -1e-17 where steps of colour are as large as they can be
            weights.append((strength * (1 + self.gamma * bend)).clip(min=0))
            for end, tilt in ((slice(None, -1), first - second), (slice(1, None), second - first)):
                place = (slice(None), end) if axis == 1 else (slice(None), slice(None), end)
                slope[place] += strength * self.gamma * (tilt + both - neither) / 2
        unary = s[..., None] + slope[..., None] * np.array([0.0, 0.5, 1.0])
        return unary + prior[:, None, None], weights[0], weights[1]

    def _move(self, grid: int, importance: Tensor, seen: Tensor) -> Tensor:
        """Which pixel moves to each pixel, `(n, height · width)`: patches as wholes."""
        n, height, width = importance.shape
        largest = min(self.patch, height // grid, width // grid)
        side = next(p for p in range(largest, 0, -1) if height % p == 0 and width % p == 0)
        rows, columns = height // side, width // side
        s = (F.avg_pool2d(importance, side) * side**2).flatten(1).cpu().numpy()
        shown = F.avg_pool2d(seen.double(), side).flatten(1).cpu().numpy()
        place = solve(self.epsilon * ways(rows, columns) - s[:, :, None] * shown[:, None, :])
        source = torch.from_numpy(place.argsort(1)).view(n, rows, columns)
        corner = (source // columns) * side * width + (source % columns) * side
        offset = torch.arange(side)[:, None] * width + torch.arange(side)
        return (corner[:, :, None, :, None] + offset[None, None, :, None, :]).reshape(n, -1)


def ways(rows: int, columns: int) -> Floats:
    """Squared ways between the places of a grid with sides of 1, `(places, places)`."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    down = (row[:, None] - row) / max(rows - 1, 1)
    right = (column[:, None] - column) / max(columns - 1, 1)
    return np.asarray(down**2 + right**2)


def _colours(pair: Pair) -> Sides:
    """All channels of both sides `(n, channels, height, width)` on the CPU, scaled to [0, 1]."""
    own, their = (
        torch.cat([x.detach().flatten(1, -3).double() for x in entries], 1).cpu()
        for entries in (pair.samples, pair.partners)
    )
    low = min(float(own.min()), float(their.min()))
    span = max(float(own.max()), float(their.max())) - low or 1.0
    return (own - low) / span, (their - low) / span


def _steps(first: Tensor, second: Tensor, axis: int, cell: tuple[int, int]) -> Floats:
    """Mean steps of colour across the borders of cells, from one image to another.

    `axis` 1 is downwards and 2 to the right: `(n, grid - 1, grid)` or `(n, grid, grid - 1)`.
    """
    size, dim = cell[axis - 1], axis + 1
    after = torch.arange(size, first.shape[dim], size, device=first.device)
    gap = first.index_select(dim, after - 1) - second.index_select(dim, after)
    steps = gap.abs().mean(1)
    along = (1, cell[1]) if axis == 1 else (cell[0], 1)
    means: Floats = F.avg_pool2d(steps, along).cpu().numpy()
    return means


class PuzzleMix(PairMixer):
    """PuzzleMix: a mask that keeps what matters of both images, and moves it into view.

    `k=1` is PuzzleMix as published (Kim, Choo and Song 2020), with random partners, except
    that mask and moves are the exact minima of their energies where the publication has
    heuristics. With a larger `k` the partners are matched by optimal transport. Importance
    must be given; lam is the mean of the mask. One of `grids` must divide the height and the
    width of the images.

    Args:
        k: the number of samples in a block.
        alpha: lam is drawn from Beta(alpha, alpha).
        beta: how smooth the mask is.
        gamma: how much steps of colour count in its smoothness, in [0, 1].
        eta: how near the mean of the mask is kept to the lam that was drawn.
        epsilon: the cost of moving a patch; `math.inf` moves nothing.
        patch: the greatest side of a patch, in pixels; patches are not larger than cells.
        grids: numbers of cells along a side of the mask; one is drawn for every lam, among those
            that divide height and width.
        num_classes, options: those of `KMixup`, except for labels.

    >>> mix = PuzzleMix(k=1, alpha=1.0, num_classes=10)
    >>> x, y = torch.rand(16, 3, 32, 32), torch.randint(10, (16,))
    >>> importance = torch.rand(16, 32, 32)    # kmixup.saliency(net, x, y)
    >>> x, y = mix(x, y, importance=importance)
    """

    def __init__(
        self,
        k: int = 1,
        alpha: float = 1.0,
        num_classes: Nest = None,
        *,
        beta: float = 1.2,
        gamma: float = 0.5,
        eta: float = 0.2,
        epsilon: float = 0.8,
        patch: int = 4,
        grids: Sequence[int] = GRIDS,
        **options: Unpack[PairOptions],
    ) -> None:
        puzzle = Puzzle(beta, gamma, eta, epsilon, patch, tuple(grids))
        super().__init__(puzzle, k, alpha, num_classes, **options)
