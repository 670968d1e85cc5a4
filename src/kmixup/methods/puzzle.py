"""PuzzleMix: the mask of least energy, and patches moved to where they are seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from kmixup._randomness import uniforms
from kmixup.interpolation import Mask, Pair, Size
from kmixup.matching._assignment import Floats, solve
from kmixup.methods._masks import Masked, importances_of_images
from kmixup.methods.kmixup import PairMixer

LEAST_PROBABILITY = 1e-8  # of a level of the mask, so that its logarithm is finite
# capacities are whole numbers: multiples of this fraction of the largest cost of a problem
RESOLUTION = 2.0**-26
UNCUTTABLE = np.iinfo(np.int32).max

Sides = tuple[Tensor, Tensor]  # of the first images, and of their partners


@dataclass(frozen=True)
class Puzzle(Masked):
    """The mask and the moves of PuzzleMix, with the published settings.

    The mask z ∈ {0, ½, 1} of the cells of a b × b grid minimises

        Σ (1 - z) s + z s' + β/(16 b) Σ [(z_i - z_j)² + γ φ_ij(z_i, z_j)] - η/b² Σ log p(z).

    s and s' are the saliencies of the two images in a cell, with total 1. The second sum is over
    neighbouring cells. φ is the mean step of colour across their border, in the range of the batch:
    d(x, x) where both cells are 1, d(x, x') where only the first is, and so on. For ½ it is
    continued as the one form a + b z_i + c z_j + e (z_i - z_j)² with these four values. p is the
    distribution Binomial(2, lam) / 2.

    Then every image moves its patches by the permutation that minimises
    Σ ε |way|² - (saliency of the patch)·(fraction of its new place that is seen), where the side of
    the image is 1. Both minima are exact.
    """

    beta: float = 1.2  # how smooth the mask is
    gamma: float = 0.5  # how much steps of colour count in its smoothness, in [0, 1]
    eta: float = 0.2  # how near the mean of the mask is kept to the lam that was drawn
    epsilon: float = 0.8  # the cost of moving a patch
    patch: int = 4  # the greatest side of a patch, in pixels; patches are not larger than cells
    grids: tuple[int, ...] = (2, 4, 8, 16)  # cells along a side, of which one is drawn

    def draw(self, n: int, shape: Size = (), generator: Generator | None = None) -> Tensor:
        """Draw a uniform number for every lam, which chooses its grid."""
        return uniforms((n,), generator)

    def settle(self, lam: Tensor, spot: Tensor | None, pair: Pair) -> tuple[Tensor, Mask]:
        assert spot is not None
        device = pair.samples[0].device
        own, their = (side.cpu() for side in importances_of_images(pair))
        n, height, width = own.shape
        grids = [b for b in self.grids if height % b == 0 and width % b == 0]
        if not grids:
            raise ValueError(
                f"PuzzleMix needs images whose height and width one of {self.grids} divides, got "
                f"{height} x {width}: resize them"
            )
        chosen = (spot * len(grids)).long().cpu().expand(n)
        lam = lam.cpu().expand(n)
        images = _colours(pair)
        weight = torch.empty_like(own)
        moves = torch.empty(2, n, height * width, dtype=torch.long)
        for number in chosen.unique().tolist():
            grid, rows = grids[number], (chosen == number).nonzero()[:, 0]
            sides = own[rows], their[rows]
            costs = self.costs(grid, lam[rows], sides, (images[0][rows], images[1][rows]))
            cells = torch.from_numpy(least_masks(*costs))
            mask = cells.repeat_interleave(height // grid, 1).repeat_interleave(width // grid, 2)
            weight[rows] = mask
            moves[0, rows] = self._move(grid, sides[0], mask > 0)
            moves[1, rows] = self._move(grid, sides[1], mask < 1)
        sources = moves[0].to(device), moves[1].to(device)
        return weight.mean((1, 2)), Mask(weight.to(device), sources)

    def costs(
        self, grid: int, lam: Tensor, importance: Sides, images: Sides
    ) -> tuple[Floats, Floats, Floats]:
        """Return the energy of masks on a grid, as arguments of `least_masks`.

        Importance `(n, height, width)` and images `(n, channels, height, width)`, with colours from
        0 to 1, are those of the first images and of their partners; `lam` is `(n,)`.
        """
        height, width = importance[0].shape[-2:]
        cell = (height // grid, width // grid)
        s, other = (F.avg_pool2d(side, cell).numpy() * math.prod(cell) for side in importance)
        level = torch.stack([(1 - lam) ** 2, 2 * lam * (1 - lam), lam**2], -1).double().numpy()
        prior = -np.log(np.maximum(level, LEAST_PROBABILITY)) * (self.eta / grid**2)
        strength = self.beta / (16 * grid)

        slope, weights = other - s, []
        for axis in (1, 2):
            # φ by which of the two cells show the first image
            both, first, second, neither = (
                _steps(a, b, axis, cell) for a, b in product(images, repeat=2)
            )
            bend = (first + second - neither - both) / 2
            # rounding may leave -1e-17 where steps of colour are as large as they can be
            weights.append((strength * (1 + self.gamma * bend)).clip(min=0))
            rows = slope.swapaxes(1, axis)  # a view, whose second axis is that of the steps
            for ends, tilt in ((rows[:, :-1], first - second), (rows[:, 1:], second - first)):
                ends += (strength * self.gamma * (tilt + both - neither) / 2).swapaxes(1, axis)
        unary = s[..., None] + slope[..., None] * np.array([0.0, 0.5, 1.0])
        return unary + prior[:, None, None], weights[0], weights[1]

    def _move(self, grid: int, importance: Tensor, seen: Tensor) -> Tensor:
        """Return which pixel moves to each pixel, `(n, height · width)`: patches as wholes."""
        n, height, width = importance.shape
        largest = min(self.patch, height // grid, width // grid)
        side = next(p for p in range(largest, 0, -1) if height % p == 0 and width % p == 0)
        rows, columns = height // side, width // side
        s = (F.avg_pool2d(importance, side) * side**2).flatten(1).numpy()
        shown = F.avg_pool2d(seen.double(), side).flatten(1).numpy()
        place = solve(
            self.epsilon * squared_moves(rows, columns) - s[:, :, None] * shown[:, None, :]
        )
        source = torch.from_numpy(place.argsort(1)).view(n, rows, columns)
        corner = (source // columns) * side * width + (source % columns) * side
        offset = torch.arange(side)[:, None] * width + torch.arange(side)
        return (corner[:, :, None, :, None] + offset[None, None, :, None, :]).reshape(n, -1)


def squared_moves(rows: int, columns: int) -> Floats:
    """Return squared distances between the cells of a grid with sides of 1, `(places, places)`."""
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
    """Return mean steps of colour across the borders of cells, from one image to another.

    `axis` 1 is downwards and 2 to the right: `(n, grid - 1, grid)` or `(n, grid, grid - 1)`.
    """
    size, dim = cell[axis - 1], axis + 1
    after = torch.arange(size, first.shape[dim], size)
    steps = (first.index_select(dim, after - 1) - second.index_select(dim, after)).abs().mean(1)
    along = (1, cell[1]) if axis == 1 else (cell[0], 1)
    means: Floats = F.avg_pool2d(steps, along).numpy()
    return means


def least_masks(unary: Floats, down: Floats, right: Floats) -> Floats:
    """Return the masks `(n, rows, columns)` that minimise Σ unary[z] + Σ weight · (z - z')².

    A cell z ∈ {0, ½, 1} is two bits: a = [z ≥ ½] and b = [z = 1], where b needs a. Costs of cells
    are linear in these bits. With them

        4 (z - z')² = |a - a'| + |a - b'| + |b - a'| + |b - b'| + (b - a) + (b' - a'),

    so that a non-negative weight of (z - z')² is an edge between each bit of a cell and each bit of
    its neighbour. The least energy is then a minimum cut (Ishikawa 2003), and the cuts of a whole
    batch are one flow in one graph. It is exact except for rounding costs to 2⁻²⁶ of the largest
    one in their problem.

    Args:
        unary: the cost of 0, ½ and 1 in every cell, `(n, rows, columns, 3)`.
        down: weights of (z - z')² between vertical neighbours, `(n, rows - 1, columns)`, ≥ 0.
        right: the same between horizontal neighbours, `(n, rows, columns - 1)`.
    """
    from scipy.sparse import csr_array  # on first use: `import kmixup` stays fast
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    tilt = np.zeros_like(unary[..., 0])
    tilt[:, :-1] += down / 4
    tilt[:, 1:] += down / 4
    tilt[:, :, :-1] += right / 4
    tilt[:, :, 1:] += right / 4
    cost = np.diff(unary, axis=-1) + np.stack([-tilt, tilt], -1)  # of a, and of b

    largest = np.abs(cost).max((1, 2, 3), initial=0.0)
    for weight in (down, right):
        largest = np.maximum(largest, weight.max((1, 2), initial=0.0))
    scale = 1 / (RESOLUTION * np.where(largest > 0, largest, 1.0))[:, None, None]

    bits = np.arange(cost.size, dtype=np.int32).reshape(cost.shape)
    source, sink = bits.size, bits.size + 1
    whole = np.rint(cost * scale[..., None]).astype(np.int32)
    edges = [  # tails, heads and capacities
        (bits[whole > 0], sink, whole[whole > 0]),
        (source, bits[whole < 0], -whole[whole < 0]),
        (bits[..., 1], bits[..., 0], UNCUTTABLE),
    ]
    for weight, first, second in (
        (down, bits[:, :-1], bits[:, 1:]),
        (right, bits[:, :, :-1], bits[:, :, 1:]),
    ):
        capacity = np.rint(weight * scale / 4).astype(np.int32)
        for i, j in product((0, 1), repeat=2):
            ends = first[..., i], second[..., j]
            edges += [(*ends, capacity), (*ends[::-1], capacity)]
    flat = [[part.ravel() for part in np.broadcast_arrays(*edge)] for edge in edges]
    tail, head, capacity = (
        np.concatenate(column, dtype=np.int32) for column in zip(*flat, strict=True)
    )
    graph = csr_array((capacity, (tail, head)), shape=(sink + 1, sink + 1))
    residual = graph - maximum_flow(graph, source, sink).flow > 0
    # the smallest source side of a minimum cut
    reached = np.zeros(sink + 1, dtype=bool)
    reached[breadth_first_order(residual, source, return_predecessors=False)] = True
    return np.asarray(reached[: bits.size].reshape(bits.shape).sum(-1) / 2)


class PuzzleMix(PairMixer):
    """PuzzleMix: a mask that keeps the salient regions of both images, and moves them into view.

    `k=1` is PuzzleMix as published (Kim, Choo and Song 2020), with random partners, except
    that mask and moves are the exact minima of their energies where the publication has
    heuristics. There is no adversarial noise, and `saliency` runs the network in eval mode.
    With a larger `k` the partners are matched by optimal transport. Importance
    must be given; lam is the mean of the mask. The height and the width of the images must be
    even.

    Args:
        k: the number of samples in a block.
        alpha: lam is drawn from Beta(alpha, alpha).
        num_classes: the number of classes of integer targets, which become one-hot.
        options: `PairOptions`: metric, targets, ignore_index, lam_per, prob, generator.

    >>> mix = PuzzleMix(k=1, alpha=1.0, num_classes=10)
    >>> x, y = torch.rand(16, 3, 32, 32), torch.randint(10, (16,))
    >>> importance = torch.rand(16, 32, 32)    # kmixup.saliency(net, x, y)
    >>> x, y = mix(x, y, importance=importance)
    """

    interpolation = Puzzle()
