"""Exact optimal matchings of many small blocks of points.

The cost of a pair is |a|² + |b|² - 2 a·b, so the costs of all blocks come from one batched matrix
product where the points are, followed by one call of a Jonker-Volgenant solver on the CPU. Points
are gathered a few features at a time: fresh memory of a megabyte or more costs more than the
arithmetic on it.

Products lose the digits that a common offset takes, so it is subtracted first. If chosen pairs are
still close together relative to their norms, the choice is proved to be independent of rounding.
Blocks without a proof are matched again, from centered points in float64, and then from
differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from threading import local
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kmixup.matching._proof import Floats as Floats
from kmixup.matching._proof import Indices as Indices
from kmixup.matching._proof import prove, rounding

Mask = NDArray[np.bool_]
Points = Sequence[Tensor]  # rows (n, d); several tensors are parts of the same points
# picks columns (blocks, k), given squared distances and perhaps more, (blocks, k, k) each
Choose = Callable[[Floats, Floats | None], Indices]

NONE = np.empty(0, np.int64)

CHUNK = 1 << 21  # bytes of points that are gathered at a time
SMALL = 1 << 16  # bytes of points up to which NumPy takes less time, since its calls are shorter
WIDE = 512  # least features to gather at a time; with less room, fewer blocks are gathered
WIDEST = 4096  # features at most: rounding errors grow with their number

# Squared norms between which products neither overflow nor underflow.
ORDINARY = {torch.float32: (2.0**-80, 2.0**120), torch.float64: (2.0**-400, 2.0**400)}

# Blocks are trusted if all squared distances of chosen pairs are above this fraction of the squared
# norms that they come from: errors of 6 eps, the most seen on images, raise the cost by 5e-5.
TRUSTED = {dtype: 2 * 6 * torch.finfo(dtype).eps / 5e-5 for dtype in ORDINARY}
NEAR = 1 / 32  # of the largest norms in a block: pairs inside a cluster count among far ones
OFFSET = 0.92  # points are centered if sums of two of them agree by this fraction of the norms


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
    least_cost: bool = False,
    distances: bool = True,
) -> tuple[Indices, Floats]:
    """Choose a partner for every point among the points that its block faces.

    `own` are the rows of `first` in each block and `facing` the rows of `second` that they face,
    `(blocks, k)` each. `choose` picks partners from squared distances and `differ`, how much the
    targets of all pairs differ. `dtype` is the precision of the first attempt. `least_cost` says
    that the choice minimizes a total of costs that grow with the distances, so that it can be
    proved.

    Returns the chosen columns `(blocks, k)`, and the squared distances of the pairs, which keep
    their digits only if `distances`. A point with a NaN or an infinity raises a FloatingPointError.
    """
    matching = _Matching(first, second, choose, least_cost, distances)
    gather = second is first or not _in_order(first, second, own, facing, dtype)
    columns, distance, again = matching.from_products(own, facing, differ, dtype, gather=gather)
    retries: list[Callable[[Indices, Indices, Floats | None], _Attempt]] = [matching.precisely]
    if not gather:  # points that are gathered are centered as well
        retries = [partial(matching.from_products, dtype=dtype), *retries]
    for retry in retries:
        if not len(again):
            break
        part = None if differ is None else differ[again]
        columns[again], distance[again], still = retry(own[again], facing[again], part)
        again = again[still]
    return columns, distance


class _Attempt(NamedTuple):
    columns: Indices  # (blocks, k)
    distance: Floats  # squared, of the pairs, (blocks, k)
    again: Indices  # the blocks that must be matched again


class _Costs(NamedTuple):
    """Squared distances of blocks, and the squared norms that they come from."""

    own: Indices
    facing: Indices
    squares: Floats  # (blocks, k, k)
    a: Floats  # (blocks, k)
    b: Floats
    dtype: torch.dtype  # of the products
    exponent: Indices | None = None  # of the powers of two that the points were divided by


@dataclass(frozen=True, eq=False)
class _Matching:
    """Points and how to match them."""

    first: Points
    second: Points
    choose: Choose
    least_cost: bool
    distances: bool

    def from_products(
        self,
        own: Indices,
        facing: Indices,
        differ: Floats | None,
        dtype: torch.dtype,
        *,
        gather: bool = True,
    ) -> _Attempt:
        """Match blocks whose squared norms are ordinary numbers in `dtype`."""
        sides = self.first, self.second
        if gather:
            squares, a, b = _squared_distances(*sides, own, facing, dtype)
        else:
            squares, a, b = _squared_distances_in_order(*sides, own.shape)
        low, high = ORDINARY[dtype]
        largest = a.max() + b.max()
        ordinary = bool(a.min() > low and largest < high)  # false for NaN
        if not ordinary:
            sizes = np.maximum(a.max(1), b.max(1))
            extreme = ~((sizes > low) & (sizes < high))
            if not np.isfinite(sizes).all() and not _all_finite(*sides, own, facing):
                raise FloatingPointError("the points have a NaN or an infinity")
            squares[extreme] = 0  # infinities would stop the solver
        columns = self.choose(squares, differ)
        distance = take_columns(squares, columns[:, :, None])[:, :, 0].astype(
            np.float64, copy=False
        )
        if ordinary and distance.min() > TRUSTED[dtype] * largest:
            return _Attempt(columns, distance, NONE)
        costs = _Costs(own, facing, squares, a, b, dtype)
        usable = np.ones(len(own), bool) if ordinary else ~extreme
        again = self._correct(costs, columns, distance, usable) | ~usable
        return _Attempt(columns, distance, again.nonzero()[0])

    def precisely(self, own: Indices, facing: Indices, differ: Floats | None) -> _Attempt:
        """Match blocks of any scale and offset in float64."""
        sides, dtype = (self.first, self.second), torch.float64
        exponent = _exponents(*sides, own, facing)
        squares, a, b = _squared_distances(*sides, own, facing, dtype, exponent)
        columns = self.choose(squares, differ)
        distance = take_columns(squares, columns[:, :, None])[:, :, 0]
        costs = _Costs(own, facing, squares, a, b, dtype, exponent=exponent)
        again = self._correct(costs, columns, distance, np.ones(len(own), bool))
        if again.any():
            exact = _from_differences(*sides, own[again], facing[again], exponent[again])
            columns[again] = self.choose(exact, None if differ is None else differ[again])
            distance[again] = take_columns(exact, columns[again][:, :, None])[:, :, 0]
        if exponent.any():
            with np.errstate(over="ignore", under="ignore"):
                distance = np.ldexp(distance, 2 * exponent[:, None])
        return _Attempt(columns, distance, NONE)

    def _correct(self, costs: _Costs, columns: Indices, distance: Floats, usable: Mask) -> Mask:
        """Correct choices in place; return which usable blocks may still be wrong, `(blocks,)`."""
        norms = costs.a + take_columns(costs.b, columns)
        largest = costs.a.max(1) + costs.b.max(1)
        trusted = TRUSTED[costs.dtype] * np.maximum(norms, NEAR * largest[:, None])
        lost: Mask = (distance <= trusted) & usable[:, None]
        doubtful = provable = np.asarray(lost.any(1))
        if not self.least_cost or not doubtful.any():
            return doubtful
        features = sum(part.shape[1] for part in self.first)
        if self.first[0].device.type == "cpu":
            features = min(features, WIDEST)
        share = rounding(features, costs.dtype)
        unknown = lost & (distance <= share * norms)  # perhaps 0
        if unknown.any():
            partner = take_columns(costs.facing, columns)[unknown]
            apart = _differ(self.first, self.second, costs.own[unknown], partner)
            distance[unknown] *= apart
            lost[unknown] = unknown[unknown] = apart
            doubtful = np.asarray(lost.any(1))
            # there is no proof if many distances are unknown, as in clusters far apart
            provable = doubtful & (unknown.sum(1) <= lost.shape[1] // 4)
        block = provable.nonzero()[0]
        if not len(block):
            return doubtful
        found, proved = prove(
            costs.squares[block],
            share * (costs.a[block, :, None] + costs.b[block, None, :]),
            columns[block],
            lambda squares: self.choose(squares, None),
            lambda part, row, column: self._exact(costs, block[part], row, column),
        )
        lost[block] |= found != columns[block]
        columns[block], doubtful[block] = found, ~proved
        if self.distances:
            where, row = lost.nonzero()
            distance[lost] = self._exact(costs, where, row, columns[lost])
        return doubtful

    def _exact(self, costs: _Costs, block: Indices, row: Indices, column: Indices) -> Floats:
        """Return squared distances of pairs from differences, `(pairs,)`."""
        pairs = costs.own[block, row][:, None], costs.facing[block, column][:, None]
        exponent = np.zeros_like(block) if costs.exponent is None else costs.exponent[block]
        return _from_differences(self.first, self.second, *pairs, exponent)[:, 0, 0]


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


def square_differences(first: Points, second: Points, own: Tensor, facing: Tensor) -> Tensor:
    """Return squared distances inside blocks `(blocks, k, k)` on the points' device.

    They come from differences, in the dtype of the points, at least in float32, and keep all their
    digits without a look at the values. `own` and `facing` are rows on the device, `(blocks, k)`.
    """
    parts, mode = [], "donot_use_mm_for_euclid_dist"
    for x, y in zip(first, second, strict=True):
        dtype = torch.promote_types(x.dtype, torch.float32)
        a, b = (
            side.index_select(0, rows.flatten()).to(dtype).view(*rows.shape, -1)
            for side, rows in ((x, own), (y, facing))
        )
        parts.append(torch.cdist(a, b, compute_mode=mode).square_())
    return sum(parts[1:], parts[0])


def _squared_distances(
    first: Points,
    second: Points,
    own: Indices,
    facing: Indices,
    dtype: torch.dtype,
    exponent: Indices | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Return squared distances `(blocks, k, k)`, and squared norms of both sides, `(blocks, k)`.

    Given powers of two `(blocks,)`, the points of each block are divided by it and centred.
    """
    if dtype == torch.float64 and is_small(first) and exponent is None:
        return _small_squared_distances(first[0].numpy(), second[0].numpy(), own, facing)
    groups: dict[int, list[Tensor]] = {}  # squares and norms of several blocks, by the first one
    for start, points, blocks in _chunks(first, second, own, facing, dtype):
        if exponent is None:
            points = _centered(points, dtype)
            x, y = _both_sides(points, blocks)
        else:
            x, y = _both_sides(points.to(dtype), blocks)
            scale = _scale(exponent[start : start + blocks], x)
            center = (y * scale).mean(1, keepdim=True)
            points = torch.cat([x * scale - center, y * scale - center])
            x, y = points.chunk(2)
        a, b = _both_sides(torch.linalg.vector_norm(points, dim=2).square_(), blocks)
        parts = [torch.baddbmm(a.unsqueeze(2) + b.unsqueeze(1), x, y.mT, alpha=-2), a, b]
        groups[start] = _added(groups[start], parts) if start in groups else parts
    tensors = next(iter(groups.values()))
    if len(groups) > 1:
        tensors = [torch.cat(parts) for parts in zip(*groups.values(), strict=True)]
    if tensors[0].device.type != "cpu":
        whole = torch.cat([tensor.flatten() for tensor in tensors]).cpu()  # one transfer
        split = whole.split([tensor.numel() for tensor in tensors])
        tensors = [part.view(tensor.shape) for part, tensor in zip(split, tensors, strict=True)]
    squares, a, b = tensors
    return squares.numpy(), a.numpy(), b.numpy()


