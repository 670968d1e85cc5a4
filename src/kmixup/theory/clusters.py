"""Matches that cross from one cluster to another (Lemma 3.3 and Theorem 3.4).

Two batches hold r_i and s_i points of cluster i. The paper's lemma counts ½ Σ|r_i - s_i|
cross-cluster matches. This is right for two clusters and in general wrong for three or more: if
A, B, C lie in a row, D apart, and A has one point too many and C one too few, the matches A → B
and B → C cost 2D², and the match A → C costs 4D². So two matches cross, not one.

For clusters far apart, the flow of matches between clusters is the optimal transport from the
counts r to the counts s, under the squared distances of the centres (`transport_count`). The
lemma's count equals it for all r and s exactly if every angle between centres is acute
(`lemma_condition`). `longest_chain` bounds by how much the true count can exceed the lemma's. Both
take clusters as balls of some radius around `centres` `(m, d)`.

The expected share of cross-cluster matches depends on how the counts r and s are drawn: "iid" (the
paper's law) from a distribution with masses p_i, so that counts are binomial; "independent" as two
k-subsets of a data set with n_i points in cluster i, so that they are hypergeometric; "disjoint" as
two k-subsets without a common point, as inside one batch. `docs/theory.md` has the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Literal, Unpack, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Generator

from kmixup.calibration import CHUNK
from kmixup.matching.assignment import solve
from kmixup.measured import Measured
from kmixup.theory.matching import (
    Array,
    Data,
    Indices,
    Subsets,
    as_points,
    check_length,
    matched_subsets,
)

# Two flows count as equally good if their costs differ, for each match, by less than this
# share of the largest squared distance.
TIE = 1e-9

Law = Literal["iid", "independent", "disjoint"]


@dataclass(frozen=True, eq=False)
class CrossMatches:
    """Cross-cluster matches of many pairs of batches. Returned by `cross_matches`.

    Attributes:
        first: points of each cluster in the first batch, `(batches, m)`.
        second: points of each cluster in the second batch, `(batches, m)`.
        cross: matches that join two clusters, of the k matches of each pair, `(batches,)`.
    """

    first: Indices
    second: Indices
    cross: Indices

    @property
    def k(self) -> int:
        """Size of a batch."""
        return int(self.first[0].sum())

    @property
    def number(self) -> float:
        """Mean number of cross-cluster matches."""
        return float(self.cross.mean())

    @property
    def fraction(self) -> float:
        """Mean share of cross-cluster matches."""
        return self.number / self.k

    @property
    def error(self) -> float:
        """Standard error of `fraction`."""
        return Measured.of(self.cross).error / self.k


def cross_matches(
    X: Data, labels: ArrayLike, k: int, samples: int = 1000, **drawing: Unpack[Subsets]
) -> CrossMatches:
    """Count the cross-cluster matches of `samples` pairs of random k-subsets of `X`.

    `labels` `(n,)` names the cluster of each point. Clusters are counted in sorted order.
    `drawing` is `disjoint` and `generator`, as in `matched_subsets`.

    With five points in each of two clusters, a batch of all ten has no reason to cross:

    >>> X = np.concatenate([np.arange(5.0), 100 + np.arange(5.0)])[:, None]
    >>> cross_matches(X, X[:, 0] > 50, k=10, samples=3).cross
    array([0, 0, 0])
    """
    points, (names, cluster) = as_points(X), np.unique(np.asarray(labels), return_inverse=True)
    check_length(len(points), cluster)
    parts = []
    for first, second in matched_subsets(points, k, samples, **drawing):
        start, end = cluster[first], cluster[second]
        counts = (_tally(side, len(names)) for side in (start, end))
        parts.append((*counts, (start != end).sum(1)))
    return CrossMatches(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def lemma_count(first: ArrayLike, second: ArrayLike) -> Indices:
    """½ Σ|r_i - s_i| for counts `(..., m)`: the fewest cross matches that the counts allow.

    >>> int(lemma_count([5, 4, 3], [4, 4, 4]))
    1
    """
    r, s = _counts(first, second)
    return np.asarray(np.abs(r - s).sum(-1) // 2)


def transport_count(
    first: ArrayLike, second: ArrayLike, centres: ArrayLike
) -> tuple[Indices, Indices]:
    """Cross matches of the optimal transport between the counts `(batches, m)`.

    The cost of a match is the squared distance of the `centres` `(m, d)`. Returns the fewest
    and the most cross matches of an optimal flow, `(batches,)` each. They differ only where
    several flows are equally good, as at a right angle.

    >>> fewest, most = transport_count([[5, 4, 3]], [[4, 4, 4]], [[0.], [1.], [2.]])
    >>> fewest, most
    (array([2]), array([2]))
    """
    r, s = (np.atleast_2d(count) for count in _counts(first, second))
    cost, cross = squared_centre_distances(centres), 1.0 - np.eye(r.shape[1])
    if len(cost) != r.shape[1]:
        raise ValueError(
            f"centres must be one for each of the {r.shape[1]} clusters, got {len(cost)}"
        )
    # An optimal flow has as many paths as the lemma counts, and a path passes a cluster at
    # most once. All other points that both batches have in a cluster stay there. Without
    # these points the problems are small, and few are different.
    spare = np.maximum(np.minimum(r, s) - lemma_count(r, s)[:, None], 0)
    problems = np.concatenate([r - spare, s - spare], 1)
    different, which = np.unique(problems, axis=0, return_inverse=True)
    tie = TIE * cost.max() * cross
    fewest, most = (_flow_counts(different, cost + bias) for bias in (tie, -tie))
    return fewest[which.ravel()], most[which.ravel()]


def _flow_counts(problems: Indices, cost: Array) -> Indices:
    """Cross matches of the best flow for each row of counts `(n, 2m)`: r, then s."""
    r, s = np.split(problems, 2, axis=1)
    size, crossing = r.sum(1), np.zeros(len(r), dtype=np.int64)
    for k in np.unique(size[size > 0]):
        rows = (size == k).nonzero()[0]
        for part in np.array_split(rows, -(-len(rows) * k**2 // CHUNK)):
            # One row for each point: an assignment is a flow in whole numbers. One of the
            # optimal flows is whole, because all vertices of a transport polytope are.
            start, end = _spread(r[part], k), _spread(s[part], k)
            partner = solve(cost[start[:, :, None], end[:, None, :]])
            crossing[part] = (start != np.take_along_axis(end, partner, 1)).sum(1)
    return crossing


def _counts(first: ArrayLike, second: ArrayLike) -> tuple[Indices, Indices]:
    r, s = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    totals = np.unique(np.concatenate([np.atleast_1d(count.sum(-1)) for count in (r, s)]))
    if r.shape != s.shape or len(totals) != 1:
        raise ValueError(
            "first and second must be counts of the same shape and total, "
            f"got shapes {r.shape} and {s.shape} and totals {totals.tolist()[:4]}"
        )
    return r, s


def _tally(cluster: Indices, m: int) -> Indices:
    """How many entries of each row are 0, …, m - 1."""
    return np.stack([(cluster == i).sum(1) for i in range(m)], 1)


def _spread(counts: Indices, k: int) -> Indices:
    """Clusters of the k points of each batch in order, `(batches, k)`: the inverse of `_tally`."""
    ends = counts.cumsum(1)
    return np.asarray((np.arange(k)[None, :, None] >= ends[:, None, :]).sum(2))


@dataclass(frozen=True)
class LemmaCondition:
    """Whether the count of Lemma 3.3 is right. Returned by `lemma_condition`.

    Attributes:
        holds: whether it is right for all batches.
        margin: the least of the differences that must be positive, in squared distance.
    """

    holds: bool
    margin: float


def lemma_condition(centres: ArrayLike, radius: float = 0.0) -> LemmaCondition:
    """Check that no angle between the `centres` `(m, d)` is right or obtuse.

    Then the lemma's count ½ Σ|r_i - s_i| is right. For clusters of `radius` Δ the condition
    is, for all different centres a, b, c,

        (a - b)·(c - b) > 2Δ(|a - b| + |c - b|) + 4Δ²   and   |a - b| > 4Δ.

    At Δ = 0 the first inequality is |a - c|² < |a - b|² + |b - c|².

    >>> lemma_condition([[0., 0.], [1., 0.], [0.5, 0.9]]).holds
    True
    >>> lemma_condition([[0., 0.], [1., 0.], [2., 0.]]).holds
    False
    """
    c, square = np.asarray(centres, dtype=np.float64), squared_centre_distances(centres)
    length, m = np.sqrt(square), len(c)
    margins = [square[a, b] - 16 * radius**2 for a in range(m) for b in range(a)]
    margins += [
        (c[a] - c[b]) @ (c[e] - c[b]) - 2 * radius * (length[a, b] + length[e, b]) - 4 * radius**2
        for a, b, e in permutations(range(m), 3)
        if a < e
    ]
    margin = float(min(margins, default=np.inf))
    return LemmaCondition(bool(margin > TIE * square.max()), margin)


def longest_chain(centres: ArrayLike, radius: float = 0.0) -> int:
    """The most cross matches that one surplus point can cause; 1 if all angles are acute.

    A chain is a path of clusters b_0 → b_1 → … without repetition, in which every part from b_i
    to b_j satisfies |b_i - b_j|² >= Σ |b_t - b_t+1|² - slack. Otherwise a direct match would cost
    less. The slack is for the positions of points inside clusters of `radius` Δ:

        slack = 2Δ Σ_t (|b_t+1 - b_s(t)+1| + |b_t - b_s'(t)|) + 4Δ² (j - i),

    where match t starts in b_t, s(t) is the match whose end it would take over, and s' is the
    inverse of s.

    >>> longest_chain([[0.], [1.], [2.], [3.]])
    3
    """
    square = squared_centre_distances(centres)
    length = np.sqrt(square)
    rounding = TIE * square.max()

    def worth(path: tuple[int, ...]) -> bool:
        """Whether the path may cost less than a match from its first to its last cluster."""
        steps = length[path[:-1], path[1:]]
        direct = length[path[1], path[-1]] + length[path[0], path[-2]]
        slack = 2 * radius * (2 * steps.sum() - steps[0] - steps[-1] + direct)
        gain = square[path[0], path[-1]] - np.square(steps).sum()
        return bool(gain >= -slack - 4 * radius**2 * len(steps) - rounding)

    def extend(path: tuple[int, ...]) -> int:
        longer = ((*path, b) for b in range(len(square)) if b not in path)
        allowed = (p for p in longer if all(worth(p[i:]) for i in range(len(p) - 2)))
        return max(map(extend, allowed), default=len(path) - 1)

    return max(extend((b,)) for b in range(len(square)))


def squared_centre_distances(centres: ArrayLike) -> Array:
    """All |centres[i] - centres[j]|², `(m, m)`."""
    c = np.asarray(centres, dtype=np.float64)
    if c.ndim != 2:
        raise ValueError(f"centres must have the shape (m, d), got {c.shape}")
    return np.asarray(np.square(c[:, None] - c[None]).sum(2))


@dataclass(frozen=True)
class ExpectedFraction:
    """Expected share of cross-cluster matches. Returned by `expected_fraction`.

    Attributes:
        k: size of a batch.
        fewest: the share if the matches cross as rarely as an optimal flow can.
        most: the share if they cross as often as an optimal flow can. It differs from
            `fewest` only where several flows between clusters are equally good.
        error: standard error of both, if counts had to be sampled; else 0.
    """

    k: int
    fewest: float
    most: float
    error: float

    @property
    def number(self) -> tuple[float, float]:
        """Expected number of cross-cluster matches, which grows with k."""
        return self.k * self.fewest, self.k * self.most


def expected_fraction(
    weights: ArrayLike,
    k: int,
    *,
    centres: ArrayLike | None = None,
    law: Law = "iid",
    samples: int = 10_000,
    generator: Generator | None = None,
) -> ExpectedFraction:
    """Expected share of cross-cluster matches for clusters far apart.

    The lemma's count is right for two clusters, and for any number of clusters without a
    right or an obtuse angle between their centres. Its expectation is a finite sum. In the
    other cases counts are sampled and transported.

    Args:
        weights: masses of the clusters for the law "iid", else their numbers of points, `(m,)`.
        k: size of a batch.
        centres: of the clusters, `(m, d)`. Without them all angles are taken to be acute.
        law: how batches are drawn.
        samples: how often counts are drawn, where they have to be.
        generator: of these draws.

    >>> expected_fraction([0.5, 0.5], 1).most
    0.5
    """
    w = _weights(weights, k, law)
    if centres is None or len(w) <= 2 or lemma_condition(centres).holds:
        value = sum(_mean_difference(w, i, k, law) for i in range(len(w))) / (2 * k)
        return ExpectedFraction(k, value, value, 0.0)
    counts = draw_counts(w, k, samples, law=law, generator=generator)
    fewest, most = (Measured.of(count) / k for count in transport_count(*counts, centres))
    return ExpectedFraction(k, fewest.value, most.value, max(fewest.error, most.error))


def fraction_bound(weights: ArrayLike, k: int, *, law: Law = "iid", chain: int = 1) -> float:
    """An upper bound of the expected share: `chain` · Σ_i √Var(r_i - s_i) / (2k).

    For the law "iid" this is `chain` · (2k)^(-1/2) Σ √(p_i (1 - p_i)). That is the paper's
    bound, times the longest chain of cross matches that one surplus point can cause.
    `longest_chain(centres, radius)` finds this chain. m - 1 is always enough, and 1 is enough
    only if the angles between centres are acute.

    The variance is 2k p_i (1 - p_i), times (N - k) / (N - 1) for independent subsets of N points,
    and times N / (N - 1) for disjoint ones. `docs/theory.md` has the proof.

    >>> fraction_bound([0.5, 0.5], k=8)    # of two equal clusters
    0.25
    """
    w = _weights(weights, k, law)
    if chain < 1:
        raise ValueError(f"chain must be at least 1, got {chain}")
    total = float(w.sum())
    mass = w / total
    factor = 1.0
    if law != "iid" and total > 1:
        factor = (total - k if law == "independent" else total) / (total - 1)
    return float(chain * np.sqrt(factor * mass * (1 - mass)).sum() / np.sqrt(2 * k))


def draw_counts(
    weights: ArrayLike,
    k: int,
    samples: int,
    *,
    law: Law = "iid",
    generator: Generator | None = None,
) -> tuple[Indices, Indices]:
    """Draw the numbers of points of each cluster in two batches of `k`, both `(samples, m)`.

    >>> first, second = draw_counts([0.5, 0.5], k=8, samples=3)
    >>> first.sum(1), second.sum(1)
    (array([8, 8, 8]), array([8, 8, 8]))
    """
    w = _weights(weights, k, law)
    seed = torch.randint(2**62, (), generator=generator, dtype=torch.int64)
    rng = np.random.default_rng(int(seed))
    if law == "iid":
        return rng.multinomial(k, w, samples), rng.multinomial(k, w, samples)
    draw, sizes = rng.multivariate_hypergeometric, w.astype(np.int64)
    first = draw(sizes, k, samples)
    if law == "independent":
        return first, draw(sizes, k, samples)
    return first, np.stack([draw(left, k) for left in sizes - first])


def _mean_difference(w: Array, i: int, k: int, law: Law) -> float:
    """E|r_i - s_i|, a finite sum."""
    from scipy.stats import binom, hypergeom  # on first use: it loads slowly

    count = np.arange(k + 1)
    total = w.sum()
    if law == "disjoint":
        both = np.arange(2 * k + 1)
        given = hypergeom.pmf(count[None, :], 2 * k, both[:, None], k)
        of_both = hypergeom.pmf(both, total, w[i], 2 * k)
        return float(of_both @ (given * np.abs(2 * count[None, :] - both[:, None])).sum(1))
    below = binom.cdf(count, k, w[i]) if law == "iid" else hypergeom.cdf(count, total, w[i], k)
    # E|r - s| = 2 Σ_t P(r <= t) P(s > t) for two independent draws of one law
    return float(2 * (below * (1 - below)).sum())


def _weights(weights: ArrayLike, k: int, law: Law) -> Array:
    w = np.asarray(weights, dtype=np.float64)
    if law not in get_args(Law):
        raise ValueError(f"law must be one of {get_args(Law)}, got {law!r}")
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if w.ndim != 1 or not len(w) or (w < 0).any():
        raise ValueError(f"weights must be a list of numbers, none below 0, got {weights!r}")
    if law == "iid" and abs(w.sum() - 1) > 1e-6:
        raise ValueError(f'weights must add up to 1 for the law "iid", got {w.sum():g}')
    needed = 2 * k if law == "disjoint" else k
    if law != "iid" and ((w % 1 != 0).any() or w.sum() < needed):
        raise ValueError(
            f"weights must be whole numbers of points, at least {needed} in total, "
            f'for k={k} and the law "{law}", got {weights!r}'
        )
    return w / w.sum() if law == "iid" else w
