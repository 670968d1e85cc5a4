"""How many matches cross from one cluster to another, batch by batch (Lemma 3.3).

Two batches hold r_i and s_i points of cluster i. The paper's lemma counts ½ Σ|r_i - s_i|
cross-cluster matches. That is right for two clusters, and wrong in general for three or
more: with A, B, C in a row, D apart, a surplus in A and a lack in C are settled by
A → B and B → C at the cost 2D², not by A → C at 4D², so two matches cross, not one.

What holds instead, for clusters far apart: the flow of matches between clusters is the
optimal transport from the counts r to the counts s under the squared distances of the
centres (`transport_count`). Proof: replacing |p - q|² by the squared distance of the
centres changes the cost of a match between clusters that are L apart by at most
4Δ(L + Δ), where Δ is the largest radius, and a flow that is not optimal can be improved
along a cycle of at most m matches by an amount that does not depend on Δ; for Δ small
enough the points' own cost would improve too, so the flow of an optimal matching is optimal.

The lemma's count is that number for all r and s exactly if every angle between centres is
acute, which is the strict triangle inequality of the squared distances
(`angles.lemma_condition`, which also says how far is far enough).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Generator

from kmixup.assignment import solve
from kmixup.calibration import CHUNK
from kmixup.theory.angles import TIE, squared_centre_distances
from kmixup.theory.matching import Array, Data, Indices, as_points, matched_subsets


@dataclass(frozen=True, eq=False)
class CrossMatches:
    """Cross-cluster matches in many batches.

    `first` and `second` `(batches, m)`: how many points of each cluster either batch has;
    `cross` `(batches,)`: how many of the k matches join two clusters.
    """

    first: Indices
    second: Indices
    cross: Indices

    @property
    def k(self) -> int:
        """Size of a batch."""
        return int(self.first[0].sum())

    @property
    def fraction(self) -> float:
        """Mean share of cross-cluster matches."""
        return float(self.cross.mean()) / self.k

    @property
    def error(self) -> float:
        """Standard error of `fraction`."""
        return float(self.cross.std(ddof=1)) / self.k / float(np.sqrt(len(self.cross)))

    @property
    def number(self) -> float:
        """Mean number of cross-cluster matches."""
        return float(self.cross.mean())


def cross_matches(
    X: Data,
    labels: ArrayLike,
    k: int,
    samples: int = 1000,
    *,
    disjoint: bool = False,
    generator: Generator | None = None,
) -> CrossMatches:
    """Count the cross-cluster matches of `samples` pairs of random k-subsets of `X`.

    `labels` `(n,)` tells the clusters apart; they are counted in sorted order.
    """
    points, (names, cluster) = as_points(X), np.unique(np.asarray(labels), return_inverse=True)
    if len(cluster) != len(points):
        raise ValueError(
            f"X and labels must have the same length, got {len(points)} and {len(cluster)}"
        )
    m = len(names)
    parts = []
    for first, second in matched_subsets(
        points, k, samples, disjoint=disjoint, generator=generator
    ):
        one, two = cluster[first], cluster[second]
        parts.append((_tally(one, m), _tally(two, m), (one != two).sum(1)))
    return CrossMatches(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def lemma_count(first: ArrayLike, second: ArrayLike) -> Indices:
    """½ Σ|r_i - s_i|, for counts `(..., m)`: as few cross matches as the counts allow.

    >>> int(lemma_count([5, 4, 3], [4, 4, 4]))
    1
    """
    one, two = _counts(first, second)
    return np.asarray(np.abs(one - two).sum(-1) // 2)


def transport_count(
    first: ArrayLike, second: ArrayLike, centres: ArrayLike
) -> tuple[Indices, Indices]:
    """Cross matches of the optimal transport between the counts `(batches, m)`.

    The cost of a match is the squared distance of the `centres` `(m, d)`. Where several
    flows are equally good (at a right angle), the fewest and the most cross matches among
    them; else the two are the same.

    >>> fewest, most = transport_count([[5, 4, 3]], [[4, 4, 4]], [[0.], [1.], [2.]])
    >>> fewest, most
    (array([2]), array([2]))
    """
    one, two = (np.atleast_2d(count) for count in _counts(first, second))
    cost, cross = squared_centre_distances(centres), 1.0 - np.eye(one.shape[1])
    if len(cost) != one.shape[1]:
        raise ValueError(
            f"centres must be one for each of the {one.shape[1]} clusters, got {len(cost)}"
        )
    # A flow that is optimal has as many paths as the lemma counts, and each passes a cluster
    # at most once: further points that both batches have in a cluster stay there. Without
    # them the problems are small, and few are different.
    spare = np.maximum(np.minimum(one, two) - lemma_count(one, two)[:, None], 0)
    problems = np.concatenate([one - spare, two - spare], 1)
    different, which = np.unique(problems, axis=0, return_inverse=True)
    tie = TIE * cost.max() * cross
    fewest, most = (_flow_counts(different, cost + bias) for bias in (tie, -tie))
    return fewest[which.ravel()], most[which.ravel()]


def _flow_counts(problems: Indices, cost: Array) -> Indices:
    """Cross matches of the best flow for each row of counts `(n, 2m)`, first then second."""
    one, two = np.split(problems, 2, axis=1)
    size, found = one.sum(1), np.zeros(len(one), dtype=np.int64)
    for k in np.unique(size[size > 0]):
        rows = (size == k).nonzero()[0]
        for part in np.array_split(rows, -(-len(rows) * k**2 // CHUNK)):
            # One row for each point: an assignment is a flow in whole numbers, and one of
            # the optimal flows is whole (as all vertices of a transport polytope are).
            start, end = _spread(one[part], k), _spread(two[part], k)
            partner = solve(cost[start[:, :, None], end[:, None, :]])
            found[part] = (start != np.take_along_axis(end, partner, 1)).sum(1)
    return found


def _counts(first: ArrayLike, second: ArrayLike) -> tuple[Indices, Indices]:
    one, two = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    totals = np.unique(np.concatenate([np.atleast_1d(count.sum(-1)) for count in (one, two)]))
    if one.shape != two.shape or len(totals) != 1:
        raise ValueError(
            "first and second must be counts of the same shape and total, "
            f"got shapes {one.shape} and {two.shape} and totals {totals.tolist()[:4]}"
        )
    return one, two


def _tally(cluster: Indices, m: int) -> Indices:
    """How many entries of each row are cluster 0, …, m - 1."""
    return np.stack([(cluster == i).sum(1) for i in range(m)], 1)


def _spread(counts: NDArray[np.int64], k: int) -> Indices:
    """Cluster of every one of the k points of each batch, in order: inverse of a tally."""
    ends = counts.cumsum(1)
    return np.asarray((np.arange(k)[None, :, None] >= ends[:, None, :]).sum(2))
