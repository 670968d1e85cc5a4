"""Guided mixup: every pixel is weighed by its importance, in partners that do not overlap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Unpack

from torch import Tensor

from kmixup.batch import Batch
from kmixup.coefficient import Beta
from kmixup.interpolation import Mask, Pair
from kmixup.matching import Optimal
from kmixup.methods.kmixup import Options
from kmixup.methods.masks import Masked, importances_of_images
from kmixup.mixed import Draw, Mixed
from kmixup.mixer import Mixer
from kmixup.nests import Nest


@dataclass(frozen=True)
class Guided(Masked):
    """The weight of a pixel is s / (s + s'), where s and s' are the importance of both sides.

    Importance is first scaled to total 1 for every image; where it is 0 on both sides the
    weight is ½. lam is the mean weight, whatever was drawn.
    """

    def settle(self, lam: Tensor, spot: Tensor | None, pair: Pair) -> tuple[Tensor, Mask]:
        own, their = importances_of_images(pair, "guided mixup")
        weight = (own / (own + their)).nan_to_num(0.5)
        return weight.mean((1, 2)), Mask(weight)


class GuidedMixup(Mixer):
    """Guided mixup: the pixel of the image to which it matters more counts more.

    A pixel has the weight s / (s + s') of the two saliencies, and lam is the mean weight.
    Partners are matched so that their saliencies are as far apart as possible in blocks of
    `k`, `Optimal(k, farthest=True)`: what matters in one image then seldom covers what matters
    in the other. `k=1` takes random partners. (Kang and Kim 2023, "GuidedMixup", look for such
    partners by a greedy walk through the batch; blocks of k are matched exactly.)

    Importance must be given. Partners are matched on it, unless there are `features`.

    Args:
        k: the number of samples in a block.
        alpha: 0 mixes nothing; all other values give the same.
        num_classes, options: those of `KMixup`.

    >>> import torch
    >>> mix = GuidedMixup(k=16, num_classes=10)
    >>> x, y = torch.randn(64, 3, 32, 32), torch.randint(10, (64,))
    >>> importance = torch.rand(64, 32, 32)    # kmixup.saliency(net, x, y)
    >>> x, y = mix(x, y, importance=importance)
    """

    def __init__(
        self,
        k: int = 16,
        alpha: float = 1.0,
        num_classes: Nest = None,
        **options: Unpack[Options],
    ) -> None:
        pairing = Optimal(k, farthest=True)
        super().__init__(pairing, Beta(alpha), Guided(), num_classes=num_classes, **options)

    def mix_batch(self, batch: Batch, draw: Draw | None) -> Mixed:
        if batch.features is None:
            batch = replace(batch, features=batch.importance)
        return super().mix_batch(batch, draw)
