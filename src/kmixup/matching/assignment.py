"""Exact optimal matchings of many small blocks of points.

The cost of a pair is the squared distance |a|² + |b|² - 2 a·b, so the costs of all blocks come from
one batched matrix product where the points are, followed by one call of a Jonker-Volgenant solver
on the CPU. Points are gathered and multiplied a few features at a time: fresh memory of a megabyte
or more costs more than the arithmetic on it.

Where points are close together relative to their norms, the product loses digits. Blocks in which
that happens are matched again, from centred points in float64, and then from differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.floating]
Indices = NDArray[np.int64]
Points = Sequence[Tensor]  # rows (n, d); several tensors are parts of the same points
Which = slice | NDArray[np.bool_]  # all blocks, or those of a mask (blocks,)
Choose = Callable[[Floats, Which], Indices]  # from squared distances (blocks, k, k) to (blocks, k)

CHUNK = 1 << 19  # bytes of points that are gathered at a time

# A distance is trusted if the rounding of the norms in it is at most this share of it.
TOLERANCE = 4e-6

# Squared norms between which products neither overflow nor underflow.
ORDINARY = {torch.float32: (2.0**-80, 2.0**120), torch.float64: (2.0**-400, 2.0**400)}


def solve(cost: Floats) -> Indices:
    """Return the column of every row, each used once, at the least total cost.

    >>> solve(np.array([[[1., 0.], [0., 9.]]]))
    array([[1, 0]])
    """
    import lap  # on first use: `import kmixup` stays fast

    # One thread: the solver's pools do not survive a fork, and the blocks of one
    # batch take too little time to be worth sharing out.
    _, columns = lap.lapjvr_batch(cost, return_cost=False, n_threads=1)
    return np.concatenate(columns).reshape(cost.shape[:2])


def match_blocks(
    first: Points,
    second: Points,
    own: Indices,
    facing: Indices,
    choose: Choose,
    *,
    dtype: torch.dtype = torch.float64,
) -> tuple[Indices, Floats]:
    """Choose a partner for every point among the points that its block faces.

    Args:
        first, second: the points of both sides.
        own, facing: the rows of `first` in each block and the rows of `second` that they face,
            `(blocks, k)` each.
        choose: picks partners from squared distances.
        dtype: the precision of the first attempt, float32 or float64.

    Returns:
        The chosen columns `(blocks, k)`, and the squared distances of the pairs.

    Raises:
        FloatingPointError: if a point has a NaN or an infinity.
    """
    cost, own_norm, facing_norm = to_host(*_from_products(first, second, own, facing, dtype))
    low, high = ORDINARY[dtype]
    largest = np.maximum(own_norm.max(), facing_norm.max())  # NaN if one of them is
    extreme = None
    if not low < largest < high:
        norms = np.maximum(own_norm.max(1), facing_norm.max(1))
        if not np.isfinite(norms).all() and not _all_finite(first, second, own, facing):
            raise FloatingPointError("the points have a NaN or an infinity")
        extreme = ~((norms > low) & (norms < high))
        cost[extreme] = 0  # infinities would stop the solver
    columns = choose(cost, slice(None))
    distance = _picked(cost, columns).astype(np.float64)
    norms = own_norm + np.take_along_axis(facing_norm, columns, 1)
    lost = torch.finfo(dtype).eps * norms > TOLERANCE * distance
    if extreme is not None:
        lost |= extreme[:, None]
    if lost.any():
        # nothing is better than a distance of zero, however it was found
        partner = np.take_along_axis(facing, columns, 1)
        differ = _differ(first, second, own[lost], partner[lost])
        distance[lost] *= differ
        lost[lost] = differ
        again: NDArray[np.bool_] = np.any(lost, axis=1)
        if again.any():
            columns[again], distance[again] = _match_precisely(
                first, second, own[again], facing[again], choose, again
            )
    return columns, distance


def to_host(*tensors: Tensor) -> list[Floats]:
    """Return tensors of one dtype as arrays, in one transfer where they are on a device."""
    if tensors[0].device.type == "cpu":
        return [tensor.numpy() for tensor in tensors]
    whole = torch.cat([tensor.flatten() for tensor in tensors]).cpu()
    parts = whole.split([tensor.numel() for tensor in tensors])
    return [part.view(t.shape).numpy() for part, t in zip(parts, tensors, strict=True)]


def pair_distances(first: Points, second: Points, partner: Tensor) -> Tensor:
    """Return the Euclidean distance of every row of `first` to its partner in `second`, `(m,)`.

    `partner` are the partners of the first m rows.
    """
    dtype = torch.promote_types(first[0].dtype, torch.float32)
    squares = torch.zeros(len(partner), dtype=dtype, device=partner.device)
    for a, b in zip(first, second, strict=True):
        step = len(partner)
        if a.device.type == "cpu":
            step = max(1, CHUNK // max(1, a.shape[1] * a.element_size()))
        for rows in range(0, len(partner), step):
            index = partner[rows : rows + step]
            gap = a[rows : rows + len(index)].to(dtype) - b.index_select(0, index).to(dtype)
            squares[rows : rows + step] += torch.linalg.vector_norm(gap, dim=1).square_()
    return squares.sqrt_()


def squared_distances(a: Tensor, b: Tensor) -> Floats:
    """Return all |a[i] - b[j]|² inside blocks `(blocks, k, d)`, as `(blocks, k, k)`."""
    rows = np.arange(a.shape[0] * a.shape[1]).reshape(a.shape[:2])
    points = [a.flatten(0, 1)], [b.flatten(0, 1)]
    return to_host(_from_products(*points, rows, rows, torch.float64, centred=True)[0])[0]


def _match_precisely(
    first: Points,
    second: Points,
    own: Indices,
    facing: Indices,
    choose: Choose,
    which: NDArray[np.bool_],
) -> tuple[Indices, Floats]:
    """Match blocks of any scale and offset in float64; `which` are their numbers."""
    exponent = _exponents(first, second, own, facing)
    centred = _from_products(
        first, second, own, facing, torch.float64, centred=True, exponent=exponent
    )
    cost, own_norm, facing_norm = to_host(*centred)
    columns = choose(cost, which)
    distance = _picked(cost, columns)
    norms = own_norm + np.take_along_axis(facing_norm, columns, 1)
    lost = (np.finfo(np.float64).eps * norms > TOLERANCE * distance).any(1)
    if lost.any():
        subset = which.copy()
        subset[which] = lost
        exact = _from_differences(first, second, own[lost], facing[lost], exponent[lost])
        cost = exact.cpu().numpy()
        columns[lost] = choose(cost, subset)
        distance[lost] = _picked(cost, columns[lost])
    if exponent.any():
        with np.errstate(over="ignore", under="ignore"):
            distance = np.ldexp(distance, 2 * exponent[:, None])
    return columns, distance


def _from_products(
    first: Points,
    second: Points,
    own: Indices,
    facing: Indices,
    dtype: torch.dtype,
    *,
    centred: bool = False,
    exponent: Indices | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Squared distances `(blocks, k, k)`, and the squared norms of both sides `(blocks, k)`."""
    blocks, k = own.shape
    device = first[0].device
    cost = torch.zeros(blocks, k, k, dtype=dtype, device=device)
    norms = torch.zeros(2, blocks, k, dtype=dtype, device=device)
    for part, a, b in _chunks(first, second, own, facing, dtype, exponent):
        if centred:
            centre = b.mean(1, keepdim=True)
            a, b = a - centre, b - centre
        cost[part].baddbmm_(a, b.mT, alpha=-2)
        norms[0, part] += torch.linalg.vector_norm(a, dim=2).square_()
        norms[1, part] += torch.linalg.vector_norm(b, dim=2).square_()
    cost += norms[0, :, :, None]
    cost += norms[1, :, None, :]
    return cost, norms[0], norms[1]


