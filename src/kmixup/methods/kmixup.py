"""k-mixup: optimal pairs, mixed linearly."""

from __future__ import annotations

from typing import TypedDict

from torch import Generator

from kmixup.coefficient import Beta
from kmixup.inputs import Nest
from kmixup.interpolation import Linear
from kmixup.memory import Memory
from kmixup.mixer import LamPer, Mixer
from kmixup.pairing import Metric, Optimal


class Options(TypedDict, total=False):
    """The arguments of `Mixer` that every method takes."""

    ignore_index: int | None
    lam_per: LamPer
    prob: float
    generator: Generator | None


class KMixup(Mixer):
    """k-mixup: blocks of `k` samples, matched by optimal transport, interpolated linearly.

    Called with a batch it returns mixed inputs and soft targets. `draw` returns a `Mixed` with
    the partners, lam and the loss as well; `Mixing` explains these calls and their arguments.

    Args:
        k: the number of samples in a block; 1 is plain mixup. A batch should have 2k samples
            or more.
        alpha: lam is drawn from Beta(alpha, alpha); 0 is plain training.
        num_classes: the number of classes of integer targets, which become one-hot. Float
            targets need none.
        metric: the cost of a pair, "sqeuclidean", "euclidean" or "cosine".
        labels: how much it costs to pair different classes; 0 looks at inputs alone, and
            `Optimal` explains the scale.
        ignore_index: the class index of targets that do not count, such as 255 in masks.
        lam_per: one lam for each "batch", "block" of k, or "sample".
        prob: the chance that a batch is mixed at all.
        memory: the number of samples of earlier batches to keep, 2k or more, or a `Memory`.
            Blocks are filled up with them, so that `k` may be larger than the batch.
        generator: source of all randomness, torch's global one by default.

    >>> import torch
    >>> mix = KMixup(k=16, alpha=1.0, num_classes=10)
    >>> x, y = mix(torch.randn(128, 3, 32, 32), torch.randint(10, (128,)))
    >>> x.shape, y.shape
    (torch.Size([128, 3, 32, 32]), torch.Size([128, 10]))
    >>> mix = KMixup(k=64, num_classes=10, memory=512)  # for batches of 16 or 32
    """

    def __init__(
        self,
        k: int = 16,
        alpha: float = 1.0,
        num_classes: Nest = None,
        *,
        metric: Metric = "sqeuclidean",
        labels: float = 0.0,
        ignore_index: int | None = None,
        lam_per: LamPer = "batch",
        prob: float = 1.0,
        memory: int | Memory | None = None,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(
            Optimal(k, metric, labels=labels),
            Beta(alpha),
            Linear(),
            num_classes=num_classes,
            ignore_index=ignore_index,
            lam_per=lam_per,
            prob=prob,
            memory=memory,
            generator=generator,
        )
