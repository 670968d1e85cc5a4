"""Images mixed by a mask that depends on the importance of their pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kmixup.interpolation import Interpolation, Mask, Pair, Region, rows_of


@dataclass(frozen=True)
class Masked(Interpolation):
    """mask · x[i] + (1 - mask) · other[partner[i]], pixel by pixel, after pixels have moved.

    Subclasses make the mask in `settle`, and lam is its mean. For images `(n, channels,
    height, width)` and videos. All images of a nest share the mask.
    """

    def __call__(
        self, x: Tensor, other: Tensor, partner: Tensor, lam: Tensor, region: Region = None
    ) -> Tensor:
        if not isinstance(region, Mask):
            raise ValueError(
                f"{type(self).__name__} needs the mask: lam, region = settle(lam, spot, pair)"
            )
        theirs = rows_of(other, partner)
        if region.moves is not None:
            x, theirs = (
                moved(side, move) for side, move in zip((x, theirs), region.moves, strict=True)
            )
        weight = region.weight.to(x.device)
        weight = weight.view(len(x), *[1] * (x.dim() - 3), *weight.shape[-2:])
        dtype = torch.promote_types(x.dtype, torch.float32)
        return theirs.to(dtype).lerp(x.to(dtype), weight.to(dtype)).to(x.dtype)

    def targets(
        self, y: Tensor, partner_y: Tensor, region: Region, samples: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor]:
        check_not_dense(y, samples, type(self).__name__)
        return y, partner_y


def check_not_dense(y: Tensor, samples: Sequence[Tensor], stage: str) -> None:
    """Raise on a target for every pixel, which one weight for the whole image would blur."""
    if y.dim() > 2 and y.shape[-2:] == samples[0].shape[-2:]:
        raise ValueError(
            f"{stage} weighs targets by one number for each image, got one target for each pixel, "
            f"of the shape {tuple(y.shape)}: CutMix pastes them with their image"
        )


def moved(x: Tensor, move: Tensor) -> Tensor:
    """Images whose pixel j is pixel `move[i, j]` of image i; `move` is `(n, height · width)`."""
    pixels = x.flatten(-2)
    index = move.to(x.device).view(len(x), *[1] * (pixels.dim() - 2), -1)
    return pixels.gather(-1, index.expand_as(pixels)).view_as(x)


def importances_of_images(pair: Pair, method: str) -> tuple[Tensor, Tensor]:
    """Importance of both sides `(n, height, width)` in float64, with total 1 for every image.

    An image in which nothing matters has the same importance everywhere.
    """
    shapes = sorted({tuple(x.shape) for x in pair.samples})
    if any(len(shape) < 4 for shape in shapes):
        raise ValueError(
            f"{method} needs images of shape (n, channels, height, width), got "
            f"{', '.join(map(str, shapes))}: grey images are x[:, None]"
        )
    own, their = pair.importances
    if {shape[-2:] for shape in shapes} != {tuple(own.shape[-2:])}:
        raise ValueError(
            f"importance must have the height and width of the images, got {tuple(own.shape[-2:])} "
            f"for images of {', '.join(str(shape[-2:]) for shape in shapes)}"
        )
    return _total_one(own), _total_one(their)


def _total_one(importance: Tensor) -> Tensor:
    whole = importance.double()
    # the largest first: the square of a tiny gradient is not far from the smallest number
    whole = whole / whole.amax((1, 2), keepdim=True)
    whole = torch.where(whole.isfinite(), whole, 1.0)
    return whole / whole.sum((1, 2), keepdim=True)
