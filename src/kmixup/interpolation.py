"""Stage 3: how a sample and its partner become one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from kmixup.coefficient import per_sample


@dataclass(frozen=True)
class Interpolation(ABC):
    """Draws what it needs beyond lam, and mixes samples with their partners."""

    averages: ClassVar[bool]  # values are averaged, which integers cannot be

    @abstractmethod
    def draw(
        self, lam: Tensor, samples: Sequence[Tensor], generator: Generator | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """lam as it will be for such samples, and where to mix: a row for every lam."""

    @abstractmethod
    def __call__(
        self, x: Tensor, other: Tensor, partner: Tensor, lam: Tensor, where: Tensor | None = None
    ) -> Tensor:
        """Mix `x` `(n, ...)` with its partners in `other`.

        `lam` is a scalar or `(n,)`, and `where` is what was drawn with it.
        """


@dataclass(frozen=True)
class Linear(Interpolation):
    """lam · x[i] + (1 - lam) · other[partner[i]]."""

    averages = True

    def draw(
        self, lam: Tensor, samples: Sequence[Tensor], generator: Generator | None = None
    ) -> tuple[Tensor, None]:
        return lam, None

    def __call__(
        self, x: Tensor, other: Tensor, partner: Tensor, lam: Tensor, where: Tensor | None = None
    ) -> Tensor:
        # One gather and one pass: plain index_select is several times faster than
        # indexing, and lerp in place makes no further copy.
        mixed = other.index_select(0, partner.to(other.device))
        if lam.dim() == 0:
            return mixed.lerp_(x, lam.item())
        weight = per_sample(lam, x).to(x.device)
        if x.dtype == weight.dtype:
            return mixed.lerp_(x, weight)
        return mixed.to(weight.dtype).lerp_(x.to(weight.dtype), weight).to(x.dtype)


@dataclass(frozen=True)
class Cut(Interpolation):
    """A box of the partner pasted into the sample; lam is the share of the area left.

    For images `(n, channels, height, width)`, of any dtype since nothing is averaged.
    As in CutMix (Yun et al. 2019) the sides of the box are √(1 - lam) times those of
    the image, rounded down, its centre is any pixel, and what reaches over the border
    is lost. lam is then put right: it is 1 minus the true share of the box.

    All images of a nest share the box, so that a mask can go with its image.
    """

    averages = False

    def draw(
        self, lam: Tensor, samples: Sequence[Tensor], generator: Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """The corrected lam, and boxes `(..., 4)`: top, left, bottom, right."""
        image = torch.tensor(_image_size(samples), device=lam.device)
        uniform = torch.rand(
            *lam.shape, 2, generator=generator, dtype=torch.float64, device=lam.device
        )
        centre = (image * uniform).long()
        side = (image * (1 - lam).sqrt()[..., None]).long()
        start = (centre - side // 2).clamp(min=0)
        stop = torch.minimum(centre + (side + 1) // 2, image)
        share = (stop - start).prod(-1) / image.prod().double()
        return 1 - share, torch.cat([start, stop], -1)

    def __call__(
        self, x: Tensor, other: Tensor, partner: Tensor, lam: Tensor, where: Tensor | None = None
    ) -> Tensor:
        if where is None:
            raise ValueError("Cut needs the box: lam, where = Cut().draw(lam, [x])")
        partner = partner.to(other.device)
        if where.dim() == 1:
            top, left, bottom, right = where.tolist()
            box = (..., slice(top, bottom), slice(left, right))
            mixed = x.clone()
            mixed[box] = other[box].index_select(0, partner)
            return mixed
        top, left, bottom, right = where.to(x.device).view(-1, 4, 1, 1, 1).unbind(1)
        row = torch.arange(x.shape[-2], device=x.device)[:, None]
        column = torch.arange(x.shape[-1], device=x.device)
        inside = (top <= row) & (row < bottom) & (left <= column) & (column < right)
        return torch.where(inside, other.index_select(0, partner), x)


def _image_size(samples: Sequence[Tensor]) -> tuple[int, int]:
    shapes = [tuple(x.shape) for x in samples]
    if any(len(shape) != 4 for shape in shapes):
        raise ValueError(
            "Cut needs images of shape (n, channels, height, width), "
            f"got {', '.join(map(str, shapes))}: grey images are x[:, None], "
            "and for inputs without two spatial dimensions there is Linear()"
        )
    sizes = {shape[2:] for shape in shapes}
    if len(sizes) > 1:
        raise ValueError(
            "Cut pastes one box into all images of a sample, which must therefore have the same "
            f"height and width, got {', '.join(map(str, sorted(sizes)))}: resize them"
        )
    height, width = sizes.pop()
    return height, width
