"""Exact optimal matchings of many small blocks of points.

The cost of a pair is |a|² + |b|² - 2 a·b, so the costs of all blocks come from one batched matrix
product where the points are, followed by one call of a Jonker-Volgenant solver on the CPU. Points
are gathered a few features at a time: fresh memory of a megabyte or more costs more than the
arithmetic on it. Where points are close together relative to their norms, the product loses digits.
Such blocks are matched again, from centred points in float64, and then from differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from threading import local
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.floating]
Indices = NDArray[np.int64]
Points = Sequence[Tensor]  # rows (n, d); several tensors are parts of the same points
# picks columns (blocks, k), given squared distances and perhaps more, (blocks, k, k) each
Choose = Callable[[Floats, Floats | None], Indices]

CHUNK = 1 << 21  # bytes of points that are gathered at a time
SMALL = 1 << 16  # bytes of points up to which NumPy takes less time, since its calls are shorter
WIDE = 512  # least features to gather at a time; with less room, fewer blocks are gathered

# Squared norms between which products neither overflow nor underflow.
ORDINARY = {torch.float32: (2.0**-80, 2.0**120), torch.float64: (2.0**-400, 2.0**400)}

# A squared distance is trusted if it is above this share of the squared norms it comes from: then
# their rounding changes it by at most four millionths.
TRUSTED = {dtype: torch.finfo(dtype).eps / 4e-6 for dtype in ORDINARY}


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


def take_columns(values: NDArray[Any], columns: Indices) -> NDArray[Any]:
    """Return the entries at the columns of each row: `np.take_along_axis`, in a third of its time.

    >>> take_columns(np.array([[1, 2, 3], [4, 5, 6]]), np.array([[2, 0], [1, 1]]))
    array([[3, 1],
           [5, 5]])
    """
    *rows, width = values.shape
    return values.take(np.arange(0, values.size, width).reshape(*rows, 1) + columns)


def match_blocks(
    first: Points,
    second: Points,
    own: Indices,
    facing: Indices,
    choose: Choose,
    differ: Floats | None = None,
    *,
    dtype: torch.dtype = torch.float64,
    zero_is_best: bool = True,
) -> tuple[Indices, Floats]:
    """Choose a partner for every point among the points that its block faces.

    `own` are the rows of `first` in each block and `facing` the rows of `second` that they face,
    `(blocks, k)` each. `choose` picks partners from squared distances and `differ`, how much the
    targets of all pairs differ. `dtype` is the precision of the first attempt. If `zero_is_best`,
    chosen pairs of equal points are kept as they are.

    Returns the chosen columns `(blocks, k)`, and the squared distances of the pairs. A point with a
    NaN or an infinity raises a FloatingPointError.
    """
    cost, a, b = _squared_distances(first, second, own, facing, dtype)
    low, high = ORDINARY[dtype]
    largest = a.max() + b.max()
    ordinary = bool(a.min() > low and largest < high)  # false for NaN
    extreme = False
    if not ordinary:
        sizes = np.maximum(a.max(1), b.max(1))
        extreme = ~((sizes > low) & (sizes < high))[:, None]
        if not np.isfinite(sizes).all() and not _all_finite(first, second, own, facing):
            raise FloatingPointError("the points have a NaN or an infinity")
        cost[extreme[:, 0]] = 0  # infinities would stop the solver
    columns = choose(cost, differ)
    distance = take_columns(cost, columns[:, :, None])[:, :, 0].astype(np.float64)
    if ordinary and distance.min() > TRUSTED[dtype] * largest:
        return columns, distance
    lost = (distance <= TRUSTED[dtype] * (a + take_columns(b, columns))) | extreme
    if zero_is_best and lost.any():
        partner = take_columns(facing, columns)
        apart = _differ(first, second, own[lost], partner[lost])
        distance[lost] *= apart
        lost[lost] = apart
    again = lost.any(1)
    if again.any():
        part = None if differ is None else differ[again]
        columns[again], distance[again] = _match_precisely(
            first, second, own[again], facing[again], choose, part
        )
    return columns, distance


def pair_distances(first: Points, second: Points, partner: Tensor) -> Tensor:
    """Return the distances of the first m rows of `first` to their partners in `second`, `(m,)`."""
    dtype = reduce(torch.promote_types, (part.dtype for part in first), torch.float32)
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
    exponent = np.zeros(len(a), np.int64)
    return _squared_distances(*points, rows, rows, torch.float64, exponent)[0]


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
    cost, a, b = _squared_distances(first, second, own, facing, torch.float64, exponent)
    columns = choose(cost, differ)
    distance = take_columns(cost, columns[:, :, None])[:, :, 0]
    lost = (distance <= TRUSTED[torch.float64] * (a + take_columns(b, columns))).any(1)
    if lost.any():
        exact = _from_differences(first, second, own[lost], facing[lost], exponent[lost])
        columns[lost] = choose(exact, None if differ is None else differ[lost])
        distance[lost] = take_columns(exact, columns[lost][:, :, None])[:, :, 0]
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
    exponent: Indices | None = None,
) -> Sequence[Floats]:
    """Return squared distances `(blocks, k, k)`, and squared norms of both sides, `(blocks, k)`.

    Given powers of two `(blocks,)`, the points of each block are divided by it and centred.
    """
    x, small = first[0], len(first) == 1 and first[0].nbytes <= SMALL
    if small and x.device.type == "cpu" and x.dtype in ORDINARY and exponent is None:
        return _small_squared_distances(x.numpy(), second[0].numpy(), own, facing)
    if (
        second is not first
        and exponent is None
        and _in_order((*first, *second), own, facing, dtype)
    ):
        return _squared_distances_in_order(first, second, own.shape)
    totals: dict[int, tuple[Tensor, Tensor]] = {}  # products and norms of each group of blocks
    for start, points, x, y in _chunks(first, second, own, facing, dtype):
        if exponent is not None:
            scale = _scale(exponent[start : start + len(x)], points)
            centre = (y * scale).mean(1, keepdim=True)
            points = torch.cat([x * scale - centre, y * scale - centre])
            x, y = points.chunk(2)
        squares = torch.linalg.vector_norm(points, dim=2).square_()
        if start in totals:
            products, norms = totals[start]
            products.baddbmm_(x, y.mT)
            norms += squares
        else:
            totals[start] = torch.bmm(x, y.mT), squares
    groups = []
    for products, norms in totals.values():
        blocks = len(products)
        a, b = norms.narrow(0, 0, blocks), norms.narrow(0, len(norms) - blocks, blocks)
        groups.append((products.mul_(-2).add_(a.unsqueeze(2)).add_(b.unsqueeze(1)), a, b))
    tensors: Sequence[Tensor] = groups[0]
    if len(groups) > 1:
        tensors = [torch.cat(parts) for parts in zip(*groups, strict=True)]
    if tensors[0].device.type == "cpu":
        return list(map(Tensor.numpy, tensors))
    whole = torch.cat([tensor.flatten() for tensor in tensors]).cpu()  # one transfer
    arrays = whole.split([tensor.numel() for tensor in tensors])
    return [array.view(t.shape).numpy() for array, t in zip(arrays, tensors, strict=True)]


def _small_squared_distances(
    first: Floats, second: Floats, own: Indices, facing: Indices
) -> tuple[Floats, Floats, Floats]:
    """Return what `_squared_distances` does, for few points in float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        x, y = first.astype(np.float64)[own], second.astype(np.float64)[facing]
        a, b = np.einsum("bkd,bkd->bk", x, x), np.einsum("bkd,bkd->bk", y, y)
        cost = np.matmul(x, y.swapaxes(1, 2))
        cost *= -2
        cost += a[:, :, None]
        cost += b[:, None, :]
    return cost, a, b


