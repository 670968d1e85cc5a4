"""Stage 3: combine a sample with its partner."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from torch import Generator, Tensor

from kmixup._checks import check_range
from kmixup._randomness import uniforms
from kmixup.coefficient import per_sample
from kmixup.matching._points import is_channels_last
from kmixup.targets import TargetType

GROUP = 1 << 18  # bytes of large inputs that are mixed at a time
LARGE = 1 << 22  # bytes from which inputs count as large: huge pages pay for their output

Size = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Pair:
    """Samples and their partners."""

    samples: Sequence[Tensor]  # the inputs that are mixed, (n, ...) each
    others: Sequence[Tensor]  # what holds the partners; the samples themselves within one batch
    partner: Tensor  # the row of every sample's partner in others, (n,)
    importance: tuple[Tensor, Tensor] | None = None  # of the pixels of both sides, if it was given
    mixer: str = "this mixer"  # its name, for error messages

    @classmethod
    def of(cls, samples: Sequence[Tensor]) -> Pair:
        """Return samples that are their own partners."""
        return cls(samples, samples, torch.arange(len(samples[0])))

    @cached_property
    def partners(self) -> list[Tensor]:
        """The partner of every sample."""
        return [rows_of(other, self.partner) for other in self.others]

    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width of the images."""
        return image_size(self.samples, self.mixer)

    @property
    def importances(self) -> tuple[Tensor, Tensor]:
        """Importance of the pixels of every sample and of its partner, row by row."""
        if self.importance is None:
            raise ValueError(
                f"{self.mixer} needs the importance of pixels, got none: pass "
                "importance=kmixup.saliency(net, x, y)"
            )
        own, other = self.importance
        return own.narrow(0, 0, len(self.partner)), rows_of(other, self.partner)


@dataclass(frozen=True, eq=False)
class Mask:
    """Where a mixed image takes its pixels from.

    `weight` is that of the first image at every pixel, `(n, height, width)`. `moves` has, for the
    first images and for their partners, the pixel that moves to each pixel, `(n, height · width)`.
    """

    weight: Tensor
    moves: tuple[Tensor, Tensor] | None = None


Region = Tensor | Mask | None  # a box, a mask, or all of the sample


@dataclass(frozen=True)
class Interpolation(ABC):
    """Base class of interpolations: combine samples with their partners.

    Your own interpolation is a subclass with one method, `__call__`:

    >>> class Darker(Interpolation):
    ...     def __call__(self, x, other, partner, lam, region=None):
    ...         return torch.minimum(x, other[partner])
    >>> x, half = torch.tensor([[1.0, 5.0], [4.0, 2.0]]), torch.tensor(0.5)
    >>> Darker()(x, x, torch.tensor([1, 0]), half)
    tensor([[1., 2.],
            [1., 2.]])

    One that mixes a random region also overrides `draw`, which draws what the region needs, and
    `settle`, which turns that into the region and its lam. `Cut` is an example.

    Attributes:
        dense: whether targets may be maps, laid out like the image.
    """

    dense: ClassVar[bool] = True

    @abstractmethod
    def __call__(
        self, x: Tensor, other: Tensor, partner: Tensor, lam: Tensor, region: Region = None
    ) -> Tensor:
        """Return `x` `(n, ...)` mixed with its partners in `other`.

        `lam`, a scalar or `(n,)`, and `region` are those that `settle` returned.
        """

    def draw(self, n: int, shape: Size = (), generator: Generator | None = None) -> Tensor | None:
        """Return `n` spots `(n, ...)`: what the region needs beyond lam; None by default.

        Args:
            n: the number of spots, one for each lam.
            shape: the shape of one input, such as `(channels, height, width)`; `()` if unknown.
            generator: source of randomness.
        """
        return None

    def settle(self, lam: Tensor, spot: Tensor | None, pair: Pair) -> tuple[Tensor, Region]:
        """Return the adjusted lam and the region to mix.

        `lam` is a scalar or `(n,)`, `spot` is what `draw` drew for it, one spot or `(n, ...)`, and
        `pair` has the samples and their partners. A region that depends on the samples has one row
        per sample, and so has its lam.
        """
        return lam, None

    def mixes(self, entry: object) -> bool:
        """Return whether an `entry` of a nest is mixed; the others are passed through."""
        return isinstance(entry, Tensor) and entry.is_floating_point()

    def targets(
        self, y: Tensor, partner_y: Tensor, kind: TargetType | None, region: Region, pair: Pair
    ) -> tuple[Tensor, Tensor]:
        """Return the two targets of each mixed sample, from `y` and `partner_y`.

        `kind` is the type of the targets, `region` is what `settle` returned, and `pair` has the
        samples and their partners.
        """
        if not self.dense and kind in ("map", "dense"):
            raise ValueError(
                f"{pair.mixer} weights targets by one number for each image, got one "
                f"target for each pixel, of the shape {tuple(y.shape)}: CutMix pastes them with "
                "their image"
            )
        if kind is None and region is not None:
            one, laid_out = ("regression", "dense") if y.is_floating_point() else ("classes", "map")
            raise ValueError(
                f"{pair.mixer} pastes targets that are laid out like the image, and weights others "
                f"by area, got {tuple(y.shape)} for images of "
                f"{tuple(pair.samples[0].shape[-2:])}: give targets={laid_out!r} or targets={one!r}"
            )
        return y, partner_y


