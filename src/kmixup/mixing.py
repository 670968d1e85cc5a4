"""The stages composed: pairing, coefficient, interpolation, targets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

import torch
from torch import Generator, Tensor, nn
from torch.utils import _pytree as pytree

from kmixup.coefficient import Beta
from kmixup.interpolation import Interpolation
from kmixup.nests import Features, Nest, check_batch, check_nests_alike, matched_features
from kmixup.pairing import Blocks, Pairing, check_alike, eager
from kmixup.sampling import device_of
from kmixup.targets import Criterion, Locality, mix_targets, mixed_accuracy, mixed_loss

LamPer = Literal["batch", "block", "sample"]


@dataclass(frozen=True, eq=False)
class Mixed:
    """A mixed batch, and all that went into it. Row i is sample i, mixed.

    `x`: the mixed inputs; `targets`: the targets of every sample and of its partner;
    `partner`: the row of the partner, `(n,)`; `lam`: the weight of the first sample,
    a scalar or `(n,)`. Soft targets `y`, the match distances, and the weights of the
    losses where there is a `locality`, are computed on demand.
    """

    x: Nest
    targets: tuple[Tensor, Tensor]
    partner: Tensor
    lam: Tensor
    num_classes: int | None
    features: tuple[Tensor, Tensor] = field(repr=False)
    locality: Locality | None = field(default=None, repr=False)

    @cached_property
    def y(self) -> Tensor:
        """Mixed targets: one-hot classes `(n, num_classes)`, or floats interpolated."""
        return mix_targets(*self.targets, self.lam, self.num_classes)

    @cached_property
    def distance(self) -> Tensor:
        """Euclidean distance of every sample to its partner in what was matched, `(n,)`."""
        one, two = (f.reshape(len(f), -1) for f in self.features)
        dtype = torch.promote_types(one.dtype, torch.float32)
        gap = one.to(dtype) - two.index_select(0, self.partner).to(dtype)
        length: Tensor = torch.linalg.vector_norm(gap, dim=1)
        return length

    @cached_property
    def weight(self) -> Tensor | None:
        """Weights of the losses of the samples, `(n,)` with mean 1; None where all are alike.

        Where every pair of a batch is too far apart to count, all of them are 0.
        """
        if self.locality is None:
            return None
        weight = self.locality(self.distance)
        total = weight.mean()
        return weight / total if total > 0 else weight

    def loss(self, criterion: Criterion, logits: Tensor) -> Tensor:
        """weight · (lam · criterion(logits, y_a) + (1 - lam) · criterion(logits, y_b)).

        For criteria that take class indices, or are not linear in the target.
        Where lam or weight differ within the batch the criterion must not reduce,
        and the loss has one entry per sample.
        """
        return mixed_loss(criterion, logits, *self.targets, self.lam, self.weight)

    def accuracy(self, logits: Tensor) -> Tensor:
        """Agreement with the two labels, weighted by lam and 1 - lam; a scalar."""
        return mixed_accuracy(logits, *self.targets, self.lam)


class Mixing(nn.Module, ABC):
    """What mixes batches: a `Mixer`, or a `Choice` among several.

    In `.eval()` mode inputs and targets come back as they are. The state of the
    generator is part of `state_dict()`, so that a resumed run goes on as it would have.
    """

    generator: Generator | None

    @eager
    def forward(
        self,
        x: Nest,
        y: Tensor,
        *,
        other: tuple[Nest, Tensor] | None = None,
        features: Features | None = None,
    ) -> tuple[Nest, Tensor]:
        """Mixed inputs and soft targets of a batch; see `Mixer.draw` for the arguments."""
        if not self.training:
            return x, y
        self.check_unweighted()
        mixed = self.draw(x, y, other=other, features=features)
        return mixed.x, mixed.y

    @abstractmethod
    def draw(
        self,
        x: Nest,
        y: Tensor,
        *,
        other: tuple[Nest, Tensor] | None = None,
        features: Features | None = None,
    ) -> Mixed:
        """Mix a batch and keep the account of it."""

    @property
    @abstractmethod
    def weighs(self) -> bool:
        """Whether the losses of samples may have different weights."""

    def check_unweighted(self) -> None:
        """Refuse to hand out targets alone where the loss takes weights as well."""
        if self.weighs:
            raise ValueError(
                "mixed targets cannot carry the weights of local mixup, so that a loss of them "
                'would be plain mixup: use draw, and m.loss(criterion with reduction="none", '
                "logits).mean()"
            )

    def get_extra_state(self) -> Tensor:
        """State of the generator, empty without one."""
        if self.generator is None:
            return torch.empty(0, dtype=torch.uint8)
        return self.generator.get_state()

    def set_extra_state(self, state: Tensor) -> None:
        if self.generator is not None and len(state):
            self.generator.set_state(state.cpu())


class Mixer(Mixing):
    """A pairing, a coefficient and an interpolation: what every mixing method is made of.

    Args:
        pairing: who with whom, e.g. `Optimal(k=16)`.
        coefficient: how much, e.g. `Beta(alpha=1.0)`.
        interpolation: how, e.g. `Linear()` or `Cut()`.
        num_classes: needed to mix integer targets, which become one-hot.
        lam_per: one lam for each "batch", "block" of k, or "sample".
        prob: the chance that a batch is mixed at all.
        locality: weights of the losses `(n,)` from the match distances `(n,)`; they are
            scaled to mean 1. Only `Mixed.loss` knows of them: such a mixer is used by
            `draw` and refuses to be called.
        generator: source of all randomness, torch's global one by default. Its state
            is part of `state_dict()`, so that a resumed run goes on as it would have.
            Data-loader workers do better without: each has a seed of its own.

    In `.eval()` mode inputs and targets come back as they are. Nothing is ever
    changed in place. What is drawn does not depend on alpha or prob, so that runs
    which differ in these alone pair the same samples.
    """

    def __init__(
        self,
        pairing: Pairing,
        coefficient: Beta,
        interpolation: Interpolation,
        *,
        num_classes: int | None = None,
        lam_per: LamPer = "batch",
        prob: float = 1.0,
        locality: Locality | None = None,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        if num_classes is not None and num_classes < 1:
            raise ValueError(f"num_classes must be at least 1, got {num_classes}")
        if lam_per not in get_args(LamPer):
            raise ValueError(f"lam_per must be one of {get_args(LamPer)}, got {lam_per!r}")
        if not 0 <= prob <= 1:
            raise ValueError(f"prob must be a probability in [0, 1], got {prob}")
        self.pairing = pairing
        self.coefficient = coefficient
        self.interpolation = interpolation
        self.num_classes = num_classes
        self.lam_per = lam_per
        self.prob = prob
        self.locality = locality
        self.generator = generator

    @property
    def weighs(self) -> bool:
        return self.locality is not None

    @eager
    def draw(
        self,
        x: Nest,
        y: Tensor,
        *,
        other: tuple[Nest, Tensor] | None = None,
        features: Features | None = None,
    ) -> Mixed:
        """Mix a batch and keep the account of it.

        Args:
            x: floating-point inputs `(n, ...)`, a tensor or a nest of tensors. `Cut`
                takes integers too, and they are matched as if they were floats.
            y: targets `(n, ...)`; integers are classes, floats are interpolated.
            other: a second, independent batch `(x2, y2)` to take the partners from,
                as in the paper; without it partners come from the same batch.
            features: what to match on, all of `x` by default: the key of an entry of
                `x`, or a tensor `(n, ...)` such as an embedding, or two of them with
                `other`.
        """
        integers = not self.interpolation.averages
        n = check_batch(x, y, "x", "y", integers=integers)
        x2, y2 = x, y
        if other is not None:
            x2, y2 = other
            names = "the inputs of other", "the targets of other"
            check_batch(x2, y2, *names, integers=integers)
            check_nests_alike(x, x2)
            check_alike(y, y2, "y", "the targets of other")
        one, two = matched_features(x, x2, features, n=n, paired=other is not None)

        leaves = pytree.tree_leaves(x)
        mixes = self.training
        if mixes:  # all randomness first, whatever becomes of it
            coin = torch.rand((), generator=self.generator, device=device_of(self.generator))
            blocks = self.pairing.draw(n, within=other is None, generator=self.generator)
            lam, where = self._draw_lam(blocks, leaves)
            alone = n < 2 and other is None
            mixes = float(coin) < self.prob and self.coefficient.alpha > 0 and not alone
        if not mixes:
            lam = torch.ones(() if self.lam_per == "batch" else n, dtype=_precision(leaves))
            itself = torch.arange(n, device=one.device)
            return Mixed(x, (y, y), itself, lam, self.num_classes, (one, one), self.locality)

        partner = self.pairing.partners(one, None if other is None else two, blocks)
        mixed = pytree.tree_map(lambda a, b: self.interpolation(a, b, partner, lam, where), x, x2)
        targets = (y, y2.index_select(0, partner.to(y2.device)))
        return Mixed(mixed, targets, partner, lam, self.num_classes, (one, two), self.locality)

    def _draw_lam(self, blocks: Blocks, leaves: list[Tensor]) -> tuple[Tensor, Tensor | None]:
        """lam and where to mix: once on the CPU, or a row per sample on the inputs' device."""
        size = {"batch": (), "block": (blocks.count,), "sample": (blocks.n,)}[self.lam_per]
        lam = self.coefficient.sample(size, self.generator)
        lam, where = self.interpolation.draw(lam, leaves, self.generator)
        device = torch.device("cpu") if self.lam_per == "batch" else leaves[0].device
        if self.lam_per == "block":
            index = torch.from_numpy(blocks.index())
            lam, where = lam.cpu()[index], None if where is None else where.cpu()[index]
        where = None if where is None else where.to(device)
        return lam.to(device, _precision(leaves)), where

    def __repr__(self) -> str:
        stages = f"{self.pairing} -> {self.coefficient} -> {self.interpolation}"
        settings = f"num_classes={self.num_classes}, lam_per={self.lam_per!r}, prob={self.prob}"
        local = "" if self.locality is None else f", locality={self.locality}"
        seeded = "" if self.generator is None else ", generator=torch.Generator()"
        return f"{type(self).__name__}({stages}, {settings}{local}{seeded})"


def _precision(leaves: list[Tensor]) -> torch.dtype:
    """That of lam: of the inputs, but never coarser than float32."""
    return torch.promote_types(leaves[0].dtype, torch.float32)
