"""Matches that cross from one cluster to another (Lemma 3.3, Theorems 3.4 and 3.5).

Two batches hold r_i and s_i points of cluster i. `docs/evidence/theory.md` has the lemma, why it is
wrong for three or more clusters, what is right in its place, and the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Generator

from kmixup._checks import check_whole
from kmixup._measured import Measured
from kmixup.theory.matching import Array, Data, Indices, as_array, check_length, matched_subsets

TIE = 1e-9  # of the largest squared distance: flows that differ less per match are equally good
ISLAND = 0.01  # radius of a piece of the counter-example


@dataclass(frozen=True, eq=False)
class CrossMatches:
    """Cross-cluster matches of many pairs of batches. Returned by `cross_matches`.

    `first` and `second` `(batches, m)` count the points of each cluster in the two batches, and
    `cross` `(batches,)` counts the matches that join two clusters.
    """

    first: Indices
    second: Indices
    cross: Indices

    @property
    def fraction(self) -> Measured:
        """Mean fraction of cross-cluster matches."""
        return Measured.of(self.cross) / int(self.first[0].sum())


def cross_matches(
    X: Data, labels: ArrayLike, k: int, samples: int = 1000, *, generator: Generator | None = None
) -> CrossMatches:
    """Count the cross-cluster matches of `samples` pairs of random k-subsets of `X`.

    Args:
        X: points `(n, d)`.
        labels: cluster of each point, `(n,)`; clusters are counted in sorted order.
        k: size of a batch.
        samples: number of pairs of batches.
        generator: source of all draws.

    Returns:
        The counts of each cluster and the number of cross matches in every pair.

    >>> X = np.concatenate([np.arange(5.0), 100 + np.arange(5.0)])[:, None]
    >>> cross_matches(X, X[:, 0] > 50, k=10, samples=3).cross
    array([0, 0, 0])
    """
    m, cluster = _clusters(X, labels)
    parts = []
    for first, second in matched_subsets(X, k, samples, generator=generator):
        start, end = cluster[first], cluster[second]
        parts.append((count_clusters(start, m), count_clusters(end, m), (start != end).sum(1)))
    return CrossMatches(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def count_clusters(cluster: Indices, m: int) -> Indices:
    """Return how often each of `m` clusters is in every batch of `cluster` `(batches, k)`."""
    return np.stack([(cluster == i).sum(1) for i in range(m)], 1)


def _clusters(X: Data, labels: ArrayLike) -> tuple[int, Indices]:
    """Return the number of clusters, and the cluster of each point as a number from 0."""
    names, cluster = np.unique(np.asarray(labels), return_inverse=True)
    check_length(len(torch.as_tensor(X)), cluster)
    return len(names), cluster


def lemma_count(first: ArrayLike, second: ArrayLike) -> Indices:
    """Return ½ Σ|r_i - s_i| for counts `first` and `second` `(..., m)`: the fewest cross matches.

    Args:
        first: points of each cluster in the first batch, `(..., m)`.
        second: the same for the second batch.

    Returns:
        The count that Lemma 3.3 states, `(...)`.

    >>> int(lemma_count([5, 4, 3], [4, 4, 4]))
    1
    """
    r, s = _counts(first, second)
    return np.asarray(np.abs(r - s).sum(-1) // 2)


def transport_count(
    first: ArrayLike, second: ArrayLike, centres: ArrayLike
) -> tuple[Indices, Indices]:
    """Return the fewest and the most cross matches of an optimal flow, `(batches,)` each.

    Args:
        first, second: points of each cluster in the two batches, `(batches, m)`.
        centres: of the clusters, `(m, d)`. A match costs the squared distance of its centres.

    Returns:
        Two counts, which differ only where several flows are equally good, as at a right angle.

    >>> transport_count([[5, 4, 3]], [[4, 4, 4]], [[0.], [1.], [2.]])
    (array([2]), array([2]))
    """
    r, s = (np.atleast_2d(count) for count in _counts(first, second))
    cost = _squared_distances(centres)
    if len(cost) != r.shape[1]:
        raise ValueError(
            f"centres must be one for each of the {r.shape[1]} clusters, got {len(cost)}"
        )
    # An optimal flow has as many paths as the lemma counts, and a path passes a cluster at most
    # once. The other points that both batches have in a cluster stay there and are left out.
    spare = np.maximum(np.minimum(r, s) - lemma_count(r, s)[:, None], 0)
    problems = np.stack([r - spare, s - spare], 1)
    different, which = np.unique(problems, axis=0, return_inverse=True)
    tie = TIE * cost.max() * (1.0 - np.eye(len(cost)))
    fewest, most = (
        np.array([_crossing(problem, cost + bias) for problem in different])[which.ravel()]
        for bias in (tie, -tie)
    )
    return fewest, most


def _crossing(problem: Indices, cost: Array) -> int:
    """Return the number of cross matches in the cheapest flow between two counts, `(2, m)`."""
    from scipy.optimize import linear_sum_assignment  # on first use: it loads slowly

    # one row for each point: some optimal flow is in whole numbers, so an assignment
    start, end = (np.repeat(np.arange(len(cost)), counts) for counts in problem)
    rows, columns = linear_sum_assignment(cost[start[:, None], end])
    return int((start[rows] != end[columns]).sum())


def _counts(first: ArrayLike, second: ArrayLike) -> tuple[Indices, Indices]:
    r, s = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    if r.shape != s.shape or (r.sum(-1) != s.sum(-1)).any():
        raise ValueError(
            "first and second must be counts of the same shape and total, "
            f"got {r.tolist()} and {s.tolist()}"
        )
    return r, s


def lemma_condition(centres: ArrayLike, radius: float = 0.0) -> bool:
    """Return whether the lemma's count is right for all batches: all angles are acute.

    For clusters of `radius` Δ this is (a - b)·(c - b) > 2Δ(|a - b| + |c - b|) + 4Δ² for all
    different centres a, b, c, and |a - b| > 4Δ.

    Args:
        centres: of the clusters, `(m, d)`.
        radius: Δ, the largest radius of a cluster.

    Returns:
        Whether the condition holds.

    >>> lemma_condition([[0., 0.], [1., 0.], [0.5, 0.9]])
    True
    >>> lemma_condition([[0., 0.], [1., 0.], [2., 0.]])
    False
    """
    square = _squared_distances(centres)
    apart = square[~np.eye(len(square), dtype=bool)]
    return bool((apart > 16 * radius**2).all()) and longest_chain(centres, radius) <= 1


def longest_chain(centres: ArrayLike, radius: float = 0.0) -> int:
    """Return the most cross matches that one surplus point can cause; 1 if all angles are acute.

    A chain is a path of clusters b_0 → b_1 → … none of whose parts costs more than a direct match:
    |b_i - b_j|² >= Σ |b_t - b_t+1|² - slack, where the slack is for points off their centres.

    Args:
        centres: of the clusters, `(m, d)`.
        radius: the largest radius of a cluster.

    Returns:
        The number of matches in the longest chain.

    >>> longest_chain([[0.], [1.], [2.], [3.]])
    3
    """
    m, detour = len(_squared_distances(centres)), _detours(centres, radius)

    def extend(path: tuple[int, ...]) -> int:
        longer = ((*path, b) for b in range(m) if b not in path)
        allowed = (p for p in longer if all(detour(p[i:]) for i in range(len(p) - 2)))
        return max(map(extend, allowed), default=len(path) - 1)

    return max(extend((b,)) for b in range(m))


def _detours(centres: ArrayLike, radius: float) -> Callable[[tuple[int, ...]], bool]:
    """Return whether a path of clusters may cost less than a match from its first to its last."""
    square = _squared_distances(centres)
    length, rounding = np.sqrt(square), TIE * square.max()

    def detour(path: tuple[int, ...]) -> bool:
        steps = length[path[:-1], path[1:]]
        direct = length[path[1], path[-1]] + length[path[0], path[-2]]
        slack = 2 * radius * (2 * steps.sum() - steps[0] - steps[-1] + direct)
        gain = square[path[0], path[-1]] - np.square(steps).sum()
        return bool(gain >= -slack - 4 * radius**2 * len(steps) - rounding)

    return detour


def _squared_distances(centres: ArrayLike) -> Array:
    """Return all |centres[i] - centres[j]|², `(m, m)`."""
    c = np.asarray(centres, dtype=np.float64)
    if c.ndim != 2:
        raise ValueError(f"centres must have the shape (m, d), got {c.shape}")
    return np.asarray(np.square(c[:, None] - c[None]).sum(2))


@dataclass(frozen=True)
class ExpectedFraction:
    """Expected fraction of cross-cluster matches. Returned by `expected_fraction`.

    `fewest` and `most` are for optimal flows that cross as rarely and as often as they can. `error`
    is the standard error of both, 0 if no counts had to be sampled.
    """

    fewest: float
    most: float
    error: float


def expected_fraction(
    weights: ArrayLike,
    k: int,
    *,
    centres: ArrayLike | None = None,
    samples: int = 10_000,
    generator: Generator | None = None,
) -> ExpectedFraction:
    """Return the expected fraction of cross-cluster matches for clusters far apart.

    Where the lemma's count is right, the fraction is a finite sum; else counts are drawn.

    Args:
        weights: masses of the clusters, `(m,)`; they are scaled to add up to 1.
        k: size of a batch.
        centres: of the clusters, `(m, d)`. Without them all angles are taken to be acute.
        samples, generator: number and source of the draws, where counts are drawn.

    Returns:
        The fewest and the most cross matches that are expected, as fractions of a batch.

    >>> expected_fraction([0.5, 0.5], 1).most
    0.5
    """
    from scipy.stats import binom  # on first use: it loads slowly

    p = _masses(weights, k)
    if centres is not None and len(_squared_distances(centres)) != len(p):
        raise ValueError(f"centres must be one for each of the {len(p)} weights")
    if centres is None or len(p) <= 2 or lemma_condition(centres):
        # E|r - s| = 2 Σ_t P(r <= t) P(s > t) for two independent counts
        below = np.asarray(binom.cdf(np.arange(k)[:, None], k, p))
        value = float((below * (1 - below)).sum() / k)
        return ExpectedFraction(value, value, 0.0)
    counts = draw_counts(p, k, samples, generator=generator)
    fewest, most = (Measured.of(count) / k for count in transport_count(*counts, centres))
    return ExpectedFraction(fewest.value, most.value, max(fewest.error, most.error))


def fraction_bound(weights: ArrayLike, k: int) -> float:
    """Return the paper's bound on the expected share, (2k)^(-1/2) Σ √(p_i (1 - p_i)).

    It needs acute angles between centres. Times `longest_chain(centres, radius)` it holds for any
    clusters.

    Args:
        weights: masses of the clusters, `(m,)`; they are scaled to add up to 1.
        k: size of a batch.

    Returns:
        The bound, a fraction of the matches.

    >>> fraction_bound([0.5, 0.5], k=8)    # of two equal clusters
    0.25
    """
    p = _masses(weights, k)
    return float(np.sqrt(p * (1 - p)).sum() / np.sqrt(2 * k))


def draw_counts(
    weights: ArrayLike, k: int, samples: int, *, generator: Generator | None = None
) -> tuple[Indices, Indices]:
    """Draw the numbers of points of each cluster in two batches of `k`, both `(samples, m)`.

    Args:
        weights: masses of the clusters, `(m,)`; they are scaled to add up to 1.
        k: size of a batch.
        samples: number of pairs of batches.
        generator: of these draws.

    Returns:
        The counts of the first and of the second batches.

    >>> first, second = draw_counts([0.5, 0.5], k=8, samples=3)
    >>> first.sum(1), second.sum(1)
    (array([8, 8, 8]), array([8, 8, 8]))
    """
    p = _masses(weights, k)
    seed = torch.randint(2**62, (), generator=generator, dtype=torch.int64)
    rng = np.random.default_rng(int(seed))
    return rng.multinomial(k, p, samples), rng.multinomial(k, p, samples)


def _masses(weights: ArrayLike, k: int) -> Array:
    w = np.asarray(weights, dtype=np.float64)
    check_whole("k", k)
    if w.ndim != 1 or (w < 0).any() or not w.any():
        raise ValueError(f"weights must be a list of masses, none below 0, got {weights!r}")
    return np.asarray(w / w.sum())


def island_centres() -> Array:
    """Return the centres of A1, A2 and B in the counter-example to Theorem 3.5, `(3, 2)`."""
    apart, near, far = 2.0, 1.0 + 2 * ISLAND, 2.15 + 2 * ISLAND  # A1 from A2, B from A1 and A2
    across = (apart**2 + near**2 - far**2) / (2 * near)
    return np.array([[0.0, 0.0], [across, math.sqrt(apart**2 - across**2)], [near, 0.0]])


def islands(n: int, *, generator: Generator | None = None) -> tuple[Array, Indices]:
    """Draw `n` points of the counter-example to Theorem 3.5, uniform on three small discs.

    Args:
        n: number of points.
        generator: source of all draws.

    Returns:
        The points `(n, 2)` and the disc of each, `(n,)`: 0 and 1 are A1 and A2, 2 is B.

    >>> points, disc = islands(9000)
    >>> np.bincount(disc).tolist()
    [3000, 3000, 3000]
    """
    disc = np.arange(n) % 3
    turn, share = torch.rand(2, n, dtype=torch.float64, generator=generator).numpy()
    angle, radius = 2 * np.pi * turn, ISLAND * np.sqrt(share)
    offset = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    return island_centres()[disc] + offset, disc


@dataclass(frozen=True, eq=False)
class CrossEndpoints:
    """Cross-cluster matches of many batches, between A and B. Returned by `cross_endpoints`.

    Attributes:
        gap: D, the distance of the two clusters.
        radius: the larger of R_A and R_B.
        epsilon: of A_ε, the part of A less than (1 + ε) D from B, and of B_ε.
        share: the fraction of A that is in A_ε, and of B that is in B_ε.
        distance: from each match's end in A to B and from its end in B to A, `(matches, 2)`.
        length: of each match, `(matches,)`.
        held: fraction of the batches in which all cross-cluster matches run from A_ε to B_ε.
    """

    gap: float
    radius: float
    epsilon: float
    share: tuple[float, float]
    distance: Array
    length: Array
    held: float

    @property
    def proven(self) -> float:
        """The ε with which the theorem holds for all compact clusters, 4 max(R_A, R_B)² / D²."""
        return 4 * (self.radius / self.gap) ** 2

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Whether each match runs from A_ε to B_ε."""
        return np.asarray((self.distance < (1 + self.epsilon) * self.gap).all(1))


