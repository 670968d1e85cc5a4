"""k-mixup as a step towards a local mean, then noise (the paper's appendix).

A k-subset γ meets all k-subsets ζ. Point i of γ is mixed with its partner R, which depends
on ζ, as θ x + (1 - θ) R, where θ = max(lam, 1 - lam), with lam from Beta(alpha, alpha).
Write x̄ = E_ζ R and θ̄ = E θ. The mixed point is x̃ + δ, with

    x̃ = x̄ + θ̄ (x - x̄),        the point, moved towards the mean of its partners,
    δ = (θ - θ̄) x + (1 - θ) R - (1 - θ̄) x̄,        of mean zero,

and the same for targets, with ỹ and ε.

**The paper's Σ.** Its lemma says E δδᵀ = [σ² (x̃ - x̄)(x̃ - x̄)ᵀ + ν² Σ] / θ̄², where σ² is the
variance of θ, ν² = σ² + (1 - θ̄)², and Σ "an empirical covariance". What must Σ be?
Rearranged, δ = (θ - θ̄)(x - x̄) + (1 - θ)(R - x̄). As θ and ζ are independent and the last
bracket has mean zero, the cross terms vanish:

    E δδᵀ = σ² (x - x̄)(x - x̄)ᵀ + E[(1 - θ)²] C,        C = Cov_ζ(R),

with E[(1 - θ)²] = ν². As x̃ - x̄ = θ̄ (x - x̄), the first terms agree, and the lemma is an
identity exactly if Σ = θ̄² C: the covariance, over ζ and for this γ and i, of the partners
after the same reversion, x̄ + θ̄ (R - x̄). It is not the covariance of the points x̃ of γ.

**x̄ and D_i.** The paper calls x̄ the mean of D_i. But x̄ depends on the whole of γ, not
only on its point i: the others of γ compete for the partners. The mean of D_i is
the average of x̄ over all γ that hold i (`local_means` shows the spread).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Generator, Tensor

from kmixup.coefficient import Beta
from kmixup.sampling import subsets
from kmixup.theory.matching import Array, Data, as_points, match_subsets


@dataclass(frozen=True, eq=False)
class Covariances:
    """E δδᵀ `(k, d, d)`, E εεᵀ `(k, c, c)` and E δεᵀ `(k, d, c)` of the points of γ."""

    features: Array
    targets: Array
    mixed: Array


@dataclass(frozen=True, eq=False)
class MeanReversion:
    """What happens to the points of one subset γ.

    `x` `(k, d)` and `y` `(k, c)` are its points, `partner_x` `(samples, k, d)` and
    `partner_y` `(samples, k, c)` their partners in the subsets ζ.
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
        """x̃ `(k, d)` and ỹ `(k, c)`: the points moved towards these means."""
        (mean_x, mean_y), theta = self.means, self.theta
        return mean_x + theta * (self.x - mean_x), mean_y + theta * (self.y - mean_y)

    def perturbations(self, theta: ArrayLike) -> tuple[Array, Array]:
        """δ `(samples, k, d)` and ε `(samples, k, c)`, for one θ or one for each ζ."""
        t = np.asarray(theta, dtype=np.float64)
        t = t[:, None, None] if t.ndim else t
        (mean_x, mean_y), mean_t = self.means, self.theta
        delta = (t - mean_t) * self.x + (1 - t) * self.partner_x - (1 - mean_t) * mean_x
        epsilon = (t - mean_t) * self.y + (1 - t) * self.partner_y - (1 - mean_t) * mean_y
        return delta, epsilon

    def loss(
        self,
        f: Callable[[Tensor], Tensor],
        criterion: Callable[[Tensor, Tensor], Tensor],
        theta: ArrayLike,
    ) -> float:
        """Mean of `criterion(f(x̃ + δ), ỹ + ε)` over γ and ζ: the theorem's form of the loss.

        `f` takes and gives float64 batches; `criterion` averages over one.
        """
        points, targets = (
            torch.from_numpy(centre + noise).flatten(0, 1)
            for centre, noise in zip(self.reverted, self.perturbations(theta), strict=True)
        )
        with torch.no_grad():
            return float(criterion(f(points), targets))

    def covariances(self) -> Covariances:
        """The lemma's right-hand sides, with Σ = θ̄² Cov_ζ of the partners."""
        variance, theta = Beta(self.alpha).folded_variance, self.theta
        nu = variance + (1 - theta) ** 2
        gap_x, gap_y = (r - m for r, m in zip(self.reverted, self.means, strict=True))
        spread_x, spread_y = self.partner_x - self.means[0], self.partner_y - self.means[1]

        def side(a: Array, b: Array, spread_a: Array, spread_b: Array) -> Array:
            sigma = theta**2 * np.einsum("ski,skj->kij", spread_a, spread_b) / len(spread_a)
            return np.asarray((variance * a[:, :, None] * b[:, None, :] + nu * sigma) / theta**2)

        return Covariances(
            features=side(gap_x, gap_x, spread_x, spread_x),
            targets=side(gap_y, gap_y, spread_y, spread_y),
            mixed=side(gap_x, gap_y, spread_x, spread_y),
        )

    def sampled_covariances(
        self, generator: Generator | None = None
    ) -> tuple[Covariances, Covariances]:
        """The left-hand sides, with a θ drawn for every ζ, and their standard errors."""
        lam = Beta(self.alpha).sample((len(self.partner_x),), generator).cpu().numpy()
        delta, epsilon = self.perturbations(np.maximum(lam, 1 - lam))

        def side(a: Array, b: Array) -> tuple[Array, Array]:
            products = a[:, :, :, None] * b[:, :, None, :]
            return products.mean(0), products.std(0) / len(products) ** 0.5

        sides = [side(delta, delta), side(epsilon, epsilon), side(delta, epsilon)]
        value, error = (Covariances(*each) for each in zip(*sides, strict=True))
        return value, error


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
    """Mean reversion of the points `subset` `(k,)` of `X` with targets `Y` `(n,)` or `(n, c)`.

    They meet `samples` random k-subsets of the data, or the given `others` `(samples, k)`.
    """
    points, targets = as_points(X), as_points(Y)
    if len(points) != len(targets):
        raise ValueError(f"X and Y must have the same length, got {len(points)} and {len(targets)}")
    first = torch.as_tensor(subset, dtype=torch.int64)
    k = len(first)
    if len(first.unique()) != k:
        raise ValueError(f"subset must hold different points, got {first.tolist()}")
    if others is None:
        second = subsets(len(points), k, samples, generator)
    else:
        second = torch.as_tensor(others, dtype=torch.int64)
    partner = match_subsets(points, first.expand(len(second), k), second)
    x, y = points.double().cpu().numpy(), targets.double().cpu().numpy()
    own = first.numpy()
    return MeanReversion(x[own], y[own], x[partner], y[partner], alpha)


@dataclass(frozen=True, eq=False)
class LocalMeans:
    """x̄ of one point for several subsets γ that hold it: `mean` `(subsets, d)` and its `error`.

    Their average estimates the mean of D_i.
    """

    mean: Array
    error: Array


def local_means(
    X: Data,
    i: int,
    k: int,
    *,
    subsets: int = 100,
    samples: int = 1000,
    generator: Generator | None = None,
) -> LocalMeans:
    """x̄ of point `i` for `subsets` random γ that hold it, each from `samples` matchings."""
    points = as_points(X)
    n = len(points)
    if not 0 <= i < n or not 1 <= k <= n:
        raise ValueError(f"i must be below and k at most {n}, the number of points, got {i}, {k}")
    means, errors = [], []
    for _ in range(subsets):
        others = torch.randperm(n - 1, generator=generator)[: k - 1]
        own = torch.cat([torch.tensor([i]), others + (others >= i)])
        found = mean_reversion(points, points, own.numpy(), samples=samples, generator=generator)
        partner = found.partner_x[:, 0]
        means.append(partner.mean(0))
        errors.append(partner.std(0, ddof=1) / samples**0.5)
    return LocalMeans(np.stack(means), np.stack(errors))
