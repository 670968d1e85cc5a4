"""From samples to a data set: encode and scale, fitted to the training samples only."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor

from kmixup.lab.data.dataset import Dataset, Samples

Scaling = Literal["paper", "standard", "minmax", "symmetric", "global", "cifar", "none"]
SCALINGS: tuple[str, ...] = get_args(Scaling)

# Of CIFAR-10's channels, in [0, 1], as many public scripts have them. The deviations are means
# over images of the deviation within an image, and so smaller than those over all pixels.
CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
MOST_ROWS = 200_000  # hashes of training rows that a model keeps
CHUNK = 4096  # samples turned into floats at a time


def prepare(
    name: str, samples: Samples, scaling: str, rule: str, part: str | None = None
) -> Dataset:
    """Encode and scale samples; `rule` is what the scaling "paper" means for them."""
    encoder, hashes, notes = None, None, list(samples.notes)
    if samples.schema is not None:
        from kmixup.tables.encoder import TableEncoder  # here, because pandas loads slowly
        from kmixup.tables.look import across, distinct, row_hashes

        frame, rows = samples.frame, (samples.x, samples.x_test, samples.x_final)
        train, *others = (frame.iloc[part.long().numpy()] for part in rows)
        encoder, inputs = TableEncoder.fit(samples.schema, train, samples.y.numpy())
        x_test, x_final = (torch.from_numpy(encoder.encode(part)) for part in others)
        notes += across(train, others[0])
        hashes = distinct(row_hashes(train[[c.name for c in encoder.columns if c.used]]))
        hashes = hashes[:: -(-len(hashes) // MOST_ROWS)].copy()  # files hold whole arrays only
        x = torch.from_numpy(inputs)
        samples = replace(samples, x=x, x_test=x_test, x_final=x_final, columns=encoder.names)
    elif samples.x.is_floating_point() and samples.x.dim() == 2:
        samples = impute(samples)
    pixel_range = (0.0, 255.0) if samples.x.dtype == torch.uint8 else None
    mean, std = fit(rule, samples.x, pixel_range)
    if encoder is not None and any(encoder.binary):
        # a rare category would become large if it were scaled
        binary = torch.tensor(encoder.binary)
        mean, std = torch.where(binary, 0.0, mean), torch.where(binary, 1.0, std)
    y, y_test, target_mean, target_std = samples.y, samples.y_test, 0.0, 1.0
    if y.is_floating_point():
        targets = y.double()
        target_mean, target_std = float(targets.mean()), float(targets.std(correction=0)) or 1.0
        y, y_test = (((t.double() - target_mean) / target_std).float() for t in (y, y_test))
    return Dataset(
        name, samples.x, y, samples.x_test, y_test, samples.classes, mean=mean, std=std,
        x_final=samples.x_final, y_final=samples.y_final, scaling=scaling,
        pixel_range=pixel_range, part=part, columns=samples.columns, encoder=encoder, rows=hashes,
        target_mean=target_mean, target_std=target_std, notes=tuple(notes),
        split_by_seed=samples.split_by_seed,
    )  # fmt: skip


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
        mean, std = (255 * torch.tensor(each).view(-1, 1, 1) for each in (CIFAR_MEAN, CIFAR_STD))
    elif scaling == "global":
        mean, std = (moment.squeeze() for moment in _moments(x.flatten(1).unsqueeze(1)))
    else:
        axes = [0, *range(2, x.dim())]
        if pixel_range is None:
            low, high = x.amin(axes, keepdim=True)[0], x.amax(axes, keepdim=True)[0]
        else:
            low, high = map(torch.tensor, pixel_range)
        mean, std = low, high - low
        if scaling == "symmetric":
            mean, std = (low + high) / 2, (high - low) / 2
    precision = torch.float64 if x.dtype == torch.float64 else torch.float32
    varies = std > 1e-14 * mean.abs()
    return mean.to(precision), torch.where(varies, std, 1.0).to(precision)


def _moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation per column `(d,)`, or per channel `(c, 1, 1)`.

    Each chunk's moments are taken in float32, unless inputs are float64 or too large for it,
    and put together in float64.
    """
    axes = [0, *range(2, x.dim())]
    chunks = x.split(CHUNK)
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


def impute(samples: Samples) -> Samples:
    """Fill missing values with their column's training median, or 0 where it has no value."""
    parts = (samples.x, samples.x_test, samples.x_final)
    if not any(x.isnan().any() for x in parts):
        return samples
    median = samples.x.nanmedian(0).values.nan_to_num(0.0)
    x, x_test, x_final = (
        torch.where(part.isnan(), median, part) if len(part) else part for part in parts
    )
    return replace(samples, x=x, x_test=x_test, x_final=x_final)
