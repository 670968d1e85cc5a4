"""Local mixup: the loss of distant pairs counts less."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Unpack

import torch
from torch import Tensor

from kmixup._batch import Batch
from kmixup._checks import check_number
from kmixup._nests import Nest
from kmixup.methods.kmixup import PairMixer, PairOptions
from kmixup.mixed import Mixed, PairDraw


@dataclass(frozen=True, eq=False)
class LocalMixed(Mixed):
    """Mixed samples whose losses are weighted by exp(-distance of the pair / scale)."""

    scale: float | None = field(kw_only=True)  # the mean distance of the batch by default

    @cached_property
    def weight(self) -> Tensor:
        """Weights with mean 1, or all 0 where every pair is too far apart to count."""
        scale = self.distance.mean() if self.scale is None else self.scale
        # 0 / 0 where all distances are 0
        weight = (-self.distance / scale).nan_to_num(0.0).exp()
        total = weight.mean()
        return torch.where(total > 0, weight / total, weight)


class LocalMixup(PairMixer):
    """Local mixup: the farther apart two mixed samples are, the less their loss counts.

    `k=1` is local mixup as published (Baena et al. 2022, "Preventing Manifold Intrusion with
    Locality: Local Mixup"), with random partners; with a larger `k` they are matched by optimal
    transport. Weights fall exponentially with the distance, and have mean 1 in every batch, as in
    the authors' scripts; weights by radius or neighbours are not implemented. Targets cannot carry
    weights, so use `mix` and `m.loss`.

    Args:
        k: the number of samples in a block.
        alpha: lam is drawn from Beta(alpha, alpha).
        scale: the loss of a pair at Euclidean distance d has the weight exp(-d / scale); by
            default the mean distance of the pairs of each batch.
        num_classes: the number of classes of integer targets, which become one-hot.
        options: `PairOptions`: metric, targets, ignore_index, lam_per, prob, generator.

    >>> mix = LocalMixup(k=1, alpha=1.0, scale=20.0)
    >>> m = mix.mix(torch.randn(128, 784), torch.randint(10, (128,)))
    >>> logits = m.x[:, :10]    # of a network
    >>> loss = m.loss(torch.nn.CrossEntropyLoss(reduction="none"), logits).mean()
    """

    needs_loss = True

    def __init__(
        self,
        k: int = 1,
        alpha: float = 1.0,
        num_classes: Nest = None,
        *,
        scale: float | None = None,
        **options: Unpack[PairOptions],
    ) -> None:
        if scale is not None:
            rule = "a finite number above 0"
            scale = check_number("scale", scale, rule, lambda number: 0 < number < math.inf)
        self.scale = scale
        super().__init__(k, alpha, num_classes, **options)

    def mix_pairs(self, batch: Batch, draw: PairDraw) -> Mixed:
        return super().mix_pairs(batch, draw).extended(LocalMixed, scale=self.scale)
