"""From samples to a data set: select, encode and scale.

Everything is fitted to the training samples that are selected.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from kmixup.lab.data.dataset import Dataset, Holdout, Parts, normalise
from kmixup.lab.data.scaling import fit


class Extent(NamedTuple):
    """The numbers of training samples, test samples and classes of a data set."""

    train: int
    test: int
    classes: int

    @classmethod
    def of(cls, parts: Parts) -> Extent:
        return cls(len(parts.x_train), len(parts.x_test), len(parts.classes))

    def __str__(self) -> str:
        return f"{self.train:,} training and {self.test:,} test samples of {self.classes} classes"


class Selection(NamedTuple):
    """Which samples to use: `limit`, `samples`, `seed` and `holdout` as in `load`."""

    limit: int | None = None
    samples: int | None = None
    seed: int = 0
    holdout: Holdout | None = None

    def of(self, parts: Parts) -> Parts:
        if self.samples is not None:
            parts = parts.drawn(self.samples, self.seed)
        return self.holdout.of(parts, self.limit) if self.holdout else parts.first(self.limit)

    def in_words(self, extent: Extent, whole: Extent) -> str | None:
        """Describe the part, or return None for all samples.

        >>> Selection(limit=100).in_words(Extent(100, 50, 10), Extent(60000, 10000, 10))
        'the first 100 of 60,000 training and 50 of 10,000 test samples'
        >>> Selection(holdout=Holdout(0.2)).in_words(Extent(80, 20, 3), Extent(100, 50, 3))
        '80 of 100 training samples, and 20 others of them in the place of the test part'
        >>> Selection(samples=10).in_words(Extent(10, 50, 3), Extent(100, 50, 3))
        '10 of 100 training samples, drawn at random'
        """
        if extent == whole:
            return None
        some = f"{extent.train:,} of {whole.train:,} training"
        if self.holdout is not None:
            return (
                f"{some} samples, and {extent.test:,} others of them in the place of the test part"
            )
        if self.samples is not None:
            return f"{some} samples, drawn at random"
        text = f"the first {some} and {extent.test:,} of {whole.test:,} test samples"
        if extent.classes == whole.classes:
            return text
        return f"{text}, {extent.classes} of {whole.classes} classes"


def prepare(
    name: str,
    parts: Parts,
    selection: Selection,
    scaling: str,
    rule: str,
    whole: Extent | None = None,
) -> Dataset:
    """Select samples, encode and scale them.

    `rule` is what the scaling "paper" means for these data, and `whole` the extent of the whole
    data set, by default that of the parts.
    """
    whole = whole or Extent.of(parts)
    parts = selection.of(parts)
    encoder, columns = None, parts.columns
    if parts.table is not None:
        parts, encoder = _encoded(parts)
        columns = encoder.names
    elif parts.x_train.is_floating_point() and parts.x_train.dim() == 2:
        parts = impute(parts)
    pixel_range = (0.0, 255.0) if parts.x_train.dtype == torch.uint8 else None
    mean, std = fit(rule, parts.x_train, pixel_range)
    if encoder is not None and any(encoder.binary):
        # a rare category would become large if it were scaled
        binary = torch.tensor(encoder.binary)
        mean, std = torch.where(binary, 0.0, mean), torch.where(binary, 1.0, std)
    if encoder is not None:
        for x in (parts.x_train, parts.x_test):
            check_representable(x, mean, std, columns)
    parts, target_mean, target_std = standardise(parts)
    return Dataset(
        name, parts.x_train, parts.y_train, parts.x_test, parts.y_test, parts.classes,
        mean=mean, std=std, scaling=scaling, pixel_range=pixel_range,
        part=selection.in_words(Extent.of(parts), whole), columns=columns, encoder=encoder,
        target_mean=target_mean, target_std=target_std, notes=parts.notes,
        split_by_seed=parts.split_by_seed,
    )  # fmt: skip


def check_representable(x: Tensor, mean: Tensor, std: Tensor, columns: tuple[str, ...]) -> None:
    """Raise if a scaled input of a table is beyond float32, in which networks compute."""
    beyond = ~normalise(x, mean, std).isfinite()
    if bool(beyond.any()):
        row, column = beyond.nonzero()[0].tolist()
        raise ValueError(
            f"the column {columns[column]!r} must hold numbers that float32 can represent once "
            f"they are scaled, one is {float(x[row, column]):g} where the training rows have "
            f"{float(mean.expand(x.shape[1])[column]):g} on average: correct or drop it"
        )


def impute(parts: Parts) -> Parts:
    """Fill missing values with the median of their column over the training part.

    A column without any value there becomes 0.
    """
    if not any(x.isnan().any() for x in (parts.x_train, parts.x_test)):
        return parts
    median = parts.x_train.nanmedian(0).values.nan_to_num(0.0)
    x_train, x_test = (torch.where(x.isnan(), median, x) for x in (parts.x_train, parts.x_test))
    return replace(parts, x_train=x_train, x_test=x_test)


def standardise(parts: Parts) -> tuple[Parts, float, float]:
    """Scale the targets of a regression to mean 0 and standard deviation 1 in the training part.

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


def _encoded(parts: Parts) -> tuple[Parts, Any]:
    """Return the parts of a table as inputs, and the encoder, fitted to the training part."""
    assert parts.table is not None
    values = parts.table.values
    train, test = (values.iloc[rows.numpy()] for rows in (parts.x_train, parts.x_test))
    encoder = parts.table.encoder.fit(train)
    remarks = {
        name: f"{count:,} test rows have another category"
        for name, count in encoder.unseen(test).items()
    }
    x_train, x_test = (torch.from_numpy(encoder.encode(part)) for part in (train, test))
    return replace(parts, x_train=x_train, x_test=x_test), encoder.with_remarks(remarks)
