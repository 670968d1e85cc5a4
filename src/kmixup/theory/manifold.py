"""How many mixed points stay near the data manifold, and how fast they get there (Prop. 3.2).

If k is large enough, any fraction 1 - δ of the mixed points lies within ε of the manifold in X × Y,
features with targets. But the match uses only the features, so both X and X × Y are measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Generator, Tensor

from kmixup._checks import check_whole
from kmixup._measured import Measured
from kmixup._subsets import match_rows
from kmixup.coefficient import Beta
from kmixup.theory.matching import (
    Array,
    Data,
    Indices,
    as_array,
    as_points,
    check_length,
    matched_subsets,
    optimal_blocks,
)

Source = Callable[[int], ArrayLike] | ArrayLike | Tensor
Distance = Callable[[Array], ArrayLike]


@dataclass(frozen=True)
class ManifoldFraction:
    """Fraction of mixed points near the manifold. Returned by `manifold_fraction`.

    `features` is the fraction in X, and `joint` that in X × Y, None without targets.
    """

    features: Measured
    joint: Measured | None


def manifold_fraction(
    X: Data,
    y: Data | None = None,
    *,
    k: int,
    eps: float,
    alpha: float = 1.0,
    manifold: Distance | None = None,
    samples: int = 1000,
    generator: Generator | None = None,
) -> ManifoldFraction:
    """Mix `samples` batches of `k` points and measure how far from the manifold they fall.

    Args:
        X: features `(n, d)`.
        y: targets `(n,)` or `(n, c)`. Whole numbers are classes and become one-hot.
        k: of k-mixup.
        eps: the distance that counts as near.
        alpha: of k-mixup. lam is drawn once for each batch.
        manifold: of the features: a function from points `(m, d)` to their distances `(m,)`. By
            default that to the nearest point of `X`, as in X × Y to those of `X` and `y`.
        samples: number of batches.
        generator: source of all draws.

    Returns:
        The fraction of mixed points near the manifold, in X and in X × Y.

    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> manifold_fraction(X, k=8, eps=0.02, samples=10).features.value
    1.0
    """
    if not eps > 0:
        raise ValueError(f"eps must be above 0, got {eps}")
    features = as_array(X)
    spaces = [(features, manifold or _to_nearest(features))]
    if y is not None:
        both = np.concatenate([features, _targets(y, len(features))], 1)
        spaces.append((both, _to_nearest(both)))

    near: list[list[Array]] = [[] for _ in spaces]
    for first, second in matched_subsets(features, k, samples, generator=generator):
        lam = Beta(alpha).draw((len(first), 1, 1), generator).cpu().numpy()
        for (points, distance), parts in zip(spaces, near, strict=True):
            mixed = lam * points[first] + (1 - lam) * points[second]
            inside = np.asarray(distance(mixed.reshape(-1, points.shape[1]))) < eps
            parts.append(inside.reshape(len(first), k).mean(1))
    shares = [Measured.of(np.concatenate(parts)) for parts in near]
    return ManifoldFraction(shares[0], shares[1] if y is not None else None)


def _to_nearest(rows: Array) -> Distance:
    from scipy.spatial import KDTree  # on first use: it loads slowly

    tree = KDTree(rows)
    return lambda points: tree.query(points)[0]


def _targets(y: Data, n: int) -> Array:
    targets = torch.as_tensor(y).detach().cpu()
    check_length(n, targets, "y")
    if targets.is_floating_point():
        return as_array(targets)
    labels = targets.numpy()
    return np.asarray(labels[:, None] == np.unique(labels), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class MatchedDistances:
    """Mean squared distance of matched points. Returned by `matched_distances`.

    `mean` is that at each `k`, and `error` its standard error, `(m,)` each.
    """

    k: Indices
    mean: Array
    error: Array


def matched_distances(
    X: Source, ks: Sequence[int], samples: int = 200, *, generator: Generator | None = None
) -> MatchedDistances:
    """Measure the mean squared distance of matched points, from `samples` batches for each k.

    Args:
        X: a data set `(n, d)`, which shows the rates of its distribution for k well below n, or a
            function that draws so many fresh points.
        ks: sizes of the batches.
        samples: number of pairs of batches for each k.
        generator: source of all draws from a data set.

    Returns:
        The mean squared distance at each k with its standard error.

    >>> distances = matched_distances(np.random.default_rng(0).random((200, 1)), (1, 16))
    >>> bool(distances.mean[1] < distances.mean[0])    # matched points are nearer
    True
    """
    distances = []
    for k in ks:
        if callable(X):
            batches = (as_points(X(k)).double().cpu()[None] for _ in range(2 * samples))
            matches = (match_rows(first, next(batches)) for first in batches)
            means = np.concatenate([square.mean(1) for _, square in matches])
        else:
            blocks = optimal_blocks(as_points(X), k, samples, generator=generator)
            means = np.concatenate([block.square_distance for block in blocks])
        distances.append(Measured.of(means))
    mean, error = np.array([(one.value, one.error) for one in distances]).T
    return MatchedDistances(np.asarray(ks), mean, error)


def expected_rate(k: ArrayLike, dimension: int, clusters: int = 1) -> Array:
    """Return the rate at which the mean matched squared distance falls with `k`, up to a constant.

    It is 1/k, log k / k or k^(-2/d) for `dimension` d = 1, 2 or more. With several `clusters`
    it is at most as fast as k^(-1/2).

    Args:
        k: size of a batch, any shape.
        dimension: d, of the support of the distribution.
        clusters: number of connected pieces of the support.

    Returns:
        The rate for every `k`.

    >>> expected_rate(16, 2, clusters=3)
    array(0.25)
    """
    check_whole("dimension", dimension)
    check_whole("clusters", clusters)
    size = np.asarray(k, dtype=np.float64)
    if clusters > 1 and dimension <= 4:
        return np.asarray(size**-0.5)
    if dimension == 2:
        return np.asarray(np.log(size) / size)
    return np.asarray(size ** (-2 / max(dimension, 2)))


def fitted_slope(x: ArrayLike, y: ArrayLike, error: ArrayLike | None = None) -> Measured:
    """Return the slope of log `y` against log `x`, weighted by the standard `error` of y.

    The slope is 1 if x is the right rate of y, and the exponent if x is k.

    Args:
        x: positive numbers `(n,)`.
        y: positive numbers `(n,)`.
        error: standard errors of `y`, `(n,)`; by default all points have the same weight.

    Returns:
        The slope with its standard error.

    Raises:
        ValueError: if there are fewer than 3 points.

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
