"""The expected share of cross-cluster matches, and a bound that holds (Theorem 3.4).

What is random is how many points of each cluster the two batches get. The law of these
counts depends on how batches are drawn:

- "iid": points of a distribution with masses p_i; each count is binomial. The paper's law.
- "independent": two independent k-subsets of a data set with n_i points in cluster i; each
  count is hypergeometric.
- "disjoint": two k-subsets without a common point, as inside one batch; the count of both
  together is hypergeometric, and so is the first one's part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Generator

from kmixup.theory.angles import lemma_condition
from kmixup.theory.clusters import transport_count
from kmixup.theory.matching import Array, Indices

Law = Literal["iid", "independent", "disjoint"]


@dataclass(frozen=True)
class ExpectedFraction:
    """Expected share of cross-cluster matches at `k`.

    `fewest` and `most` differ only where several flows between clusters are equally good.
    `error` is the standard error of both where counts had to be sampled, else 0.
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

    `weights` `(m,)` are masses for the law "iid", and numbers of points else. For two
    clusters, and where the `centres` `(m, d)` have no right or obtuse angle (or are not
    given, which takes this for granted), the lemma's count is right and its expectation a
    finite sum. Else counts are sampled and transported.

    >>> expected_fraction([0.5, 0.5], 1).most
    0.5
    """
    w = _weights(weights, k, law)
    if centres is None or len(w) <= 2 or lemma_condition(centres).holds:
        value = sum(_mean_difference(w, i, k, law) for i in range(len(w))) / (2 * k)
        return ExpectedFraction(k, value, value, 0.0)
    counts = draw_counts(w, k, samples, law=law, generator=generator)
    fewest, most = transport_count(*counts, centres)
    error = max(float(count.std(ddof=1)) for count in (fewest, most)) / (k * samples**0.5)
    return ExpectedFraction(k, float(fewest.mean()) / k, float(most.mean()) / k, error)


def fraction_bound(weights: ArrayLike, k: int, *, law: Law = "iid", chain: int = 1) -> float:
    """`chain` · Σ_i √Var(r_i - s_i) / (2k), which the expected share does not exceed.

    For the law "iid" this is `chain` · (2k)^(-1/2) Σ √(p_i (1 - p_i)): the paper's bound,
    times the longest chain of cross matches that one surplus point can cause.
    `longest_chain(centres, radius)` finds it; m - 1 is always enough, and 1 is enough only
    where the angles between centres are acute.

    Proof, for covering balls of radius Δ at least 2Δ apart, as in the lemma. Draw an arrow
    between clusters for every cross match. There is no cycle: along one, l cross matches
    of length over 2Δ could be replaced by l matches inside clusters, each at most 2Δ long.
    So the arrows split into paths, which repeat no cluster. A path begins where a cluster
    sends more than it receives, by r_i - s_i > 0 in total, so there are ½ Σ|r_i - s_i|
    paths, and each has at most `chain` arrows, as the matching is optimal:

        cross matches <= chain · ½ Σ|r_i - s_i|.

    Jensen's inequality gives E|r_i - s_i| <= √Var(r_i - s_i). The variance is
    2k p_i (1 - p_i), times (N - k) / (N - 1) for independent subsets of N points, and times
    N / (N - 1) for disjoint ones.
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
    """Draw how many points of each cluster two batches of `k` have, both `(samples, m)`."""
    w = _weights(weights, k, law)
    rng = np.random.default_rng(
        int(torch.randint(2**62, (), generator=generator, dtype=torch.int64))
    )
    if law == "iid":
        return rng.multinomial(k, w, samples), rng.multinomial(k, w, samples)
    sizes = w.astype(np.int64)
    first = rng.multivariate_hypergeometric(sizes, k, samples)
    if law == "independent":
        return first, rng.multivariate_hypergeometric(sizes, k, samples)
    left = sizes - first
    return first, np.stack([rng.multivariate_hypergeometric(row, k) for row in left])


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
