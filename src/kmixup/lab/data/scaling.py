"""How raw inputs become a network's: one affine map, fitted on the training part alone."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

Scaling = Literal["paper", "standard", "minmax", "symmetric", "none"]
SCALINGS: tuple[str, ...] = get_args(Scaling)

CHUNK = 4096  # samples turned into floats at a time


def fit(
    scaling: str, x: Tensor, pixel_range: tuple[float, float] | None = None
) -> tuple[Tensor, Tensor]:
    """`mean` and `std` of the map (x - mean) / std, from training inputs `(n, ...)`.

    "standard": zero mean and unit variance; "minmax": onto [0, 1]; "symmetric": onto
    [-1, 1]; "none": as they are. Columns of a table are scaled each for itself, images
    by channel, and pixels from their whole range. A constant column is only shifted.

    >>> fit("symmetric", torch.tensor([[2.0], [6.0]]))
    (tensor([4.]), tensor([2.]))
    """
    if scaling == "none":
        return torch.tensor(0.0), torch.tensor(1.0)
    if scaling == "standard":
        mean, std = _moments(x)
    elif scaling in ("minmax", "symmetric"):
        low, high = _range(x) if pixel_range is None else map(torch.tensor, pixel_range)
        mean, std = low, high - low
        if scaling == "symmetric":
            mean, std = (low + high) / 2, (high - low) / 2
    else:
        raise ValueError(f"scaling must be one of {', '.join(SCALINGS)}, got {scaling!r}")
    return mean.float(), torch.where(std > 0, std, 1.0).float()


def _moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation per column `(d,)`, or per channel `(c, 1, 1)`.

    Each chunk's moments are taken in float32 and put together in float64.
    """
    axes = [0, *range(2, x.dim())]
    chunks = [x[start : start + CHUNK] for start in range(0, len(x), CHUNK)]
    weight = torch.tensor([len(chunk) for chunk in chunks], dtype=torch.float64) / len(x)
    weight = weight.view(-1, *[1] * (x.dim() - 1))
    pairs = [torch.var_mean(c.float(), axes, correction=0, keepdim=True) for c in chunks]
    variances, means = (torch.cat(moment).double() for moment in zip(*pairs, strict=True))
    mean = (weight * means).sum(0)
    return mean, (weight * (variances + (means - mean).square())).sum(0).sqrt()


def _range(x: Tensor) -> tuple[Tensor, Tensor]:
    """Least and greatest value per column, or per channel."""
    axes = [0, *range(2, x.dim())]
    return x.amin(axes, keepdim=True)[0], x.amax(axes, keepdim=True)[0]
