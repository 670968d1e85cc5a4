"""Noise in the shape of a data set: to time a network where its data are not at hand."""

from __future__ import annotations

import torch
from torch import Generator

from kmixup.lab.data.catalogue import Entry
from kmixup.lab.data.dataset import Dataset


def noise(
    name: str,
    n: int,
    shape: tuple[int, ...],
    classes: int,
    *,
    test: int = 1,
    pixels: bool = True,
) -> Dataset:
    """Inputs and classes at random.

    Args:
        name: of the data set.
        n: number of training samples.
        shape: of one input.
        classes: number of classes.
        test: number of test samples, at most `n`: they are the first training samples.
        pixels: whether inputs are pixels in uint8, or normal draws.
    """
    generator = Generator().manual_seed(0)
    if pixels:
        x = torch.randint(256, (n, *shape), dtype=torch.uint8, generator=generator)
    else:
        x = torch.randn((n, *shape), generator=generator)
    y = torch.randint(classes, (n,), generator=generator)
    middle = 127.5 if pixels else 0.0
    return Dataset(
        name, x, y, x[:test], y[:test], tuple(map(str, range(classes))),
        mean=torch.tensor(middle), std=torch.tensor(middle or 1.0),
        scaling="symmetric" if pixels else "none",
        pixel_range=(0.0, 255.0) if pixels else None,
    )  # fmt: skip


def noise_like(entry: Entry, n: int) -> Dataset:
    """Noise with the shape, the kind and the classes of an entry, `n` samples in both parts."""
    return noise(entry.name, n, entry.shape, entry.classes, test=n, pixels=entry.kind == "image")
