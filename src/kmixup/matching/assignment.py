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
# picks columns (blocks, k), given squared distances and perhaps more, (blocks, k, k) each
Choose = Callable[[Floats, Floats | None], Indices]

CHUNK = 1 << 20  # bytes of points that are gathered at a time
WIDE = 512  # features that are gathered at a time at least, before fewer blocks are

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
    differ: Floats | None = None,
    *,
    dtype: torch.dtype = torch.float64,
) -> tuple[Indices, Floats]:
    """Choose a partner for every point among the points that its block faces.

    Args:
        first, second: the points of both sides.
        own, facing: the rows of `first` in each block and the rows of `second` that they face,
            `(blocks, k)` each.
        choose: picks partners from squared distances and `differ`.
        differ: how much the targets of all pairs differ, for a choice that depends on them.
        dtype: the precision of the first attempt, float32 or float64.

    Returns:
        The chosen columns `(blocks, k)`, and the squared distances of the pairs.

    Raises:
        FloatingPointError: if a point has a NaN or an infinity.
    """
    cost, norms = _squared_distances(first, second, own, facing, dtype)
    low, high = ORDINARY[dtype]
    largest = norms.max((0, 2))  # of every block; NaN if one of them is
    extreme = ~((largest > low) & (largest < high))
    if extreme.any():
        if not np.isfinite(largest).all() and not _all_finite(first, second, own, facing):
            raise FloatingPointError("the points have a NaN or an infinity")
        cost[extreme] = 0  # infinities would stop the solver
    columns = choose(cost, differ)
    distance, sizes = _chosen(cost, norms, columns)
    lost = torch.finfo(dtype).eps * sizes >= TOLERANCE * distance
    lost |= extreme[:, None]
    if lost.any():
        # nothing is better than a distance of zero, however it was found
        partner = np.take_along_axis(facing, columns, 1)
        apart = _differ(first, second, own[lost], partner[lost])
        distance[lost] *= apart
        lost[lost] = apart
        again: NDArray[np.bool_] = np.any(lost, axis=1)
        if again.any():
            part = None if differ is None else differ[again]
            columns[again], distance[again] = _match_precisely(
                first, second, own[again], facing[again], choose, part
            )
    return columns, distance


def to_host(*tensors: Tensor) -> list[Floats]:
    """Return tensors of one dtype from a device as arrays, in one transfer."""
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
        for start, index in enumerate(partner.split(max(1, step))):
            rows = start * step, len(index)
            gap = a.narrow(0, *rows).to(dtype) - b.index_select(0, index).to(dtype)
            squares.narrow(0, *rows).add_(torch.linalg.vector_norm(gap, dim=1).square_())
    return squares.sqrt_()


def squared_distances(a: Tensor, b: Tensor) -> Floats:
    """Return all |a[i] - b[j]|² inside blocks `(blocks, k, d)`, as `(blocks, k, k)`."""
    rows = np.arange(a.shape[0] * a.shape[1]).reshape(a.shape[:2])
    points = [a.flatten(0, 1)], [b.flatten(0, 1)]
    return _squared_distances(*points, rows, rows, torch.float64, centred=True)[0]


def _match_precisely(
    first: Points,
    second: Points,
    own: Indices,
    facing: Indices,
    choose: Choose,
    differ: Floats | None,
) -> tuple[Indices, Floats]:
    """Match blocks of any scale and offset in float64."""
    exponent = _exponents(first, second, own, facing)
    cost, norms = _squared_distances(
        first, second, own, facing, torch.float64, centred=True, exponent=exponent
    )
    columns = choose(cost, differ)
    distance, sizes = _chosen(cost, norms, columns)
    lost = (np.finfo(np.float64).eps * sizes > TOLERANCE * distance).any(1)
    if lost.any():
        exact = _from_differences(first, second, own[lost], facing[lost], exponent[lost])
        cost = exact.cpu().numpy()
        columns[lost] = choose(cost, None if differ is None else differ[lost])
        distance[lost] = np.take_along_axis(cost, columns[lost][:, :, None], 2)[:, :, 0]
    if exponent.any():
        with np.errstate(over="ignore", under="ignore"):
            distance = np.ldexp(distance, 2 * exponent[:, None])
    return columns, distance


def _squared_distances(
    first: Points,
    second: Points,
    own: Indices,
    facing: Indices,
    dtype: torch.dtype,
    *,
    centred: bool = False,
    exponent: Indices | None = None,
) -> tuple[Floats, Floats]:
    """Squared distances `(blocks, k, k)` and the squared norms of both sides `(2, blocks, k)`.

    The distances are computed from products, which lose digits where they are far below the norms.
    """
    products, squares = torch.empty(0), torch.empty(0)
    for part, both in _chunks(first, second, own, facing, dtype, exponent):
        if centred:
            both = both - both.select(0, 1).mean(1, keepdim=True)
        a, b = both.unbind(0)
        norm = torch.linalg.vector_norm(both, dim=3).square_()
        if not len(products):
            if both.shape[1] == len(own):  # all blocks at once
                products, squares = torch.bmm(a, b.mT), norm
                continue
            products = both.new_zeros(*own.shape, own.shape[1])
            squares = both.new_zeros(2, *own.shape)
        products[part].baddbmm_(a, b.mT)
        squares[:, part] += norm
    if products.device.type == "cpu":
        cost, norms = products.numpy(), squares.numpy()
    else:
        cost, norms = to_host(products, squares)
    with np.errstate(over="ignore", invalid="ignore"):
        cost *= -2
        cost += norms[0, :, :, None]
        cost += norms[1, :, None, :]
    return cost, norms


