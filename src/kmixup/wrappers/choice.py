"""A random choice among several mixers, for every batch or every sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Unpack, cast, get_args

import torch
from torch import Generator, Tensor, nn

from kmixup.batch import Batch
from kmixup.mixed import Mixed
from kmixup.mixer import AnyDraw, Mixing, SampleOptions
from kmixup.nests import Nest, over
from kmixup.randomness import device_of
from kmixup.targets import Criterion
from kmixup.wrappers.wrapper import SETTINGS

ChoicePer = Literal["batch", "sample"]


@dataclass(frozen=True, eq=False)
class ChoiceDraw:
    """The draw of a `Choice`."""

    chosen: int | Tensor  # the number of the chosen mixer, or of that of every sample, (n,)
    draws: tuple[AnyDraw, ...]  # that of the chosen mixer, or those of all mixers


@dataclass(frozen=True, eq=False)
class BySample(Mixed):
    """Row i is that of `results[chosen[i]]`; `region` and `points` are of the first result."""

    results: Sequence[Mixed] = field(kw_only=True)
    chosen: Tensor = field(kw_only=True)

    @cached_property
    def y(self) -> Nest:
        return over(self._rows, *(result.y for result in self.results))

    @cached_property
    def distance(self) -> Tensor:
        return self._rows(*(result.distance for result in self.results))

    @cached_property
    def weight(self) -> Tensor | None:
        weights = [result.weight for result in self.results]
        if all(weight is None for weight in weights):
            return None
        ones = torch.ones(len(self.chosen), device=self.partner.device)
        return self._rows(*(ones if weight is None else weight for weight in weights))

    def loss(self, criterion: Criterion, logits: Any) -> Tensor:
        losses = [result.loss(criterion, logits) for result in self.results]
        if any(loss.dim() == 0 for loss in losses):
            raise ValueError(
                "samples of this batch were mixed by different mixers, so the criterion must "
                'return one loss per sample: use reduction="none"'
            )
        return self._rows(*losses)

    def agreement(self, logits: Tensor) -> Tensor:
        return self._rows(*(result.agreement(logits) for result in self.results))

    def _rows(self, *entries: Tensor) -> Tensor:
        return _select(entries, self.chosen)


class Choice(Mixing):
    """Choose one of several mixers at random, for every batch or every sample.

    Settings such as alpha and prob are those of the mixers.

    Args:
        mixers: to choose among.
        weights: how likely each of them is, relative to the others; equal by default.
        per: "batch" chooses a mixer for each batch. "sample" chooses one for every sample: the
            batch is mixed by each mixer, and rows are taken from the results.
        generator: source of the choice, and of the mixers that have no generator of their own.

    >>> from kmixup import CutMix, KMixup
    >>> mix = Choice([KMixup(16, 1.0, 10), CutMix(16, 1.0, 10)], weights=[1, 3])
    >>> x, y = mix(torch.randn(128, 3, 32, 32), torch.randint(10, (128,)))
    """

    def __init__(
        self,
        mixers: Sequence[Mixing],
        weights: Sequence[float] | None = None,
        *,
        per: ChoicePer = "batch",
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
        if per not in get_args(ChoicePer):
            raise ValueError(f"per must be one of {get_args(ChoicePer)}, got {per!r}")
        self.mixers = nn.ModuleList(mixers)
        self.odds = tuple(weight / total for weight in weights)
        self.per = per
        for name in ("needs_loss", "encodes_clean", "remembers"):
            setattr(self, name, any(getattr(mixer, name) for mixer in mixers))
        for module in self.modules():
            if isinstance(module, Mixing) and module.generator is None:
                module._source = self._source

    def __setattr__(self, name: str, value: Any) -> None:
        if name in SETTINGS:
            raise AttributeError(
                f"a Choice has no {name} of its own: set that of its mixers, "
                f"e.g. choice.mixers[0].{name}"
            )
        super().__setattr__(name, value)

    def encode_clean(self, x: Nest) -> Nest:
        encoded = [mixer.encode_clean(x) for mixer in self._mixers]
        shapes = [over(lambda entry: getattr(entry, "shape", None), each) for each in encoded]
        if any(shape != shapes[0] for shape in shapes):
            raise ValueError(
                "the mixers of a Choice must encode clean inputs alike, got inputs of the shapes "
                f"{' and '.join(map(str, shapes))}: choose among mixers that agree"
            )
        return encoded[0]

    @property
    def block_size(self) -> int:
        return max(mixer.block_size for mixer in self._mixers)

    def mixes(self, entry: object) -> bool:
        return all(mixer.mixes(entry) for mixer in self._mixers)

    def sample(
        self, n: int, shape: tuple[int, ...] = (), **options: Unpack[SampleOptions]
    ) -> ChoiceDraw | None:
        if not self.training:
            return None
        generator = (options.get("source") or self._source).here()
        odds = torch.tensor(self.odds, device=device_of(generator))
        if self.per == "sample":
            each = odds.multinomial(n, replacement=True, generator=generator).cpu()
            draws = tuple(mixer.sample(n, shape, **options) for mixer in self._mixers)
            return ChoiceDraw(each, draws)
        chosen = int(odds.multinomial(1, generator=generator))
        return ChoiceDraw(chosen, (self._mixers[chosen].sample(n, shape, **options),))

    def mix_batch(self, batch: Batch, draw: ChoiceDraw | None) -> Mixed:
        if draw is None:
            return self._mixers[0].mix_batch(batch, None)
        if isinstance(draw.chosen, int):
            return self._mixers[draw.chosen].mix_batch(batch, draw.draws[0])
        pairs = zip(self._mixers, draw.draws, strict=True)
        results = [mixer.mix_batch(batch, part) for mixer, part in pairs]
        return _by_sample(results, draw.chosen[: batch.n])  # not of samples of a memory

    def remember(self, batch: Batch) -> None:
        for mixer in self._mixers:
            mixer.remember(batch)

    @property
    def _mixers(self) -> list[Mixing]:
        return [cast(Mixing, mixer) for mixer in self.mixers]

    def __repr__(self) -> str:
        pairs = zip(self.odds, self.mixers, strict=True)
        mixers = ", ".join(f"{odds:.3g}: {mixer}" for odds, mixer in pairs)
        seeded = "" if self.generator is None else ", generator=torch.Generator()"
        return f"Choice({mixers}{seeded})"


def _by_sample(results: Sequence[Mixed], chosen: Tensor) -> BySample:
    first, n = results[0], len(chosen)

    def rows(*entries: Any) -> Any:
        return _select(entries, chosen) if isinstance(entries[0], Tensor) else entries[0]

    own, their = zip(*(result.targets for result in results), strict=True)
    lams = (result.lam.to(first.partner.device).expand(n) for result in results)
    return BySample(
        over(rows, *(result.x for result in results)),
        (over(rows, *own), over(rows, *their)),
        rows(*(result.partner for result in results)),
        rows(*lams),
        first.region,
        first.num_classes,
        first.ignore_index,
        first.points,
        results=results,
        chosen=chosen,
    )


def _select(entries: Sequence[Tensor], chosen: Tensor) -> Tensor:
    """Return row i of `entries[chosen[i]]`, for every i."""
    first = entries[0]
    if any(entry.shape != first.shape for entry in entries) or first.shape[:1] != chosen.shape:
        raise ValueError(
            f'per="sample" needs mixers that return {len(chosen)} rows of one shape, got the '
            f'shapes {[tuple(entry.shape) for entry in entries]}: use per="batch", or put clean '
            "rows around the choice, WithClean(Choice(...))"
        )
    rows = first.clone()
    for number, entry in enumerate(entries[1:], 1):
        mask = (chosen == number).to(first.device).view(-1, *[1] * (first.dim() - 1))
        rows = torch.where(mask, entry.to(first.dtype), rows)
    return rows
