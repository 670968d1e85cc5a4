"""ResizeMix: a whole image, made smaller, inside another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import torch
from torch import Tensor
from torch.nn import functional as F

from kmixup._checks import check_range
from kmixup._nests import Nest
from kmixup.coefficient import Uniform
from kmixup.interpolation import Cut, Pair, Region, box_inside
from kmixup.methods.kmixup import PairMixer, PairOptions, check_options


@dataclass(frozen=True)
class Shrink(Cut):
    """Paste the whole partner into a box of the image; lam is the area outside of it.

    The box lies inside the image; its sides are the image's, times a factor within `scale`.
    Floats are resized bilinearly with antialiasing, integers by the nearest pixel.
    """

    scale: tuple[float, float] = (0.1, 0.8)

    def __post_init__(self) -> None:
        check_range("scale", self.scale)

    def settle(self, lam: Tensor, spot: Tensor | None, pair: Pair) -> tuple[Tensor, Tensor]:
        assert spot is not None
        low, high = self.scale
        image = torch.tensor(pair.image_size, device="cpu")
        side = (image * (low + (high - low) * lam)[..., None]).long().clamp(min=1)
        return box_inside(side, spot, image)

    def __call__(
        self, x: Tensor, other: Tensor, partner: Tensor, lam: Tensor, region: Region = None
    ) -> Tensor:
        assert isinstance(region, Tensor)
        return self.paste(x, other, partner, region)

    def patch(self, other: Tensor, partner: Tensor | None, box: list[int]) -> Tensor:
        """Return whole partners at the size of a box."""
        top, left, bottom, right = box
        whole = other if partner is None else other.index_select(0, partner)
        flat = whole.reshape(len(whole), -1, *whole.shape[-2:])
        size = bottom - top, right - left
        if whole.is_floating_point():
            flat = flat.to(torch.promote_types(whole.dtype, torch.float32))
            small = F.interpolate(flat, size, mode="bilinear", antialias=True)
        else:
            small = F.interpolate(flat.double(), size, mode="nearest-exact")
        return small.to(whole.dtype).reshape(*whole.shape[:-2], *size)


class ResizeMix(PairMixer):
    """ResizeMix: paste the whole partner, made smaller, at a random place of every image.

    `k=1` is ResizeMix as published (Qin et al. 2020, "ResizeMix: Mixing Data with Preserved Object
    Information and True Labels"), with random partners; with a larger `k` the partners are matched
    by optimal transport. lam is the fraction of the image outside of the box.

    Args:
        k: the number of samples in a block.
        scale: the sides of the box are uniform between these two fractions of the image's.
        num_classes: the number of classes of integer targets, which become one-hot.
        options: `PairOptions`: metric, targets, ignore_index, lam_per, prob, generator.

    >>> mix = ResizeMix(k=16, num_classes=10)
    >>> x, y = mix(torch.randn(128, 3, 32, 32), torch.randint(10, (128,)))
    """

    def __init__(
        self,
        k: int = 1,
        num_classes: Nest = None,
        *,
        scale: tuple[float, float] = (0.1, 0.8),
        **options: Unpack[PairOptions],
    ) -> None:
        check_options(self, options, alpha="scale is the range of the box's sides")
        self.interpolation = Shrink(scale)
        super().__init__(k, Uniform(), num_classes, **options)