def _in_order(points: Points, own: Indices, facing: Indices, dtype: torch.dtype) -> bool:
    """Whether blocks follow one another in memory, as those of two batches on the CPU do."""
    rows = np.arange(own.size).reshape(own.shape)
    return (
        np.array_equal(own, rows)
        and np.array_equal(facing, rows)
        and all(x.dtype == dtype and x.device.type == "cpu" and x.is_contiguous() for x in points)
    )


def _squared_distances_in_order(
    first: Points, second: Points, shape: tuple[int, ...]
) -> tuple[Floats, Floats, Floats]:
    """Return what `_squared_distances` does, without gathering."""
    cost, a, b = (torch.zeros((), device="cpu") for _ in range(3))
    for sides in zip(first, second, strict=True):
        x, y = (side.narrow(0, 0, shape[0] * shape[1]).view(*shape, -1) for side in sides)
        cost = cost + torch.bmm(x, y.mT)
        a = a + torch.linalg.vector_norm(x, dim=2).square_()
        b = b + torch.linalg.vector_norm(y, dim=2).square_()
    cost.mul_(-2).add_(a.unsqueeze(2)).add_(b.unsqueeze(1))
    return cost.numpy(), a.numpy(), b.numpy()


def _from_differences(
    first: Points, second: Points, own: Indices, facing: Indices, exponent: Indices
) -> Floats:
    """Return squared distances `(blocks, k, k)` in float64 with all of their digits; slow."""
    squares = np.zeros((*own.shape, own.shape[1]))
    mode = "donot_use_mm_for_euclid_dist"
    for start, points, x, y in _chunks(first, second, own, facing, torch.float64):
        part = slice(start, start + len(x))
        scale = _scale(exponent[part], points)
        distances = torch.cdist(x * scale, y * scale, compute_mode=mode)
        squares[part] += distances.square_().cpu().numpy()
    return squares


