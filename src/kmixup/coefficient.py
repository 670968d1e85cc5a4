"""Stage 2: the distribution of lam, the weight of the first sample of a pair."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from kmixup._checks import check_number
from kmixup._randomness import uniforms

# Beyond these lam is 0, 1/2 or 1 to the last digit, and scipy's quantile is not a number.
LEAST, MOST = 1e-100, 1e100


class Coefficient(ABC):
    """Base class of the distributions of lam: turn uniform numbers into lam.

    Your own distribution is a subclass with one method, `lam`:

    >>> class UpperHalf(Coefficient):
    ...     def lam(self, u, distance=None):
    ...         return 0.5 + u / 2
    >>> UpperHalf().lam(torch.tensor([0.0, 1.0]))
    tensor([0.5000, 1.0000])

    Attributes:
        by_distance: whether lam depends on the distance of the pair.
    """

    by_distance: ClassVar[bool] = False

    @property
    def mixes(self) -> bool:
        """Whether lam can be anything but 1."""
        return True

    @abstractmethod
    def lam(self, u: Tensor, distance: Tensor | None = None) -> Tensor:
        """Return lam for quantiles `u`.

        Args:
            u: uniform numbers in [0, 1), float64 of any shape.
            distance: Euclidean distance of every pair in what was matched, `(n,)`. Only
                distributions that are `by_distance` get it, and `u` then has one entry per pair.
        """


@dataclass(frozen=True)
class _WithAlpha(Coefficient):
    """Base class of distributions that mix nothing at alpha = 0."""

    alpha: float = 1.0

    def __post_init__(self) -> None:
        rule = "a finite number, 0 (no mixing) or more"
        alpha = check_number("alpha", self.alpha, rule, lambda number: 0 <= number < math.inf)
        object.__setattr__(self, "alpha", alpha)

    @property
    def mixes(self) -> bool:
        return self.alpha > 0


@dataclass(frozen=True)
class Beta(_WithAlpha):
    """lam ~ Beta(alpha, alpha).

    The moments are exact. A *step* is min(lam, 1 - lam), the fraction of the way to its partner by
    which the nearer sample is moved.

    Attributes:
        alpha: 0 is lam = 1, no mixing. The larger it is, the closer lam is to 1/2.

    >>> Beta(1.0).mean_square_step    # 1/12
    0.08333333333333333
    """

    def draw(self, size: tuple[int, ...] = (), generator: Generator | None = None) -> Tensor:
        """Return lam of shape `size` in float64, on the device of `generator`.

        The same generator state gives the same quantiles of lam, whatever alpha is.
        """
        return self.lam(uniforms(size, generator))

    def lam(self, u: Tensor, distance: Tensor | None = None) -> Tensor:
        if self.alpha == 0:
            return torch.ones_like(u)
        return beta_quantiles(min(max(self.alpha, LEAST), MOST), u)

    @property
    def mean_square_step(self) -> float:
        """E[min(lam, 1 - lam)²], from 0 at alpha = 0 to 1/4 as alpha grows."""
        if self.alpha == 0:
            return 0.0
        from scipy.special import betainc

        # 2 ∫₀^½ lam² dBeta: the square tilts Beta(a, a) to Beta(a + 2, a)
        a = min(self.alpha, MOST)
        return float((a + 1) / (2 * a + 1) * betainc(a + 2, a, 0.5))

    @property
    def folded_mean(self) -> float:
        """E[max(lam, 1 - lam)]: mean of lam folded to [1/2, 1]."""
        return 0.5 + self._mean_deviation

    @property
    def folded_variance(self) -> float:
        """Var[max(lam, 1 - lam)]: variance of lam folded to [1/2, 1]."""
        # |lam - 1/2| has the same variance, and nothing cancels for large alpha
        return max(0.0, 0.25 / (2 * self.alpha + 1) - self._mean_deviation**2)

    @property
    def tilted_mean_step(self) -> float:
        """E[1 - lam] under Beta(alpha + 1, alpha), the weight of a sample whose label is drawn."""
        alpha = min(self.alpha, MOST)
        return alpha / (2 * alpha + 1)

    @property
    def tilted_mean_square_step(self) -> float:
        """E[(1 - lam)²] under Beta(alpha + 1, alpha)."""
        return self.tilted_mean_step / 2

    @property
    def _mean_deviation(self) -> float:
        """E|lam - 1/2| = Γ(alpha + 1/2) / (2 √π Γ(alpha + 1))."""
        from scipy.special import poch

        return float(poch(self.alpha + 1, -0.5) / (2 * math.sqrt(math.pi)))


@dataclass(frozen=True)
class Similarity(_WithAlpha):
    """lam ~ Beta(tau, tau) for each pair, tau = alpha · exp(-(d² / mean d² - 1) / (2 tau_std²)).

    d is the distance of the pair, and the mean is over the pairs of the batch. Distant pairs have
    a small tau, and so a lam near 0 or 1.

    Attributes:
        alpha: tau of a pair at the mean squared distance; 0 is lam = 1, no mixing.
        tau_std: how slowly tau falls with the distance. `math.inf` gives `Beta(alpha)`.
    """

    by_distance: ClassVar[bool] = True

    tau_std: float = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("tau_std", self.tau_std, "a positive number", lambda number: number > 0)

    def tau(self, distance: Tensor) -> Tensor:
        """Return the parameter of each pair's distribution, `(n,)` in float64."""
        square = distance.double().square()
        # 0 / 0 where all distances are 0: all pairs are then at the mean
        relative = (square / square.mean()).nan_to_num(1.0)
        return self.alpha * (-(relative - 1) / (2 * self.tau_std**2)).exp()

    def lam(self, u: Tensor, distance: Tensor | None = None) -> Tensor:
        if distance is None:
            raise ValueError("Similarity needs the distances of the pairs: lam(u, distance)")
        return beta_quantiles(self.tau(distance).cpu().numpy().clip(LEAST, MOST), u)


@dataclass(frozen=True)
class Gamma(_WithAlpha):
    """Weights of images in Co-Mixup: Gamma(alpha), which is Dirichlet(alpha) up to the total.

    Attributes:
        alpha: the larger, the more equal the weights; 0 mixes nothing.
    """

    alpha: float = 2.0

    def lam(self, u: Tensor, distance: Tensor | None = None) -> Tensor:
        from scipy.special import gammaincinv

        return torch.as_tensor(gammaincinv(self.alpha, u.cpu().numpy()), device=u.device)


@dataclass(frozen=True)
class Uniform(Coefficient):
    """lam uniform in [0, 1)."""

    def lam(self, u: Tensor, distance: Tensor | None = None) -> Tensor:
        return u


@dataclass(frozen=True)
class Half(Coefficient):
    """lam = 1/2, always."""

    def lam(self, u: Tensor, distance: Tensor | None = None) -> Tensor:
        return torch.full_like(u, 0.5)


def beta_quantiles(alpha: float | NDArray[np.float64], u: Tensor) -> Tensor:
    """Return the quantiles `u` of Beta(alpha, alpha), in float64 on the device of `u`."""
    from scipy.special import betaincinv  # on first use: scipy.special loads slowly

    return torch.from_numpy(np.asarray(betaincinv(alpha, alpha, u.cpu().numpy()))).to(u.device)


def per_sample(lam: Tensor, like: Tensor) -> Tensor:
    """Return `lam` `(n,)` shaped to weigh the samples of `like` `(n, ...)`; a scalar stays."""
    return lam if lam.dim() == 0 else lam.view(-1, *[1] * (like.dim() - 1))
