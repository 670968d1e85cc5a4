"""Random k-subsets of a data set: drawn many at once, matched, and their distance measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Generator, Tensor

from kmixup._measured import Measured
from kmixup._randomness import device_of
from kmixup.matching import Metric, Optimal
from kmixup.matching._assignment import Floats, Indices, match_blocks

FIRST_BLOCKS = 64  # matched before their spread is computed


class RowSource(Protocol):
    """Samples as float64 rows: indices `(m,)` in, rows `(m, d)` on the CPU out."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: Tensor, /) -> Tensor: ...


class MatchedBlocks(NamedTuple):
    """Indices of matched k-subsets, `(m, k)` each, and their mean squared distances, `(m,)`."""

    first: Indices
    second: Indices
    square_distance: Floats


def subsets(n: int, k: int, blocks: int, generator: Generator | None = None) -> Tensor:
    """Draw independent uniform k-subsets of `range(n)` in random order, `(blocks, k)`."""
    device = device_of(generator)
    if k * k > n:
        keys = torch.rand(blocks, n, generator=generator, dtype=torch.float64, device=device)
        return keys.argsort(1)[:, :k].cpu()
    # A row that is drawn with replacement is distinct with probability over one half.
    # Drawing the other rows again is exact, and does not touch all n indices.
    rows = torch.randint(n, (blocks, k), generator=generator, device=device)
    while len(again := _with_repeats(rows)):
        rows[again] = torch.randint(n, (len(again), k), generator=generator, device=device)
    return rows.cpu()


def subset_pairs(
    n: int, k: int, blocks: int, *, disjoint: bool = False, generator: Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Draw two k-subsets for each block: independent, or without a common element."""
    if disjoint:
        both = subsets(n, 2 * k, blocks, generator)
        return both[:, :k], both[:, k:]
    return subsets(n, k, blocks, generator), subsets(n, k, blocks, generator)


def matched_blocks(
    rows: RowSource,
    k: int,
    blocks: int = FIRST_BLOCKS,
    *,
    most: int,
    metric: Metric = "sqeuclidean",
    relative_error: float = math.inf,
    disjoint: bool = False,
    generator: Generator | None = None,
) -> Iterator[MatchedBlocks]:
    """Draw pairs of k-subsets and match them, at most `most` pairs at a time.

    After `blocks` pairs, more are drawn until the standard error of the mean squared distance is
    below `relative_error` times that mean.
    """
    means: list[Floats] = []
    while blocks:
        for start in range(0, blocks, most):
            size = min(most, blocks - start)
            first, second = subset_pairs(len(rows), k, size, disjoint=disjoint, generator=generator)
            a, b = (rows[index.flatten()].view(*index.shape, -1) for index in (first, second))
            columns, distance = match_rows(a, b, metric)
            means.append(distance.mean(1))
            partner = np.take_along_axis(second.numpy(), columns, 1)
            yield MatchedBlocks(first.numpy(), partner, means[-1])
        blocks = _blocks_missing(np.concatenate(means), relative_error)


def match_rows(a: Tensor, b: Tensor, metric: Metric = "sqeuclidean") -> tuple[Indices, Floats]:
    """Return the partner in `b[m]` of every row of `a[m]` and their squared distance, `(m, k)`.

    The points are float64, `(m, k, d)`.
    """
    rows = np.arange(a.shape[0] * a.shape[1]).reshape(a.shape[:2])
    points = [a.flatten(0, 1)], [b.flatten(0, 1)]
    return match_blocks(
        *points, rows, rows, Optimal(a.shape[1], metric).choose_arrays, least_cost=True
    )


def _blocks_missing(means: Floats, relative_error: float) -> int:
    """Return how many more blocks the spread so far requires, at most three times as many."""
    count, mean = len(means), Measured.of(means)
    if not mean.error > relative_error * mean.value:
        return 0
    needed = count * (mean.error / (relative_error * mean.value)) ** 2
    return math.ceil(min(1.1 * needed, 4 * count)) - count


def _with_repeats(rows: Tensor) -> Tensor:
    ordered = rows.sort(1).values
    return (ordered[:, 1:] == ordered[:, :-1]).any(1).nonzero().squeeze(1)
