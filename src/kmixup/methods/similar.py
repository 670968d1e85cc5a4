"""Similarity-kernel mixup: the closer two samples are, the more they are mixed."""

from __future__ import annotations

from typing import Unpack

from kmixup._nests import Nest
from kmixup.coefficient import Similarity
from kmixup.methods.kmixup import PairMixer, PairOptions


class SimilarMixup(PairMixer):
    """Similarity-kernel mixup: mix similar samples strongly, distant ones hardly at all.

    `k=1` is the method as published (Bouniot et al. 2023, "Tailoring Mixup to Data using Kernel
    Warping functions"), with random partners; with a larger `k` they are matched by optimal
    transport. Every pair has its own lam, from Beta(tau, tau) with
    tau = alpha · exp(-(d² / mean d² - 1) / (2 tau_std²)). d is the distance of the pair, and the
    mean is over the batch. Distances are between inputs, or between `features` if given: the
    authors use the network's embeddings for classification and the targets for regression.

    Args:
        k: the number of samples in a block.
        alpha: tau of a pair at the mean squared distance; 0 mixes nothing.
        tau_std: how slowly tau falls with the distance, 0.25 as in the authors' CIFAR code;
            `math.inf` is mixup.
        num_classes: the number of classes of integer targets, which become one-hot.
        options: `PairOptions`: targets, metric, ignore_index, lam_per ("sample" by default), prob
            and generator.

    >>> import torch
    >>> mix = SimilarMixup(k=1, alpha=1.0, num_classes=10)
    >>> x, y = mix(torch.randn(128, 784), torch.randint(10, (128,)))
    """

    def __init__(
        self,
        k: int = 1,
        alpha: float = 1.0,
        num_classes: Nest = None,
        *,
        tau_std: float = 0.25,
        **options: Unpack[PairOptions],
    ) -> None:
        options.setdefault("lam_per", "sample")
        super().__init__(k, Similarity(alpha, tau_std), num_classes, **options)
