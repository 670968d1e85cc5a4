"""The affine map from raw inputs to a network's inputs, fitted on the training part only."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

Scaling = Literal["paper", "standard", "minmax", "symmetric", "global", "cifar", "none"]
SCALINGS: tuple[str, ...] = get_args(Scaling)

# Of CIFAR-10's channels, in [0, 1], as many public scripts have them. The deviations are means
# over images of the deviation within an image, and so smaller than those over all pixels.
CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
CHUNK = 4096  # samples turned into floats at a time


def fit(
    scaling: str, x: Tensor, pixel_range: tuple[float, float] | None = None
) -> tuple[Tensor, Tensor]:
    """Return `mean` and `std` of the map (x - mean) / std, from training inputs `(n, ...)`.

    "standard" gives zero mean and unit variance, "minmax" the range [0, 1], "symmetric" the
    range [-1, 1], and "none" changes nothing. Every column of a table and every channel of
    images has its own map, but for "global": one mean and one standard deviation over all
    values, so that columns keep their proportions. The range of pixels is `pixel_range`,
    whatever values occur. A constant column is only shifted.

    >>> fit("symmetric", torch.tensor([[2.0], [6.0]]))
    (tensor([4.]), tensor([2.]))
    """
    if scaling == "none":
        return torch.tensor(0.0), torch.tensor(1.0)
    if scaling == "standard":
        mean, std = _moments(x)
    elif scaling == "cifar":
        if pixel_range is None or x.shape[1] != len(CIFAR_MEAN):
            raise ValueError(
                "scaling cifar is for images with three channels, got inputs of the shape "
                f"{tuple(x.shape[1:])}: use standard"
            )
        least, width = pixel_range[0], pixel_range[1] - pixel_range[0]
        mean = least + width * torch.tensor(CIFAR_MEAN).view(-1, 1, 1)
        std = width * torch.tensor(CIFAR_STD).view(-1, 1, 1)
    elif scaling == "global":
        mean, std = (moment.squeeze() for moment in _moments(x.flatten(1).unsqueeze(1)))
    elif scaling in ("minmax", "symmetric"):
        low, high = _range(x) if pixel_range is None else map(torch.tensor, pixel_range)
        mean, std = low, high - low
        if scaling == "symmetric":
            mean, std = (low + high) / 2, (high - low) / 2
    else:
        raise ValueError(f"scaling must be one of {', '.join(SCALINGS)}, got {scaling!r}")
    precision = torch.float64 if x.dtype == torch.float64 else torch.float32
    varies = std > 1e-14 * mean.abs()
    return mean.to(precision), torch.where(varies, std, 1.0).to(precision)


def _moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation per column `(d,)`, or per channel `(c, 1, 1)`.

    Each chunk's moments are taken in float32, unless inputs are float64 or too large for it,
    and put together in float64.
    """
    axes = [0, *range(2, x.dim())]
    chunks = [x[start : start + CHUNK] for start in range(0, len(x), CHUNK)]
    weight = torch.tensor([len(chunk) for chunk in chunks], dtype=torch.float64) / len(x)
    weight = weight.view(-1, *[1] * (x.dim() - 1))
    exact = x.dtype == torch.float64
    pairs = [
        torch.var_mean(c if exact else c.float(), axes, correction=0, keepdim=True) for c in chunks
    ]
    variances, means = (torch.cat(moment).double() for moment in zip(*pairs, strict=True))
    if not exact and not bool(variances.isfinite().all()):
        return _moments(x.double())
    mean = (weight * means).sum(0)
    return mean, (weight * (variances + (means - mean).square())).sum(0).sqrt()


def _range(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the least and the greatest value per column, or per channel."""
    axes = [0, *range(2, x.dim())]
    return x.amin(axes, keepdim=True)[0], x.amax(axes, keepdim=True)[0]
