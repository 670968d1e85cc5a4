"""Random k-subsets of a data set: drawn many at once, matched, and their distance measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Generator, Tensor

from kmixup.matching import Metric, Optimal
from kmixup.matching.assignment import Floats, Indices, match_blocks
from kmixup.measured import Measured
from kmixup.randomness import device_of

FIRST_BLOCKS = 64  # blocks that are matched before their spread is looked at


class RowSource(Protocol):
    """Samples as float64 rows: indices `(m,)` in, rows `(m, d)` on the CPU out."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: Tensor, /) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class MatchedBlocks:
    """Pairs of k-subsets after their optimal match, one pair to a row.

    Attributes:
        first: indices of the samples of the first subsets, `(m, k)`.
        second: indices of their partners, `(m, k)`, in the same places.
        square_distance: mean squared distance of the partners of each pair of subsets, `(m,)`.
    """

    first: Indices
    second: Indices
    square_distance: Floats


def subsets(n: int, k: int, blocks: int, generator: Generator | None = None) -> Tensor:
    """Independent uniform k-subsets of `range(n)` in random order, `(blocks, k)`."""
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
    """Two k-subsets for each block: independent, or without a common element."""
    if disjoint:
        both = subsets(n, 2 * k, blocks, generator)
        return both[:, :k], both[:, k:]
    return subsets(n, k, blocks, generator), subsets(n, k, blocks, generator)


def chunked_subset_pairs(
    n: int,
    k: int,
    blocks: int,
    *,
    most: int,
    disjoint: bool = False,
    generator: Generator | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """The pairs of `blocks` blocks, at most `most` of them at a time.

    A generator gives other subsets for another `most`.
    """
    for start in range(0, blocks, most):
        size = min(most, blocks - start)
        yield subset_pairs(n, k, size, disjoint=disjoint, generator=generator)


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
    """Draw pairs of k-subsets, match them, and measure how far apart partners are.

    Args:
        rows: the data.
        k: size of a subset.
        blocks: number of pairs of subsets to draw at first.
        most: number of pairs to hold in memory at a time.
        metric: the cost of a pair, "sqeuclidean" or "euclidean".
        relative_error: standard error of the mean squared distance to reach, as a share of
            it. Further blocks are drawn until it is reached; by default none are.
        disjoint: whether the two subsets of a pair have no common element.
        generator: of all draws.
    """
    means: list[Floats] = []
    while blocks:
        for first, second in chunked_subset_pairs(
            len(rows), k, blocks, most=most, disjoint=disjoint, generator=generator
        ):
            a, b = (rows[index.flatten()].view(*index.shape, -1) for index in (first, second))
            columns, distance = match_rows(a, b, metric)
            means.append(distance.mean(1))
            partner = np.take_along_axis(second.numpy(), columns, 1)
            yield MatchedBlocks(first.numpy(), partner, means[-1])
        blocks = _blocks_missing(np.concatenate(means), relative_error)


def match_rows(a: Tensor, b: Tensor, metric: Metric = "sqeuclidean") -> tuple[Indices, Floats]:
    """Partner row in `b[m]` of every row of `a[m]`, and their squared distance, both `(m, k)`.

    The points are float64, `(m, k, d)`.
    """
    rows = np.arange(a.shape[0] * a.shape[1]).reshape(a.shape[:2])
    points = [a.flatten(0, 1)], [b.flatten(0, 1)]
    return match_blocks(*points, rows, rows, Optimal(a.shape[1], metric).choose)


def _blocks_missing(means: Floats, relative_error: float) -> int:
    """How many more blocks the spread so far asks for, at most three times as many again."""
    count, mean = len(means), Measured.of(means)
    if not mean.error > relative_error * mean.value:
        return 0
    needed = count * (mean.error / (relative_error * mean.value)) ** 2
    return math.ceil(min(1.1 * needed, 4 * count)) - count


def _with_repeats(rows: Tensor) -> Tensor:
    ordered = rows.sort(1).values
    return (ordered[:, 1:] == ordered[:, :-1]).any(1).nonzero().squeeze(1)
