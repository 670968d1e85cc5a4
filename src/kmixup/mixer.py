"""Mixers: `Mixing`, the base class of all of them, and `Mixer`, which composes the stages."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict, Unpack, get_args

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.utils import _pytree as pytree

from kmixup._batch import Batch, Extras, Features, Importance
from kmixup._checks import check_choice, check_probability, check_whole
from kmixup._compiling import eager
from kmixup._nests import Keys, Nest, mixed_entries, over, over_packed, pairs_over
from kmixup._randomness import Resumable, Source
from kmixup.coefficient import Coefficient
from kmixup.interpolation import Interpolation, Pair, Region
from kmixup.matching import LamPer, Pairing, warn_short
from kmixup.matching._assignment import pair_distances
from kmixup.mixed import Draw, Mixed, PairDraw, Unmixed
from kmixup.targets import TargetType, check_targets, ignored_in_both

FLAGS = ("needs_loss", "encodes_clean", "has_memory", "learns")  # which wrappers take over


class DrawOptions(TypedDict, total=False):
    """The optional arguments of `Mixing.draw`, which wrappers hand on."""

    within: bool
    source: Source | None


class Mixing(Resumable, ABC):
    """Base class of all mixers: `Mixer` and the wrappers around mixers.

    `draw` makes all random draws without reading the data. `mix` returns a `Mixed` record, which
    depends only on the batch, the draw and the memory of a `Memory`; without a draw it makes one. A
    call returns mixed inputs and soft targets, unchanged ones in `.eval()` mode.

    Your own mixer implements `draw_batch` and `mix_batch`, or extends `Mixer` or `Wrapper`.

    Attributes:
        generator: source of all randomness, torch's global one if None. Its state is part of
            `state_dict()`, so that a resumed run continues with the same draws. Where
            torch.distributed is initialized, ranks with the same seed draw differently.
        needs_loss: whether `Mixed.loss` must be used, because it has weights or a penalty.
        encodes_clean: whether clean inputs must pass through `encode_clean` for the network.
        has_memory: whether a `Memory` inside keeps batches.
        learns: whether it is trained with the network, on the network's inputs.
        targets: the types of targets that were given, see `Mixer`.

    >>> from kmixup import Choice, CutMix, KMixup
    >>> mix: Mixing = Choice([KMixup(k=4), CutMix(k=4)])
    >>> x, y = mix(torch.rand(16, 3, 8, 8), torch.rand(16))
    """

    needs_loss: bool = False
    encodes_clean: bool = False
    has_memory: bool = False
    learns: bool = False
    targets: Nest = None

    def forward(
        self, x: Nest, y: Nest = None, *, keys: Keys | None = None, **extras: Unpack[Extras]
    ) -> tuple[Nest, Nest] | Nest:
        """Return mixed inputs and soft targets, in the structure of `x` and `y`.

        If the loss needs more than soft targets, as in `LocalMixup`, this raises a ValueError: use
        `mix`.

        Args:
            x: inputs, or with `keys` a whole batch as a loader collates it: a tuple, a list or a
                mapping, which is returned as its own type, with all other entries unchanged.
            y: targets; leave them out with `keys`.
            keys: where inputs and targets are in a batch, e.g. `(0, 1)` or `("image", "label")`; a
                tuple in place of a key leads into nested batches. With None in place of the second
                key, only inputs are mixed.
            extras: the other arguments of `mix`.
        """
        if keys is not None:
            if y is not None:
                raise ValueError(f"y must be left out with keys={keys!r}, which name the targets")
            return over_packed(partial(self.forward, **extras), x, keys)
        if not self.training:
            return self.encode_clean(x), y
        return self._softly(x, y, **extras)

    @eager
    def _softly(self, x: Nest, y: Nest, **extras: Unpack[Extras]) -> tuple[Nest, Nest]:
        """Return mixed inputs and soft targets."""
        if self.needs_loss:
            self.check_targets_suffice()
        mixed = self.mix(x, y, **extras)
        return mixed.x, mixed.y

    @eager
    def mix(
        self,
        x: Nest,
        y: Nest = None,
        draw: Draw | None = None,
        *,
        other: tuple[Nest, Nest] | None = None,
        features: Features | None = None,
        importance: Importance | None = None,
    ) -> Mixed:
        """Mix a batch and return a `Mixed` record.

        Args:
            x: floating-point inputs `(n, ...)`, a tensor or a nest of tensors. Other entries
                of a nest, such as integers and strings, are passed through. `Cut` also takes
                integer images, and matches them as if they were floats.
            y: targets `(n, ...)` of the types in `Mixer`, or a nest of them; with None only
                inputs are mixed.
            draw: the random draws, from this mixer's `draw(n)`; made here by default.
            other: a second, independent batch `(x2, y2)` to take the partners from,
                as in the paper; without it partners come from the same batch.
            features: what to match on, all of `x` by default: the key of an entry of `x`, a tensor
                `(n, ...)`, two of them with `other`, or a function of `x` such as `net.embed`,
                which runs without gradient, a network in eval mode.
            importance: how much each pixel matters, `(n, height, width)`, or two of them
                with `other`; for methods that mix by it. `kmixup.saliency` computes it.

        Returns:
            Mixed inputs and targets, partners, lam and distances, with `loss` and `accuracy`.

        Raises:
            TypeError, ValueError: if the batch has a dtype, shape or value that cannot be mixed.
        """
        batch = Batch.of(
            x, y, other=other, features=features, importance=importance, targets=self.targets,
            mixes=self.mixes, matched=self.training,
        )  # fmt: skip
        if draw is None:
            within, n = other is None, batch.n
            if self.training and n < 2 * self.block_size:
                warn_short(n, self.block_size, within=within)
            entry = x if isinstance(x, Tensor) else mixed_entries(x, self.mixes)[0]
            draw = self.draw(n, tuple(entry.shape[1:]), within=within)
        mixed = self.mix_batch(batch, draw)
        if self.has_memory:
            for mixer in mixers_in(self):
                mixer.remember(batch)
        return mixed

    def draw(
        self,
        n: int,
        shape: tuple[int, ...] = (),
        *,
        within: bool = True,
        source: Source | None = None,
    ) -> Draw:
        """Return all random draws for a batch, to pass to `mix`.

        The batch stays unmixed where the draw's `mixes` is False.

        Args:
            n: the number of samples.
            shape: the shape of one input, for interpolations that need it.
            within: whether partners come from the same batch, or from a second one.
            source: of the draws, in place of the mixer's own.
        """
        given: object = n
        if not isinstance(given, (int, np.integer)):
            raise TypeError(
                f"n must be the number of samples, got {type(given).__name__}: to mix a batch, use "
                "mix(x, y)"
            )
        if not self.training:
            return Draw()
        source = self._source.of_rank() if source is None else source
        return self.draw_batch(int(n), shape, within=within, source=source)

    @abstractmethod
    def draw_batch(self, n: int, shape: tuple[int, ...], **options: Unpack[DrawOptions]) -> Draw:
        """Return what `draw` does in training; `n`, `shape` and `options` are its arguments."""

    @abstractmethod
    def mix_batch(self, batch: Batch, draw: Draw) -> Mixed:
        """Return a checked `batch` mixed with a `draw` of this mixer, or unmixed for `Draw()`."""

    @abstractmethod
    def mixes(self, entry: object) -> bool:
        """Return whether an `entry` of a nest is mixed; the others are passed through."""

    @property
    @abstractmethod
    def block_size(self) -> int:
        """The largest k; shorter batches than twice that are matched in smaller blocks."""

    def remember(self, batch: Batch) -> None:
        """Keep a `batch` that has been mixed, as `Memory` does."""

    def encode_clean(self, x: Nest) -> Nest:
        """Return clean inputs `x` as the network must see them, in evaluation too."""
        return x

    def check_targets_suffice(self) -> None:
        """Raise if the loss needs more than mixed targets."""
        if self.needs_loss:
            raise ValueError(
                "mixed targets cannot carry the weights or the penalty of this mixer's loss: use "
                'mix, and m.loss(criterion with reduction="none", logits).mean()'
            )


class Mixer(Mixing):
    """A pairing, a coefficient and an interpolation: what every mixing method is made of.

    Nothing is changed in place. Draws do not depend on alpha or prob. `k`, `alpha` and `prob` can
    be set between batches.

    Args:
        pairing: the partner of each sample, e.g. `Optimal(k=16)`.
        coefficient: the distribution of lam, e.g. `Beta(alpha=1.0)`.
        interpolation: how pairs are combined, e.g. `Linear()` or `Cut()`.
        num_classes: needed to mix integer targets, which become one-hot. For a nest of targets,
            one number for all of them, or a nest of numbers like it.
        targets: the types of targets, one for all or a nest like `y`: "classes" (integers),
            "soft" (one-hot or multi-label rows), "regression", "map" and "dense" (classes and
            floats laid out like the image, pasted with a region) or "pass" (unmixed). Types that
            are not given follow from dtype and shape, as in [Targets](../guide/targets.md).
        ignore_index: the class index of what does not count, such as 255 in segmentation masks.
            What is ignored in a sample or in its partner is ignored in the mixed one.
        lam_per: one lam for each "batch", "block" of k, or "sample".
        prob: the probability that a batch is mixed at all.
        generator: source of all randomness, torch's global one by default. Loader workers reseed
            it from the worker's seed. Ranks of a distributed job may share a seed.

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
        targets: Nest = None,
        ignore_index: int | None = None,
        lam_per: LamPer = "batch",
        prob: float = 1.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(generator)
        for stage, kind, example in (
            (pairing, Pairing, "Optimal(k=16)"),
            (coefficient, Coefficient, "Beta(1.0)"),
            (interpolation, Interpolation, "Linear()"),
        ):
            if not isinstance(stage, kind):
                name = kind.__name__
                raise TypeError(f"{name.lower()} must be a {name}, got {stage!r}: use {example}")
        check_choice("lam_per", lam_per, get_args(LamPer))
        if not isinstance(num_classes, (dict, list, tuple)) and num_classes is not None:
            num_classes = check_whole("num_classes", num_classes)
        if ignore_index is not None:
            ignore_index = check_whole("ignore_index", ignore_index, least=None)
        self.pairing = pairing
        self.coefficient = coefficient
        self.interpolation = interpolation
        for given in pytree.tree_leaves(targets):
            if given is not None:
                check_choice("targets", given, get_args(TargetType))
        self.num_classes = num_classes
        self.targets = targets
        self.ignore_index = ignore_index
        self.lam_per = lam_per
        self.prob = prob

    @property
    def k(self) -> int:
        """The number of samples in a block."""
        return self.pairing.k

    @k.setter
    def k(self, k: int) -> None:
        self.pairing = replace(self.pairing, k=k)

    @property
    def alpha(self) -> float:
        """The parameter of lam ~ Beta(alpha, alpha)."""
        return float(self.coefficient.alpha)  # type: ignore[attr-defined]

    @alpha.setter
    def alpha(self, alpha: float) -> None:
        if not hasattr(self.coefficient, "alpha"):
            raise AttributeError(
                f"alpha is a parameter of Beta, this mixer has {self.coefficient}: set "
                "mixer.coefficient"
            )
        self.coefficient = replace(self.coefficient, alpha=alpha)  # type: ignore[type-var]

    @property
    def prob(self) -> float:
        """The probability that a batch is mixed at all."""
        return self._prob

    @prob.setter
    def prob(self, prob: float) -> None:
        self._prob = check_probability("prob", prob)

    def draw_batch(self, n: int, shape: tuple[int, ...], **options: Unpack[DrawOptions]) -> Draw:
        source = options["source"] = options.get("source") or self._source
        mixed = source.coin() < self._prob
        blocks = self.pairing.draw(n, **options)
        u = source.quantiles(blocks.lam_shape(self.lam_per))
        spot = self.interpolation.draw(u.numel(), shape, source.here())
        return PairDraw(blocks, u, spot) if mixed else Draw()

    def mixes(self, entry: object) -> bool:
        return self.interpolation.mixes(entry)

    @property
    def block_size(self) -> int:
        return self.pairing.k

    def mix_batch(self, batch: Batch, draw: Draw) -> Mixed:
        for y in (batch.y,) if batch.other is None else (batch.y, batch.other[1]):
            given = self.targets is not None
            check_targets(y, batch.types, self.num_classes, self.ignore_index, numbers=given)
        pairs = PairDraw.of(draw)
        if pairs is None or not self.training or not self.coefficient.mixes:
            return self.unmixed(batch)
        blocks, within = pairs.blocks, batch.other is None
        if blocks.n < 2 and within:  # no partner
            return self.unmixed(batch)
        n = mixed_entries(batch.x, self.interpolation.mixes)[0].shape[0]
        if blocks.n != n:
            raise ValueError(
                f"draw must be for a batch of {n}, got one for {blocks.n}: use draw({n})"
            )
        if within != (blocks.order is not None) or pairs.u.shape != blocks.lam_shape(self.lam_per):
            raise ValueError(
                f"draw must be from this mixer's draw(n, within={within}), got one for other "
                "batches or another lam_per"
            )
        return self.mix_pairs(batch, pairs)

    def mix_pairs(self, batch: Batch, draw: PairDraw) -> Mixed:
        """Return a `batch` mixed with a `draw`, unless it stays unmixed; methods extend this."""
        n, x, y, interpolation = batch.n, batch.x, batch.y, self.interpolation
        other_x, other_y = (x, y) if batch.other is None else batch.other
        points = batch.points(interpolation.mixes)
        partner = batch.partners(self.pairing, draw.blocks, points, interpolation.mixes)
        whole = partner.shape[0] == n and batch.other is None  # partners are samples of this batch
        partner = partner if whole else partner.narrow(0, 0, n)
        samples = others = mixed_entries(x, interpolation.mixes)
        if not whole:
            samples = [entry.narrow(0, 0, n) for entry in samples]
            others = mixed_entries(other_x, interpolation.mixes)
        name = type(interpolation if type(self) is Mixer else self).__name__
        pair = Pair(samples, others, partner, batch.importance, name)
        distance = pair_distances(*points, partner) if self.coefficient.by_distance else None
        lam, region = self._settle(draw, pair, distance)

        def mixed(entry: Any, counterpart: Any) -> Any:
            if entry is not x and not interpolation.mixes(entry):
                return entry
            own = entry if whole else entry.narrow(0, 0, n)
            return interpolation(own, counterpart, partner, lam, region)

        def both(own: Tensor, their: Tensor, kind: TargetType | None) -> tuple[Tensor, Tensor]:
            if kind == "pass":
                return own, own
            their = their.index_select(0, partner.to(their.device))
            own = own if whole else own.narrow(0, 0, n)
            sides = interpolation.targets(own, their, kind, region, pair)
            if self.ignore_index is None:
                return sides
            return ignored_in_both(*sides, self.ignore_index)

        return Mixed(
            mixed(x, other_x) if isinstance(x, Tensor) else over(mixed, x, other_x),
            both(y, other_y, batch.types)
            if isinstance(y, Tensor)
            else pairs_over(both, y, other_y, batch.types),
            partner, lam, region, self.num_classes, self.ignore_index, batch.types, points,
        )  # fmt: skip

    def unmixed(self, batch: Batch) -> Unmixed:
        """Return a `batch` unchanged: every sample is its own partner, with lam = 1."""
        n, x, y = batch.n, batch.x, batch.y
        samples = mixed_entries(x, self.mixes)
        if len(samples[0]) > n:
            x = over(lambda entry: entry[:n] if entry is x or self.mixes(entry) else entry, x)
            y = over(lambda own, kind: own if kind == "pass" else own[:n], y, batch.types)
        dtype = torch.promote_types(samples[0].dtype, torch.float32)
        lam = torch.ones((), dtype=dtype, device="cpu")
        if self.lam_per != "batch":
            lam = samples[0].new_ones(n, dtype=dtype)
        points = [part.narrow(0, 0, n) for part in batch.points(self.mixes)[0]]
        itself = torch.arange(n, device=points[0].device)
        return Unmixed(
            self.encode_clean(x), (y, y), itself, lam, None,
            self.num_classes, self.ignore_index, batch.types, (points, points),
        )  # fmt: skip

    def _settle(self, draw: PairDraw, pair: Pair, distance: Tensor | None) -> tuple[Tensor, Region]:
        """Return lam and the region: once on the CPU, or per sample on the inputs' device."""
        u, n = draw.u.cpu(), pair.partner.shape[0]
        rows: Tensor | int = 0
        dtype = torch.promote_types(pair.samples[0].dtype, torch.float32)
        if u.dim() == 0 and distance is None:
            lam = self.coefficient.lam(u)
        else:
            rows = draw.blocks.lam_index(self.lam_per)[:n]
            if distance is None:
                lam = self.coefficient.lam(u)[rows]
            else:  # pairs that share a quantile still differ in lam
                lam = self.coefficient.lam(u.view(-1)[rows], distance)
        spot = None if draw.spot is None else draw.spot.cpu()[rows]
        lam, region = self.interpolation.settle(lam, spot, pair)
        if lam.dim() == 0:
            return lam.to(dtype), region
        device = pair.samples[0].device
        return lam.to(device, dtype), region.to(device) if isinstance(region, Tensor) else region

    def __repr__(self) -> str:
        stages = f"{self.pairing} -> {self.coefficient} -> {self.interpolation}"
        settings = f"num_classes={self.num_classes}, lam_per={self.lam_per!r}, prob={self.prob}"
        if self.ignore_index is not None:
            settings += f", ignore_index={self.ignore_index}"
        seeded = "" if self.generator is None else ", generator=torch.Generator()"
        return f"{type(self).__name__}({stages}, {settings}{seeded})"


def mixers_in(part: object) -> list[Mixing]:
    """Return the mixers that a module, a function, a partial call or a loader calls."""
    inside: list[object] = []
    if isinstance(part, nn.Module):
        return [module for module in part.modules() if isinstance(module, Mixing)]
    if isinstance(part, partial):
        inside = [part.func, *part.args, *part.keywords.values()]
    elif inspect.ismethod(part):
        inside = [part.__self__]
    elif inspect.isfunction(part):
        variables = inspect.getclosurevars(part)
        inside = [*variables.nonlocals.values(), *variables.globals.values()]
        inside = [value for value in inside if isinstance(value, Mixing)]
    else:
        attributes, names = getattr(part, "__dict__", {}), ("mix", "mixer", "collate_fn", "loader")
        inside = [attributes[name] for name in names if name in attributes]
    return [mixer for value in inside for mixer in mixers_in(value)]
