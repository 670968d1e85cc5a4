"""Stage 2: how much. The law of lam, the weight of the first sample of a pair."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Generator, Tensor

from kmixup.randomness import uniforms


class Coefficient(ABC):
    """The law of lam: turns uniform numbers into weights of the first sample.

    Attributes:
        by_distance: whether lam depends on the distance of the pair.

    A law of one's own is a subclass:

    >>> class Half(Coefficient):
    ...     def lam(self, u, distance=None):
    ...         return 0.5 + u / 2
    >>> Half().lam(torch.tensor([0.0, 1.0]))
    tensor([0.5000, 1.0000])
    """

    by_distance: ClassVar[bool] = False

    @property
    def mixes(self) -> bool:
        """Whether lam can be anything but 1."""
        return True

    @abstractmethod
    def lam(self, u: Tensor, distance: Tensor | None = None) -> Tensor:
        """lam for uniform numbers `u` in [0, 1), float64 of any shape, on the same device.

        `distance` `(n,)` holds the Euclidean distance of every pair in what was matched. Only
        laws that are `by_distance` are given it, and `u` then has one entry for each pair.
        """


@dataclass(frozen=True)
class Beta(Coefficient):
    """lam ~ Beta(alpha, alpha).

    The moments are exact. A *step* is min(lam, 1 - lam), the share of the way to
    its partner by which the nearer sample is moved.

    Attributes:
        alpha: 0 is lam = 1, no mixing. The larger it is, the nearer lam is to 1/2.

    >>> Beta(1.0).mean_square_step    # 1/12
    0.08333333333333333
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        try:
            known = 0 <= self.alpha < math.inf
        except (TypeError, RuntimeError, ValueError):  # no number, or several
            known = False
        if not known:
            raise ValueError(
                f"alpha must be a finite number, 0 (no mixing) or more, got {self.alpha!r}"
            )
        given: object = self.alpha
        if isinstance(given, Tensor):
            object.__setattr__(self, "alpha", float(given))

    def sample(self, size: tuple[int, ...] = (), generator: Generator | None = None) -> Tensor:
        """Independent draws in float64, on the generator's device.

        Each takes one uniform number, through the inverse distribution function. So the same
        generator state gives the same quantiles, whatever alpha is.
        """
        return self.lam(uniforms(size, generator))

    @property
    def mixes(self) -> bool:
        return self.alpha > 0

    def lam(self, u: Tensor, distance: Tensor | None = None) -> Tensor:
        if self.alpha == 0:
            return torch.ones_like(u)
        from scipy.special import betaincinv  # on first use: scipy.special loads slowly

        lam = betaincinv(self.alpha, self.alpha, u.cpu().numpy())
        return torch.from_numpy(np.asarray(lam)).to(u.device)

    @property
    def mean_square_step(self) -> float:
        """E[min(lam, 1 - lam)²], from 0 at alpha = 0 to 1/4 as alpha grows."""
        if self.alpha == 0:
            return 0.0
        from scipy.special import betainc

        # 2 ∫₀^½ lam² dBeta: the square tilts Beta(a, a) to Beta(a + 2, a)
        a = self.alpha
        return float((a + 1) / (2 * a + 1) * betainc(a + 2, a, 0.5))

    @property
    def folded_mean(self) -> float:
        """E[max(lam, 1 - lam)]: mean of lam folded to [1/2, 1]."""
        return 0.5 + self._mean_deviation

    @property
    def folded_variance(self) -> float:
        """Var[max(lam, 1 - lam)]: variance of lam folded to [1/2, 1]."""
        # |lam - 1/2| has the same variance, and nothing cancels for large alpha
        return 0.25 / (2 * self.alpha + 1) - self._mean_deviation**2

    @property
    def tilted_mean_step(self) -> float:
        """E[1 - lam] under Beta(alpha + 1, alpha).

        Draw one of the two labels of a mixed point, the first with probability lam, and call
        the sample that it belongs to the first. Its weight has this law. The expansion of the
        mixup loss around the data is in powers of 1 minus that weight.
        """
        return self.alpha / (2 * self.alpha + 1)

    @property
    def tilted_mean_square_step(self) -> float:
        """E[(1 - lam)²] under Beta(alpha + 1, alpha)."""
        return self.alpha / (2 * (2 * self.alpha + 1))

    @property
    def _mean_deviation(self) -> float:
        """E|lam - 1/2| = Γ(alpha + 1/2) / (2 √π Γ(alpha + 1))."""
        from scipy.special import poch

        return float(poch(self.alpha + 1, -0.5) / (2 * math.sqrt(math.pi)))


def per_sample(lam: Tensor, like: Tensor) -> Tensor:
    """`lam` `(n,)` shaped to weigh the samples of `like` `(n, ...)`; a scalar stays."""
    return lam if lam.dim() == 0 else lam.view(-1, *[1] * (like.dim() - 1))
