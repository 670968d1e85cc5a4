"""The stages composed: pairing, coefficient, interpolation, targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import index
from typing import Any, Literal, get_args

import torch
from torch import Generator, Tensor
from torch.utils import _pytree as pytree

from kmixup.blocks import Blocks
from kmixup.coefficient import Coefficient
from kmixup.compiling import eager
from kmixup.inputs import (
    Features,
    Importance,
    Nest,
    batch_length,
    check_batch,
    check_nests_alike,
    computed_features,
    features_of_both,
    importance_of_both,
    matched_features,
    mixed_entries,
    over,
    pairs_over,
)
from kmixup.interpolation import Collage, Interpolation, Mask, Pair, Where, rows_of
from kmixup.memory import Memory, Side
from kmixup.mixed import Draw, Mixed, beside_clean, pair_distance
from kmixup.mixing import Mixing
from kmixup.pairing import Pairing
from kmixup.randomness import device_of, uniforms
from kmixup.targets import Locality, check_targets, ignored_in_both

LamPer = Literal["batch", "block", "sample"]


class Mixer(Mixing):
    """A pairing, a coefficient and an interpolation: what every mixing method is made of.

    Args:
        pairing: who with whom, e.g. `Optimal(k=16)`.
        coefficient: how much, e.g. `Beta(alpha=1.0)`.
        interpolation: how, e.g. `Linear()` or `Cut()`.
        num_classes: needed to mix integer targets, which become one-hot. Where the targets
            are a nest, one number for all of them, or a nest of numbers like it.
        ignore_index: the class index of what does not count, such as 255 in segmentation masks.
            What is ignored in a sample or in its partner is ignored in the mixed one.
        lam_per: one lam for each "batch", "block" of k, or "sample".
        prob: the chance that a batch is mixed at all.
        locality: weights of the losses `(n,)` from the match distances `(n,)`; they are
            scaled to mean 1. Only `Mixed.loss` knows of them: such a mixer is used by
            `draw` and refuses to be called.
        clean: put the clean batch below the mixed one, so that n samples make 2n. A batch that
            is not mixed is not doubled.
        memory: the number of samples of earlier batches to keep, or a `Memory`. A batch is filled
            up with some of them, drawn anew every time, to a multiple of k and to 2k at least, so
            that whole blocks of k are matched. Only the samples of the batch itself come out mixed;
            their partners may come from the memory. It must hold 2k samples or more.
        generator: source of all randomness, torch's global one by default. In the workers of
            a data loader it starts anew, from its state and the seed of the worker. Processes
            of a distributed job need generators with different seeds: with one seed all of
            them draw the same lam.

    Nothing is ever changed in place. What is drawn does not depend on alpha or prob, so
    that runs which differ in these alone pair the same samples. `k`, `alpha` and `prob`
    can be set between batches, for a schedule.

    >>> from kmixup import Beta, Linear, Nearest
    >>> mix = Mixer(Nearest(k=4), Beta(1.0), Linear(), num_classes=3)
    >>> x, y = mix(torch.randn(16, 5), torch.randint(3, (16,)))
    """

    def __init__(
        self,
        pairing: Pairing,
        coefficient: Coefficient,
        interpolation: Interpolation,
        *,
        num_classes: Nest = None,
        ignore_index: int | None = None,
        lam_per: LamPer = "batch",
        prob: float = 1.0,
        locality: Locality | None = None,
        clean: bool = False,
        memory: int | Memory | None = None,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(generator)
        for name, stage, kind, example in (
            ("pairing", pairing, Pairing, "Optimal(k=16)"),
            ("coefficient", coefficient, Coefficient, "Beta(1.0)"),
            ("interpolation", interpolation, Interpolation, "Linear()"),
        ):
            if not isinstance(stage, kind):
                raise TypeError(f"{name} must be a {kind.__name__}, got {stage!r}: use {example}")
        if isinstance(num_classes, (str, float)):
            raise TypeError(f"num_classes must be a whole number, got {num_classes!r}: use an int")
        if hasattr(num_classes, "__index__"):  # a number of numpy or of torch
            num_classes = index(num_classes)
        if isinstance(num_classes, int) and num_classes < 1:
            raise ValueError(f"num_classes must be at least 1, got {num_classes}")
        whole = hasattr(ignore_index, "__index__") and not isinstance(ignore_index, bool)
        if ignore_index is not None and not whole:
            raise TypeError(
                f"ignore_index must be a whole number, got {ignore_index!r}: use an int"
            )
        if lam_per not in get_args(LamPer):
            raise ValueError(f"lam_per must be one of {get_args(LamPer)}, got {lam_per!r}")
        self.pairing = pairing
        self.coefficient = coefficient
        self.interpolation = interpolation
        self.num_classes = num_classes
        self.ignore_index = None if ignore_index is None else index(ignore_index)
        self.lam_per = lam_per
        self.prob = prob
        self.locality = locality
        self.clean = clean
        self.memory = memory if isinstance(memory, Memory) or memory is None else Memory(memory)
        self._check_memory(self.k)
        for name, given in (("memory", memory), ("ignore_index", ignore_index)):
            if interpolation.joint and given is not None:
                raise ValueError(
                    f"{name} must go with a method that mixes pairs, got {interpolation}, which "
                    "mixes more than two samples: leave it out"
                )

    def _check_memory(self, k: int) -> None:
        if self.memory is not None and self.memory.size < 2 * k:
            raise ValueError(
                f"memory must hold at least 2k = {2 * k} samples, got {self.memory.size}: raise "
                "memory or lower k"
            )

    @property
    def k(self) -> int:
        """The number of samples in a block."""
        return self.pairing.k

    @k.setter
    def k(self, k: int) -> None:
        self._check_memory(k)
        self.pairing = replace(self.pairing, k=k)

    @property
    def alpha(self) -> float:
        """The parameter of lam ~ Beta(alpha, alpha)."""
        return float(self._law().alpha)

    @alpha.setter
    def alpha(self, alpha: float) -> None:
        self.coefficient = replace(self._law(), alpha=alpha)

    def _law(self) -> Any:
        if not hasattr(self.coefficient, "alpha"):
            raise AttributeError(
                f"alpha is of the coefficient Beta, this mixer has {self.coefficient}: set "
                "mixer.coefficient"
            )
        return self.coefficient

    @property
    def prob(self) -> float:
        """The chance that a batch is mixed at all."""
        return self._prob

    @prob.setter
    def prob(self, prob: float) -> None:
        if not isinstance(prob, (int, float)) or not 0 <= prob <= 1:
            raise ValueError(f"prob must be a probability in [0, 1], got {prob!r}")
        self._prob = prob

    @property
    def weighs(self) -> bool:
        return self.locality is not None

    @property
    def rests(self) -> bool:
        return type(self.interpolation).rest is not Interpolation.rest

    def rest(self, x: Nest) -> Nest:
        if not self.rests:
            return x
        mixes, rest = self.interpolation.mixes, self.interpolation.rest
        return over(lambda entry: rest(entry) if entry is x or mixes(entry) else entry, x)

    def sample(self, n: int, *, within: bool = True) -> Draw:
        if not self.training:
            return Draw.idle(n)
        generator = self._source.here()
        coin = torch.rand((), generator=generator, device=device_of(generator))
        pairing, whole, fill = self.pairing, n, None
        if self.memory is not None:
            fill = self.memory.draw(n, self.k, within=within, generator=generator)
            whole = n if fill is None else n + fill.shape[1]
            # as long as the memory holds too little, blocks are as large as they can be
            pairing = replace(pairing, k=max(1, min(self.k, whole // 2 if within else whole)))
        blocks = pairing.draw(whole, within=within, generator=generator)
        size = self._size(blocks, n)
        u = uniforms(size, generator)
        return Draw(float(coin), blocks, u, self.interpolation.sample(size, generator), fill)

    def remember(
        self,
        x: Nest,
        y: Nest,
        *,
        features: Features | None = None,
        importance: Importance | None = None,
    ) -> None:
        if self.memory is None or not self.training:
            return
        mixes = self.interpolation.mixes
        check_batch(x, y, "x", "y", mixes=mixes)
        if isinstance(features, (tuple, list)):  # of two batches, of which this is the first
            features = features[0]
        if isinstance(importance, (tuple, list)):
            importance = importance[0]
        own, _ = self._sides(x, y, None, features, importance)
        self.memory.add(own.rows(mixes))

    @eager
    def mix(
        self,
        x: Nest,
        y: Nest,
        draw: Draw,
        *,
        other: tuple[Nest, Nest] | None = None,
        features: Features | None = None,
        importance: Importance | None = None,
    ) -> Mixed:
        mixes, interpolation = self.interpolation.mixes, self.interpolation
        n = check_batch(x, y, "x", "y", mixes=mixes)
        check_targets(y, self.num_classes)
        if other is not None:
            self._check_other(x, y, other)
        paired = other is not None
        entries = mixed_entries(x, "x", mixes)
        if entries[0].is_meta:
            raise ValueError("x must hold values to be matched, got a meta tensor: load it first")
        if self.idles(n, draw, paired=paired):
            features = None if callable(features) else features
            first = matched_features(
                x, features_of_both(features, paired=paired)[0], n=n, mixes=mixes
            )
            lam = torch.ones(() if self.lam_per == "batch" else n, dtype=_precision(entries))
            itself = torch.arange(n, device=first.device)
            rest = self.rest(x)
            return Mixed(
                rest, (y, y), itself, lam, self.num_classes, (first, first), self.locality,
                ignore_index=self.ignore_index,
            )  # fmt: skip

        self._check_draw(draw, n, within=not paired)
        own, their = self._sides(x, y, other, features, importance)
        if draw.fill is not None:
            own, their = self._filled(own, their, draw.fill)
        first = matched_features(own.x, own.features, n=draw.blocks.n, mixes=mixes)
        second = first
        if their is not own:
            second = matched_features(their.x, their.features, n=draw.blocks.n, mixes=mixes)
        targets_of_both = self._compared(own.y, their.y) if self.pairing.by_targets else None
        partner = self.pairing.partners(
            first, second if paired else None, draw.blocks, targets_of_both
        )
        if draw.fill is not None:
            first, partner = first[:n], partner[:n]
        distance = pair_distance(first, second, partner) if self.coefficient.by_distance else None
        others = entries if their.x is x else mixed_entries(their.x, "the inputs of other", mixes)
        weights = None
        if own.importance is not None and their.importance is not None:
            weights = own.importance[:n], their.importance
        lam, where = self._settle(draw, Pair(entries, others, partner, weights), distance)

        def mixed(entry: Any, counterpart: Any) -> Any:
            if entry is not x and not mixes(entry):
                return entry
            return interpolation(entry, counterpart, partner, lam, where)

        def targets(own: Tensor, their: Tensor) -> tuple[Tensor, Tensor]:
            sides = interpolation.targets(own, rows_of(their, partner), where, entries)
            return ignored_in_both(*sides, self.ignore_index)

        result = Mixed(
            over(mixed, x, their.x), pairs_over(targets, y, their.y), partner, lam,
            self.num_classes, (first, second), self.locality,
            box=where if isinstance(where, Tensor) else None,
            mask=where if isinstance(where, Mask) else None,
            shares=where.shares.to(lam) if isinstance(where, Collage) else None,
            ignore_index=self.ignore_index,
        )  # fmt: skip
        return beside_clean(result, self.rest(x), y) if self.clean else result

    def _sides(
        self,
        x: Nest,
        y: Nest,
        other: tuple[Nest, Nest] | None,
        features: Features | None,
        importance: Importance | None,
    ) -> tuple[Side, Side]:
        """The batch, and the batch that holds the partners."""
        paired = other is not None
        features = computed_features(features, x, other)
        matched = features_of_both(features, paired=paired)
        both = importance_of_both(importance, n=batch_length(x), paired=paired)
        weights = (None, None) if both is None else both
        own = Side(x, y, self._kept(matched[0], x), weights[0])
        if other is None:
            return own, own
        return own, Side(*other, self._kept(matched[1], other[0]), weights[1])

    def _kept(self, features: Features | None, x: Nest) -> Features | None:
        """Features as a memory must keep them: the values of an entry that is not mixed."""
        if self.memory is None or features is None:
            return features
        mixes = self.interpolation.mixes
        values = matched_features(x, features, n=batch_length(x), mixes=mixes)
        named = isinstance(features, (str, int))
        kept = named and any(map(mixes, pytree.tree_leaves(x[features])))
        return values if named and not kept else features

    def _filled(self, own: Side, their: Side, fill: Tensor) -> tuple[Side, Side]:
        """Both sides with the samples of the memory below their own."""
        if self.memory is None or fill.max() >= len(self.memory):
            held = 0 if self.memory is None else len(self.memory)
            raise ValueError(
                f"draw takes samples from a memory of {int(fill.max()) + 1} or more, this mixer "
                f"has {held}: use the sample of the same mixer"
            )
        mixes = self.interpolation.mixes
        filled = own.filled(self.memory, fill[0], mixes)
        return filled, filled if their is own else their.filled(self.memory, fill[1], mixes)

    def idles(self, n: int, draw: Draw, *, paired: bool) -> bool:
        """Whether a batch of `n` stays unmixed, alone or `paired` with another batch.

        A single sample needs a partner from another batch or from the memory.
        """
        alone = n < 2 and not paired and draw.fill is None
        return alone or not (self.training and draw.coin < self.prob and self.coefficient.mixes)

    def _settle(self, draw: Draw, pair: Pair, distance: Tensor | None) -> tuple[Tensor, Where]:
        """lam and where to mix: once on the CPU, or a row per sample on the inputs' device."""
        u, spot, index = draw.u, draw.spot, self._rows(draw)
        if distance is not None:  # pairs that share a quantile differ in lam all the same
            u = self._each(u, draw)
            spot = None if spot is None else self._each(spot, draw)
            lam = self.coefficient.lam(u, distance.to(u))
        else:
            lam = self.coefficient.lam(u)
            if index is not None:
                lam, spot = lam.cpu()[index], None if spot is None else spot.cpu()[index]
        lam, where = self.interpolation.settle(lam, spot, pair)
        device = torch.device("cpu") if lam.dim() == 0 else pair.samples[0].device
        where = where.to(device) if isinstance(where, Tensor) else where
        return lam.to(device, _precision(pair.samples)), where

    def _compared(self, y: Nest, y2: Nest) -> tuple[Tensor, Tensor]:
        """Targets that the pairing compares."""
        if not isinstance(y, Tensor):
            raise TypeError(
                f"{self.pairing} compares targets, so y must be one tensor, got "
                f"{type(y).__name__}: use labels=0, or pass one of the targets"
            )
        return y, y2

    def _size(self, blocks: Blocks, n: int) -> tuple[int, ...]:
        """How many lam there are for a batch of `n`."""
        if self.lam_per == "batch":
            return () if blocks.batches == 1 else (blocks.batches,)
        return (blocks.count if self.lam_per == "block" else n,)

    def _rows(self, draw: Draw) -> Tensor | None:
        """Which lam each sample has, `(n,)`; None where there is one, or one for each."""
        blocks = draw.blocks
        if self.lam_per == "block":
            return torch.from_numpy(blocks.index()[: draw.n])
        if self.lam_per == "batch" and blocks.batches > 1:
            return torch.arange(blocks.n) // blocks.length
        return None

    def _each(self, drawn: Tensor, draw: Draw) -> Tensor:
        """What was drawn for each lam, as one row for each sample."""
        if (index := self._rows(draw)) is not None:
            return drawn.cpu()[index]
        return drawn.expand(draw.n, *drawn.shape) if self.lam_per == "batch" else drawn

    def _check_draw(self, draw: Draw, n: int, *, within: bool) -> None:
        blocks = draw.blocks
        if draw.n != n:
            raise ValueError(
                f"draw must be of a batch of {n}, got one of {draw.n}: use sample({n})"
            )
        if within != (blocks.order is not None):
            raise ValueError(
                "draw was sampled across two batches: pass other, or use sample(n)" if within else
                "draw was sampled within a batch: leave out other, or use sample(n, within=False)"
            )  # fmt: skip
        if tuple(draw.u.shape) != (size := self._size(blocks, n)):
            raise ValueError(
                f"draw must have quantiles of shape {size} for lam_per={self.lam_per!r}, "
                f"got {tuple(draw.u.shape)}: use the sample of the same mixer"
            )

    def _check_other(self, x: Nest, y: Nest, other: tuple[Nest, Nest]) -> None:
        if not isinstance(other, (tuple, list)) or len(other) != 2:
            raise TypeError(
                f"other must be a pair (x2, y2), got {type(other).__name__}: pass the second batch "
                "with its targets"
            )
        x2, y2 = other
        names = "the inputs of other", "the targets of other"
        check_batch(x2, y2, *names, mixes=self.interpolation.mixes)
        check_nests_alike(x, x2, "x", names[0])
        if y is not None or y2 is not None:
            check_nests_alike(y, y2, "y", names[1])

    def __repr__(self) -> str:
        stages = f"{self.pairing} -> {self.coefficient} -> {self.interpolation}"
        settings = f"num_classes={self.num_classes}, lam_per={self.lam_per!r}, prob={self.prob}"
        if self.ignore_index is not None:
            settings += f", ignore_index={self.ignore_index}"
        local = "" if self.locality is None else f", locality={self.locality}"
        local += ", clean=True" if self.clean else ""
        local += "" if self.memory is None else f", memory={self.memory}"
        seeded = "" if self.generator is None else ", generator=torch.Generator()"
        return f"{type(self).__name__}({stages}, {settings}{local}{seeded})"


def _precision(entries: Sequence[Tensor]) -> torch.dtype:
    """The precision of lam: that of the inputs, but never coarser than float32."""
    return torch.promote_types(entries[0].dtype, torch.float32)
