"""What follows from the positions of the clusters: angles, and chains of cross matches.

Clusters are balls of some radius around `centres` `(m, d)`. Once they are far apart, only the
angles between the centres decide whether the count of Lemma 3.3 is right, and by how much
the true count can exceed it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike

from kmixup.theory.matching import Array

# Two flows count as equally good if their costs differ, for each match, by less than this
# share of the largest squared distance.
TIE = 1e-9


@dataclass(frozen=True)
class LemmaCondition:
    """Whether the count of Lemma 3.3 is right.

    Attributes:
        holds: whether it is right for all batches.
        margin: the least of the differences that must be positive, in squared distance.

    Returned by `lemma_condition`.
    """

    holds: bool
    margin: float


def lemma_condition(centres: ArrayLike, radius: float = 0.0) -> LemmaCondition:
    """Check that no angle between the `centres` `(m, d)` is right or obtuse.

    Then the lemma's count ½ Σ|r_i - s_i| is right. For clusters of `radius` Δ the condition
    is, for all different centres a, b, c,

        (a - b)·(c - b) > 2Δ(|a - b| + |c - b|) + 4Δ²   and   |a - b| > 4Δ.

    At Δ = 0 the first inequality is |a - c|² < |a - b|² + |b - c|².

    Proof that the condition is sufficient. If no cluster both sends and receives cross
    matches, then cluster i sends max(r_i - s_i, 0), and the total is the lemma's count.
    Suppose that cluster b does both: p in a is matched with q in b, and p' in b with q' in c.
    Exchanging the partners changes the cost by 2 (p - p')·(q - q').

    - If c ≠ a, this is at most 2 [(a - b)·(b - c) + 2Δ(|a - b| + |b - c|) + 4Δ²] < 0.
    - If c = a, both new matches stay inside a cluster and cost at most 2 (2Δ)². The old
      matches cost more.

    In both cases the matching was not optimal.

    Proof that acute angles are necessary. Let the angle in b be obtuse. One surplus point in
    a, one missing point in c, and one point of each batch in b make two cross matches once Δ
    is small. The lemma counts one.

    >>> lemma_condition([[0., 0.], [1., 0.], [0.5, 0.9]]).holds
    True
    >>> lemma_condition([[0., 0.], [1., 0.], [2., 0.]]).holds
    False
    """
    c, square = _centres(centres), squared_centre_distances(centres)
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

    A chain is a path of clusters b_0 → b_1 → … without repetition. Each arrow is a match
    p_t → q_t from b_t to b_t+1. Consider a part of it, from b_i to b_j. It can be replaced by
    one match p_i → q_j-1 from b_i straight to b_j, and by matches p_t → q_t-1 inside the
    clusters between them. For points at the centres this adds
    |b_i - b_j|² - Σ |b_t - b_t+1|² to the cost. The positions of the points inside clusters
    of `radius` Δ change that by at most

        slack = 2Δ Σ_t (|b_t+1 - b_s(t)+1| + |b_t - b_s'(t)|) + 4Δ² (j - i),

    where s(t) is the match whose end p_t takes over, and s' is the inverse of s. In an optimal
    matching no replacement lowers the cost. So every part of a chain satisfies
    |b_i - b_j|² >= Σ |b_t - b_t+1|² - slack. This function searches for the longest path
    whose parts all do.

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
    c = _centres(centres)
    return np.asarray(np.square(c[:, None] - c[None]).sum(2))


def _centres(centres: ArrayLike) -> Array:
    c = np.asarray(centres, dtype=np.float64)
    if c.ndim != 2:
        raise ValueError(f"centres must have the shape (m, d), got {c.shape}")
    return c
