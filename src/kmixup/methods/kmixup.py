"""k-mixup: optimal pairs, mixed linearly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict, Unpack

from torch import Generator

from kmixup._checks import did_you_mean
from kmixup._nests import Nest
from kmixup.coefficient import Beta, Coefficient
from kmixup.interpolation import Interpolation, Linear
from kmixup.matching import LamPer, Metric, Optimal
from kmixup.mixer import Mixer


class MixerOptions(TypedDict, total=False):
    """Keyword arguments that every method takes.

    Attributes:
        targets: the types of targets, see `Mixer`.
        ignore_index: the class index of targets that do not count, such as 255 in masks.
        lam_per: one lam for each "batch", "block" of k, or "sample"; "batch" by default.
        prob: the probability that a batch is mixed at all, 1 by default.
        generator: source of all randomness, torch's global one by default.

    >>> from kmixup import GuidedMixup
    >>> options: MixerOptions = {"lam_per": "block", "prob": 0.5}
    >>> mix = GuidedMixup(k=16, num_classes=10, **options)
    """

    targets: Nest
    ignore_index: int | None
    lam_per: LamPer
    prob: float
    generator: Generator | None


class PairOptions(MixerOptions, total=False):
    """Keyword arguments of methods that match pairs by the distance of their inputs.

    Attributes:
        metric: the cost of a pair, "sqeuclidean" (the default), "euclidean" or "cosine".
        targets, ignore_index, lam_per, prob, generator: as in `MixerOptions`.

    >>> from kmixup import CutMix
    >>> options: PairOptions = {"metric": "euclidean", "prob": 0.5}
    >>> mix = CutMix(k=16, num_classes=10, **options)
    """

    metric: Metric


class KMixupOptions(PairOptions, total=False):
    """The arguments of `KMixup`."""

    k: int
    alpha: float
    num_classes: Nest
    labels: float


def check_options(
    method: Mixer, options: Mapping[str, object], known: type = PairOptions, **instead: str
) -> None:
    """Raise a TypeError on an option that a method lacks; `instead` says what to use."""
    instead.setdefault("labels", "use Mixer(Optimal(k, labels=…), …)")
    names = sorted(known.__annotations__)
    for name in options.keys() - names:
        remedy = instead.get(name) or did_you_mean(name, names)
        raise TypeError(f"{type(method).__name__} has no option {name!r}: {remedy}")


class PairMixer(Mixer):
    """Base class of methods with optimal pairs; a number in place of a coefficient is an alpha.

    A subclass sets `interpolation`, in its body or before it calls this constructor. One without
    `alpha` calls `check_options` first.
    """

    interpolation: Interpolation = Linear()

    def __init__(
        self,
        k: int = 1,
        alpha: float | Coefficient = 1.0,
        num_classes: Nest = None,
        *,
        metric: Metric = "sqeuclidean",
        **options: Unpack[MixerOptions],
    ) -> None:
        check_options(self, options)
        super().__init__(
            Optimal(k, metric),
            alpha if isinstance(alpha, Coefficient) else Beta(alpha),
            self.interpolation,
            num_classes=num_classes,
            **options,
        )


class KMixup(Mixer):
    """k-mixup: match blocks of `k` samples by optimal transport and interpolate along the match.

    Called with a batch, it returns mixed inputs and soft targets. `mix` returns a `Mixed` record
    with partners, lam and loss; `Mixing` documents both calls. For batches that are smaller than
    2k, wrap it in a `Memory`.

    Args:
        k: the number of samples in a block; 1 is mixup. A batch should have at least 2k samples.
        alpha: lam is drawn from Beta(alpha, alpha); 0 mixes nothing (ERM).
        num_classes: the number of classes of integer targets, which become one-hot.
        metric: the cost of a pair, "sqeuclidean", "euclidean" or "cosine".
        labels: the extra cost of pairing different classes, see `Optimal`; 0 ignores classes.
        targets: the types of targets where dtype and shape do not tell, see `Mixer`.
        ignore_index: the class index of targets that do not count, such as 255 in masks.
        lam_per: one lam for each "batch", "block" of k, or "sample".
        prob: the probability that a batch is mixed at all.
        generator: source of all randomness, torch's global one by default.

    >>> import torch
    >>> mix = KMixup(k=16, alpha=0.2, num_classes=10)
    >>> x, y = mix(torch.randn(128, 3, 32, 32), torch.randint(10, (128,)))
    >>> x.shape, y.shape
    (torch.Size([128, 3, 32, 32]), torch.Size([128, 10]))
    """

    def __init__(
        self,
        k: int = 16,
        alpha: float = 0.2,
        num_classes: Nest = None,
        *,
        metric: Metric = "sqeuclidean",
        labels: float = 0.0,
        targets: Nest = None,
        ignore_index: int | None = None,
        lam_per: LamPer = "batch",
        prob: float = 1.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(
            Optimal(k, metric, labels=labels),
            Beta(alpha),
            Linear(),
            num_classes=num_classes,
            targets=targets,
            ignore_index=ignore_index,
            lam_per=lam_per,
            prob=prob,
            generator=generator,
        )
