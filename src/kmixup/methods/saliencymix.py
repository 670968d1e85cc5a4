"""SaliencyMix: a box around the most salient pixel of the partner."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from kmixup._batch import Batch
from kmixup.interpolation import Cut, Pair
from kmixup.methods._masks import importance_of, importances_of_images
from kmixup.methods.kmixup import PairMixer
from kmixup.mixed import Mixed, PairDraw


@dataclass(frozen=True)
class SalientCut(Cut):
    """`Cut` with the most salient pixel of each partner as the centre of its box."""

    def settle(self, lam: Tensor, spot: Tensor | None, pair: Pair) -> tuple[Tensor, Tensor]:
        _, importance = importances_of_images(pair)
        image = torch.tensor(importance.shape[1:], device="cpu")
        peak = importance.flatten(1).argmax(1).cpu()
        centre = torch.stack([peak // image[1], peak % image[1]], 1)
        return self.box(centre, (image * (1 - lam.cpu()).sqrt().unsqueeze(-1)).long(), image)


class SaliencyMix(PairMixer):
    """SaliencyMix: paste a box around the most salient pixel of the partner into every image.

    `k=1` is SaliencyMix as published (Uddin et al. 2021, "SaliencyMix: A Saliency Guided Data
    Augmentation Strategy for Better Regularization"), with random partners; with a larger `k` the
    partners are matched by optimal transport. The box stays where it was in the partner, and lam is
    the area outside of it. Every pair has its own box; in the authors' code a batch shares one.
    Without `importance`, saliency is the `spectral_residual` of the images.

    Args:
        k: the number of samples in a block.
        alpha: 1 - lam, the fraction of the box, is drawn from Beta(alpha, alpha).
        num_classes: the number of classes of integer targets, which become one-hot.
        options: `PairOptions`: metric, targets, ignore_index, lam_per, prob, generator.

    >>> mix = SaliencyMix(k=16, num_classes=10)
    >>> x, y = mix(torch.randn(128, 3, 32, 32), torch.randint(10, (128,)))
    """

    interpolation = SalientCut()

    def mix_pairs(self, batch: Batch, draw: PairDraw) -> Mixed:
        importance = importance_of(batch, self.mixes, "SaliencyMix")
        return super().mix_pairs(replace(batch, importance=importance), draw)
