"""Mix only some of the batches."""

from __future__ import annotations

from typing import Unpack

from kmixup.checks import check_probability
from kmixup.mixer import AnyDraw, Mixing, SampleOptions
from kmixup.wrappers.wrapper import Wrapper


class Sometimes(Wrapper):
    """Mix a batch with probability `prob`, and return it unmixed otherwise.

    `Mixer` has `prob` as an argument; this is for all other mixers.

    Args:
        mixer: the mixer inside.
        prob: the probability that a batch is mixed. It can be set between batches.

    >>> import torch
    >>> from kmixup import Choice, CutMix, KMixup
    >>> mix = Sometimes(Choice([KMixup(num_classes=10), CutMix(num_classes=10)]), prob=0.5)
    >>> x, y = mix(torch.randn(128, 3, 32, 32), torch.randint(10, (128,)))
    """

    def __init__(self, mixer: Mixing, prob: float = 0.5) -> None:
        super().__init__(mixer)
        self.prob = prob

    @property
    def prob(self) -> float:
        """The probability that a batch is mixed."""
        return self._prob

    @prob.setter
    def prob(self, prob: float) -> None:
        self._prob = check_probability("prob", prob)

    def sample(
        self, n: int, shape: tuple[int, ...] = (), **options: Unpack[SampleOptions]
    ) -> AnyDraw:
        if not self.training:
            return None
        mixed = (options.get("source") or self._source).coin() < self.prob
        draw = self.mixer.sample(n, shape, **options)
        return draw if mixed else None
