"""Where cross-cluster matches begin and end (Theorem 3.5).

A and B are D apart. A_ε is the part of A within (1 + ε) D of B, and B_ε likewise. The
theorem: for k large enough, with high probability, all cross-cluster matches run from
A_ε to B_ε, with ε = max(R_A, R_B)² / D².

Its proof allows a match inside a cluster to gain no more than the squared radius from
a better partner, where the squared diameter is what it can gain. That the statement holds
all the same is seen in the tests, and a sketch says why. About √k points must cross.
Taking them from the points nearest to the other cluster lowers the density there by the
share k^(-1/2), and the matches inside the cluster even that out at a cost of order
k · (k^(-1/2))² = 1 in total, whereas √k matches that are each longer by a fixed amount
cost √k more. So the endpoints should come nearer to the gap as k grows, for any ε > 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Generator

from kmixup.pairing import Optimal, Pairing
from kmixup.theory.matching import Array, Data, Indices, as_points, matched_subsets


@dataclass(frozen=True, eq=False)
class CrossEndpoints:
    """All cross-cluster matches of many batches, between clusters A and B.

    `gap`: D. `epsilon`: the theorem's ε. `share`: the parts of A and of B that are in A_ε
    and B_ε. For each match: `distance` `(matches, 2)` from its end in A to B, and from its
    end in B to A; its `length`; the `batch` it is from. `batches`: how many were drawn.
    """

    gap: float
    epsilon: float
    share: tuple[float, float]
    distance: Array
    length: Array
    batch: Indices
    batches: int

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
    disjoint: bool = False,
    pairing: type[Pairing] = Optimal,
    generator: Generator | None = None,
) -> CrossEndpoints:
    """Endpoints and lengths of the cross-cluster matches between two clusters.

    `labels` `(n,)` has two different values, A the smaller. The clusters are taken to be
    their points in `X`: give many. `epsilon` is max(R_A, R_B)² / D² by default, where a
    radius is the largest distance from the mean, which is never below that of the smallest
    ball around the cluster.
    """
    from scipy.spatial import KDTree  # on first use: it loads slowly

    points, (names, cluster) = as_points(X), np.unique(np.asarray(labels), return_inverse=True)
    if len(names) != 2 or len(cluster) != len(points):
        raise ValueError(
            f"labels must name two clusters for {len(points)} points, "
            f"got {len(names)} for {len(cluster)}"
        )
    rows = points.double().cpu().numpy()
    a, b = rows[cluster == 0], rows[cluster == 1]
    away = np.empty(len(rows))  # from every point to the other cluster
    away[cluster == 0] = KDTree(b).query(a)[0]
    away[cluster == 1] = KDTree(a).query(b)[0]
    gap = float(away.min())
    if gap == 0:
        raise ValueError("the two clusters must have no point in common, got a distance of 0")
    if epsilon is None:
        radius = max(float(np.linalg.norm(c - c.mean(0), axis=1).max()) for c in (a, b))
        epsilon = (radius / gap) ** 2

    ends, batch, start = [], [], 0
    for first, second in matched_subsets(
        points, k, samples, disjoint=disjoint, pairing=pairing, generator=generator
    ):
        crossing = cluster[first] != cluster[second]
        pair = np.stack([first[crossing], second[crossing]], 1)
        ends.append(np.take_along_axis(pair, cluster[pair].argsort(1), 1))
        batch.append(start + crossing.nonzero()[0])
        start += len(first)
    end = np.concatenate(ends)
    near = away < (1 + epsilon) * gap
    return CrossEndpoints(
        gap=gap,
        epsilon=epsilon,
        share=(float(near[cluster == 0].mean()), float(near[cluster == 1].mean())),
        distance=away[end],
        length=np.linalg.norm(rows[end[:, 0]] - rows[end[:, 1]], axis=1),
        batch=np.concatenate(batch),
        batches=samples,
    )
