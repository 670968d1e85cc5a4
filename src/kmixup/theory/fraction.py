"""The expected share of cross-cluster matches, and a bound that holds (Theorem 3.4).

The two batches hold random numbers of points of each cluster. The law of these counts depends
on how the batches are drawn: "iid" (the paper's law) from a distribution with masses p_i, so that
counts are binomial; "independent" as two k-subsets of a data set with n_i points in cluster i, so
that they are hypergeometric; "disjoint" as two k-subsets without a common point, as inside one
batch: the count of both together is hypergeometric, and given that, so is the count of the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Generator

from kmixup.measured import Measured
from kmixup.theory.clusters import lemma_condition, transport_count
from kmixup.theory.matching import Array, Indices

Law = Literal["iid", "independent", "disjoint"]


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
