"""Stage 2: how much. The law of lam, the weight of the first sample of a pair."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from kmixup.sampling import device_of


@dataclass(frozen=True)
class Beta:
    """lam ~ Beta(alpha, alpha); `alpha=0` is lam = 1, no mixing.

    The moments are exact. A *step* is min(lam, 1 - lam), the share of the way to
    its partner by which the nearer sample is moved.

    >>> Beta(1.0).mean_square_step    # 1/12
    0.08333333333333333
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < math.inf:
            raise ValueError(
                f"alpha must be a finite number, 0 (no mixing) or more, got {self.alpha}"
            )

    def sample(self, size: tuple[int, ...] = (), generator: Generator | None = None) -> Tensor:
        """Independent draws in float64, on the generator's device.

        One uniform number each, through the inverse distribution function: the
        same generator state gives the same quantiles whatever alpha is.
        """
        device = device_of(generator)
        uniform = torch.rand(size, generator=generator, dtype=torch.float64, device=device)
        if self.alpha == 0:
            return torch.ones_like(uniform)
        from scipy.special import betaincinv  # on first use: scipy.special loads slowly

        lam = betaincinv(self.alpha, self.alpha, uniform.cpu().numpy())
        return torch.as_tensor(lam, dtype=torch.float64, device=device)

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

        This law is that of lam when the mixed label is read as a draw of one of
        the two labels, and the sample that gave it is called the first: the
        expansion of the mixup loss around the data is in powers of its 1 - lam.
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
