"""What a mixed batch is made of: the draw before it, and the account after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from kmixup.blocks import Blocks
from kmixup.inputs import Nest, over
from kmixup.interpolation import Mask
from kmixup.targets import (
    Criterion,
    Locality,
    mix_targets,
    mixed_accuracy,
    mixed_loss,
    share_targets,
    shared_accuracy,
    shared_loss,
)


@dataclass(frozen=True, eq=False)
class Draw:
    """All chance of one mixed batch, drawn before its values are looked at.

    Attributes:
        coin: a uniform number in [0, 1); the batch is mixed where it is below `prob`.
        blocks: which samples may meet.
        u: quantiles of lam: a scalar for the batch, or one for each block or sample.
        spot: what the interpolation draws beyond lam, such as the centre of a box.
        fill: of a mixer with a memory, the places there of the samples that fill up the batch,
            or both batches, `(1, f)` or `(2, f)`; `blocks` are of n + f samples.
        choices: which mixer a `Choice` and which layer a `HiddenMixup` took, outermost first.
        parts: of a `Choice` per sample, the draws of all its mixers.
        part: of a `Choice` per sample, the mixer of every sample, `(n,)`.

    >>> from kmixup import KMixup
    >>> mix, x, y = KMixup(k=4), torch.randn(16, 3), torch.randn(16)
    >>> draw = mix.sample(16)    # before the data are looked at
    >>> mixed = mix.mix(x, y, draw)
    """

    coin: float
    blocks: Blocks
    u: Tensor
    spot: Tensor | None = None
    fill: Tensor | None = None
    choices: tuple[int, ...] = ()
    parts: tuple[Draw, ...] = ()
    part: Tensor | None = None

    @property
    def n(self) -> int:
        """The number of samples in the batch."""
        return self.blocks.n - (0 if self.fill is None else self.fill.shape[1])

    @classmethod
    def idle(cls, n: int) -> Draw:
        """The draw that mixes nothing, for a batch of `n`."""
        return cls(1.0, Blocks(n, 1), torch.zeros((), dtype=torch.float64))


@dataclass(frozen=True, eq=False)
class Mixed:
    """A mixed batch, and all that went into it. Row i is sample i, mixed.

    With a clean batch of n samples beside the mixed one, row n + i is sample i as it is, its
    own partner with lam = 1.

    Attributes:
        x: the mixed inputs.
        targets: the targets of every sample, and those of its partner; nests like `y`. Where
            dense targets are pasted with a box, both are the pasted ones.
        partner: the row of every sample's partner, `(n,)`. Row n + j is the j-th of the samples
            that a memory gave.
        lam: the weight of the first sample, a scalar or `(n,)`.
        num_classes: the number of classes of integer targets.
        features: what was matched, of both sides; of a `Choice` per sample, by its first mixer.
        locality: weights of the losses as a function of the match distances.
        box: the box of a cut, `(4,)` or `(n, 4)`: top, left, bottom, right; None without one.
        penalty: a scalar that `loss` adds; None without one.
        ignore_index: the class that does not count; both targets have it where one of them has.
        mask: which pixels come from whom, of methods that mix by a mask, for the n mixed rows
            alone; None otherwise, and of a `Choice` per sample.
        shares: of methods that mix more than two samples, the weight of the target of every
            sample in every row, `(n, n)`, and lam is that of the sample itself; None for pairs.

    >>> from kmixup import KMixup
    >>> mixed = KMixup(k=4, num_classes=3).draw(torch.randn(16, 5), torch.randint(3, (16,)))
    >>> mixed.x.shape, mixed.y.shape, mixed.partner.shape, mixed.distance.shape
    (torch.Size([16, 5]), torch.Size([16, 3]), torch.Size([16]), torch.Size([16]))
    """

    x: Nest
    targets: tuple[Nest, Nest]
    partner: Tensor
    lam: Tensor
    num_classes: Nest
    features: tuple[Tensor, Tensor] = field(repr=False)
    locality: Locality | None = field(default=None, repr=False)
    box: Tensor | None = None
    penalty: Tensor | None = field(default=None, repr=False)
    mask: Mask | None = field(default=None, repr=False)
    shares: Tensor | None = field(default=None, repr=False)
    ignore_index: int | None = None

    @cached_property
    def y(self) -> Nest:
        """Mixed targets: one-hot classes `(n, num_classes)`, or floats interpolated.

        Maps of classes `(n, height, width)` become `(n, num_classes, height, width)`, with 0 for
        all classes where they are ignored.
        In `.eval()` mode these are the targets of one sample, one-hot all the same.
        """
        own, partner = self.targets
        if own is None:
            return None
        if self.num_classes is None or isinstance(self.num_classes, int):
            return over(lambda a, b: self._mixed(a, b, self.num_classes), own, partner)
        return over(self._mixed, own, partner, self.num_classes)

    def _mixed(self, own: Tensor, partner: Tensor, classes: int | None) -> Tensor:
        if self.shares is not None:
            return share_targets(own, self.shares, classes)
        return mix_targets(own, partner, self.lam, classes, self.ignore_index)

    @cached_property
    def distance(self) -> Tensor:
        """Euclidean distance of every sample to its partner in what was matched, `(n,)`."""
        return pair_distance(*self.features, self.partner)

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

    def loss(self, criterion: Criterion, logits: Nest) -> Tensor:
        """weight · (lam · criterion(logits, y_a) + (1 - lam) · criterion(logits, y_b)) + penalty.

        For criteria that take class indices, or are not linear in the target.
        A criterion with the same `ignore_index` leaves out what is ignored.
        Where lam or weight differ within the batch the criterion must not reduce,
        and the loss has one entry per sample. The penalty is in every entry, so that their mean
        has it once. Where more than two samples are mixed, the criteria of all of them are
        weighed by their shares.
        """
        if self.shares is not None:
            loss = shared_loss(criterion, logits, self._parts(self.shares), self.weight)
        else:
            loss = mixed_loss(criterion, logits, *self.targets, self.lam, self.weight)
        return loss if self.penalty is None else loss + self.penalty

    def _parts(self, shares: Tensor) -> Iterator[tuple[Tensor, Nest]]:
        """The shares of the rows `(n,)` and their targets: the largest share first, and so on."""
        if self.targets[0] is None:
            raise ValueError("there are no targets to take a loss of: y was None")
        share, index = shares.sort(1, descending=True)
        for part in range(int((share > 0).sum(1).max())):  # as many as the fullest row has
            rows = index[:, part]
            yield share[:, part], over(lambda y: y[rows.to(y.device)], self.targets[0])  # noqa: B023

    def accuracy(self, logits: Tensor) -> Tensor:
        """Agreement with the two labels, weighted by lam and 1 - lam, or by shares; a scalar."""
        if not isinstance(self.targets[0], Tensor):
            raise TypeError(
                "accuracy needs one tensor of targets, got "
                f"{type(self.targets[0]).__name__}: take it of each output by itself"
            )
        if self.shares is not None:
            return shared_accuracy(logits, self.targets[0], self.shares)
        return mixed_accuracy(logits, *self.targets, self.lam, self.ignore_index)


def pair_distance(own: Tensor, other: Tensor, partner: Tensor) -> Tensor:
    """Euclidean distance of every row of `own` to its partner in `other`, `(n,)`."""
    own, other = (side.reshape(len(side), -1) for side in (own, other))
    dtype = torch.promote_types(own.dtype, torch.float32)
    gap = own.to(dtype) - other.index_select(0, partner).to(dtype)
    length: Tensor = torch.linalg.vector_norm(gap, dim=1)
    return length


@dataclass(frozen=True)
class AboveClean:
    """Weights of `n` pairs that stand above clean samples: as if these were not there.

    Weights may depend on the mean distance of the pairs, which clean samples, at distance 0, must
    not change.

    Attributes:
        locality: the weights of pairs alone.
        n: the number of pairs.
    """

    locality: Locality
    n: int

    def __call__(self, distance: Tensor) -> Tensor:
        pairs, every = self.locality(distance[: self.n]), self.locality(distance)
        return torch.cat([pairs, every[self.n :]])


def beside_clean(mixed: Mixed, x: Nest, y: Nest) -> Mixed:
    """The mixed batch, and below it the clean batch `x`, `y`, whose samples are their own partners.

    Rows 0 … n - 1 are those of `mixed`, rows n … 2n - 1 those of `x`.
    """
    n, device = len(mixed.partner), mixed.partner.device

    def inputs(entry: object, clean: object) -> Tensor:
        if not isinstance(entry, Tensor) or not isinstance(clean, Tensor) or len(clean) != n:
            what = tuple(clean.shape) if isinstance(clean, Tensor) else type(clean).__name__
            raise TypeError(
                "clean=True puts two batches into one, so that all entries of x must be tensors "
                f"with a row for each of the {n} samples, got {what}: leave that entry out"
            )
        return torch.cat([entry, clean])

    def targets(side: Nest) -> Nest:
        return None if y is None else over(lambda *rows: torch.cat(rows), side, y)

    first, second = mixed.features
    box = mixed.box
    if box is not None:
        box = box if mixed.lam.dim() else box.expand(n, *box.shape)
        box = torch.cat([box, torch.zeros_like(box)])
    lam = mixed.lam.to(device).expand(n)
    shares = mixed.shares
    if shares is not None:
        shares = torch.block_diag(shares, torch.eye(n).to(shares))
    return replace(
        mixed,
        x=over(inputs, mixed.x, x),
        targets=(targets(mixed.targets[0]), targets(mixed.targets[1])),
        partner=torch.cat([mixed.partner, len(second) + torch.arange(n, device=device)]),
        lam=torch.cat([lam, torch.ones_like(lam)]),
        features=(torch.cat([first, first]), torch.cat([second, first])),
        locality=None if mixed.locality is None else AboveClean(mixed.locality, n),
        box=box,
        shares=shares,
    )
