"""How fast matched points come together as k grows.

The proof of Proposition 3.2 takes the mean matched squared distance to fall like k^(-2/d)
in d dimensions, from a theorem that asks for d > 4. On one connected piece that is right
for d >= 3; it is 1/k for d = 1 and log k / k for d = 2 (Ambrosio, Stra & Trevisan 2019
have the constant). With several clusters about √k points have to leave theirs, at a fixed
cost each, so that the mean cannot fall faster than k^(-1/2), which is the slower of the
two up to d = 3. The proposition needs no more than that the mean tends to 0: it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from torch import Generator, Tensor

from kmixup.pairing import Optimal
from kmixup.theory.matching import (
    Array,
    Data,
    Indices,
    as_points,
    matched_subsets,
    mean_square_distances,
)

Source = Callable[[int], ArrayLike] | ArrayLike | Tensor


@dataclass(frozen=True, eq=False)
class MatchedDistances:
    """Mean squared distance of matched points for each `k`, with its standard `error`."""

    k: Indices
    mean: Array
    error: Array


@dataclass(frozen=True)
class Slope:
    """Slope of a straight line through logarithms, and its standard `error`."""

    value: float
    error: float


def matched_distances(
    X: Source,
    ks: Sequence[int],
    samples: int = 200,
    *,
    disjoint: bool = False,
    generator: Generator | None = None,
) -> MatchedDistances:
    """Mean squared distance of matched points, from `samples` batches for each k of `ks`.

    `X` is a data set `(n, d)`, of which k-subsets are drawn, or a function that draws that
    many fresh points of a distribution. The rates are those of a distribution: a data set
    shows them for k well below n.
    """
    means, errors = [], []
    for k in ks:
        draw = _drawn(X, k, samples) if callable(X) else _chosen(X, k, samples, disjoint, generator)
        batch = np.concatenate(list(draw))
        means.append(batch.mean())
        errors.append(batch.std(ddof=1) / len(batch) ** 0.5)
    return MatchedDistances(np.asarray(ks), np.asarray(means), np.asarray(errors))


def expected_rate(k: ArrayLike, dimension: int, clusters: int = 1) -> Array:
    """What the mean matched squared distance is proportional to, for large k.

    1/k, log k / k or k^(-2/d) for `dimension` d = 1, 2 or more, and for several `clusters`
    nothing faster than k^(-1/2).

    >>> expected_rate(16, 2, clusters=3)
    array(0.25)
    """
    if dimension < 1 or clusters < 1:
        raise ValueError(
            f"dimension and clusters must be at least 1, got {dimension} and {clusters}"
        )
    size = np.asarray(k, dtype=np.float64)
    if clusters > 1 and dimension <= 4:
        return np.asarray(size**-0.5)
    if dimension == 2:
        return np.asarray(np.log(size) / size)
    return np.asarray(size ** (-2 / max(dimension, 2)))


def fitted_slope(x: ArrayLike, y: ArrayLike, error: ArrayLike | None = None) -> Slope:
    """Slope of log `y` against log `x`, weighted by the standard `error` of y if known.

    Against a predicted rate the slope is 1, against k it is the exponent.

    >>> round(fitted_slope([1, 2, 4, 8], [3, 12, 48, 192]).value, 9)
    2.0
    """
    over, up = np.log(np.asarray(x, dtype=np.float64)), np.asarray(y, dtype=np.float64)
    if len(over) < 3:
        raise ValueError(f"a slope needs at least 3 points, got {len(over)}")
    if error is None:
        fit, covariance = np.polyfit(over, np.log(up), 1, cov=True)
    else:
        weight = up / np.asarray(error)
        fit, covariance = np.polyfit(over, np.log(up), 1, w=weight, cov="unscaled")
    return Slope(float(fit[0]), float(np.sqrt(covariance[0, 0])))


def _chosen(
    X: Data, k: int, samples: int, disjoint: bool, generator: Generator | None
) -> Iterator[Array]:
    """Mean squared distances of the matchings of k-subsets of a data set."""
    points = as_points(X)
    rows = points.double().cpu().numpy()
    for first, second in matched_subsets(
        points, k, samples, disjoint=disjoint, generator=generator
    ):
        yield mean_square_distances(rows, first, second)


def _drawn(draw: Callable[[int], ArrayLike], k: int, samples: int) -> Iterator[Array]:
    """The same for batches of fresh points."""
    for _ in range(samples):
        one, two = as_points(draw(k)), as_points(draw(k))
        gap = one - two[Optimal(k)(one, two)]
        yield gap.double().square().sum(1).mean().cpu().numpy()[None]
