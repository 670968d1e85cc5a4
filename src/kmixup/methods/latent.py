"""Mixup in the latent space of a generative model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack

import torch

from kmixup._batch import Batch
from kmixup._nests import Nest
from kmixup.methods.kmixup import PairMixer, PairOptions
from kmixup.mixed import Mixed, PairDraw

Codec = Callable[..., Any]


class LatentMixup(PairMixer):
    """Mixup between the codes of samples: decode(lam · encode(x) + (1 - lam) · encode(x')).

    The idea is that of GAN-mixup (Sohn et al. 2020), written without access to its text and code.
    Pairs are matched by optimal transport between the codes, or between `features`, in blocks of
    `k`. With identity codecs this is `KMixup`.

    The codecs belong to a trained model. They are called without gradients, and the mixer neither
    moves them to a device nor changes their modes. An unmixed batch is returned unchanged, not as
    its reconstruction.

    Args:
        encode: turns inputs into codes, a tensor `(n, ...)` or a nest of them.
        decode: turns mixed codes into inputs.
        conditional: whether to call `encode(x, y)`, with the targets. The code of a
            class-conditional model holds the class as floats, which are mixed with the rest.
        k: the number of samples in a block.
        alpha: lam is drawn from Beta(alpha, alpha); 0 mixes nothing.
        num_classes: the number of classes of integer targets, which become one-hot.
        options: `PairOptions`: metric, targets, ignore_index, lam_per, prob, generator.

    >>> mix = LatentMixup(lambda x: x.sqrt(), lambda z: z.square(), k=4, num_classes=3)
    >>> x, y = mix(torch.rand(32, 5), torch.randint(3, (32,)))
    """

    def __init__(
        self,
        encode: Codec,
        decode: Codec,
        k: int = 16,
        alpha: float = 1.0,
        num_classes: Nest = None,
        *,
        conditional: bool = False,
        **options: Unpack[PairOptions],
    ) -> None:
        super().__init__(k, alpha, num_classes, **options)
        # a tuple hides modules from this one, which would otherwise set their modes
        self._codecs = encode, decode
        self.conditional = conditional

    def mix_pairs(self, batch: Batch, draw: PairDraw) -> Mixed:
        encode, decode = self._codecs

        def encoded(x: Nest, y: Nest) -> Nest:
            return encode(x, y) if self.conditional else encode(x)

        with torch.no_grad():
            other = batch.other and (encoded(*batch.other), batch.other[1])
            codes = replace(batch, x=encoded(batch.x, batch.y), other=other)
            mixed = super().mix_pairs(codes, draw)
            return replace(mixed, x=decode(mixed.x))