def _from_differences(
    first: Points,
    second: Points,
    own: Indices,
    facing: Indices,
    exponent: Indices | None = None,
) -> Tensor:
    """Squared distances `(blocks, k, k)` in float64 with all of their digits; far slower."""
    blocks, k = own.shape
    squares = torch.zeros(blocks, k, facing.shape[1], dtype=torch.float64, device=first[0].device)
    mode = "donot_use_mm_for_euclid_dist"
    for part, a, b in _chunks(first, second, own, facing, torch.float64, exponent):
        squares[part] += torch.cdist(a, b, compute_mode=mode).square_()
    return squares


def _chunks(
    first: Points,
    second: Points,
    own: Indices,
    facing: Indices,
    dtype: torch.dtype,
    exponent: Indices | None = None,
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Yield the points of both sides `(blocks, k, c)`, and which blocks they belong to.

    On the CPU these are a few blocks at a time, or a few features of one block.
    """
    device = first[0].device
    scale = None
    if exponent is not None and exponent.any():
        scale = torch.from_numpy(np.ldexp(1.0, -exponent)).to(device)[:, None, None]
    for parts in zip(first, second, strict=True):
        group, step = len(own), parts[0].shape[1]
        if device.type == "cpu":
            line = own.shape[1] * parts[0].element_size()  # bytes of one feature of a block
            group, step = max(1, CHUNK // (line * max(1, step))), max(1, CHUNK // line)
        for block in range(0, len(own), group):
            which = slice(block, block + group)
            rows = [torch.from_numpy(side[which].reshape(-1)).to(device) for side in (own, facing)]
            for start in range(0, parts[0].shape[1], step):
                a, b = (
                    part[:, start : start + step].index_select(0, index).to(dtype)
                    for part, index in zip(parts, rows, strict=True)
                )
                a, b = a.view(-1, own.shape[1], a.shape[1]), b.view(-1, own.shape[1], b.shape[1])
                yield (
                    (which, a, b) if scale is None else (which, a * scale[which], b * scale[which])
                )


def _exponents(first: Points, second: Points, own: Indices, facing: Indices) -> Indices:
    """Powers of two to divide blocks by whose squares could overflow or underflow, `(blocks,)`."""
    largest = np.zeros(len(own))
    for part, *sides in _chunks(first, second, own, facing, torch.float64):
        for side in sides:
            largest[part] = np.maximum(largest[part], side.abs().amax((1, 2)).cpu().numpy())
    exponent = np.frexp(largest)[1].clip(-1000, 1000)
    exponent[np.abs(exponent) < 400] = 0
    return np.asarray(exponent, dtype=np.int64)


def _differ(first: Points, second: Points, own: Indices, partner: Indices) -> NDArray[np.bool_]:
    """Whether the two rows of a pair differ at all, `(m,)`."""
    differ = np.zeros(len(own), dtype=bool)
    for part, a, b in _chunks(first, second, own[:, None], partner[:, None], first[0].dtype):
        differ[part] |= (a != b).any(2)[:, 0].cpu().numpy()
    return differ


def _all_finite(first: Points, second: Points, own: Indices, facing: Indices) -> bool:
    chunks = _chunks(first, second, own, facing, first[0].dtype)
    return all(bool(side.isfinite().all()) for _, *sides in chunks for side in sides)


def _picked(cost: Floats, columns: Indices) -> Floats:
    """The entry in the given column of every row."""
    return np.take_along_axis(cost, columns[:, :, None], 2)[:, :, 0]
