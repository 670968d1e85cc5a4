"""FMix: masks of any shape, from random images of low frequencies."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from kmixup._randomness import uniforms
from kmixup.interpolation import Mask, Pair, Size
from kmixup.methods._masks import Masked
from kmixup.methods.kmixup import PairMixer


@dataclass(frozen=True)
class LowFrequency(Masked):
    """A mask of 0 and 1: the brightest pixels of a random image, a fraction lam, rounded.

    Frequency f of the random image has the amplitude f^-decay times a normal number.
    """

    decay: float = 3.0  # the larger, the smoother

    def draw(self, n: int, shape: Size = (), generator: Generator | None = None) -> Tensor:
        """Draw the seed of every random image, as a number in [0, 1)."""
        return uniforms((n,), generator)

    def settle(self, lam: Tensor, spot: Tensor | None, pair: Pair) -> tuple[Tensor, Mask]:
        assert spot is not None
        size = pair.image_size
        images = torch.stack([self.image(size, seed) for seed in spot.reshape(-1).tolist()])
        rank = images.flatten(1).argsort(1, descending=True).argsort(1).view_as(images)
        count = (lam.cpu() * math.prod(size)).round().long()
        weight = (rank < count.view(-1, 1, 1)).float()
        share = (count.double() / math.prod(size)).to(lam.device)
        return share, Mask(weight.expand(len(pair.partner), *size))

    def image(self, size: tuple[int, int], seed: float) -> Tensor:
        """Return a random image `(height, width)`, the same for the same `seed` in [0, 1)."""
        down, right = torch.fft.fftfreq(size[0])[:, None], torch.fft.rfftfreq(size[1])
        frequency = (down.square() + right.square()).sqrt().clamp(min=1 / max(size))
        generator = torch.Generator().manual_seed(int(seed * 2**53))
        noise = torch.randn(2, *frequency.shape, generator=generator)
        image: Tensor = torch.fft.irfft2(torch.complex(*noise) / frequency**self.decay, s=size)
        return image


class FMix(PairMixer):
    """FMix: paste a region of any shape of the partner into every image.

    `k=1` is FMix as published (Harris et al. 2020, "FMix: Enhancing Mixed Sample Data
    Augmentation"), with random partners; with a larger `k` the partners are matched by optimal
    transport. The region is where a random image of low frequencies is dark, and lam is the
    fraction of the image outside of it, rounded to whole pixels; the authors round at random and
    keep the drawn lam.

    Args:
        k: the number of samples in a block.
        alpha: lam is drawn from Beta(alpha, alpha).
        num_classes: the number of classes of integer targets, which become one-hot.
        options: `PairOptions`: metric, targets, ignore_index, lam_per, prob, generator.

    >>> mix = FMix(k=16, num_classes=10)
    >>> x, y = mix(torch.randn(128, 3, 32, 32), torch.randint(10, (128,)))
    """

    interpolation = LowFrequency()
