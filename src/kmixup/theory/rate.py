"""How fast matched points come together as k grows.

The proof of Proposition 3.2 assumes that the mean matched squared distance falls like
k^(-2/d) in d dimensions. It cites a theorem that needs d > 4. On one connected piece the rate
is right for d >= 3. It is 1/k for d = 1 and log k / k for d = 2 (Ambrosio, Stra & Trevisan 2019
have the constant). With several clusters about √k points must leave their cluster, at a fixed
cost each, so the mean cannot fall faster than k^(-1/2). This is the slower rate up to d = 3.
The proposition needs only that the mean tends to 0, so it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from torch import Generator, Tensor

from kmixup.assignment import Floats
from kmixup.measured import Measured
from kmixup.sampling import match_rows
from kmixup.theory.matching import Array, Data, Indices, as_points, optimal_blocks

Source = Callable[[int], ArrayLike] | ArrayLike | Tensor


@dataclass(frozen=True, eq=False)
class MatchedDistances:
    """Mean squared distance of matched points.

    Attributes:
        k: sizes of the batches, `(m,)`.
        mean: mean squared distance at each k, `(m,)`.
        error: standard error of each mean, `(m,)`.

    Returned by `matched_distances`.
    """

    k: Indices
    mean: Array
    error: Array


def matched_distances(
    X: Source,
    ks: Sequence[int],
    samples: int = 200,
    *,
    disjoint: bool = False,
    generator: Generator | None = None,
) -> MatchedDistances:
    """Mean squared distance of matched points, from `samples` batches for each k of `ks`.

    `X` is a data set `(n, d)`, of which k-subsets are drawn, or a function that draws so many
    fresh points of a distribution. The rates are those of a distribution. A data set shows
    them for k well below n.

    >>> distances = matched_distances(np.random.default_rng(0).random((200, 1)), (1, 16))
    >>> bool(distances.mean[1] < distances.mean[0])    # matched points are nearer
    True
    """
    distances = []
    for k in ks:
        draw = _fresh(X, k, samples) if callable(X) else _chosen(X, k, samples, disjoint, generator)
        distances.append(Measured.of(np.concatenate(list(draw))))
    means, errors = [mean.value for mean in distances], [mean.error for mean in distances]
    return MatchedDistances(np.asarray(ks), np.asarray(means), np.asarray(errors))


def expected_rate(k: ArrayLike, dimension: int, clusters: int = 1) -> Array:
    """The rate at which the mean matched squared distance falls, up to a constant.

    It is 1/k, log k / k or k^(-2/d) for `dimension` d = 1, 2 or more. With several `clusters`
    it is at most as fast as k^(-1/2).

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


def fitted_slope(x: ArrayLike, y: ArrayLike, error: ArrayLike | None = None) -> Measured:
    """Slope of log `y` against log `x`, weighted by the standard `error` of y if it is given.

    The slope is 1 if x is the right rate of y, and the exponent if x is k.

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
    return Measured(float(fit[0]), float(np.sqrt(covariance[0, 0])))


def _chosen(
    X: Data, k: int, samples: int, disjoint: bool, generator: Generator | None
) -> Iterator[Floats]:
    """Mean squared distance of each matching of k-subsets of a data set."""
    points = as_points(X)
    for part in optimal_blocks(points, k, samples, disjoint=disjoint, generator=generator):
        yield part.square_distance


def _fresh(draw: Callable[[int], ArrayLike], k: int, samples: int) -> Iterator[Floats]:
    """Mean squared distance of each matching of two batches of fresh points."""
    for _ in range(samples):
        first, second = (as_points(draw(k)).double().cpu()[None] for _ in range(2))
        yield match_rows(first, second)[1].mean(1)
