"""k-mixup as a step towards a local mean, then noise (the paper's appendix).

A k-subset γ is matched with all k-subsets ζ. With θ = max(lam, 1 - lam), a point x of γ becomes
x̃ + δ: moved towards the mean x̄ of its partners, plus noise of mean zero. Its target becomes ỹ + ε
in the same way. `docs/evidence/theory.md` has the formulas and the derivation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Generator

from kmixup._measured import standard_error
from kmixup._subsets import subsets
from kmixup.coefficient import Beta
from kmixup.theory.matching import Array, Data, as_array, as_points, check_length, match_subsets


@dataclass(frozen=True, eq=False)
class MeanReversion:
    """What k-mixup does to the points of one subset γ. Returned by `mean_reversion`.

    All arrays hold features and targets side by side.

    Attributes:
        points: (x, y) of the points, `(k, d + c)`.
        partners: those of their partners in the subsets ζ, `(samples, k, d + c)`.
        alpha: of k-mixup.
    """

    points: Array
    partners: Array
    alpha: float

    @property
    def theta(self) -> float:
        """θ̄, the mean of θ."""
        return Beta(self.alpha).folded_mean

    @property
    def mean(self) -> Array:
        """(x̄, ȳ): the means of the partners, `(k, d + c)`."""
        return np.asarray(self.partners.mean(0))

    @property
    def reverted(self) -> Array:
        """(x̃, ỹ): the points, moved towards the means of their partners, `(k, d + c)`."""
        return self.mean + self.theta * (self.points - self.mean)

    def perturbations(self, theta: ArrayLike) -> Array:
        """Return (δ, ε) `(samples, k, d + c)`, for one `theta` or one per ζ."""
        t = np.asarray(theta, dtype=np.float64).reshape(-1, 1, 1)
        return t * self.points + (1 - t) * self.partners - self.reverted

    def covariance(self) -> Array:
        """Return the covariance of (δ, ε) by the lemma, `(k, d + c, d + c)`."""
        variance, theta = Beta(self.alpha).folded_variance, self.theta
        gap, spread = self.points - self.mean, self.partners - self.mean
        of_partners = np.einsum("ski,skj->kij", spread, spread) / len(spread)
        square = gap[:, :, None] * gap[:, None, :]
        return np.asarray(variance * square + (variance + (1 - theta) ** 2) * of_partners)


def mean_reversion(
    X: Data,
    Y: Data,
    subset: ArrayLike,
    *,
    alpha: float = 1.0,
    samples: int = 1000,
    others: ArrayLike | None = None,
    generator: Generator | None = None,
) -> MeanReversion:
    """Match one subset with many others, for the mean reversion of its points.

    Args:
        X: features `(n, d)`.
        Y: targets `(n,)` or `(n, c)`.
        subset: γ, the indices of its points, `(k,)`.
        alpha: of k-mixup.
        samples: how many random k-subsets ζ to match it with.
        others: these subsets, `(samples, k)`, instead of random ones.
        generator: source of all draws.

    Returns:
        The points and their partners in all subsets ζ.

    >>> X = np.arange(8.0)[:, None]
    >>> reversion = mean_reversion(X, X[:, 0], [0, 7], samples=50, generator=torch.Generator())
    >>> reversion.partners.shape    # a feature and a target
    (50, 2, 2)
    """
    points, y = as_points(X), as_array(Y)
    check_length(len(points), y, "Y")
    both = np.concatenate([as_array(points), y], 1)
    first = torch.as_tensor(subset, dtype=torch.int64)
    k = len(first)
    if len(first.unique()) != k:
        raise ValueError(f"subset must hold different points, got {first.tolist()}")
    if others is None:
        second = subsets(len(points), k, samples, generator)
    else:
        second = torch.as_tensor(others, dtype=torch.int64)
    for name, given in (("subset", first), ("others", second)):
        if not ((given >= 0) & (given < len(points))).all():
            raise ValueError(
                f"{name} must hold indices from 0 to {len(points) - 1}, got {given.tolist()}"
            )
    partner = match_subsets(points, first.expand(len(second), k), second)
    return MeanReversion(both[first.numpy()], both[partner], alpha)


def local_means(
    X: Data,
    i: int,
    k: int,
    *,
    subsets: int = 100,
    samples: int = 1000,
    generator: Generator | None = None,
) -> tuple[Array, Array]:
    """Estimate x̄ of point `i` of `X` for random k-subsets γ that contain it.

    Args:
        X: points `(n, d)`.
        i: index of the point.
        k: size of a subset.
        subsets: number of subsets γ.
        samples: number of matchings of each.
        generator: source of all draws.

    Returns:
        x̄ for each subset and its standard error, `(subsets, d)` each. The average over subsets
        estimates the mean of D_i.

    >>> X = np.arange(8.0)[:, None]
    >>> mean, error = local_means(X, 0, k=2, subsets=3, samples=20, generator=torch.Generator())
    >>> mean.shape
    (3, 1)
    """
    points = as_points(X)
    n, d = points.shape
    if not 0 <= i < n or not 1 <= k <= n:
        raise ValueError(f"i must be below and k at most {n}, the number of points, got {i}, {k}")
    means, errors = [], []
    for _ in range(subsets):
        others = torch.randperm(n - 1, generator=generator)[: k - 1]
        own = torch.cat([torch.tensor([i]), others + (others >= i)])
        of = mean_reversion(points, points, own.numpy(), samples=samples, generator=generator)
        means.append(of.mean[0, :d])
        errors.append(standard_error(of.partners[:, 0, :d]))
    return np.stack(means), np.stack(errors)
