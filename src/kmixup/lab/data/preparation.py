"""From samples to a data set: select, encode and scale.

Everything is fitted to the training samples that are selected.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from kmixup.lab.data.dataset import Dataset, Holdout, Samples, normalise
from kmixup.lab.data.scaling import fit


class Extent(NamedTuple):
    """The numbers of training samples, test samples and classes of a data set."""

    train: int
    test: int
    classes: int

    @classmethod
    def of(cls, samples: Samples) -> Extent:
        return cls(len(samples.x), len(samples.x_test), len(samples.classes))

    def __str__(self) -> str:
        return f"{self.train:,} training and {self.test:,} test samples of {self.classes} classes"


class Selection(NamedTuple):
    """Which samples to use: `limit`, `samples`, `seed` and `holdout` as in `load`."""

    limit: int | None = None
    samples: int | None = None
    seed: int = 0
    holdout: Holdout | None = None

    def of(self, samples: Samples) -> Samples:
        if self.samples is not None:
            samples = samples.drawn(self.samples, self.seed)
        return self.holdout.of(samples, self.limit) if self.holdout else samples.first(self.limit)

    def in_words(self, extent: Extent, whole: Extent) -> str | None:
        """Describe the part, or return None for all samples.

        >>> Selection(limit=100).in_words(Extent(100, 50, 10), Extent(60000, 10000, 10))
        'the first 100 of 60,000 training and 50 of 10,000 test samples'
        >>> Selection(holdout=Holdout(0.2)).in_words(Extent(80, 20, 3), Extent(100, 50, 3))
        '80 of 100 training samples, and 20 others of them in the place of the test part'
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
    samples: Samples,
    selection: Selection,
    scaling: str,
    rule: str,
    whole: Extent | None = None,
) -> Dataset:
    """Select samples, encode and scale them.

    `rule` is what the scaling "paper" means for these data, and `whole` the extent of the whole
    data set, by default that of the samples.
    """
    whole = whole or Extent.of(samples)
    samples = selection.of(samples)
    if samples.encoder is not None:
        samples = _encoded(samples)
    elif samples.x.is_floating_point() and samples.x.dim() == 2:
        samples = impute(samples)
    pixel_range = (0.0, 255.0) if samples.x.dtype == torch.uint8 else None
    mean, std = fit(rule, samples.x, pixel_range)
    if samples.encoder is not None:
        if any(samples.encoder.binary):
            # a rare category would become large if it were scaled
            binary = torch.tensor(samples.encoder.binary)
            mean, std = torch.where(binary, 0.0, mean), torch.where(binary, 1.0, std)
        for x in (samples.x, samples.x_test):
            check_representable(x, mean, std, samples.columns)
    samples, target_mean, target_std = standardise(samples)
    return Dataset(
        name, samples.x, samples.y, samples.x_test, samples.y_test, samples.classes,
        mean=mean, std=std, scaling=scaling, pixel_range=pixel_range,
        part=selection.in_words(Extent.of(samples), whole), columns=samples.columns,
        encoder=samples.encoder, target_mean=target_mean, target_std=target_std,
        notes=samples.notes, split_by_seed=samples.split_by_seed,
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


def impute(samples: Samples) -> Samples:
    """Fill missing values with the median of their column over the training part.

    A column without any value there becomes 0.
    """
    parts = (samples.x, samples.x_test)
    if not any(x.isnan().any() for x in parts):
        return samples
    median = samples.x.nanmedian(0).values.nan_to_num(0.0)
    x, x_test = (torch.where(part.isnan(), median, part) for part in parts)
    return replace(samples, x=x, x_test=x_test)


def standardise(samples: Samples) -> tuple[Samples, float, float]:
    """Scale the targets of a regression to mean 0 and standard deviation 1 in the training part.

    Returns the samples, and the mean and the deviation that were taken out.
    """
    if not samples.y.is_floating_point():
        return samples, 0.0, 1.0
    training = samples.y.double()
    mean, std = float(training.mean()), float(training.std(correction=0))
    if std == 0:
        raise ValueError(
            f"the targets of a regression must differ, all {len(training):,} training samples have "
            f"{mean:g}: name another target"
        )
    y, y_test = (((part.double() - mean) / std).float() for part in (samples.y, samples.y_test))
    return replace(samples, y=y, y_test=y_test), mean, std


def _encoded(samples: Samples) -> Samples:
    """Return the rows of a table as inputs, with an encoder that is fitted to the training rows."""
    assert samples.encoder is not None
    train, test = (samples.frame.iloc[rows.numpy()] for rows in (samples.x, samples.x_test))
    encoder = samples.encoder.fit(train)
    remarks = {
        name: f"{count:,} test rows have another category"
        for name, count in encoder.unseen(test).items()
    }
    x, x_test = (torch.from_numpy(encoder.encode(part)) for part in (train, test))
    encoder = encoder.with_remarks(remarks)
    return replace(samples, x=x, x_test=x_test, encoder=encoder, columns=encoder.names)