@dataclass(frozen=True)
class Linear(Interpolation):
    """lam · x[i] + (1 - lam) · other[partner[i]].

    Differences between samples must not overflow: values beyond half of the largest number of
    their dtype can become infinite.

    >>> x, lam = torch.tensor([[0.0], [8.0]]), torch.tensor(0.75)
    >>> Linear()(x, x, torch.tensor([1, 0]), lam)
    tensor([[2.],
            [6.]])
    """

    def __call__(
        self, x: Tensor, other: Tensor, partner: Tensor, lam: Tensor, region: Region = None
    ) -> Tensor:
        if not x.is_contiguous() and is_channels_last(x) and is_channels_last(other):
            x, other = x.movedim(1, -1), other.movedim(1, -1)
            return self(x, other, partner, lam).movedim(-1, 1)
        is_number = lam.dim() == 0 and not (lam.requires_grad and torch.is_grad_enabled())
        weight: Tensor | float = lam.item() if is_number else per_sample(lam, x).to(x.device)
        if isinstance(weight, Tensor) and weight.dtype != x.dtype:
            dtype = torch.promote_types(x.dtype, weight.dtype)
            mixed = rows_of(other, partner).to(dtype)
            return mixed.lerp_(x.to(dtype), weight.to(dtype)).to(x.dtype)
        if not x.is_contiguous():
            return rows_of(other, partner).lerp_(x, weight)
        partner = partner.to(other.device)  # features to match on may be on another one
        learns = any((x.requires_grad, other.requires_grad, lam.requires_grad))
        learns = learns and torch.is_grad_enabled()
        if learns or x.device.type != "cpu" or x.nbytes < LARGE:
            return other.index_select(0, partner).lerp_(x, weight)
        return _mixed_in_groups(x, other, partner, weight)


