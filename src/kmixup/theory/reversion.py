"""k-mixup as a step towards a local mean, then noise (the paper's appendix).

A k-subset γ is matched with all k-subsets ζ. Point x of γ has the partner R, which depends on ζ,
and the mixed point is θ x + (1 - θ) R, where θ = max(lam, 1 - lam). With x̄ = E_ζ R and θ̄ = E θ it
is x̃ + δ, where x̃ = x̄ + θ̄ (x - x̄) is the point moved towards the mean of its partners, and δ is
noise of mean zero. The targets become ỹ + ε in the same way. `docs/evidence/theory.md` has the
derivation, and what the paper's lemma and its x̄ must mean to be right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Generator

from kmixup.coefficient import Beta
from kmixup.measured import standard_error
from kmixup.sampling import subsets
from kmixup.theory.matching import Array, Data, as_array, as_points, check_length, match_subsets


@dataclass(frozen=True, eq=False)
class MeanReversion:
    """What k-mixup does to the points of one subset γ. Returned by `mean_reversion`.

    Attributes:
        x: features of the points, `(k, d)`.
        y: targets of the points, `(k, c)`.
        partner_x: features of their partners in the subsets ζ, `(samples, k, d)`.
        partner_y: targets of these partners, `(samples, k, c)`.
        alpha: of k-mixup.
    """

    x: Array
    y: Array
    partner_x: Array
    partner_y: Array
    alpha: float

    @property
    def theta(self) -> float:
        """θ̄, the mean of θ."""
        return Beta(self.alpha).folded_mean

    @property
    def means(self) -> tuple[Array, Array]:
        """x̄ `(k, d)` and ȳ `(k, c)`: the means of the partners."""
        return self.partner_x.mean(0), self.partner_y.mean(0)

    @property
    def reverted(self) -> tuple[Array, Array]:
        """x̃ `(k, d)` and ỹ `(k, c)`: the points, moved towards the means of their partners."""
        (mean_x, mean_y), theta = self.means, self.theta
        return mean_x + theta * (self.x - mean_x), mean_y + theta * (self.y - mean_y)

    def perturbations(self, theta: ArrayLike) -> tuple[Array, Array]:
        """Return δ `(samples, k, d)` and ε `(samples, k, c)`, for one `theta` or one per ζ."""
        t, mean_t = np.asarray(theta, dtype=np.float64), self.theta
        t = t[:, None, None] if t.ndim else t

        def noise(x: Array, partner: Array) -> Array:
            mean = partner.mean(0)
            return np.asarray((t - mean_t) * x + (1 - t) * partner - (1 - mean_t) * mean)

        return noise(self.x, self.partner_x), noise(self.y, self.partner_y)

    def covariances(self) -> tuple[Array, Array, Array]:
        """Return E δδᵀ `(k, d, d)`, E εεᵀ `(k, c, c)` and E δεᵀ `(k, d, c)`, by the lemma.

        Its Σ is θ̄² Cov_ζ of the partners.
        """
        variance, theta = Beta(self.alpha).folded_variance, self.theta
        nu = variance + (1 - theta) ** 2
        gaps = [r - m for r, m in zip(self.reverted, self.means, strict=True)]
        spreads = [self.partner_x - self.means[0], self.partner_y - self.means[1]]

        def side(i: int, j: int) -> Array:
            sigma = theta**2 * np.einsum("ski,skj->kij", spreads[i], spreads[j]) / len(spreads[i])
            square = gaps[i][:, :, None] * gaps[j][:, None, :]
            return np.asarray((variance * square + nu * sigma) / theta**2)

        return side(0, 0), side(1, 1), side(0, 1)


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
    >>> reversion.partner_x.shape
    (50, 2, 1)
    """
    points, x, y = as_points(X), as_array(X), as_array(Y)
    check_length(len(x), y, "Y")
    first = torch.as_tensor(subset, dtype=torch.int64)
    k = len(first)
    if len(first.unique()) != k:
        raise ValueError(f"subset must hold different points, got {first.tolist()}")
    if others is None:
        second = subsets(len(points), k, samples, generator)
    else:
        second = torch.as_tensor(others, dtype=torch.int64)
    partner, own = match_subsets(points, first.expand(len(second), k), second), first.numpy()
    return MeanReversion(x[own], y[own], x[partner], y[partner], alpha)


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
    n = len(points)
    if not 0 <= i < n or not 1 <= k <= n:
        raise ValueError(f"i must be below and k at most {n}, the number of points, got {i}, {k}")
    means, errors = [], []
    for _ in range(subsets):
        others = torch.randperm(n - 1, generator=generator)[: k - 1]
        own = torch.cat([torch.tensor([i]), others + (others >= i)])
        of = mean_reversion(points, points, own.numpy(), samples=samples, generator=generator)
        means.append(of.means[0][0])
        errors.append(standard_error(of.partner_x[:, 0]))
    return np.stack(means), np.stack(errors)
