"""A random choice among several mixers, for every batch or sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal, Unpack, cast

import torch
from torch import Generator, Tensor, nn

from kmixup._batch import Batch
from kmixup._checks import check_choice
from kmixup._nests import Nest, over
from kmixup._randomness import Source, device_of
from kmixup.interpolation import is_large, large_like
from kmixup.matching import Blocks, Pairing
from kmixup.matching._points import is_channels_last
from kmixup.mixed import Draw, Mixed, PairDraw, Unmixed
from kmixup.mixer import FLAGS, DrawOptions, Mixer, Mixing, mixers_in
from kmixup.wrappers.wrapper import SettingsInside, WrapperDraw


@dataclass(frozen=True, eq=False)
class ChoiceDraw(WrapperDraw):
    """The draw of a `Choice`: the number of the chosen mixer, and its draw."""

    chosen: int


@dataclass(frozen=True, eq=False)
class SampleChoiceDraw(Draw):
    """The draw of a `Choice` per sample: a draw of each mixer, and which one each sample has."""

    inner: tuple[Draw, ...]
    chosen: Tensor  # numbers of mixers, (n,)

    @property
    def mixes(self) -> bool:
        return any(draw.mixes for draw in self.inner)


@dataclass(frozen=True, eq=False)
class ChosenMixed(Mixed):
    """Rows of several mixed batches: row i is that of `parts[chosen[i]]`, which has its region."""

    parts: tuple[Mixed, ...] = field(kw_only=True, repr=False)
    chosen: Tensor = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, parts: Sequence[Mixed], chosen: Tensor) -> ChosenMixed:
        """Return the chosen rows of mixed batches."""
        for part in parts:
            if type(part) not in (Mixed, Unmixed, ChosenMixed):
                raise TypeError(
                    'a Choice with per="sample" takes mixers that give each sample one partner and '
                    f"a loss without weights or penalty, got a {type(part).__name__}: use "
                    'per="batch"'
                )
        first, n, pick = parts[0], len(chosen), partial(_picked, chosen)
        device, dtype = first.partner.device, first.lam.dtype
        own, their = ([part.targets[side] for part in parts] for side in (0, 1))
        return cls(
            x=over(pick, *(part.x for part in parts)),
            targets=(over(pick, *own), over(pick, *their)),
            partner=pick(*(part.partner.to(device) for part in parts)),
            lam=pick(*(part.lam.to(device, dtype).expand(n) for part in parts)),
            num_classes=first.num_classes,
            ignore_index=first.ignore_index,
            types=first.types,
            points=first.points,
            parts=tuple(parts),
            chosen=chosen,
        )

    @cached_property
    def y(self) -> Nest:
        return over(partial(_picked, self.chosen), *(part.y for part in self.parts))

    @cached_property
    def distance(self) -> Tensor:
        return cast(Tensor, _picked(self.chosen, *(part.distance for part in self.parts)))


def _picked(chosen: Tensor, *entries: Any) -> Any:
    """Return row i of entry number `chosen[i]`, or the entry that all parts passed through."""
    picked = entries[0]
    if all(entry is picked for entry in entries):
        return picked
    if any(entry.shape != picked.shape for entry in entries):
        raise ValueError(
            'the mixers of a Choice with per="sample" must return one shape, got '
            f"{' and '.join(str(tuple(entry.shape)) for entry in entries)}: choose among mixers "
            'that agree, or use per="batch"'
        )
    if is_channels_last(picked):
        return _picked(chosen, *(entry.movedim(1, -1) for entry in entries)).movedim(-1, 1)
    if picked.device.type != "cpu":
        number = chosen.to(picked.device, non_blocking=True).view(-1, *[1] * (picked.dim() - 1))
        for at, entry in enumerate(entries[1:], 1):
            picked = torch.where(number == at, entry, picked)
        return picked
    if is_large(picked) and not any(entry.requires_grad for entry in entries):
        picked = large_like(picked)
        for row, at in enumerate(chosen.tolist()):
            picked[row] = entries[at][row]
        return picked
    for at, entry in enumerate(entries[1:], 1):
        rows = (chosen == at).nonzero()[:, 0]
        picked = picked.index_copy(0, rows, entry.index_select(0, rows))
    return picked


class Choice(SettingsInside, Mixing):
    """Choose one of several mixers at random, for every batch or for every sample.

    Set alpha, prob and other settings on the mixers inside.

    Args:
        mixers: to choose among.
        weights: relative probabilities of the mixers, equal by default.
        per: choose for each "batch" or for each "sample". Per sample, all mixers mix the batch, and
            each row is taken from one of them. Mixers with equal pairings share their partners. A
            mixer with `alpha=0` leaves its samples unmixed.
        generator: source of the choice, and of mixers without a generator.

    >>> from kmixup import CutMix, KMixup
    >>> mix = Choice([KMixup(16, 1.0, 10), CutMix(16, 1.0, 10)], weights=[1, 3])
    >>> x, y = mix(torch.randn(128, 3, 32, 32), torch.randint(10, (128,)))
    >>> each = Choice([KMixup(lam_per="sample"), CutMix(lam_per="sample")], per="sample")
    >>> m = each.mix(torch.randn(128, 3, 32, 32), torch.randn(128))
    >>> m.lam.shape, m.chosen.shape
    (torch.Size([128]), torch.Size([128]))
    """

    def __init__(
        self,
        mixers: Sequence[Mixing],
        weights: Sequence[float] | None = None,
        *,
        per: Literal["batch", "sample"] = "batch",
        generator: Generator | None = None,
    ) -> None:
        super().__init__(generator)
        check_choice("per", per, ("batch", "sample"))
        self.per = per
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
    ) -> ChoiceDraw | SampleChoiceDraw:
        generator = (options.get("source") or self._source).here()
        odds = torch.tensor(self.odds, device=device_of(generator))
        if self.per == "sample":
            each = odds.multinomial(n, replacement=True, generator=generator).cpu()
            return SampleChoiceDraw(self._draws(n, shape, options), each)
        chosen = int(odds.multinomial(1, generator=generator))
        return ChoiceDraw(self._mixers[chosen].draw(n, shape, **options), chosen)

    def _draws(self, n: int, shape: tuple[int, ...], options: DrawOptions) -> tuple[Draw, ...]:
        """Return a draw of each mixer, with the same blocks for equal pairings."""
        draws, shared = [], dict[Pairing, Blocks]()
        for mixer in self._mixers:
            draw = mixer.draw(n, shape, **options)
            if isinstance(mixer, Mixer) and isinstance(draw, PairDraw):
                draw = replace(draw, blocks=shared.setdefault(mixer.pairing, draw.blocks))
            draws.append(draw)
        return tuple(draws)

    def mix_batch(self, batch: Batch, draw: Draw) -> Mixed:
        if self.per == "sample" and (each := SampleChoiceDraw.of(draw)) is not None:
            numbers, chosen = each.chosen[: batch.n].unique(return_inverse=True)
            pairs = [(self._mixers[number], each.inner[number]) for number in numbers.tolist()]
            parts = [mixer.mix_batch(batch, inner) for mixer, inner in pairs]
            return ChosenMixed.of(parts, self.choose(chosen, parts[0].partner))
        choice = ChoiceDraw.of(draw) or ChoiceDraw(draw, 0)
        return self._mixers[choice.chosen].mix_batch(batch, choice.inner)

    def choose(self, chosen: Tensor, partner: Tensor) -> Tensor:
        """Return the number of each sample's mixer: `chosen`, whatever its `partner` has."""
        return chosen

    @property
    def _mixers(self) -> list[Mixing]:
        return [cast(Mixing, mixer) for mixer in self.mixers]

    def extra_repr(self) -> str:
        return f"weights={self.odds}, per={self.per!r}"
