"""How many interpolated points stay near the manifold of the data (Proposition 3.2).

The proposition: if k is large enough, any share 1 - δ of the mixed points lies within ε of the
manifold. It means the manifold in X × Y, features with targets. But the match uses the
features alone. Two sheets over the same features, {x} × {0, 1}, are an embedded manifold too,
and there half of all matches join the two sheets for every k. So the share is measured both
in X and in X × Y.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Generator, Tensor

from kmixup.coefficient import Beta
from kmixup.measured import Measured
from kmixup.theory.matching import Array, Data, as_points, matched_subsets

Manifold = Callable[[Array], ArrayLike] | ArrayLike | Tensor


@dataclass(frozen=True)
class ManifoldFraction:
    """Share of mixed points near the manifold.

    Attributes:
        k: of k-mixup.
        eps: the distance that counts as near.
        features: the share in X.
        features_error: its standard error, from the spread between batches.
        joint: the share in X × Y; NaN without targets.
        joint_error: its standard error; NaN without targets.

    Returned by `manifold_fraction`.
    """

    k: int
    eps: float
    features: float
    features_error: float
    joint: float
    joint_error: float


def manifold_fraction(
    X: Data,
    y: Data | None = None,
    *,
    k: int,
    eps: float,
    alpha: float = 1.0,
    manifold: Manifold | None = None,
    joint: Manifold | None = None,
    samples: int = 1000,
    disjoint: bool = False,
    generator: Generator | None = None,
) -> ManifoldFraction:
    """Mix `samples` batches of `k` points and measure how far from the manifold they fall.

    Args:
        X: features `(n, d)`.
        y: targets `(n,)` or `(n, c)`. Whole numbers are classes and become one-hot.
        k: of k-mixup.
        eps: the distance that counts as near.
        alpha: of k-mixup. lam is drawn once for each batch.
        manifold: of the features: a function from points `(m, d)` to their distances `(m,)`,
            or many points of the manifold. By default `X` itself.
        joint: the manifold of features and targets side by side, `(m, d + c)`.
        samples: number of batches.
        disjoint: whether the two subsets of a match share no point.
        generator: of all draws.

    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> manifold_fraction(X, k=8, eps=0.02, samples=10).features
    1.0
    """
    if not eps > 0:
        raise ValueError(f"eps must be above 0, got {eps}")
    features = as_points(X).double().cpu().numpy()
    spaces = [(features, _distance(features if manifold is None else manifold))]
    if y is not None:
        both = np.concatenate([features, _targets(y, len(features))], 1)
        spaces.append((both, _distance(both if joint is None else joint)))

    near: list[list[Array]] = [[] for _ in spaces]
    law = Beta(alpha)
    for first, second in matched_subsets(
        features, k, samples, disjoint=disjoint, generator=generator
    ):
        lam = law.sample((len(first), 1, 1), generator).cpu().numpy()
        for (points, distance), parts in zip(spaces, near, strict=True):
            mixed = lam * points[first] + (1 - lam) * points[second]
            inside = distance(mixed.reshape(-1, points.shape[1])) < eps
            parts.append(inside.reshape(len(first), k).mean(1))
    shares = [Measured.of(np.concatenate(parts)) for parts in near]
    if y is None:
        shares.append(Measured(math.nan, math.nan))
    in_features, in_both = shares
    return ManifoldFraction(
        k, eps, in_features.value, in_features.error, in_both.value, in_both.error
    )


def _distance(manifold: Manifold) -> Callable[[Array], Array]:
    """The distance function of a manifold: to the nearest point, if points are given."""
    if callable(manifold):
        return lambda points: np.asarray(manifold(points))
    from scipy.spatial import KDTree  # on first use: it loads slowly

    tree = KDTree(as_points(manifold).double().cpu().numpy())
    return lambda points: np.asarray(tree.query(points)[0])


def _targets(y: Data, n: int) -> Array:
    """Targets as columns `(n, c)`, classes one-hot."""
    targets = torch.as_tensor(y).detach().cpu()
    if len(targets) != n:
        raise ValueError(f"X and y must have the same length, got {n} and {len(targets)}")
    if targets.is_floating_point():
        return as_points(targets).double().numpy()
    labels = targets.numpy()
    return np.asarray(labels[:, None] == np.unique(labels), dtype=np.float64)
