"""From the parts that a reader gives to a data set: cut, filled, encoded and scaled."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from kmixup.lab.data.dataset import Dataset, Holdout, Parts
from kmixup.lab.data.fitting import prepare
from kmixup.lab.data.preparation import Preparation
from kmixup.lab.data.scaling import fit
from kmixup.lab.data.tabular import impute


class Extent(NamedTuple):
    """The size of a data set.

    Attributes:
        train: the number of training samples.
        test: the number of test samples.
        classes: the number of classes.
    """

    train: int
    test: int
    classes: int

    @classmethod
    def of(cls, parts: Parts) -> Extent:
        return cls(len(parts.x_train), len(parts.x_test), len(parts.classes))

    def __str__(self) -> str:
        return f"{self.train:,} training and {self.test:,} test samples of {self.classes} classes"


class Drawn(NamedTuple):
    """A random choice of training samples.

    Attributes:
        samples: how many are drawn.
        seed: of the draw.
    """

    samples: int
    seed: int


class Scale(NamedTuple):
    """A scaling.

    Attributes:
        name: as the user knows it, e.g. "paper".
        rule: as it is computed, e.g. "minmax".
    """

    name: str
    rule: str


def finish(
    name: str,
    parts: Parts,
    *,
    limit: int | None,
    samples: Drawn | None = None,
    scale: Scale,
    holdout: Holdout | None,
    whole: Extent | None = None,
) -> Dataset:
    """Cut or draw parts, make them numbers, fit the scaling, and say which part it is.

    All that is fitted is fitted to the training samples that are left. `whole` is the extent
    of the whole data set, by default that of the parts.
    """
    whole = whole or Extent.of(parts)
    if samples is not None:
        parts = parts.drawn(*samples)
    parts = parts.first(limit) if holdout is None else holdout.of(parts, limit)
    preparation = None
    if parts.table:
        parts, preparation = prepare(parts)
    elif parts.x_train.is_floating_point() and parts.x_train.dim() == 2:
        parts = impute(parts)
    pixel_range = (0.0, 255.0) if parts.x_train.dtype == torch.uint8 else None
    mean, std = fit(scale.rule, parts.x_train, pixel_range)
    if preparation is not None:
        mean, std = _spare_binary(mean, std, preparation)
    parts, target_mean, target_std = standardise(parts)
    extent = Extent.of(parts)
    return Dataset(
        name, parts.x_train, parts.y_train, parts.x_test, parts.y_test, parts.classes,
        mean=mean, std=std, scaling=scale.name, pixel_range=pixel_range,
        part=None if extent == whole else part_in_words(extent, whole, holdout, samples),
        columns=parts.columns, preparation=preparation, target_mean=target_mean,
        target_std=target_std, notes=parts.notes, split_by_seed=parts.split_by_seed,
    )  # fmt: skip


def standardise(parts: Parts) -> tuple[Parts, float, float]:
    """Scale the targets of a regression to mean 0 and deviation 1 in the training part.

    Returns the parts, and the mean and the deviation that were taken out.
    """
    if not parts.y_train.is_floating_point():
        return parts, 0.0, 1.0
    training = parts.y_train.double()
    mean, std = float(training.mean()), float(training.std(correction=0))
    if std == 0:
        raise ValueError(
            f"the targets of a regression must differ, all {len(training):,} training samples have "
            f"{mean:g}: name another target"
        )
    y_train, y_test = (((y.double() - mean) / std).float() for y in (parts.y_train, parts.y_test))
    return replace(parts, y_train=y_train, y_test=y_test), mean, std


def _spare_binary(mean: Tensor, std: Tensor, preparation: Preparation) -> tuple[Tensor, Tensor]:
    """The map that leaves inputs of 0 and 1 as they are: a rare category would grow large."""
    binary = torch.tensor(preparation.binary)
    if not binary.any():
        return mean, std
    return torch.where(binary, 0.0, mean), torch.where(binary, 1.0, std)


def part_in_words(
    extent: Extent,
    whole: Extent,
    holdout: Holdout | None = None,
    samples: Drawn | None = None,
) -> str:
    """
    >>> part_in_words(Extent(100, 50, 10), Extent(60000, 10000, 10))
    'the first 100 of 60,000 training and 50 of 10,000 test samples'
    >>> part_in_words(Extent(80, 20, 3), Extent(100, 50, 3), Holdout(0.2))
    '80 of 100 training samples, and 20 others of them in the place of the test part'
    >>> part_in_words(Extent(10, 50, 3), Extent(100, 50, 3), samples=Drawn(10, seed=0))
    '10 of 100 training samples, drawn at random'
    """
    if holdout is not None:
        return (
            f"{extent.train:,} of {whole.train:,} training samples, and {extent.test:,} others "
            "of them in the place of the test part"
        )
    if samples is not None:
        return f"{extent.train:,} of {whole.train:,} training samples, drawn at random"
    text = (
        f"the first {extent.train:,} of {whole.train:,} training and "
        f"{extent.test:,} of {whole.test:,} test samples"
    )
    if extent.classes == whole.classes:
        return text
    return f"{text}, {extent.classes} of {whole.classes} classes"
