"""Optimal matchings of many small blocks of points at once, exact.

The cost of a match is the sum of squared distances. Because
|a - b|² = |a|² + |b|² - 2 a·b, and a term per row or per column does not change
which assignment is best (Peyré & Cuturi 2019, §2), the inner products alone
decide: one batched matrix product where the points are, then one call to a
Jonker-Volgenant solver on the CPU.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.floating]
Indices = NDArray[np.int64]

# Rounding of a product, relative to the squared distance that is left of it when the
# norms cancel, up to which it is trusted: in float32 a distance of 1/16 of the norms.
TOLERANCE = 2e-6


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
    """All |a[i] - b[j]|² inside each block, `(blocks, k, k)` in float64.

    The points are centred first, so that far from the origin no digits are lost.
    """
    a, b = a.double(), b.double()
    centre = b.mean(1, keepdim=True)
    a, b = a - centre, b - centre
    norms = a.square().sum(2)[:, :, None] + b.square().sum(2)[:, None, :]
    return torch.baddbmm(norms, a, b.mT, alpha=-2).clamp_min_(0)


def assign(a: Tensor, b: Tensor, a_square: Floats, b_square: Floats) -> tuple[Indices, Floats]:
    """Match the rows of each `a[m]` with those of `b[m]`; points `(blocks, k, d)`.

    `a_square` and `b_square` are the squared norms, `(blocks, k)` in float64. Returns
    the partner row in `b[m]` of every row of `a[m]`, and the squared distance to it,
    both `(blocks, k)`.

    Where points lie close together relative to their norms (far from the origin, or
    in clusters far apart) the product cancels digits. A block in which that happens
    to a quarter of the pairs, or to the total, is matched again from centred float64
    distances.
    """
    inner = torch.bmm(a, b.mT).cpu().numpy()
    columns = solve(-inner)
    partner_square = b_square[np.arange(len(b))[:, None], columns]
    distance = a_square + partner_square - 2.0 * _pick(inner, columns)
    rounding = np.finfo(inner.dtype).eps * np.sqrt(a_square * partner_square)

    lost = rounding.sum(1) > TOLERANCE * distance.sum(1)
    lost |= (rounding > TOLERANCE * distance).sum(1) > inner.shape[1] / 4
    if lost.any():
        where = torch.from_numpy(lost).to(a.device)
        exact = squared_distances(a[where], b[where]).cpu().numpy()
        columns[lost] = solve(exact)
        distance[lost] = _pick(exact, columns[lost])
    return columns, distance


def _pick(matrix: Floats, columns: Indices) -> Floats:
    """The entry in the given column of every row."""
    rows = matrix.reshape(-1, matrix.shape[2])
    return rows[np.arange(len(rows)), columns.ravel()].reshape(columns.shape)