def _chosen(cost: Floats, norms: Floats, columns: Indices) -> tuple[Floats, Floats]:
    """The squared distances of the chosen pairs, and the sums of their squared norms."""
    blocks, k = columns.shape
    rows = np.arange(blocks * k).reshape(blocks, k)
    distance = cost.take(rows * k + columns).astype(np.float64)
    return distance, norms[0] + norms[1].take(rows[:, :1] + columns)


def _from_differences(
    first: Points,
    second: Points,
    own: Indices,
    facing: Indices,
    exponent: Indices | None = None,
) -> Tensor:
    """Squared distances `(blocks, k, k)` in float64 with all of their digits; far slower."""
    blocks, k = own.shape
    shape = blocks, k, facing.shape[1]
    squares = torch.zeros(shape, dtype=torch.float64, device=first[0].device)
    mode = "donot_use_mm_for_euclid_dist"
    for part, both in _chunks(first, second, own, facing, torch.float64, exponent):
        squares[part] += torch.cdist(both[0], both[1], compute_mode=mode).square_()
    return squares


def _chunks(
    first: Points,
    second: Points,
    own: Indices,
    facing: Indices,
    dtype: torch.dtype,
    exponent: Indices | None = None,
) -> Iterator[tuple[slice, Tensor]]:
    """Yield points of both sides, `(2, blocks, k, features)`, and which blocks they belong to.

    On the CPU these are as many blocks and features at a time as fit into `CHUNK`. The memory is
    reused for the next chunk.
    """
    device, k, within = first[0].device, own.shape[1], second is first
    for x, y in zip(first, second, strict=True):
        d, group, step, buffer = x.shape[1], len(own), x.shape[1], None
        if device.type == "cpu" and x.nbytes > CHUNK // 2:
            most = CHUNK // (2 * min(d, WIDE) * x.element_size())
            group = min(len(own), max(1, most // k))
            step = min(d, max(1, CHUNK // (2 * group * k * x.element_size())))
            buffer = torch.empty(2 * group * k * step, dtype=x.dtype)
        for block in range(0, len(own), group):
            part = slice(block, block + group)
            index = torch.from_numpy(np.stack([own[part], facing[part]])).to(device)
            for start in range(0, d, step):
                stop = min(start + step, d)
                sides = (x, y) if step == d else (x[:, start:stop], y[:, start:stop])
                if buffer is not None:
                    both = buffer[: index.numel() * (stop - start)].view(-1, stop - start)
                    for side, rows, half in zip(sides, index, both.chunk(2), strict=True):
                        torch.index_select(side, 0, rows.view(-1), out=half)
                elif within:
                    both = sides[0].index_select(0, index.view(-1))
                else:
                    rows = index.flatten(1)
                    both = torch.cat([sides[0][rows[0]], sides[1][rows[1]]])
                both = both.to(dtype).view(2, -1, k, stop - start)
                if exponent is not None and exponent.any():
                    scale = torch.from_numpy(np.ldexp(1.0, -exponent[part])).to(device)
                    both = both * scale[:, None, None]
                yield part, both


def _exponents(first: Points, second: Points, own: Indices, facing: Indices) -> Indices:
    """Powers of two to divide blocks by whose squares could overflow or underflow, `(blocks,)`."""
    largest = np.zeros(len(own))
    for part, both in _chunks(first, second, own, facing, torch.float64):
        largest[part] = np.maximum(largest[part], both.abs().amax((0, 2, 3)).cpu().numpy())
    exponent = np.frexp(largest)[1].clip(-1000, 1000)
    exponent[np.abs(exponent) < 400] = 0
    return np.asarray(exponent, dtype=np.int64)


def _differ(first: Points, second: Points, own: Indices, partner: Indices) -> NDArray[np.bool_]:
    """Whether the two rows of a pair differ at all, `(m,)`."""
    differ = np.zeros(len(own), dtype=bool)
    for part, both in _chunks(first, second, own[:, None], partner[:, None], first[0].dtype):
        differ[part] |= (both[0] != both[1]).any(2)[:, 0].cpu().numpy()
    return differ


def _all_finite(first: Points, second: Points, own: Indices, facing: Indices) -> bool:
    chunks = _chunks(first, second, own, facing, first[0].dtype)
    return all(bool(both.isfinite().all()) for _, both in chunks)
