"""Mixers around another mixer: the base class, and mixing only some of the batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

from torch import Generator, nn

from kmixup._batch import Batch
from kmixup._checks import check_probability
from kmixup._nests import Nest
from kmixup._randomness import Source
from kmixup.mixed import Draw, Mixed
from kmixup.mixer import FLAGS, DrawOptions, Mixing

SETTINGS = ("k", "alpha", "prob")


class SettingsInside(nn.Module):
    """A module around mixers, on which their settings cannot be set by mistake."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in SETTINGS and not hasattr(type(self), name):
            raise AttributeError(
                f"{name} is a setting of the mixer inside {type(self).__name__}: set it there, "
                f"e.g. .mixer.{name}, or .mixers[0].{name} of a Choice"
            )
        super().__setattr__(name, value)


@dataclass(frozen=True, eq=False)
class WrapperDraw(Draw):
    """Base class of the draws of wrappers.

    Attributes:
        inner: the draw of the mixer inside.

    >>> from kmixup import KMixup, Memory
    >>> draw = Memory(KMixup(k=16), size=64).draw(8)
    >>> isinstance(draw, WrapperDraw), type(draw.inner).__name__
    (True, 'PairDraw')
    """

    inner: Draw

    @property
    def mixes(self) -> bool:
        return self.inner.mixes


class Wrapper(SettingsInside, Mixing):
    """Base class of mixers around another mixer; by default, it delegates to that mixer.

    Your own wrapper overrides `draw_batch`, `mix_batch`, or both. Its draw is a `WrapperDraw`,
    which holds the inner mixer's draw, made from the same source.

    >>> from kmixup import KMixup
    >>> import torch
    >>> class Scaled(Wrapper):
    ...     def mix_batch(self, batch, draw):
    ...         mixed = self.mixer.mix_batch(batch, draw)
    ...         return replace(mixed, x=2 * mixed.x)
    >>> from dataclasses import replace
    >>> x, y = Scaled(KMixup(k=1, num_classes=2))(torch.ones(4, 3), torch.tensor([0, 1, 0, 1]))
    >>> x.unique()
    tensor([2.])

    Args:
        mixer: the mixer inside. Its settings stay its own: `wrapper.mixer.alpha = 0.5`.
    """

    mixer: Mixing

    def __init__(self, mixer: Mixing) -> None:
        nn.Module.__init__(self)  # without a source of its own
        if not isinstance(mixer, Mixing):
            raise TypeError(f"mixer must be a mixer, got {mixer!r}: use e.g. KMixup(k=16)")
        self.mixer = mixer
        for name in FLAGS:
            setattr(self, name, getattr(mixer, name))

    @property
    def generator(self) -> Generator | None:
        return self.mixer.generator

    @generator.setter
    def generator(self, generator: Generator | None) -> None:
        self.mixer.generator = generator

    @property
    def _source(self) -> Source:
        return self.mixer._source

    @_source.setter
    def _source(self, source: Source) -> None:
        self.mixer._source = source

    @property
    def targets(self) -> Nest:
        return self.mixer.targets

    def get_extra_state(self) -> Any:
        return None  # the mixer inside saves its generator

    def missing_extra_state(self) -> None:
        pass

    def draw_batch(self, n: int, shape: tuple[int, ...], **options: Unpack[DrawOptions]) -> Draw:
        return self.mixer.draw(n, shape, **options)

    def mix_batch(self, batch: Batch, draw: Draw) -> Mixed:
        return self.mixer.mix_batch(batch, draw)

    def mixes(self, entry: object) -> bool:
        return self.mixer.mixes(entry)

    @property
    def block_size(self) -> int:
        return self.mixer.block_size

    def encode_clean(self, x: Nest) -> Nest:
        return self.mixer.encode_clean(x)


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

    def draw_batch(self, n: int, shape: tuple[int, ...], **options: Unpack[DrawOptions]) -> Draw:
        mixed = (options.get("source") or self._source).coin() < self.prob
        draw = self.mixer.draw(n, shape, **options)
        return draw if mixed else Draw()
