"""Named methods: the stages in known compositions, and a choice among several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack, cast

import torch
from torch import Generator, Tensor, nn

from kmixup.coefficient import Beta
from kmixup.interpolation import Cut, Linear
from kmixup.mixing import LamPer, Mixed, Mixer, Mixing
from kmixup.nests import Features, Nest
from kmixup.pairing import Metric, Optimal, eager
from kmixup.sampling import device_of
from kmixup.targets import Decay, Within


class Options(TypedDict, total=False):
    """The arguments of `Mixer` that every method takes."""

    lam_per: LamPer
    prob: float
    generator: Generator | None


class KMixup(Mixer):
    """k-mixup: blocks of `k` samples, matched by optimal transport, interpolated linearly.

    `k=1` is plain mixup and `alpha=0` plain training. `metric` is that of `Optimal`,
    the other arguments are those of `Mixer`.

    >>> mix = KMixup(k=16, alpha=1.0, num_classes=10)
    >>> x, y = mix(torch.randn(128, 3, 32, 32), torch.randint(10, (128,)))
    >>> x.shape, y.shape
    (torch.Size([128, 3, 32, 32]), torch.Size([128, 10]))
    """

    def __init__(
        self,
        k: int = 16,
        alpha: float = 1.0,
        num_classes: int | None = None,
        *,
        metric: Metric = "sqeuclidean",
        lam_per: LamPer = "batch",
        prob: float = 1.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(
            Optimal(k, metric),
            Beta(alpha),
            Linear(),
            num_classes=num_classes,
            lam_per=lam_per,
            prob=prob,
            generator=generator,
        )


class CutMix(Mixer):
    """CutMix: a box of the partner is pasted into every image, and lam is its area's complement.

    `k=1` is CutMix as published (Yun et al. 2019), with random partners; with a larger
    `k` the partners are matched by optimal transport. The images are those of `Cut`,
    the other arguments those of `KMixup`.

    >>> mix = CutMix(k=16, alpha=1.0, num_classes=10)
    >>> x, y = mix(torch.randn(128, 3, 32, 32), torch.randint(10, (128,)))
    """

    def __init__(
        self,
        k: int = 1,
        alpha: float = 1.0,
        num_classes: int | None = None,
        *,
        metric: Metric = "sqeuclidean",
        **options: Unpack[Options],
    ) -> None:
        super().__init__(Optimal(k, metric), Beta(alpha), Cut(), num_classes=num_classes, **options)


class LocalMixup(Mixer):
    """Local mixup: the farther apart two mixed samples are, the less their loss counts.

    `k=1` is local mixup as published (Baena et al. 2022, "Preventing Manifold Intrusion
    with Locality: Local Mixup"), with random partners; with a larger `k` they are
    matched by optimal transport. The loss of a pair at Euclidean distance d has the
    weight exp(-d / `scale`) or, with `radius`, 1 up to that distance and 0 beyond, and
    the weights of a batch are scaled to mean 1. Without either, `scale` is the mean
    distance of the pairs of each batch. (Published are the weight exp(-a·d), where a is
    1 / `scale`, the threshold, and a third that needs the neighbours in all of the data.)

    Targets alone cannot carry weights, so it is used by `draw`:

    >>> mix = LocalMixup(k=1, alpha=1.0, scale=20.0)
    >>> x, y = torch.randn(128, 784), torch.randint(10, (128,))
    >>> m = mix.draw(x, y)
    >>> logits = m.x[:, :10]    # of a network
    >>> loss = m.loss(nn.CrossEntropyLoss(reduction="none"), logits).mean()

    The other arguments are those of `KMixup`.
    """

    def __init__(
        self,
        k: int = 1,
        alpha: float = 1.0,
        num_classes: int | None = None,
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
            locality=Decay(scale) if radius is None else Within(radius),
            **options,
        )


class Choice(Mixing):
    """One of several mixers for each batch, drawn with the odds `weights`, equal by default.

    alpha, prob and the rest are settings of the mixers. Those that have no generator
    of their own are given `generator`.

    >>> mix = Choice([KMixup(16, 1.0, 10), CutMix(16, 1.0, 10)], weights=[1, 3])
    >>> x, y = mix(torch.randn(128, 3, 32, 32), torch.randint(10, (128,)))
    """

    def __init__(
        self,
        mixers: Sequence[Mixing],
        weights: Sequence[float] | None = None,
        *,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        if not mixers:
            raise ValueError(
                "mixers must have at least one entry, e.g. Choice([KMixup(), CutMix()])"
            )
        weights = [1.0] * len(mixers) if weights is None else [float(w) for w in weights]
        if len(weights) != len(mixers):
            raise ValueError(
                f"weights must have one entry for each of the {len(mixers)} mixers, "
                f"got {len(weights)}"
            )
        total = sum(weights)
        if not (min(weights) >= 0 and 0 < total < float("inf")):
            raise ValueError(f"weights must be 0 or more, and not all 0, got {weights}")
        self.mixers = nn.ModuleList(mixers)
        self.odds = tuple(weight / total for weight in weights)
        self.generator = generator
        for module in self.modules():
            if isinstance(module, Mixing) and module.generator is None:
                module.generator = generator

    @property
    def weighs(self) -> bool:
        return any(mixer.weighs for mixer in self.mixers)

    @eager
    def draw(
        self,
        x: Nest,
        y: Tensor,
        *,
        other: tuple[Nest, Tensor] | None = None,
        features: Features | None = None,
    ) -> Mixed:
        """Mix a batch with the mixer that is drawn; the arguments are those of `Mixer.draw`."""
        drawn = 0
        if self.training:
            odds = torch.tensor(self.odds, device=device_of(self.generator))
            drawn = int(odds.multinomial(1, generator=self.generator))
        mixer = cast(Mixing, self.mixers[drawn])
        return mixer.draw(x, y, other=other, features=features)

    def __repr__(self) -> str:
        mixers = (
            f"{odds:.3g}: {mixer}" for odds, mixer in zip(self.odds, self.mixers, strict=True)
        )
        seeded = "" if self.generator is None else ", generator=torch.Generator()"
        return f"Choice({', '.join(mixers)}{seeded})"
