"""Stage 3: how a sample and its partner become one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import torch
from torch import Generator, Tensor

from kmixup.coefficient import per_sample
from kmixup.randomness import uniforms


@dataclass(frozen=True, eq=False)
class Pair:
    """Samples and their partners, and what is known of both.

    Attributes:
        samples: the inputs that are mixed, `(n, ...)` each.
        others: the batches that hold the partners, `samples` themselves within one batch.
        partner: the row of every sample's partner in `others`, `(n,)`.
        importance: how much each pixel matters, `(n, height, width)`, of the samples and of
            the batch that holds the partners; None where nothing is known.
    """

    samples: Sequence[Tensor]
    others: Sequence[Tensor]
    partner: Tensor
    importance: tuple[Tensor, Tensor] | None = None

    @classmethod
    def of(cls, samples: Sequence[Tensor]) -> Pair:
        """Samples that are their own partners."""
        return cls(samples, samples, torch.arange(len(samples[0])))

    @cached_property
    def partners(self) -> list[Tensor]:
        """The partner of every sample, in the order of the samples."""
        return [rows_of(other, self.partner) for other in self.others]

    @property
    def importances(self) -> tuple[Tensor, Tensor]:
        """Importance of the pixels of every sample and of its partner, row by row."""
        if self.importance is None:
            raise ValueError(
                "this method mixes by the importance of pixels, got none: pass "
                "importance=kmixup.saliency(net, x, y) to draw or mix"
            )
        own, other = self.importance
        return own, rows_of(other, self.partner)


@dataclass(frozen=True, eq=False)
class Mask:
    """Where a mixed image takes its pixels from.

    Attributes:
        weight: the weight of the first image at every pixel, `(n, height, width)`.
        moves: for the first images and for their partners, the pixel that moves to each pixel,
            `(n, height · width)`, counted row by row; None where nothing moves.
    """

    weight: Tensor
    moves: tuple[Tensor, Tensor] | None = None


@dataclass(frozen=True, eq=False)
class Collage(Mask):
    """Where a mixed image takes its pixels from, of several samples of the batch.

    Attributes:
        parts: the samples that are shown, `(n, parts)`, the sample itself first.
        cells: the weight of every part in the cells of a grid, `(n, parts, rows, columns)`.
    """

    parts: Tensor = field(kw_only=True)
    cells: Tensor = field(kw_only=True)

    @property
    def shares(self) -> Tensor:
        """The share of every sample of the batch in every mixed image, `(n, n)`."""
        share = self.cells.mean((2, 3))
        return share.new_zeros(len(share), len(share)).scatter_add_(1, self.parts, share)


Where = Tensor | Mask | None  # a box, a mask, or all of the sample


@dataclass(frozen=True)
class Interpolation(ABC):
    """Mixes samples with their partners, and draws what it needs beyond lam.

    Attributes:
        averages: whether values are averaged, which integers cannot be.
        joint: whether a mixed sample may hold more than a sample and its partner.
        by_importance: whether the importance of pixels must be given.

    An interpolation of one's own is a subclass:

    >>> class Darker(Interpolation):
    ...     averages = True
    ...
    ...     def __call__(self, x, other, partner, lam, where=None):
    ...         return torch.minimum(x, other[partner])
    >>> x, half = torch.tensor([[1.0, 5.0], [4.0, 2.0]]), torch.tensor(0.5)
    >>> Darker()(x, x, torch.tensor([1, 0]), half)
    tensor([[1., 2.],
            [1., 2.]])
    """

    averages: ClassVar[bool]
    joint: ClassVar[bool] = False
    by_importance: ClassVar[bool] = False

    def sample(self, size: tuple[int, ...], generator: Generator | None = None) -> Tensor | None:
        """Draw what the region needs beyond lam, one row for each lam; nothing by default."""
        return None

    def settle(self, lam: Tensor, spot: Tensor | None, pair: Pair) -> tuple[Tensor, Where]:
        """Returns the adjusted lam and the region to mix.

        Nothing is drawn here: `lam` is a scalar or `(n,)`, `spot` is what `sample` drew for
        it. A region that depends on the samples has one row per sample, and so has its lam.
        """
        return lam, None

    def rest(self, x: Tensor) -> Tensor:
        """What unmixed samples `(n, ...)` look like to the network: themselves by default."""
        return x

    def draw(
        self, lam: Tensor, samples: Sequence[Tensor], generator: Generator | None = None
    ) -> tuple[Tensor, Where]:
        """`sample`, then `settle`, for regions that do not depend on the partners."""
        return self.settle(lam, self.sample(tuple(lam.shape), generator), Pair.of(samples))

    def mixes(self, entry: object) -> bool:
        """Whether an entry of a batch is mixed; others follow their sample as they are."""
        return isinstance(entry, Tensor) and entry.is_floating_point()

    def targets(
        self, y: Tensor, partner_y: Tensor, where: Where, samples: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """The two targets of each mixed sample, which lam weighs."""
        return y, partner_y

    @abstractmethod
    def __call__(
        self, x: Tensor, other: Tensor, partner: Tensor, lam: Tensor, where: Where = None
    ) -> Tensor:
        """Mix `x` `(n, ...)` with its partners in `other`.

        `lam`, a scalar or `(n,)`, and `where` are those of `settle`.
        """


@dataclass(frozen=True)
class Linear(Interpolation):
    """lam · x[i] + (1 - lam) · other[partner[i]].

    >>> x, lam = torch.tensor([[0.0], [8.0]]), torch.tensor(0.75)
    >>> Linear()(x, x, torch.tensor([1, 0]), lam)
    tensor([[2.],
            [6.]])
    """

    averages = True

    def __call__(
        self, x: Tensor, other: Tensor, partner: Tensor, lam: Tensor, where: Where = None
    ) -> Tensor:
        # One gather and one pass: plain index_select is several times faster than
        # indexing, and lerp in place makes no further copy.
        mixed = rows_of(other, partner)
        if lam.dim() == 0:
            return mixed.lerp_(x, lam.item())
        weight = per_sample(lam, x).to(x.device)
        if x.dtype == weight.dtype:
            return mixed.lerp_(x, weight)
        return mixed.to(weight.dtype).lerp_(x.to(weight.dtype), weight).to(x.dtype)


@dataclass(frozen=True)
class Cut(Interpolation):
    """A box of the partner is pasted into the image, and lam is the share outside of it.

    For images `(n, channels, height, width)` and videos `(n, channels, time, height,
    width)`, of any dtype since nothing is averaged. Dense targets, whose last two
    dimensions are those of the images, are pasted with the same box.
    As in CutMix (Yun et al. 2019) the sides of the box are √(1 - lam) times those of
    the image, rounded down, and its centre is any pixel. The part of the box beyond the
    border is lost. lam is then adjusted to 1 minus the true share of the box.

    All images of a nest share the box, so that a mask can go with its image.

    >>> from kmixup import Beta, Mixer, Optimal
    >>> mix = Mixer(Optimal(k=4), Beta(1.0), Cut(), num_classes=10)
    >>> x, y = mix(torch.rand(16, 3, 8, 8), torch.randint(10, (16,)))
    """

    averages = False

    def sample(self, size: tuple[int, ...], generator: Generator | None = None) -> Tensor:
        """Centres of the boxes `(*size, 2)`, as shares of height and width."""
        return uniforms((*size, 2), generator)

    def settle(self, lam: Tensor, spot: Tensor | None, pair: Pair) -> tuple[Tensor, Tensor]:
        """Returns the adjusted lam, and boxes `(..., 4)`: top, left, bottom, right."""
        if spot is None:
            raise ValueError("Cut needs the centre of the box: spot = Cut().sample(lam.shape)")
        image = torch.tensor(_image_size(pair.samples), device=lam.device)
        centre = (image * spot).long()
        side = (image * (1 - lam).sqrt()[..., None]).long()
        start = (centre - side // 2).clamp(min=0)
        stop = torch.minimum(centre + (side + 1) // 2, image)
        share = (stop - start).prod(-1) / image.prod().double()
        return 1 - share, torch.cat([start, stop], -1)

    def __call__(
        self, x: Tensor, other: Tensor, partner: Tensor, lam: Tensor, where: Where = None
    ) -> Tensor:
        if not isinstance(where, Tensor):
            raise ValueError("Cut needs the box: lam, where = Cut().draw(lam, [x])")
        if where.dim() == 1:
            top, left, bottom, right = where.tolist()
            box = (..., slice(top, bottom), slice(left, right))
            mixed = x.clone()
            mixed[box] = other[box].index_select(0, partner.to(other.device))
            return mixed
        return torch.where(_inside(where, x), rows_of(other, partner), x)

    def mixes(self, entry: object) -> bool:
        return isinstance(entry, Tensor) and (entry.is_floating_point() or entry.dim() >= 4)

    def targets(
        self, y: Tensor, partner_y: Tensor, where: Where, samples: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor]:
        if y.dim() < 3 or y.shape[-2:] != samples[0].shape[-2:]:
            return y, partner_y
        itself = torch.arange(len(y), device=y.device)
        pasted = self(y, partner_y, itself, torch.ones(()), where)
        return pasted, pasted


def rows_of(x: Tensor, index: Tensor) -> Tensor:
    """The rows `index` of `x`, in the memory format of `x`."""
    index = index.to(x.device)
    if not _is_channels_last(x):
        return x.index_select(0, index)
    return x.movedim(1, -1).index_select(0, index).movedim(-1, 1)


def joined(x: Tensor, below: Tensor) -> Tensor:
    """The rows of `x`, and below them others, in the memory format of `x`."""
    if not _is_channels_last(x):
        return torch.cat([x, below])
    return torch.cat([x.movedim(1, -1), below.movedim(1, -1)]).movedim(-1, 1)


def _is_channels_last(x: Tensor) -> bool:
    return x.dim() >= 4 and not x.is_contiguous() and x.movedim(1, -1).is_contiguous()


def _inside(where: Tensor, x: Tensor) -> Tensor:
    """Whether each pixel lies in the box of its sample, `(n, 1, …, height, width)`."""
    boxes = where.to(x.device).view(-1, 4, *[1] * (x.dim() - 1))
    top, left, bottom, right = boxes.unbind(1)
    row = torch.arange(x.shape[-2], device=x.device)[:, None]
    column = torch.arange(x.shape[-1], device=x.device)
    return (top <= row) & (row < bottom) & (left <= column) & (column < right)


def _image_size(samples: Sequence[Tensor]) -> tuple[int, int]:
    shapes = [tuple(x.shape) for x in samples]
    if any(len(shape) < 4 for shape in shapes):
        raise ValueError(
            "Cut needs images of shape (n, channels, height, width), or videos, "
            f"got {', '.join(map(str, shapes))}: grey images are x[:, None], "
            "and for inputs without two spatial dimensions there is Linear()"
        )
    sizes = {shape[-2:] for shape in shapes}
    if len(sizes) > 1:
        raise ValueError(
            "Cut pastes one box into all images of a sample, which must therefore have the same "
            f"height and width, got {', '.join(map(str, sorted(sizes)))}: resize them"
        )
    height, width = sizes.pop()
    return height, width