def cross_endpoints(
    X: Data,
    labels: ArrayLike,
    k: int,
    samples: int = 1000,
    *,
    epsilon: float | None = None,
    generator: Generator | None = None,
) -> CrossEndpoints:
    """Measure endpoints and lengths of the cross-cluster matches between two clusters.

    Args:
        X: a dense sample of both clusters, `(n, d)`.
        labels: two values `(n,)`; A is the smaller.
        k: size of a batch.
        samples: number of pairs of batches.
        epsilon: ε of A_ε and B_ε; by default the paper's, (radius / gap)².
        generator: source of all draws.

    Returns:
        The endpoints and lengths of all cross matches.

    Raises:
        ValueError: if there are not exactly two clusters, or they have a point in common.

    >>> X, island = islands(300, generator=torch.Generator().manual_seed(0))
    >>> ends = cross_endpoints(X, island == 2, k=8, samples=20)
    >>> bool(ends.length.min() >= ends.gap)
    True
    """
    from scipy.spatial import KDTree  # on first use: it loads slowly

    rows, (m, cluster) = as_array(X), _clusters(X, labels)
    if m != 2:
        raise ValueError(f"labels must name two clusters, got {m}")
    sides = [rows[cluster == side] for side in (0, 1)]
    away = np.empty(len(rows))  # from every point to the other cluster
    for side in (0, 1):
        away[cluster == side] = KDTree(sides[1 - side]).query(sides[side])[0]
    gap = float(away.min())
    if gap == 0:
        raise ValueError("the two clusters must have no point in common, got a distance of 0")
    radius = max(float(np.linalg.norm(side - side.mean(0), axis=1).max()) for side in sides)
    epsilon = (radius / gap) ** 2 if epsilon is None else epsilon

    near = away < (1 + epsilon) * gap
    ends, held = [], []
    for first, second in matched_subsets(X, k, samples, generator=generator):
        crossing = cluster[first] != cluster[second]
        held.append(~(crossing & ~(near[first] & near[second])).any(1))
        pair = np.stack([first[crossing], second[crossing]], 1)
        ends.append(np.take_along_axis(pair, cluster[pair].argsort(1), 1))
    end = np.concatenate(ends)
    share = float(near[cluster == 0].mean()), float(near[cluster == 1].mean())
    length = np.linalg.norm(rows[end[:, 0]] - rows[end[:, 1]], axis=1)
    in_all = float(np.concatenate(held).mean())
    return CrossEndpoints(gap, radius, epsilon, share, away[end], length, in_all)
