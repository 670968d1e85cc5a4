"""Images mixed by a mask that depends on the importance of their pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from kmixup._batch import Batch
from kmixup._nests import Mixes, Nest, mixed_entries
from kmixup.importance import spectral_residual
from kmixup.interpolation import Interpolation, Mask, Pair, Region, image_size, rows_of


@dataclass(frozen=True)
class Masked(Interpolation):
    """mask · x[i] + (1 - mask) · other[partner[i]], pixel by pixel, after pixels have moved.

    Subclasses make the mask in `settle`, and lam is its mean. All images of a nest share the mask.
    """

    dense: ClassVar[bool] = False

    def __call__(
        self, x: Tensor, other: Tensor, partner: Tensor, lam: Tensor, region: Region = None
    ) -> Tensor:
        assert isinstance(region, Mask)
        theirs = rows_of(other, partner)
        if region.moves is not None:
            x, theirs = _moved(x, region.moves[0]), _moved(theirs, region.moves[1])
        dtype = torch.promote_types(x.dtype, torch.float32)
        weight = region.weight.to(x.device, dtype)
        weight = weight.view(len(x), *[1] * (x.dim() - 3), *weight.shape[-2:])
        return theirs.to(dtype).lerp_(x.to(dtype), weight).to(x.dtype)


def _moved(x: Tensor, move: Tensor) -> Tensor:
    """Images whose pixel j is pixel `move[i, j]` of image i; `move` is `(n, height · width)`."""
    pixels = x.flatten(-2)
    index = move.to(x.device).view(len(x), *[1] * (pixels.dim() - 2), -1)
    return pixels.gather(-1, index.expand_as(pixels)).view_as(x)


def importances_of_images(pair: Pair) -> tuple[Tensor, Tensor]:
    """Return the importance of both sides `(n, height, width)`, as `total_one`."""
    size = pair.image_size
    own, their = pair.importances
    if own.shape[-2:] != size:
        raise ValueError(
            "importance must have the height and width of the images, got "
            f"{tuple(own.shape[-2:])} for images of {size}"
        )
    return total_one(own), total_one(their)


def importance_of(batch: Batch, mixes: Mixes, mixer: str) -> tuple[Tensor, Tensor]:
    """Return the importance of both sides of a batch, by `spectral_residual` if none was given."""
    if batch.importance is not None:
        return batch.importance

    def residual(x: Nest) -> Tensor:
        images = mixed_entries(x, mixes)
        image_size(images, mixer)
        return spectral_residual(torch.cat([image.flatten(1, -3) for image in images], 1))

    first = residual(batch.x)
    return first, first if batch.other is None else residual(batch.other[0])


def total_one(importance: Tensor) -> Tensor:
    """Return importance in float64, scaled to total 1 for every image.

    An image with zero importance everywhere gets uniform importance.
    """
    whole = importance.double()
    # the largest first: the square of a tiny gradient is not far from the smallest number
    whole = whole / whole.amax((1, 2), keepdim=True)
    whole = torch.where(whole.isfinite(), whole, 1.0)
    return whole / whole.sum((1, 2), keepdim=True)
