"""`Draw`, the random draws for one batch, and `Mixed`, the mixed batch."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self, TypeVar

from torch import Tensor

from kmixup._nests import Nest, over
from kmixup.interpolation import Region
from kmixup.matching import Blocks
from kmixup.matching._assignment import Points, pair_distances
from kmixup.targets import Criterion, TargetType, agreement, classes_of, mix_targets, mixed_loss

Kind = TypeVar("Kind", bound="Mixed")


@dataclass(frozen=True, eq=False)
class Draw:
    """All random draws for one batch, made before the data are read.

    A plain `Draw()` leaves the batch unmixed. What a mixer draws is a subclass: a `PairDraw`, or
    the draw of a wrapper, which holds the draw of the mixer inside as `inner`.

    >>> import torch
    >>> from kmixup import KMixup
    >>> mix, x, y = KMixup(k=4), torch.randn(16, 3), torch.randn(16)
    >>> draw = mix.draw(16)    # before the data are read
    >>> mixed = mix.mix(x, y, draw)
    """

    @property
    def mixes(self) -> bool:
        """Whether the batch is mixed: not if `prob` missed, nor in `.eval()` mode."""
        return False

    @classmethod
    def of(cls, draw: Draw) -> Self | None:
        """Return `draw`, or None if it is a plain `Draw`; raise if a mixer of another kind made it.

        >>> PairDraw.of(Draw()) is None
        True
        """
        if type(draw) is Draw:
            return None
        if not isinstance(draw, cls):
            raise TypeError(
                f"draw must be a {cls.__name__}, got {type(draw).__name__}: use the draw(n) of the "
                "mixer that mixes, or no draw"
            )
        return draw


@dataclass(frozen=True, eq=False)
class PairDraw(Draw):
    """What a `Mixer` draws for one batch that is mixed.

    Attributes:
        blocks: which samples may become partners.
        u: quantiles of lam: a scalar for the batch, or one for each block or sample.
        spot: what the interpolation draws beyond lam, such as the centres of boxes; one row for
            each lam.

    >>> from kmixup import CutMix
    >>> draw = CutMix(k=4).draw(16)
    >>> draw.blocks.k, draw.u.shape, draw.spot.shape
    (4, torch.Size([]), torch.Size([1, 2]))
    """

    blocks: Blocks
    u: Tensor
    spot: Tensor | None = None

    @property
    def mixes(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class Mixed:
    """A mixed batch and how it was mixed. Row i is sample i, mixed.

    Attributes:
        x: the mixed inputs.
        targets: of every sample, and of its partner; nests like `y`. Maps that are pasted with a
            box are the same in both, and so are targets that are passed through.
        partner: the row of every sample's partner, `(n,)`. With a `Memory`, row n + j is the j-th
            of the samples that it added to the batch.
        lam: the weight of the first sample, a scalar or `(n,)`.
        region: the box of a cut, `(4,)` or `(n, 4)`: top, left, bottom, right; a `Mask`; or None.
        num_classes: the number of classes of integer targets.
        ignore_index: the class that does not count; both targets have it where one of them has.
        types: the type of each target, nested like `y`.
        points: what was matched, for both sides.

    >>> import torch
    >>> from kmixup import KMixup
    >>> mixed = KMixup(k=4, num_classes=3).mix(torch.randn(16, 5), torch.randint(3, (16,)))
    >>> mixed.x.shape, mixed.y.shape, mixed.partner.shape, mixed.distance.shape
    (torch.Size([16, 5]), torch.Size([16, 3]), torch.Size([16]), torch.Size([16]))
    """

    x: Nest
    targets: tuple[Nest, Nest]
    partner: Tensor
    lam: Tensor
    region: Region = field(default=None, repr=False)
    num_classes: Nest = None
    ignore_index: int | None = None
    types: Nest = None
    points: tuple[Points, Points] = field(default=((), ()), repr=False)

    @cached_property
    def y(self) -> Nest:
        """Mixed targets: one-hot classes `(n, num_classes)`, or interpolated floats.

        Maps of classes `(n, height, width)` become `(n, num_classes, height, width)`, with 0 for
        all classes where they are ignored. Targets of unmixed batches become one-hot as well.
        """
        own, partner = self.targets

        def mixed(a: Any, b: Any, number: int | None, kind: TargetType | None) -> Any:
            if kind == "pass":
                return a
            return mix_targets(a, b, self.lam, number, self.ignore_index, kind)

        if own is None:
            return None
        if isinstance(own, Tensor):
            return mixed(own, partner, self.num_classes, self.types)
        return over(mixed, own, partner, classes_of(own, self.num_classes), self.types)

    @cached_property
    def distance(self) -> Tensor:
        """Euclidean distance of every sample to its partner in what was matched, `(n,)`."""
        return pair_distances(*self.points, self.partner)

    @property
    def weight(self) -> Tensor | None:
        """Weights of the samples' losses, `(n,)` with mean 1; None if all are equal."""
        return None

    @property
    def penalty(self) -> Tensor | None:
        """A scalar that `loss` adds, for methods that learn; None for the others."""
        return None

    def loss(self, criterion: Criterion, logits: Any) -> Tensor:
        """Return lam · criterion(logits, y) + (1 - lam) · criterion(logits, partner's y).

        For cross-entropy this equals the loss of the mixed targets. A penalty is added if the
        method has one.

        Args:
            criterion: a function of logits and targets, such as `nn.CrossEntropyLoss()`. With one
                lam for each block or sample, or with weights, it must return one loss per sample
                (`reduction="none"`), and so does this method.
            logits: the network's outputs for `x`.

        Raises:
            ValueError: if there are no targets, or the criterion averages where it must not.

        >>> import torch
        >>> from kmixup import KMixup
        >>> mixed = KMixup(k=4).mix(torch.randn(16, 5), torch.randint(3, (16,)))
        >>> mixed.loss(torch.nn.CrossEntropyLoss(), mixed.x[:, :3]).shape
        torch.Size([])
        """
        loss = mixed_loss(criterion, logits, *self.targets, self.lam, self.weight)
        return loss if self.penalty is None else loss + self.penalty

    def agreement(self, logits: Tensor) -> Tensor:
        """Return lam · [class is y] + (1 - lam) · [class is the partner's y], usually `(n,)`.

        `logits` are the network's outputs for `x`, with classes along dimension 1. Nests of targets
        raise a TypeError.
        """
        if not isinstance(self.targets[0], Tensor):
            raise TypeError(
                "accuracy needs one tensor of targets, got "
                f"{type(self.targets[0]).__name__}: compute it for each output separately"
            )
        return agreement(logits, *self.targets, self.lam, self.ignore_index)

    def accuracy(self, logits: Tensor) -> Tensor:
        """Return the mean `agreement` of `logits` with both labels, a scalar."""
        return self.agreement(logits).mean()

    def extended(self, kind: type[Kind], **more: Any) -> Kind:
        """Return the same as another `kind` of `Mixed`, which has `more` fields."""
        return kind(**{each.name: getattr(self, each.name) for each in fields(self)}, **more)


class Unmixed(Mixed):
    """A batch that was left unmixed: every sample is its own partner, with lam = 1."""
