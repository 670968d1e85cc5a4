"""Optimal matchings of many small blocks of points at once, exact.

The cost of a match is the sum of squared distances. Because
|a - b|² = |a|² + |b|² - 2 a·b, and a term per row or per column does not change
which assignment is best (Peyré & Cuturi 2019, §2), the inner products alone
decide: one batched matrix product where the points are, then one call to a
Jonker-Volgenant solver on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.floating]
Indices = NDArray[np.int64]
Which = slice | Tensor  # some of the blocks: all of them, or those that a mask `(blocks,)` has
Choice = Callable[[Tensor, Which], Indices]

# A product is trusted if its rounding is at most this share of the squared distance that
# is left when the norms cancel: in float32 a distance of 1/16 of the norms.
TOLERANCE = 2e-6

# Squared norms between which products neither overflow nor underflow.
ORDINARY = {torch.float32: (2.0**-80, 2.0**120), torch.float64: (2.0**-400, 2.0**400)}


def solve(cost: Floats) -> Indices:
    """Column of every row, each used once, at the least total: `(blocks, k, k)` to `(blocks, k)`.

    >>> solve(np.array([[[1., 0.], [0., 9.]]]))
    array([[1, 0]])
    """
    import lap  # on first use: `import kmixup` stays fast

    # One thread: the solver's pools do not survive a fork, and the blocks of one
    # batch take too little time to be worth sharing out.
    _, columns = lap.lapjvr_batch(cost, return_cost=False, n_threads=1)
    return np.concatenate(columns).reshape(cost.shape[:2])


def squared_distances(a: Tensor, b: Tensor) -> Tensor:
    """All |a[i] - b[j]|² inside each block, `(blocks, k, k)` in float64, from products.

    The points are centred first, so that no digits are lost far from the origin. Clusters
    far apart do lose digits of the distances inside a cluster.
    """
    return _from_products(a.double(), b.double())[0]


def true_distances(a: Tensor, b: Tensor) -> Tensor:
    """All |a[i] - b[j]|² inside each block, `(blocks, k, k)` in float64, from differences.

    Every entry keeps all of its digits. In many dimensions this takes far longer than
    products; it needs no more memory.
    """
    mode = "donot_use_mm_for_euclid_dist"
    return torch.cdist(a.double(), b.double(), compute_mode=mode).square_()


def prefers_distances(k: int, d: int) -> bool:
    """Whether true distances are solved sooner than products: in few dimensions, at a large k.

    The solver begins with the nearest neighbours of every point. In few dimensions that
    settles most rows of a matrix of distances, but hardly any of a matrix of products: in
    two dimensions a match takes half the time at k = 64 and a tenth at k = 1024. With more
    dimensions the solver gains less, and true distances cost more.
    """
    # Smaller blocks would gain little, and the choice among equally good matches would change:
    # the published trials have k up to 16 in few dimensions, and k = 64 in 784.
    return k >= 32 and d <= min(16, k // 8)


def assign(a: Tensor, b: Tensor, a_square: Floats, b_square: Floats) -> tuple[Indices, Floats]:
    """Match the rows of each `a[m]` with those of `b[m]`; points `(blocks, k, d)`.

    `a_square` and `b_square` are the squared norms, `(blocks, k)` in float64. Returns
    the partner row in `b[m]` of every row of `a[m]`, and the squared distance to it,
    both `(blocks, k)`.

    Where points lie close together relative to their norms (far from the origin, or
    in clusters far apart) the product cancels digits. A block in which that happens
    to a quarter of the pairs, or to the total, is matched again from distances. So is
    a block whose products may overflow or underflow.
    """
    k, d = a.shape[1:]
    if prefers_distances(k, d):
        return choose(a, b, _solved)

    cost = torch.bmm(a, b.mT).cpu().numpy()
    np.negative(cost, out=cost)
    low, high = ORDINARY[a.dtype]
    # by the sum of squares, which is the fastest way to bound a few numbers
    if not np.vdot(a_square, a_square) + np.vdot(b_square, b_square) < high**2:
        extreme = np.maximum(a_square, b_square).max(1) >= high
        cost[extreme] = 0  # infinities would stop the solver
        a_square, b_square = (np.where(extreme[:, None], 0, s) for s in (a_square, b_square))

    columns = solve(cost)
    partner_square = b_square.take(columns + np.arange(0, columns.size, k)[:, None])
    norms = a_square + partner_square
    distance = norms + 2.0 * _pick(cost, columns)
    eps = torch.finfo(a.dtype).eps
    # first by a bound that is quick to compute: a mean is no less than its geometric mean
    if (distance - eps / (2 * TOLERANCE) * norms).min() >= low / TOLERANCE:
        return columns, distance

    rounding = eps * np.sqrt(a_square * partner_square)
    lost = rounding.sum(1) > TOLERANCE * distance.sum(1)
    lost |= (rounding > TOLERANCE * distance).sum(1) > k / 4
    lost |= np.maximum(a_square, b_square).max(1) < low
    if lost.any():
        where = torch.from_numpy(lost).to(a.device)
        columns[lost], distance[lost] = choose(a[where], b[where], _solved)
    return columns, distance


def choose(a: Tensor, b: Tensor, choice: Choice) -> tuple[Indices, Floats]:
    """Partners by a `choice` among distances, for points `(blocks, k, d)` of any scale.

    `choice` takes squared distances `(blocks, k, k)`, in any unit, and which of the blocks
    they are of. It returns the partner row in `b[m]` of every row of `a[m]`, `(blocks, k)`.
    The result is these rows, and the squared distance to them.

    Distances are computed from products. A block with a pair whose distance loses its
    digits that way is chosen again from true distances.
    """
    k, d = a.shape[1:]
    (a, b), exponent = rescaled(a.double(), b.double())
    if prefers_distances(k, d):
        columns, distance = _choose(true_distances(a, b), choice)
    else:
        distances, norms = _from_products(a, b)
        columns, distance = _choose(distances, choice)
        index = torch.from_numpy(columns).to(a.device)[:, :, None]
        gap = (a - b.take_along_dim(index, 1)).square().sum(2)
        rounding = torch.finfo(a.dtype).eps * norms.take_along_dim(index, 2)[:, :, 0]
        # nothing is better than a distance of zero, however it was found
        lost = ((rounding > TOLERANCE * gap) & (gap > 0)).any(1)
        if lost.any():
            where = lost.cpu().numpy()
            columns[where], distance[where] = _choose(
                true_distances(a[lost], b[lost]), choice, lost
            )
    if exponent.any():
        with np.errstate(over="ignore", under="ignore"):
            distance = np.ldexp(distance, exponent)
    return columns, distance


def rescaled(*points: Tensor) -> tuple[list[Tensor], Indices]:
    """Take a power of two out of the blocks whose squares could overflow or underflow.

    `points` are float64, `(blocks, k, d)` each. Returns the scaled points and exponents
    `(blocks, 1)`: a squared distance of scaled points, times 2 to the power of the exponent, is
    that of the points themselves. Blocks of an ordinary scale stay as they are, with exponent 0.
    """
    largest = np.max([side.abs().amax((1, 2)).cpu().numpy() for side in points], axis=0)
    exponent = np.frexp(largest)[1].clip(-1000, 1000)
    exponent[np.abs(exponent) < 400] = 0
    if exponent.any():
        scale = torch.from_numpy(np.ldexp(1.0, -exponent)).to(points[0].device)[:, None, None]
        points = tuple(side * scale for side in points)
    return list(points), 2 * exponent[:, None]


def _choose(
    distances: Tensor, choice: Choice, which: Which = slice(None)
) -> tuple[Indices, Floats]:
    columns = choice(distances, which)
    index = torch.from_numpy(columns).to(distances.device)[:, :, None]
    return columns, distances.take_along_dim(index, 2)[:, :, 0].cpu().numpy()


def _solved(distances: Tensor, which: Which) -> Indices:
    return solve(distances.cpu().numpy())


def _from_products(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Squared distances |a|² + |b|² - 2 a·b, and the sums |a|² + |b|² alone."""
    centre = b.mean(1, keepdim=True)
    a, b = a - centre, b - centre
    norms = a.square().sum(2)[:, :, None] + b.square().sum(2)[:, None, :]
    return torch.baddbmm(norms, a, b.mT, alpha=-2).clamp_min_(0), norms


def _pick(matrix: Floats, columns: Indices) -> Floats:
    """The entry in the given column of every row."""
    starts = np.arange(0, matrix.size, matrix.shape[2]).reshape(columns.shape)
    return matrix.take(starts + columns)
