"""Where cross-cluster matches begin and end (Theorem 3.5).

Let the clusters A and B be D apart, with the radii R_A and R_B. A_ε is the part of A that is
less than (1 + ε) D from B, and B_ε the part of B that is less than (1 + ε) D from A. The
theorem: if k is large enough, then with high probability all cross-cluster matches run from
A_ε to B_ε, with ε = max(R_A, R_B)² / D². This is false for clusters in several pieces, and
`islands` is a counter-example. With ε = 4 max(R_A, R_B)² / D² it holds for all disjoint compact
clusters that are not both single points. `docs/theory.md` has the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Generator

from kmixup.theory.matching import Array, Data, Indices, Matching, as_array, matched_subsets

ISLAND = 0.01  # radius of a piece of the counter-example
# distances of centres: of A1 and A2, of A1 and B, of A2 and B
APART, NEAR, FAR = 2.0, 1.0 + 2 * ISLAND, 2.15 + 2 * ISLAND


def island_centres() -> Array:
    """Centres of A1, A2 and B in the counter-example to Theorem 3.5, `(3, 2)`."""
    across = (APART**2 + NEAR**2 - FAR**2) / (2 * NEAR)
    return np.array([[0.0, 0.0], [across, math.sqrt(APART**2 - across**2)], [NEAR, 0.0]])


def islands(n: int, *, generator: Generator | None = None) -> tuple[Array, Indices]:
    """Draw points of the counter-example to Theorem 3.5, uniform on three small discs.

    The cluster A has the pieces A1 and A2, 2 apart. B is 1 from A1 and 2.15 from A2. So D = 1,
    R_A = 1 and ε = 1, and A2 lies outside of A_ε. If A2 has a point too many and B one too few, the
    match A2 → B costs 2.15² = 4.62, and the detour A2 → A1, A1 → B costs 2² + 1² = 5. So points of
    A2 are matched with points of B, in most batches and for every k.

    Returns the points `(n, 2)` and the disc of each, `(n,)`: 0 and 1 are A1 and A2, 2 is B.

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
        epsilon: ε of A_ε and B_ε.
        share: the share of A that is in A_ε, and the share of B that is in B_ε.
        distance: of each match, from its end in A to B and from its end in B to A,
            `(matches, 2)`.
        length: of each match, `(matches,)`.
        batch: number of the batch that each match is from, `(matches,)`.
        batches: how many batches were drawn.
    """

    gap: float
    radius: float
    epsilon: float
    share: tuple[float, float]
    distance: Array
    length: Array
    batch: Indices
    batches: int

    @property
    def proven(self) -> float:
        """The ε with which the theorem holds for all compact clusters, 4 max(R_A, R_B)² / D²."""
        return 4 * (self.radius / self.gap) ** 2

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Whether each match runs from A_ε to B_ε."""
        return np.asarray((self.distance < (1 + self.epsilon) * self.gap).all(1))

    @property
    def held(self) -> float:
        """Share of the batches in which all cross-cluster matches run from A_ε to B_ε."""
        return 1 - len(np.unique(self.batch[~self.inside])) / self.batches


def cross_endpoints(
    X: Data,
    labels: ArrayLike,
    k: int,
    samples: int = 1000,
    *,
    epsilon: float | None = None,
    **matching: Unpack[Matching],
) -> CrossEndpoints:
    """Measure endpoints and lengths of the cross-cluster matches between two clusters.

    Args:
        X: points `(n, d)`. They stand for the whole clusters, so give many.
        labels: cluster of each point, `(n,)`, with two different values. A is the smaller.
        k: size of a batch.
        samples: number of pairs of batches.
        epsilon: by default that of the paper, max(R_A, R_B)² / D². A radius is the largest
            distance from the mean of the cluster.
        matching: `disjoint`, `generator` and `pairing`, as in `matched_subsets`.

    >>> X, island = islands(300, generator=torch.Generator().manual_seed(0))
    >>> ends = cross_endpoints(X, island == 2, k=8, samples=20)
    >>> bool(ends.length.min() >= ends.gap)
    True
    """
    from scipy.spatial import KDTree  # on first use: it loads slowly

    rows, (names, cluster) = as_array(X), np.unique(np.asarray(labels), return_inverse=True)
    if len(names) != 2 or len(cluster) != len(rows):
        raise ValueError(
            f"labels must name two clusters for {len(rows)} points, "
            f"got {len(names)} for {len(cluster)}"
        )
    sides = [rows[cluster == side] for side in (0, 1)]
    away = np.empty(len(rows))  # from every point to the other cluster
    for side in (0, 1):
        away[cluster == side] = KDTree(sides[1 - side]).query(sides[side])[0]
    gap = float(away.min())
    if gap == 0:
        raise ValueError("the two clusters must have no point in common, got a distance of 0")
    radius = max(float(np.linalg.norm(side - side.mean(0), axis=1).max()) for side in sides)
    epsilon = (radius / gap) ** 2 if epsilon is None else epsilon

    ends, batch, start = [], [], 0
    for first, second in matched_subsets(X, k, samples, **matching):
        crossing = cluster[first] != cluster[second]
        pair = np.stack([first[crossing], second[crossing]], 1)
        ends.append(np.take_along_axis(pair, cluster[pair].argsort(1), 1))
        batch.append(start + crossing.nonzero()[0])
        start += len(first)
    end = np.concatenate(ends)
    near = away < (1 + epsilon) * gap
    return CrossEndpoints(
        gap=gap,
        radius=radius,
        epsilon=epsilon,
        share=(float(near[cluster == 0].mean()), float(near[cluster == 1].mean())),
        distance=away[end],
        length=np.linalg.norm(rows[end[:, 0]] - rows[end[:, 1]], axis=1),
        batch=np.concatenate(batch),
        batches=samples,
    )
