"""A random choice among several mixers, for every batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack, cast

import torch
from torch import Generator, nn

from kmixup._batch import Batch
from kmixup._nests import Nest, over
from kmixup._randomness import Source, device_of
from kmixup.mixed import Draw, Mixed
from kmixup.mixer import FLAGS, DrawOptions, Mixing, mixers_in
from kmixup.wrappers.wrapper import SettingsInside, WrapperDraw


@dataclass(frozen=True, eq=False)
class ChoiceDraw(WrapperDraw):
    """The draw of a `Choice`: the number of the chosen mixer, and its draw."""

    chosen: int


class Choice(SettingsInside, Mixing):
    """Choose one of several mixers at random, for every batch.

    Set alpha, prob and other settings on the mixers inside.

    Args:
        mixers: to choose among.
        weights: relative probabilities of the mixers, equal by default.
        generator: source of the choice, and of mixers without a generator.

    >>> from kmixup import CutMix, KMixup
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
        super().__init__(generator)
        if not mixers:
            raise ValueError(
                "mixers must have at least one entry, e.g. Choice([KMixup(), CutMix()])"
            )
        weights = [1.0] * len(mixers) if weights is None else [float(w) for w in weights]
        total = sum(weights)
        if len(weights) != len(mixers) or not (min(weights) >= 0 and 0 < total < float("inf")):
            raise ValueError(
                f"weights must have one number for each of the {len(mixers)} mixers, 0 or more and "
                f"not all 0, got {weights}"
            )
        self.mixers = nn.ModuleList(mixers)
        self.odds = tuple(weight / total for weight in weights)
        for name in FLAGS:
            setattr(self, name, any(getattr(mixer, name) for mixer in mixers))
        if any(mixer.targets != mixers[0].targets for mixer in mixers):
            raise ValueError(
                "the mixers of a Choice must have the same targets, got "
                f"{' and '.join(str(mixer.targets) for mixer in mixers)}"
            )
        for mixer in mixers_in(self):
            if mixer.generator is None:
                mixer._source = self._source

    @property
    def targets(self) -> Nest:
        return self._mixers[0].targets

    @property
    def generator(self) -> Generator | None:
        return self._source.generator

    @generator.setter
    def generator(self, generator: Generator | None) -> None:
        shared, self._source = self._source, Source(generator)
        for mixer in mixers_in(self):
            if mixer._source is shared:
                mixer._source = self._source

    def encode_clean(self, x: Nest) -> Nest:
        encoded = [mixer.encode_clean(x) for mixer in self._mixers]
        shapes = [over(lambda entry: getattr(entry, "shape", None), each) for each in encoded]
        if any(shape != shapes[0] for shape in shapes):
            raise ValueError(
                "the mixers of a Choice must encode clean inputs in the same way, got the shapes "
                f"{' and '.join(map(str, shapes))}: choose among mixers that agree"
            )
        return encoded[0]

    @property
    def block_size(self) -> int:
        return max(mixer.block_size for mixer in self._mixers)

    def mixes(self, entry: object) -> bool:
        return all(mixer.mixes(entry) for mixer in self._mixers)

    def draw_batch(
        self, n: int, shape: tuple[int, ...], **options: Unpack[DrawOptions]
    ) -> ChoiceDraw:
        generator = (options.get("source") or self._source).here()
        odds = torch.tensor(self.odds, device=device_of(generator))
        chosen = int(odds.multinomial(1, generator=generator))
        return ChoiceDraw(self._mixers[chosen].draw(n, shape, **options), chosen)

    def mix_batch(self, batch: Batch, draw: Draw) -> Mixed:
        choice = ChoiceDraw.of(draw) or ChoiceDraw(draw, 0)
        return self._mixers[choice.chosen].mix_batch(batch, choice.inner)

    @property
    def _mixers(self) -> list[Mixing]:
        return [cast(Mixing, mixer) for mixer in self.mixers]

    def extra_repr(self) -> str:
        return f"weights={self.odds}"