def _chunks(
    first: Points, second: Points, own: Indices, facing: Indices, dtype: torch.dtype
) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
    """Yield the number of a block, and points `(rows, k, features)` of it and the following ones.

    Then come views of the blocks' own points, the first rows, and of the points that they face, the
    last rows. Where every block faces the next one, these overlap: each point is gathered once.

    On the CPU a chunk has as many blocks and features as fit into `CHUNK`, in memory that is kept
    for the next chunk and the next call. Chunks of the same blocks follow one another.
    """
    device, k, within = first[0].device, own.shape[1], second is first
    chained = within and own[1:].tobytes() == facing[:-1].tobytes()
    group, largest = len(own), max(first, key=Tensor.numel)
    width = largest.shape[1]
    if device.type == "cpu":
        size = max(largest.element_size(), dtype.itemsize)
        room = CHUNK // (k * size)  # features of k points
        group = min(group, max(1, room // min(width, WIDE) // 2))
        width = min(width, max(1, room // (group + 1 if chained else 2 * group)))
    for start in range(0, len(own), group):
        part = slice(start, start + group)
        faced = facing[part][-1:] if chained else facing[part]
        index = torch.from_numpy(np.concatenate([own[part], faced])).view(-1).to(device)
        for x, y in zip(first, second, strict=True):
            memory = _memory(x, len(index) * min(width, x.shape[1]))
            for column in range(0, x.shape[1], width):
                features = column, min(width, x.shape[1] - column)
                points = memory.narrow(0, 0, len(index) * features[1]).view(len(index), -1)
                sides = [(x, index, points)]
                if not within:
                    sides = list(zip((x, y), index.chunk(2), points.chunk(2), strict=True))
                for side, rows, out in sides:
                    torch.index_select(side.narrow(1, *features), 0, rows, out=out)
                points = points.to(dtype).view(-1, k, features[1])
                blocks = len(own[part])
                faced_points = points.narrow(0, len(points) - blocks, blocks)
                yield start, points, points.narrow(0, 0, blocks), faced_points


_kept = local()  # memory that each thread keeps: fresh memory costs more than what is done with it


def _memory(like: Tensor, size: int) -> Tensor:
    """Return memory for `size` numbers, to be used before the next call."""
    needed = size * like.element_size()
    if like.device.type != "cpu" or needed > CHUNK:
        return like.new_empty(size)
    if not hasattr(_kept, "bytes"):
        _kept.bytes = torch.empty(CHUNK, dtype=torch.uint8, device="cpu")
    kept: Tensor = _kept.bytes
    return kept.narrow(0, 0, needed).view(like.dtype)


def _scale(exponent: Indices, points: Tensor) -> Tensor:
    """Return factors that divide blocks of points by powers of two, `(blocks, 1, 1)`."""
    return torch.from_numpy(np.ldexp(1.0, -exponent)).to(points)[:, None, None]


def _exponents(first: Points, second: Points, own: Indices, facing: Indices) -> Indices:
    """Return powers of two for blocks whose squares could overflow or underflow, `(blocks,)`."""
    largest = np.zeros(len(own))
    for start, _, *sides in _chunks(first, second, own, facing, torch.float64):
        part = slice(start, start + len(sides[0]))
        sizes = [side.abs().amax((1, 2)).cpu().numpy() for side in sides]
        largest[part] = np.maximum.reduce([largest[part], *sizes])
    exponent = np.frexp(largest)[1].clip(-1000, 1000)
    exponent[np.abs(exponent) < 400] = 0
    return np.asarray(exponent, dtype=np.int64)


def _differ(first: Points, second: Points, own: Indices, partner: Indices) -> NDArray[np.bool_]:
    """Return whether the two rows of a pair differ at all, `(m,)`."""
    differ = np.zeros(len(own), dtype=bool)
    sides = own[:, None], partner[:, None]
    for start, _, x, y in _chunks(first, second, *sides, torch.float64):
        differ[start : start + len(x)] |= (x != y).any(2).squeeze(1).cpu().numpy()
    return differ


def _all_finite(first: Points, second: Points, own: Indices, facing: Indices) -> bool:
    chunks = _chunks(first, second, own, facing, torch.float64)
    return all(bool(points.isfinite().all()) for _, points, _, _ in chunks)
