"""The stages composed: pairing, coefficient, interpolation, targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import torch
from torch import Generator, Tensor, nn
from torch.utils import _pytree as pytree

from kmixup.coefficient import Beta
from kmixup.interpolation import Linear
from kmixup.pairing import Blocks, Metric, Optimal, Pairing, check_alike, eager
from kmixup.sampling import device_of
from kmixup.targets import Criterion, mix_targets, mixed_accuracy, mixed_loss

Nest = Any  # a tensor, or a dict, list or tuple of them to any depth
Features = Tensor | tuple[Tensor, Tensor] | str | int
LamPer = Literal["batch", "block", "sample"]


@dataclass(frozen=True, eq=False)
class Mixed:
    """A mixed batch, and all that went into it. Row i is sample i, mixed.

    `x`: the mixed inputs; `targets`: the targets of every sample and of its partner;
    `partner`: the row of the partner, `(n,)`; `lam`: the weight of the first sample,
    a scalar or `(n,)`. Soft targets `y` and match distances are computed on demand.
    """

    x: Nest
    targets: tuple[Tensor, Tensor]
    partner: Tensor
    lam: Tensor
    num_classes: int | None
    features: tuple[Tensor, Tensor] = field(repr=False)

    @cached_property
    def y(self) -> Tensor:
        """Mixed targets: one-hot classes `(n, num_classes)`, or floats interpolated."""
        return mix_targets(*self.targets, self.lam, self.num_classes)

    @cached_property
    def distance(self) -> Tensor:
        """Euclidean distance of every sample to its partner in what was matched, `(n,)`."""
        one, two = (f.detach().reshape(len(f), -1) for f in self.features)
        dtype = torch.promote_types(one.dtype, torch.float32)
        gap = one.to(dtype) - two.index_select(0, self.partner).to(dtype)
        length: Tensor = torch.linalg.vector_norm(gap, dim=1)
        return length

    def loss(self, criterion: Criterion, logits: Tensor) -> Tensor:
        """lam · criterion(logits, y_a) + (1 - lam) · criterion(logits, y_b).

        For criteria that take class indices, or are not linear in the target.
        Where lam differs within the batch the criterion must not reduce, and
        the loss has one entry per sample.
        """
        return mixed_loss(criterion, logits, *self.targets, self.lam)

    def accuracy(self, logits: Tensor) -> Tensor:
        """Agreement with the two labels, weighted by lam and 1 - lam; a scalar."""
        return mixed_accuracy(logits, *self.targets, self.lam)


class Mixer(nn.Module):
    """A pairing, a coefficient and an interpolation: what every mixing method is made of.

    Args:
        pairing: who with whom, e.g. `Optimal(k=16)`.
        coefficient: how much, e.g. `Beta(alpha=1.0)`.
        interpolation: how, e.g. `Linear()`.
        num_classes: needed to mix integer targets, which become one-hot.
        lam_per: one lam for each "batch", "block" of k, or "sample".
        prob: the chance that a batch is mixed at all.
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
        interpolation: Linear,
        *,
        num_classes: int | None = None,
        lam_per: LamPer = "batch",
        prob: float = 1.0,
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
        self.generator = generator

    @eager
    def forward(
        self,
        x: Nest,
        y: Tensor,
        *,
        other: tuple[Nest, Tensor] | None = None,
        features: Features | None = None,
    ) -> tuple[Nest, Tensor]:
        """Mixed inputs and soft targets of a batch; see `draw` for the arguments."""
        if not self.training:
            return x, y
        mixed = self.draw(x, y, other=other, features=features)
        return mixed.x, mixed.y

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
            x: floating-point inputs `(n, ...)`, a tensor or a nest of tensors.
            y: targets `(n, ...)`; integers are classes, floats are interpolated.
            other: a second, independent batch `(x2, y2)` to take the partners from,
                as in the paper; without it partners come from the same batch.
            features: what to match on, all of `x` by default: the key of an entry of
                `x`, or a tensor `(n, ...)` such as an embedding, or two of them with
                `other`.
        """
        n = _check_batch(x, y, "x", "y")
        x2, y2 = x, y
        if other is not None:
            x2, y2 = other
            _check_batch(x2, y2, "the inputs of other", "the targets of other")
            _check_nests_alike(x, x2)
            check_alike(y, y2, "y", "the targets of other")
        one, two = _features(x, x2, features, n=n, paired=other is not None)

        first = pytree.tree_leaves(x)[0]
        dtype = torch.promote_types(first.dtype, torch.float32)  # of lam, never coarser
        mixes = self.training
        if mixes:  # all randomness first, whatever becomes of it
            coin = torch.rand((), generator=self.generator, device=device_of(self.generator))
            blocks = self.pairing.draw(n, within=other is None, generator=self.generator)
            lam = self._draw_lam(blocks, first.device, dtype)
            alone = n < 2 and other is None
            mixes = float(coin) < self.prob and self.coefficient.alpha > 0 and not alone
        if not mixes:
            lam = torch.ones(() if self.lam_per == "batch" else n, dtype=dtype)
            itself = torch.arange(n, device=one.device)
            return Mixed(x, (y, y), itself, lam, self.num_classes, (one, one))

        partner = self.pairing.partners(one, None if other is None else two, blocks)
        mixed = pytree.tree_map(lambda a, b: self.interpolation(a, b, partner, lam), x, x2)
        targets = (y, y2.index_select(0, partner.to(y2.device)))
        return Mixed(mixed, targets, partner, lam, self.num_classes, (one, two))

    def _draw_lam(self, blocks: Blocks, device: torch.device, dtype: torch.dtype) -> Tensor:
        """A scalar on the CPU, or one lam per sample `(n,)` on the `device`."""
        size = {"batch": (), "block": (blocks.count,), "sample": (blocks.n,)}[self.lam_per]
        lam = self.coefficient.sample(size, self.generator)
        if self.lam_per == "batch":
            return lam.to("cpu", dtype)
        if self.lam_per == "block":
            lam = lam.cpu()[torch.from_numpy(blocks.index())]
        return lam.to(device, dtype)

    def get_extra_state(self) -> Tensor:
        """State of the generator, empty without one."""
        if self.generator is None:
            return torch.empty(0, dtype=torch.uint8)
        return self.generator.get_state()

    def set_extra_state(self, state: Tensor) -> None:
        if self.generator is not None and len(state):
            self.generator.set_state(state.cpu())

    def __repr__(self) -> str:
        stages = f"{self.pairing} -> {self.coefficient} -> {self.interpolation}"
        settings = f"num_classes={self.num_classes}, lam_per={self.lam_per!r}, prob={self.prob}"
        seeded = "" if self.generator is None else ", generator=torch.Generator()"
        return f"{type(self).__name__}({stages}, {settings}{seeded})"


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


def _check_batch(x: Nest, y: Tensor, x_name: str, y_name: str) -> int:
    """Length of a batch that can be mixed."""
    leaves = pytree.tree_leaves(x)
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        kinds = sorted({type(leaf).__name__ for leaf in leaves}) or ["nothing"]
        raise TypeError(f"{x_name} must be a tensor or a nest of tensors, got {', '.join(kinds)}")
    for leaf in leaves:
        if not leaf.is_floating_point():
            raise TypeError(
                f"{x_name} must be floating point, got {leaf.dtype}: token ids and other integers "
                "cannot be averaged (mix embeddings instead; images: x.float() / 255)"
            )
    lengths = {leaf.shape[0] if leaf.dim() else None for leaf in leaves}
    if len(lengths) > 1 or None in lengths:
        raise ValueError(
            f"all tensors of {x_name} must share their first dimension, the batch, "
            f"got shapes {[tuple(leaf.shape) for leaf in leaves]}"
        )
    n = len(leaves[0])
    if y.dim() == 0 or len(y) != n:
        raise ValueError(
            f"{y_name} must have one target for each of the {n} samples of {x_name}, "
            f"got shape {tuple(y.shape)}"
        )
    return n


def _check_nests_alike(x: Nest, x2: Nest) -> None:
    if pytree.tree_structure(x) != pytree.tree_structure(x2):
        raise ValueError(
            "the inputs of other must be nested like x, got "
            f"{pytree.tree_structure(x2)} and {pytree.tree_structure(x)}"
        )
    for one, two in zip(pytree.tree_leaves(x), pytree.tree_leaves(x2), strict=True):
        check_alike(one, two, "x", "the inputs of other")


def _features(
    x: Nest, x2: Nest, features: Features | None, *, n: int, paired: bool
) -> tuple[Tensor, Tensor]:
    """What to match on, for both sides."""
    if isinstance(features, (str, int)):
        try:
            x, x2 = x[features], x2[features]
        except (KeyError, IndexError, TypeError) as error:
            entries = list(x) if isinstance(x, dict) else type(x).__name__
            raise ValueError(
                f"features must name an entry of x, got {features!r}, but x has {entries}"
            ) from error
    elif isinstance(features, Tensor):
        if paired:
            raise ValueError("features must be a pair (features of x, features of other) here")
        x = x2 = features
    elif features is not None:
        x, x2 = features
    one = _concatenated(x)
    two = one if x2 is x else _concatenated(x2)
    if one.dim() == 0 or len(one) != n:
        raise ValueError(
            f"features must have one row for each of the {n} samples, got shape {tuple(one.shape)}"
        )
    return one, two


def _concatenated(x: Nest) -> Tensor:
    """All tensors of a nest as one, sample by sample: squared distances add up."""
    leaves: Sequence[Tensor] = pytree.tree_leaves(x)
    if len(leaves) == 1:
        return leaves[0]
    return torch.cat([leaf.reshape(len(leaf), -1) for leaf in leaves], dim=1)