@dataclass(frozen=True)
class Cut(Interpolation):
    """Paste a box of the partner into the image; lam is the area outside of it.

    For images `(n, channels, height, width)` and videos `(n, channels, time, height, width)` of any
    dtype. All images of a nest share the box. Targets that are maps are pasted with it, scaled to
    their resolution.

    As in the code of CutMix (Yun et al. 2019) and in torchvision, the box reaches half a side,
    rounded down, to both sides of a random pixel. A side is √(1 - lam) times that of the image,
    rounded down. The box is clipped at the border, and lam is adjusted to 1 minus its true area.

    Attributes:
        sides: the range of height and width of the box, as fractions of the image's. They are drawn
            separately and uniformly, the box lies inside the image, and the lam that was drawn has
            no effect. By default the box follows lam.

    >>> from kmixup import Beta, Mixer, Optimal
    >>> mix = Mixer(Optimal(k=4), Beta(1.0), Cut(), num_classes=10)
    >>> x, y = mix(torch.rand(16, 3, 8, 8), torch.randint(10, (16,)))
    """

    odd: ClassVar[int] = 0  # 1 rounds odd sides up
    sides: tuple[float, float] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.sides is not None:
            check_range("sides", self.sides)

    def draw(self, n: int, shape: Size = (), generator: Generator | None = None) -> Tensor:
        """Draw centers of the boxes `(n, 2)`, as fractions; with `sides`, sides and places."""
        return uniforms((n, 2 if self.sides is None else 4), generator)

    def settle(self, lam: Tensor, spot: Tensor | None, pair: Pair) -> tuple[Tensor, Tensor]:
        """Return the adjusted lam, and boxes `(..., 4)`: top, left, bottom, right."""
        assert spot is not None
        image = torch.tensor(pair.image_size, device="cpu")
        if self.sides is None:
            side = (image * (1 - lam).sqrt()[..., None]).long()
            return self.box((image * spot).long(), side, image)
        least, most = ((image * bound).long() for bound in self.sides)
        return box_inside(least + (spot[..., :2] * (most - least)).long(), spot[..., 2:], image)

    def box(self, centre: Tensor, side: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
        """Return lam and the box `(..., 4)` with a centre and sides `(..., 2)`, in pixels."""
        start = (centre - side // 2).clamp(min=0)
        stop = torch.minimum(centre + (side + self.odd) // 2, image)
        share = (stop - start).prod(-1) / image.prod().double()
        return 1 - share, torch.cat([start, stop], -1)

    def __call__(
        self, x: Tensor, other: Tensor, partner: Tensor, lam: Tensor, region: Region = None
    ) -> Tensor:
        assert isinstance(region, Tensor)
        if x.device.type == "cpu":
            return self.paste(x, other, partner, region)
        return torch.where(_inside(region, x), rows_of(other, partner), x)

    def paste(self, x: Tensor, other: Tensor, partner: Tensor, region: Tensor) -> Tensor:
        """Return a copy of `x` with the patch of each box, one for all samples or for each."""
        mixed = large_like(x).copy_(x) if is_large(x) else x.clone()
        boxes = [region.tolist()] if region.dim() == 1 else region.tolist()
        rows = [None] if region.dim() == 1 else partner.tolist()
        for index, (box, row) in enumerate(zip(boxes, rows, strict=True)):
            if box[0] >= box[2] or box[1] >= box[3]:
                continue
            if row is None:
                patch = self.patch(other, partner.to(other.device), box)
                _inside_box(mixed, box).copy_(patch)
            else:  # a view of one partner
                patch = self.patch(other.narrow(0, row, 1), None, box)
                _inside_box(mixed.narrow(0, index, 1), box).copy_(patch)
        return mixed

    def patch(self, other: Tensor, partner: Tensor | None, box: list[int]) -> Tensor:
        """Return what partners have in a box: the rows `partner` of `other`, or all of them."""
        inside = _inside_box(other, box)
        return inside if partner is None else inside.index_select(0, partner)

    def mixes(self, entry: object) -> bool:
        return isinstance(entry, Tensor) and (entry.is_floating_point() or entry.dim() >= 4)

    def targets(
        self, y: Tensor, partner_y: Tensor, kind: TargetType | None, region: Region, pair: Pair
    ) -> tuple[Tensor, Tensor]:
        if kind not in ("map", "dense"):
            return super().targets(y, partner_y, kind, region, pair)
        assert isinstance(region, Tensor)
        itself = torch.arange(len(y), device=y.device)
        scaled = scaled_boxes(region, pair.samples[0].shape[-2:], y.shape[-2:])
        pasted = self(y, partner_y, itself, torch.ones(()), scaled)
        return pasted, pasted


def box_inside(side: Tensor, place: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
    """Return lam and the box `(..., 4)` with given sides at a place in [0, 1) inside an image."""
    start = (place * (image - side + 1)).long()
    return 1 - side.prod(-1) / image.prod().double(), torch.cat([start, start + side], -1)


def is_large(x: Tensor) -> bool:
    """Return whether copies of `x` should be in the memory of `large_like`."""
    return x.device.type == "cpu" and x.is_contiguous() and x.nbytes >= LARGE


def large_like(x: Tensor) -> Tensor:
    """Return new memory like the contiguous `x` on the CPU.

    NumPy asks the kernel for huge pages and torch does not, so the first write is 5 times faster.
    """
    return torch.from_numpy(np.empty(x.nbytes, np.uint8)).view(x.dtype).view(x.shape)


def _mixed_in_groups(x: Tensor, other: Tensor, partner: Tensor, weight: Tensor | float) -> Tensor:
    """Mix a few rows at a time, so that the second pass over them finds them in the cache."""
    mixed = large_like(x)
    step = max(1, GROUP // x[:1].nbytes)
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        group = mixed[rows]
        torch.index_select(other, 0, partner[rows], out=group)
        group.lerp_(x[rows], weight if isinstance(weight, float) else weight[rows])
    return mixed


def rows_of(x: Tensor, index: Tensor) -> Tensor:
    """Return the rows `index` of `x`, in the memory format of `x`."""
    index = index.to(x.device)
    if x.is_contiguous() or not is_channels_last(x):
        return x.index_select(0, index)
    return x.movedim(1, -1).index_select(0, index).movedim(-1, 1)


def joined(x: Tensor, below: Tensor) -> Tensor:
    """Return the rows of `x` and, below them, others, in the memory format of `x`."""
    if not is_channels_last(x):
        return torch.cat([x, below])
    return torch.cat([x.movedim(1, -1), below.movedim(1, -1)]).movedim(-1, 1)


def scaled_boxes(boxes: Tensor, image: Size, size: Size) -> Tensor:
    """Return boxes `(..., 4)` in images of one size as boxes in maps of another.

    A scaled box has the pixels of the map whose centers lie in the box of the image.
    """
    if image == size:
        return boxes
    edges = [
        -((old - 2 * edge * new) // (2 * old))  # ⌈edge · new / old - 1/2⌉
        for edge, old, new in zip(boxes.unbind(-1), image * 2, size * 2, strict=True)
    ]
    return torch.stack(edges, -1)


def _inside_box(x: Tensor, box: list[int]) -> Tensor:
    """Return a view of what images have in a box."""
    top, left, bottom, right = box
    return x.narrow(-2, top, bottom - top).narrow(-1, left, right - left)


def _inside(region: Tensor, x: Tensor) -> Tensor:
    """Return whether each pixel lies in the box of its sample, `(n, 1, …, height, width)`."""
    boxes = region.to(x.device).view(-1, 4, *[1] * (x.dim() - 1))
    top, left, bottom, right = boxes.unbind(1)
    row = torch.arange(x.shape[-2], device=x.device).unsqueeze(1)
    column = torch.arange(x.shape[-1], device=x.device)
    return (top <= row) & (row < bottom) & (left <= column) & (column < right)


def image_size(samples: Sequence[Tensor], what: str) -> tuple[int, int]:
    """Return height and width of images; raise if inputs are no images of one size."""
    shapes = [tuple(x.shape) for x in samples]
    if any(len(shape) < 4 for shape in shapes):
        raise ValueError(
            f"{what} needs images of shape (n, channels, height, width), or videos, "
            f"got {', '.join(map(str, shapes))}: for grey images pass x[:, None], "
            "for tables use KMixup"
        )
    sizes = {shape[-2:] for shape in shapes}
    if len(sizes) > 1:
        raise ValueError(
            f"{what} mixes all images of a sample in the same place, so they must have the same "
            f"height and width, got {', '.join(map(str, sorted(sizes)))}: resize them"
        )
    (size,) = sizes
    return size[0], size[1]
