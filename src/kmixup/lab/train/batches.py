"""Batches of a data set: gathered, augmented and normalised."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from kmixup.lab.data import Dataset

PADDING = 4


def crop_and_flip(x: Tensor, generator: Generator) -> Tensor:
    """Each image `(n, channels, height, width)` moved by up to 4 pixels and maybe mirrored.

    What comes in from outside is black, the raw value 0.
    """
    n, channels, height, width = x.shape
    offset = torch.randint(2 * PADDING + 1, (n, 2), generator=generator)
    flip = torch.randint(2, (n, 1), generator=generator).bool()
    rows = offset[:, :1] + torch.arange(height)
    columns = offset[:, 1:] + torch.arange(width)
    columns = torch.where(flip, columns.flip(1), columns)
    padded = torch.nn.functional.pad(x, [PADDING] * 4)
    sample, channel = torch.arange(n), torch.arange(channels)
    index = (sample[:, None, None, None], channel[:, None, None], rows[:, None, :, None])
    return padded[tuple(i.to(x.device) for i in (*index, columns[:, None, None, :]))]


def gather(rows: Tensor, data: Dataset, augment: Generator | None) -> tuple[Tensor, Tensor]:
    """Inputs of the given rows, augmented and normalised, and their targets."""
    rows = rows.to(data.x_train.device)
    x = data.x_train.index_select(0, rows)
    if augment is not None:
        x = crop_and_flip(x, augment)
    return data.normalise(x), data.y_train.index_select(0, rows)
