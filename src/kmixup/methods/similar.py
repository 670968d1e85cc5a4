"""Similarity-kernel mixup: the nearer two samples, the more they are mixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from kmixup.coefficient import Beta, Coefficient
from kmixup.inputs import Nest
from kmixup.interpolation import Linear
from kmixup.mixer import LamPer, Mixer
from kmixup.pairing import Metric, Optimal

# Beyond these lam is 0, 1/2 or 1 to the last digit, and the quantile of Beta is not a number.
LEAST, MOST = 1e-100, 1e100


@dataclass(frozen=True)
class Similarity(Coefficient):
    """lam ~ Beta(tau, tau) for each pair, tau = alpha · exp(-(d² / mean d² - 1) / (2 tau_std²)).

    d is the distance of the pair, and the mean is over the pairs of the batch. Distant pairs have
    a small tau, and so a lam near 0 or 1.

    Attributes:
        alpha: tau of a pair at the mean squared distance; 0 is lam = 1, no mixing.
        tau_std: how slowly tau falls with the distance. `math.inf` gives `Beta(alpha)`.
    """

    by_distance: ClassVar[bool] = True

    alpha: float = 1.0
    tau_std: float = 0.5

    def __post_init__(self) -> None:
        Beta(self.alpha)  # refuses what is no alpha
        if not self.tau_std > 0:
            raise ValueError(f"tau_std must be a positive number, got {self.tau_std}")

    @property
    def mixes(self) -> bool:
        return self.alpha > 0

    def tau(self, distance: Tensor) -> Tensor:
        """The parameter of the law of each pair, `(n,)` in float64."""
        square = distance.double().square()
        # 0 / 0 where all distances are 0: all pairs are then at the mean
        relative = (square / square.mean()).nan_to_num(1.0)
        return self.alpha * (-(relative - 1) / (2 * self.tau_std**2)).exp()

    def lam(self, u: Tensor, distance: Tensor | None = None) -> Tensor:
        if distance is None:
            raise ValueError("Similarity needs the distances of the pairs: lam(u, distance)")
        from scipy.special import betaincinv  # on first use: scipy.special loads slowly

        tau = self.tau(distance).clamp(LEAST, MOST).cpu().numpy()
        lam = betaincinv(tau, tau, u.cpu().numpy())
        return torch.as_tensor(lam, dtype=torch.float64, device=u.device)


class SimilarMixup(Mixer):
    """Similarity-kernel mixup: similar samples are mixed strongly, distant ones hardly at all.

    `k=1` is the method as published (Bouniot et al. 2023, "Tailoring Mixup to Data using Kernel
    Warping functions"), with random partners; with a larger `k` they are matched by optimal
    transport. Every pair has a lam of its own, from Beta(tau, tau) with
    tau = alpha · exp(-(d² / mean d² - 1) / (2 tau_std²)). d is the distance of the pair, and the
    mean is over the batch. Distances are those of the inputs, or of `features` if given: the
    authors take embeddings by the network for classes, `features=net.embed`, and the targets
    for regression.

    Args:
        k: the number of samples in a block.
        alpha: tau of a pair at the mean squared distance; 0 mixes nothing.
        tau_std: how slowly tau falls with the distance; `math.inf` is mixup.
        lam_per: what has a quantile of its own. Pairs that share a quantile differ in lam all
            the same, because they differ in distance.
        num_classes, metric, ignore_index, prob, generator: those of `KMixup`.

    >>> mix = SimilarMixup(k=1, alpha=1.0, num_classes=10)
    >>> x, y = mix(torch.randn(128, 784), torch.randint(10, (128,)))
    """

    def __init__(
        self,
        k: int = 1,
        alpha: float = 1.0,
        num_classes: Nest = None,
        *,
        tau_std: float = 0.5,
        metric: Metric = "sqeuclidean",
        ignore_index: int | None = None,
        lam_per: LamPer = "sample",
        prob: float = 1.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(
            Optimal(k, metric),
            Similarity(alpha, tau_std),
            Linear(),
            num_classes=num_classes,
            ignore_index=ignore_index,
            lam_per=lam_per,
            prob=prob,
            generator=generator,
        )
