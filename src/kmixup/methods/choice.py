"""A choice among several mixers, made anew for every batch or every sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack, cast, get_args

import torch
from torch import Generator, Tensor, nn

from kmixup.compiling import eager
from kmixup.inputs import Beside, Known, Nest, over
from kmixup.memory import has_memory
from kmixup.mixed import Draw, Mixed
from kmixup.mixer import Mixer
from kmixup.mixing import Mixing
from kmixup.randomness import device_of

ChoicePer = Literal["batch", "sample"]


class Choice(Mixing):
    """One of several mixers, drawn anew every time. alpha, prob and the like are theirs.

    Args:
        mixers: to choose among.
        weights: how likely each of them is, relative to the others; equal by default.
        per: "batch" draws one mixer for a batch. "sample" draws one for every sample: the
            batch is mixed with each mixer, and rows are taken from the results.
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
        if len(weights) != len(mixers):
            raise ValueError(
                f"weights must have one entry for each of the {len(mixers)} mixers, "
                f"got {len(weights)}"
            )
        total = sum(weights)
        if not (min(weights) >= 0 and 0 < total < float("inf")):
            raise ValueError(f"weights must be 0 or more, and not all 0, got {weights}")
        if per not in get_args(ChoicePer):
            raise ValueError(f"per must be one of {get_args(ChoicePer)}, got {per!r}")
        self.mixers = nn.ModuleList(mixers)
        self.odds = tuple(weight / total for weight in weights)
        self.per = per
        if per == "sample" and self.weighs:
            raise ValueError(
                'per="sample" cannot scale weights of losses over a batch, got a mixer that '
                'weighs them: use per="batch"'
            )
        doubles = any(isinstance(module, Mixer) and module.clean for module in self.modules())
        if per == "sample" and (doubles or self.penalises):
            raise ValueError(
                'per="sample" takes rows from mixed batches of one length and no penalty, got a '
                f'mixer with a {"clean batch" if doubles else "penalty"}: use per="batch"'
            )
        if per == "sample" and any(
            isinstance(module, Mixer) and module.interpolation.joint for module in self.modules()
        ):
            raise ValueError(
                'per="sample" takes rows from batches of mixed pairs, got a mixer that mixes more '
                'than two samples: use per="batch"'
            )
        if per == "sample" and has_memory(self):
            raise ValueError(
                'per="sample" takes all partners from one batch, got a mixer with a memory: '
                'use per="batch"'
            )
        if self.rests and not all(mixer.rests for mixer in self._mixers()):
            raise ValueError(
                "mixers must agree on what an unmixed sample looks like, got some that change "
                "it and some that do not: choose among mixers that stack, or among the others"
            )
        stages = [module.interpolation for module in self.modules() if isinstance(module, Mixer)]
        if self.rests and (unlike := [stage for stage in stages if stage != stages[0]]):
            raise ValueError(
                "mixers must agree on what an unmixed sample looks like, got "
                f"{stages[0]} and {unlike[0]}: choose among mixers that stack alike"
            )
        for module in self.modules():
            if isinstance(module, Mixing) and module.generator is None:
                module._source = self._source

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("k", "alpha"):
            raise AttributeError(
                f"a Choice has no {name} of its own: set that of its mixers, "
                f"e.g. choice.mixers[0].{name}"
            )
        super().__setattr__(name, value)

    @property
    def weighs(self) -> bool:
        return any(mixer.weighs for mixer in self.mixers)

    @property
    def penalises(self) -> bool:
        return any(mixer.penalises for mixer in self._mixers())

    @property
    def rests(self) -> bool:
        return any(mixer.rests for mixer in self._mixers())

    def rest(self, x: Nest) -> Nest:
        return self._mixers()[0].rest(x)

    def sample(self, n: int, *, within: bool = True) -> Draw:
        if not self.training:
            return replace(Draw.idle(n), choices=(0,) * self._depth())
        generator = self._source.here()
        odds = torch.tensor(self.odds, device=device_of(generator))
        if self.per == "sample":
            part = odds.multinomial(n, replacement=True, generator=generator)
            parts = tuple(mixer.sample(n, within=within) for mixer in self._mixers())
            return replace(Draw.idle(n), parts=parts, part=part.cpu())
        chosen = int(odds.multinomial(1, generator=generator))
        draw = self._mixers()[chosen].sample(n, within=within)
        return replace(draw, choices=(chosen, *draw.choices))

    @eager
    def mix(self, x: Nest, y: Nest, draw: Draw, **beside: Unpack[Beside]) -> Mixed:
        """Mix a batch with the mixer, or mixers, that `draw` has chosen."""
        if draw.part is None:
            chosen, *rest = draw.choices
            draw = replace(draw, choices=tuple(rest))
            return self._mixers()[chosen].mix(x, y, draw, **beside)
        mixed = [
            mixer.mix(x, y, part, **beside)
            for mixer, part in zip(self._mixers(), draw.parts, strict=True)
        ]
        return _by_sample(mixed, draw.part)

    def remember(self, x: Nest, y: Nest, **known: Unpack[Known]) -> None:
        for mixer in self._mixers():
            mixer.remember(x, y, **known)

    def _mixers(self) -> list[Mixing]:
        return [cast(Mixing, mixer) for mixer in self.mixers]

    def _depth(self) -> int:
        """How many choices it takes to reach the first mixer."""
        first = self._mixers()[0]
        return 1 + (first._depth() if isinstance(first, Choice) else 0)

    def __repr__(self) -> str:
        mixers = (
            f"{odds:.3g}: {mixer}" for odds, mixer in zip(self.odds, self.mixers, strict=True)
        )
        seeded = "" if self.generator is None else ", generator=torch.Generator()"
        return f"Choice({', '.join(mixers)}{seeded})"


def _by_sample(results: Sequence[Mixed], part: Tensor) -> Mixed:
    """Row i of `results[part[i]]`, for every i."""
    n = len(part)

    def chosen(*entries: object) -> object:
        if not isinstance(entries[0], Tensor) or entries[0].dim() == 0:
            return entries[0]
        rows = entries[0].clone()
        for number, entry in enumerate(entries):
            index = (part == number).nonzero().squeeze(1).to(rows.device)
            rows[index] = cast(Tensor, entry).index_select(0, index).to(rows.dtype)
        return rows

    def every(value: Callable[[Mixed], Tensor]) -> Tensor:
        return cast(Tensor, chosen(*(value(result) for result in results)))

    empty = torch.zeros(4, dtype=torch.long)
    boxed = any(result.box is not None for result in results)
    sides = [
        None
        if results[0].targets[i] is None
        else over(chosen, *(result.targets[i] for result in results))
        for i in (0, 1)
    ]
    return Mixed(
        over(chosen, *(result.x for result in results)),
        (sides[0], sides[1]),
        every(lambda result: result.partner),
        every(lambda result: result.lam.to(part.device).expand(n)),
        results[0].num_classes,
        results[0].features,
        box=every(lambda result: (empty if result.box is None else result.box.cpu()).expand(n, 4))
        if boxed
        else None,
        ignore_index=results[0].ignore_index,
    )
