"""Local mixup: distant pairs count less."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Unpack

import torch
from torch import Tensor

from kmixup.batch import Batch
from kmixup.coefficient import Beta
from kmixup.interpolation import Linear
from kmixup.matching import Metric, Optimal
from kmixup.methods.kmixup import Options
from kmixup.mixed import Draw, Mixed, Unmixed
from kmixup.mixer import Mixer
from kmixup.nests import Nest


@dataclass(frozen=True)
class Decay:
    """The weight exp(-distance / scale).

    Attributes:
        scale: the distance at which the weight is 1/e; None for the mean distance of the batch.
    """

    scale: float | None = None

    def __post_init__(self) -> None:
        if self.scale is not None and not 0 < self.scale < math.inf:
            raise ValueError(f"scale must be a positive number, got {self.scale}")

    def __call__(self, distance: Tensor) -> Tensor:
        scale = distance.mean() if self.scale is None else self.scale
        return (-distance / scale).nan_to_num(0.0).exp()  # 0 / 0 where all distances are 0


@dataclass(frozen=True)
class Within:
    """The weight 1 for near pairs and 0 for others.

    Attributes:
        radius: the greatest distance that counts as near.
    """

    radius: float

    def __post_init__(self) -> None:
        if not self.radius >= 0:
            raise ValueError(f"radius must be 0 or more, got {self.radius}")

    def __call__(self, distance: Tensor) -> Tensor:
        return (distance <= self.radius).to(distance.dtype)


@dataclass(frozen=True, eq=False)
class LocalMixed(Mixed):
    """Mixed samples whose losses are weighted by the distance of their pairs.

    Attributes:
        locality: turns the distances of the pairs into weights, `(n,)` each.
    """

    locality: Callable[[Tensor], Tensor] = field(kw_only=True)

    @cached_property
    def weight(self) -> Tensor:
        """Weights with mean 1, or all 0 where every pair is too far apart to count."""
        weight = self.locality(self.distance)
        total = weight.mean()
        return torch.where(total > 0, weight / total, weight)


class LocalMixup(Mixer):
    """Local mixup: the farther apart two mixed samples are, the less their loss counts.

    `k=1` is local mixup as published (Baena et al. 2022, "Preventing Manifold Intrusion
    with Locality: Local Mixup"), with random partners; with a larger `k` they are
    matched by optimal transport. The weights of a batch are scaled to mean 1. (The publication
    has a third kind of weight, which needs the neighbours in all of the data.)

    Args:
        k: the number of samples in a block.
        alpha: lam is drawn from Beta(alpha, alpha).
        scale: the loss of a pair at Euclidean distance d has the weight exp(-d / scale); by
            default the mean distance of the pairs of each batch.
        radius: instead of `scale`: the weight is 1 up to this distance and 0 beyond.
        num_classes, metric, options: those of `KMixup`.

    Targets alone cannot carry weights, so it is used by `draw`:

    >>> import torch
    >>> from torch import nn
    >>> mix = LocalMixup(k=1, alpha=1.0, scale=20.0)
    >>> x, y = torch.randn(128, 784), torch.randint(10, (128,))
    >>> m = mix.draw(x, y)
    >>> logits = m.x[:, :10]    # of a network
    >>> loss = m.loss(nn.CrossEntropyLoss(reduction="none"), logits).mean()
    """

    needs_loss = True

    def __init__(
        self,
        k: int = 1,
        alpha: float = 1.0,
        num_classes: Nest = None,
        *,
        scale: float | None = None,
        radius: float | None = None,
        metric: Metric = "sqeuclidean",
        **options: Unpack[Options],
    ) -> None:
        if scale is not None and radius is not None:
            raise ValueError(
                f"scale and radius exclude each other, got {scale} and {radius}: give one of them"
            )
        super().__init__(
            Optimal(k, metric),
            Beta(alpha),
            Linear(),
            num_classes=num_classes,
            **options,
        )
        self.locality = Decay(scale) if radius is None else Within(radius)

    def mix_batch(self, batch: Batch, draw: Draw | None) -> Mixed:
        mixed = super().mix_batch(batch, draw)
        if isinstance(mixed, Unmixed):
            return mixed
        return mixed.extended(LocalMixed, locality=self.locality)