def _centered(points: Tensor, dtype: torch.dtype) -> Tensor:
    """Return gathered points `(blocks, k, features)` in `dtype`, less a common offset.

    The offset is the mean of about eight rows. It is subtracted in the wider of both dtypes, which
    may change `points`, and only if sums of some rows agree: an outlier would offset all others.
    """
    if points.dtype.itemsize < dtype.itemsize:
        points = points.to(dtype)
    rows = points.view(-1, points.shape[2])
    step, few = max(1, rows.shape[0] // 8), 1 + points.shape[2] // WIDE
    if points.device.type == "cpu":
        array = rows.numpy()[::step]  # the small calls of NumPy are shorter
        sample, i = array[:, ::few], len(array) // 4
        with np.errstate(over="ignore", invalid="ignore"):
            x, y = sample[0] + sample[i], sample[2 * i] + sample[3 * i]
            if 2 * x.dot(y) > OFFSET * (x.dot(x) + y.dot(y)):  # faster than x @ y
                points.sub_(torch.from_numpy(array.mean(0)))
    else:  # the same without waiting for the device
        many = len(rows) // step // 2 * 2
        halves = rows.narrow(0, 0, many * step).view(2, many // 2, step, -1).select(2, 0)
        x, y = halves.sum(1).unbind()
        large = 2 * torch.dot(x, y) > OFFSET * (torch.dot(x, x) + torch.dot(y, y))
        points.sub_((x + y).mul_(large / many))
    return points.to(dtype)


def is_small(points: Points) -> bool:
    """Return whether points are so few that float64 in NumPy takes the least time."""
    x = points[0]
    few = len(points) == 1 and x.nbytes <= SMALL
    return few and x.device.type == "cpu" and x.dtype in ORDINARY


def _small_squared_distances(
    first: Floats, second: Floats, own: Indices, facing: Indices
) -> tuple[Floats, Floats, Floats]:
    """Return what `_squared_distances` does, for few points in float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        x = first.astype(np.float64)
        y = x if second is first else second.astype(np.float64)
        a = np.einsum("nd,nd->n", x, x)
        b = a if second is first else np.einsum("nd,nd->n", y, y)
        x, y, a, b = x.take(own, 0), y.take(facing, 0), a.take(own), b.take(facing)
        cost = np.matmul(x, y.swapaxes(1, 2))
        cost *= -2
        cost += a[:, :, None]
        cost += b[:, None, :]
    return cost, a, b


def _in_order(
    first: Points, second: Points, own: Indices, facing: Indices, dtype: torch.dtype
) -> bool:
    """Return whether blocks follow one another in memory, as those of two batches on the CPU do."""
    if dtype == torch.float64 and is_small(first):
        return False
    rows, points = np.arange(own.size).reshape(own.shape), (*first, *second)
    return (
        np.array_equal(own, rows)
        and np.array_equal(facing, rows)
        and all(x.dtype == dtype and x.device.type == "cpu" and x.is_contiguous() for x in points)
    )


def _squared_distances_in_order(
    first: Points, second: Points, shape: tuple[int, ...]
) -> tuple[Floats, Floats, Floats]:
    """Return what `_squared_distances` does, without gathering."""
    totals: list[Tensor] = []
    for sides in zip(first, second, strict=True):
        whole = [side.narrow(0, 0, shape[0] * shape[1]).view(*shape, -1) for side in sides]
        for x, y in zip(*(side.split(WIDEST, 2) for side in whole), strict=True):
            a, b = (torch.linalg.vector_norm(side, dim=2).square_() for side in (x, y))
            parts = [torch.baddbmm(a.unsqueeze(2) + b.unsqueeze(1), x, y.mT, alpha=-2), a, b]
            totals = _added(totals, parts) if totals else parts
    squares, a, b = totals
    return squares.numpy(), a.numpy(), b.numpy()


def _added(totals: list[Tensor], parts: list[Tensor]) -> list[Tensor]:
    """Return sums in float64, so that errors do not grow with the number of chunks."""
    return [total.double().add_(part) for total, part in zip(totals, parts, strict=True)]


def _from_differences(
    first: Points, second: Points, own: Indices, facing: Indices, exponent: Indices
) -> Floats:
    """Return squared distances `(blocks, k, k)` in float64 with all of their digits; slow."""
    squares = np.zeros((*own.shape, own.shape[1]))
    mode = "donot_use_mm_for_euclid_dist"
    for start, points, blocks in _chunks(first, second, own, facing):
        part, points = slice(start, start + blocks), points.double()
        x, y = _both_sides(points, blocks)
        if exponent[part].any():
            scale = _scale(exponent[part], points)
            x, y = x * scale, y * scale
        distances = torch.cdist(x, y, compute_mode=mode)
        squares[part] += distances.square_().cpu().numpy()
    return squares


def _chunks(
    first: Points, second: Points, own: Indices, facing: Indices, dtype: torch.dtype = torch.float64
) -> Iterator[tuple[int, Tensor, int]]:
    """Yield the number of a block, points `(rows, k, features)` from it on, and how many blocks.

    The blocks' own points are the first rows, and the points that they face the last ones, see
    `_both_sides`. If every block faces the next one, these overlap: each is gathered once.

    On the CPU a chunk has as many blocks and features as fit into `CHUNK` in `dtype`, in memory
    that is kept for the next chunk and the next call. Chunks of the same blocks follow one another.
    """
    device, k, within = first[0].device, own.shape[1], second is first
    chained = within and own[1:].tobytes() == facing[:-1].tobytes()
    group, largest = len(own), max(first, key=Tensor.numel)
    width = largest.shape[1]
    if device.type == "cpu":
        room = CHUNK // (k * max(largest.element_size(), dtype.itemsize))  # features of k points
        group = min(group, max(1, room // min(width, WIDE) // 2))
        width = min(width, WIDEST, max(1, room // (group + 1 if chained else 2 * group)))
    for start in range(0, len(own), group):
        part = slice(start, start + group)
        faced = facing[part][-1:] if chained else facing[part]
        index = torch.from_numpy(np.concatenate([own[part], faced]).ravel())
        if device.type != "cpu":
            index = index.to(device, non_blocking=True)
        for x, y in zip(first, second, strict=True):
            for column in range(0, x.shape[1], width):
                features = min(width, x.shape[1] - column)
                points = _memory(x, len(index), features)
                sides = [(x, index, points)]
                if not within:
                    sides = list(zip((x, y), index.chunk(2), points.chunk(2), strict=True))
                for side, rows, out in sides:
                    if features < side.shape[1]:
                        side = side.narrow(1, column, features)
                    torch.index_select(side, 0, rows, out=out)
                yield start, points.view(-1, k, features), len(own[part])


def _both_sides(points: Tensor, blocks: int) -> tuple[Tensor, Tensor]:
    """Return the own points of blocks, and the points that they face."""
    return points.narrow(0, 0, blocks), points.narrow(0, len(points) - blocks, blocks)


_kept = local()  # memory that each thread keeps: fresh memory costs more than what is done with it


def _memory(like: Tensor, rows: int, features: int) -> Tensor:
    """Return memory for points `(rows, features)`, to be used before the next call."""
    needed = rows * features * like.element_size()
    if like.device.type != "cpu" or needed > CHUNK:
        return like.new_empty(rows, features)
    if not hasattr(_kept, "bytes"):
        _kept.bytes = torch.empty(CHUNK, dtype=torch.uint8, device="cpu")
    kept: Tensor = _kept.bytes
    return kept.narrow(0, 0, needed).view(like.dtype).view(rows, features)


def _scale(exponent: Indices, points: Tensor) -> Tensor:
    """Return factors that divide blocks of points by powers of two, `(blocks, 1, 1)`."""
    return torch.from_numpy(np.ldexp(1.0, -exponent)).to(points)[:, None, None]


def _exponents(first: Points, second: Points, own: Indices, facing: Indices) -> Indices:
    """Return powers of two for blocks whose squares could overflow or underflow, `(blocks,)`."""
    largest = np.zeros(len(own))
    for start, points, blocks in _chunks(first, second, own, facing):
        part = slice(start, start + blocks)
        sides = _both_sides(points.double().abs().amax((1, 2)), blocks)
        largest[part] = np.maximum.reduce([largest[part], *(side.cpu().numpy() for side in sides)])
    exponent = np.frexp(largest)[1].clip(-1000, 1000)
    exponent[np.abs(exponent) < 400] = 0
    return np.asarray(exponent, dtype=np.int64)


def _differ(first: Points, second: Points, own: Indices, partner: Indices) -> Mask:
    """Return whether the two rows of a pair differ at all, `(m,)`."""
    differ = np.zeros(len(own), dtype=bool)
    for start, points, pairs in _chunks(first, second, own[:, None], partner[:, None]):
        x, y = _both_sides(points, pairs)
        if points.device.type == "cpu":  # NumPy compares in a sixth of the time
            wide = torch.promote_types(points.dtype, torch.float32)
            unequal = (x.to(wide).numpy() != y.to(wide).numpy()).any(2)
        else:
            unequal = (x != y).any(2).cpu().numpy()
        differ[start : start + pairs] |= unequal[:, 0]
    return differ


def _all_finite(first: Points, second: Points, own: Indices, facing: Indices) -> bool:
    chunks = _chunks(first, second, own, facing)
    return all(bool(points.isfinite().all()) for _, points, _ in chunks)
