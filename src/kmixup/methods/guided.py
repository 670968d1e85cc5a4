"""GuidedMixup: pixels weighted by their saliency, and partners that overlap little."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Unpack

from torch import Tensor

from kmixup._batch import Batch
from kmixup._nests import Nest
from kmixup.coefficient import Beta
from kmixup.importance import blur
from kmixup.interpolation import Mask, Pair
from kmixup.matching import Optimal
from kmixup.methods._masks import Masked, importance_of, importances_of_images, total_one
from kmixup.methods.kmixup import MixerOptions, check_options
from kmixup.mixed import Mixed, PairDraw
from kmixup.mixer import Mixer

BLUR, SIGMA = 7, 3.0  # the blur of saliency: pixels along its side, and its standard deviation


@dataclass(frozen=True)
class Guided(Masked):
    """Weight a pixel by s / (s + s'), the importances with total 1; ½ where both are 0.

    lam is the mean weight, whatever was drawn.
    """

    def settle(self, lam: Tensor, spot: Tensor | None, pair: Pair) -> tuple[Tensor, Mask]:
        own, their = importances_of_images(pair)
        weight = (own / (own + their)).nan_to_num(0.5)
        return weight.mean((1, 2)), Mask(weight)


class GuidedMixup(Mixer):
    """GuidedMixup: each pixel is weighted towards the image in which it is more salient.

    Saliency is blurred by 7 x 7 pixels and scaled to total 1 for every image. A pixel has the
    weight s / (s + s') of the two saliencies, and lam is the mean weight. Partners are matched so
    that their saliencies are as far apart as possible in blocks of `k`, so the salient parts of
    both images seldom overlap. `k=1` takes random partners. (Kang and Kim 2023, "GuidedMixup", find
    such partners by a greedy walk through the batch; here blocks of k are matched exactly.)

    Without `importance`, saliency is the `spectral_residual` of the images. With `features`,
    partners are matched on those instead.

    Args:
        k: the number of samples in a block.
        alpha: 0 disables mixing; other values have no effect, because saliency determines lam.
        num_classes: the number of classes of integer targets, which become one-hot.
        options: `MixerOptions`: targets, ignore_index, lam_per, prob and generator.

    >>> import torch
    >>> mix = GuidedMixup(k=16, num_classes=10)
    >>> x, y = torch.randn(64, 3, 32, 32), torch.randint(10, (64,))
    >>> x, y = mix(x, y)    # or with importance=kmixup.saliency(net, x, y)
    """

    def __init__(
        self,
        k: int = 16,
        alpha: float = 1.0,
        num_classes: Nest = None,
        **options: Unpack[MixerOptions],
    ) -> None:
        remedy = "partners are matched on their saliency, or on features"
        check_options(self, options, MixerOptions, metric=remedy)
        pairing = Optimal(k, farthest=True)
        super().__init__(pairing, Beta(alpha), Guided(), num_classes=num_classes, **options)

    def mix_pairs(self, batch: Batch, draw: PairDraw) -> Mixed:
        own, their = importance_of(batch, self.mixes, "GuidedMixup")
        scaled = total_one(blur(own, BLUR, SIGMA))
        both = scaled, scaled if their is own else total_one(blur(their, BLUR, SIGMA))
        features = both if batch.features is None else batch.features
        return super().mix_pairs(replace(batch, importance=both, features=features), draw)
