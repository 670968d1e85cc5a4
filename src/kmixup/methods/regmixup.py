"""RegMixup: the clean batch in addition to the mixed one."""

from __future__ import annotations

from typing import Unpack

from kmixup._batch import Batch
from kmixup._nests import Nest
from kmixup.methods.kmixup import PairMixer, PairOptions
from kmixup.mixed import Mixed, PairDraw
from kmixup.wrappers.clean import beside_clean


class RegMixup(PairMixer):
    """RegMixup: add the loss of the clean batch to the mixed loss, in one forward pass.

    `k=1` is RegMixup as published (Pinto et al. 2022, "RegMixup: Mixup as a Regularizer Can
    Surprisingly Improve Accuracy and Out Distribution Robustness"), with random partners; with a
    larger `k` they are matched by optimal transport. A batch of n samples becomes 2n: the mixed
    samples, then the clean ones. The mean loss is half the sum of the two published losses.

    Args:
        k: the number of samples in a block.
        alpha: lam is drawn from Beta(alpha, alpha); 20 for CIFAR-10 and 10 for CIFAR-100 in the
            paper.
        num_classes: the number of classes of integer targets, which become one-hot.
        options: `PairOptions`: metric, targets, ignore_index, lam_per, prob, generator.

    >>> import torch
    >>> mix = RegMixup(k=16, num_classes=10)
    >>> x, y = mix(torch.randn(128, 3, 32, 32), torch.randint(10, (128,)))
    >>> x.shape, y.shape
    (torch.Size([256, 3, 32, 32]), torch.Size([256, 10]))
    """

    def __init__(
        self,
        k: int = 1,
        alpha: float = 10.0,
        num_classes: Nest = None,
        **options: Unpack[PairOptions],
    ) -> None:
        super().__init__(k, alpha, num_classes, **options)

    def mix_pairs(self, batch: Batch, draw: PairDraw) -> Mixed:
        return beside_clean(super().mix_pairs(batch, draw), self.unmixed(batch))
