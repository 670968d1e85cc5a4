"""A data set in memory: samples, their division into parts, the map to a network's input."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from kmixup.lab.checks import SettingError
from kmixup.lab.data.targets import Task

if TYPE_CHECKING:  # pandas loads slowly, and only your own tables need it
    from kmixup.columns import TableEncoder


EMPTY = torch.empty(0)


@dataclass(frozen=True, eq=False)
class Samples:
    """Raw inputs and targets, as a reader returns them.

    Without a test part of their own, `x_test` is empty until `split`. With an `encoder`, for
    your own tables, inputs are the numbers of rows in `frame`.
    """

    x: Tensor  # (n, ...)
    y: Tensor  # class indices (n,), or the numbers of a regression
    classes: tuple[str, ...]  # empty for a regression
    x_test: Tensor = EMPTY
    y_test: Tensor = EMPTY
    encoder: TableEncoder | None = None  # fitted to the training rows in `prepare`
    frame: Any = None  # a data frame of values, as the encoder reads them
    notes: tuple[str, ...] = ()  # what a user should know about the reading
    columns: tuple[str, ...] = ()  # names of the inputs of a published table
    split_by_seed: bool = False

    def divided(self, train: Tensor, test: Tensor) -> Samples:
        """Return the samples with these indices as training and test part."""
        x, y = self.x, self.y
        return replace(self, x=x[train], y=y[train], x_test=x[test], y_test=y[test])

    def first(self, limit: int | None) -> Samples:
        """Return the first `limit` samples of each part, or all of it where it has fewer."""
        names = ("x", "y", "x_test", "y_test")
        return replace(self, **{name: getattr(self, name)[:limit] for name in names})

    def drawn(self, samples: int, seed: int) -> Samples:
        """Draw training samples at random, and keep the whole test part.

        Every class gets the same number of samples, as far as it has so many. Targets of a
        regression are not considered.
        """
        n = len(self.y)
        if not 1 <= samples <= n:
            raise SettingError(
                "samples",
                f"must be a number from 1 to {n:,}, that of the training samples, got {samples}",
            )
        order = torch.randperm(n, generator=_generator(seed, "samples"))
        if not self.y.is_floating_point():
            # the first of every class, then the second of every class, and so on
            turn = torch.empty_like(order)
            for label in self.y.unique():
                own = (self.y[order] == label).nonzero().flatten()
                turn[own] = torch.arange(len(own))
            order = order[turn.argsort(stable=True)]
        return replace(self, x=self.x[order[:samples]], y=self.y[order[:samples]])


@dataclass(frozen=True)
class Holdout:
    """Validation samples, drawn at random from the training part.

    They replace the test part, which stays unseen while methods are compared.

    Attributes:
        share: of the training samples, between 0 and 1.
        seed: of the draw.
    """

    share: float
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise SettingError(
                "validation", f"must be a share between 0 and 1, e.g. 0.2, got {self.share}"
            )

    def left(self, n: int) -> int:
        """Return how many of `n` training samples remain to train on."""
        left = n - max(1, round(self.share * n))
        if left < 1:
            raise SettingError(
                "validation",
                f"must leave a sample to train on, {self.share:g} of {n} leaves none: lower it",
            )
        return left

    def of(self, samples: Samples, limit: int | None = None) -> Samples:
        """Divide the first `limit` training samples into a training and a validation part.

        >>> x, y = torch.arange(10.0)[:, None], torch.zeros(10, dtype=torch.long)
        >>> held_out = Holdout(0.2).of(Samples(x, y, ("a",)))
        >>> len(held_out.x), len(held_out.x_test)
        (8, 2)
        """
        n = len(samples.x[:limit])
        held = n - self.left(n)
        order = torch.randperm(n, generator=_generator(self.seed, "validation"))
        return replace(samples.divided(order[held:], order[:held]), split_by_seed=False)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set in memory.

    Attributes:
        name: of the data set, or of your own file.
        x_train, x_test: raw inputs: uint8 images `(n, channels, height, width)`, float32, or
            float64 for your own tables, which are scaled in float64.
        y_train, y_test: class indices into `classes`; or, for a regression, standardised
            numbers in float32, which `unscale` maps back.
        classes: names of the classes; empty for a regression.
        mean, std: of the map `normalise` from raw inputs to a network's, in raw units.
        scaling: how `mean` and `std` were chosen.
        pixel_range: the least and the greatest raw value of a pixel; None without pixels.
        part: which part of the whole data set this is, in words; None for all of it.
        columns: names of the inputs of a table, empty where they are not known.
        encoder: how the cells of your own table became `x_train`; else None.
        target_mean, target_std: of the training targets of a regression.
        notes: what a user should know about the reading.
        split_by_seed: whether another seed gives other samples to train and to test on.
        digest: SHA-256 of your own files' contents; None for data with a name.
    """

    name: str
    x_train: Tensor
    y_train: Tensor
    x_test: Tensor
    y_test: Tensor
    classes: tuple[str, ...]
    mean: Tensor
    std: Tensor
    scaling: str
    pixel_range: tuple[float, float] | None = None
    part: str | None = None
    columns: tuple[str, ...] = ()
    encoder: TableEncoder | None = None
    target_mean: float = 0.0
    target_std: float = 1.0
    notes: tuple[str, ...] = ()
    split_by_seed: bool = False
    digest: str | None = None

    @property
    def task(self) -> Task:
        """ "classes", or "regression" where targets are numbers."""
        return "regression" if self.y_train.is_floating_point() else "classes"

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    def outputs(self) -> int:
        """Number of a network's outputs for one input: one for each class, or one."""
        return 1 if self.task == "regression" else self.num_classes

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return tuple(self.x_train.shape[1:])

    @property
    def title(self) -> str:
        """The name as reports print it, with the part where it is not the whole."""
        return self.name if self.part is None else f"{self.name} ({self.part})"

    def normalise(self, x: Tensor) -> Tensor:
        """Return (x - mean) / std in float32, for a batch of raw inputs on any device.

        >>> data = Dataset("d", *[torch.tensor([[255]], dtype=torch.uint8)] * 4, ("a",),
        ...                mean=torch.tensor(0.0), std=torch.tensor(255.0), scaling="minmax")
        >>> data.normalise(data.x_train)
        tensor([[1.]])
        """
        return normalise(x, self.mean, self.std)

    def unscale(self, y: Tensor) -> Tensor:
        """Map standardised targets of a regression, or predictions of them, to their own unit."""
        return y * self.target_std + self.target_mean

    def pixel_step(self, epsilon: float) -> float:
        """Return `epsilon`/255 of the pixel range, in raw units: the size of noise or an attack."""
        if self.pixel_range is None:
            raise ValueError(
                f"{self.name} has no pixels, so epsilon/255 has no meaning: use an image data set"
            )
        low, high = self.pixel_range
        return epsilon / 255 * (high - low)


def normalise(x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Return (x - mean) / std in float32, computed in the precision of `mean`."""
    return ((x.to(mean.dtype) - mean.to(x.device)) / std.to(x.device)).float()


def split(
    samples: Samples, *, seed: int, test_size: float | None = None, stratify: bool = False
) -> Samples:
    """Split at random, by default with a third (rounded up) for testing: 100 / 50 of Iris's 150.

    Samples with a test part of their own are returned as they are. Only `seed` decides, so trial
    t of any experiment uses the split of seed t.

    Args:
        samples: what to split.
        seed: of the random order.
        test_size: share of the test part.
        stratify: take the same share of each class, and leave one sample of each to train on.
    """
    if len(samples.x_test):
        if test_size is not None:
            raise SettingError(
                "test_size",
                f"must not be given for data with a test part of their own, got {test_size}",
            )
        return samples
    n = len(samples.x)
    if n < 2:
        raise ValueError(f"a data set needs at least 2 samples to be split, got {n}")
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    count = -(-n // 3) if test_size is None else min(max(1, round(test_size * n)), n - 1)
    test, train = order[:count], order[count:]
    if stratify and samples.classes:
        by_class = [order[samples.y[order] == label] for label in samples.y.unique()]
        sizes = torch.tensor([len(rows) for rows in by_class])
        exact = count / n * sizes.double()
        counts = exact.floor().long()
        # the classes with the largest remainders get one sample more
        counts[(counts - exact).argsort(stable=True)[: count - int(counts.sum())]] += 1
        counts = counts.minimum(sizes - 1)
        test = torch.cat([rows[:c] for rows, c in zip(by_class, counts, strict=True)])
        train = order[~torch.isin(order, test)]
        if not len(test):
            raise ValueError(
                f"a data set needs a class of two samples or more to be split, got {n} samples of "
                f"{len(by_class)} classes: add samples, or pass a test part (--test)"
            )
    return replace(samples.divided(train, test), split_by_seed=True)


def _generator(seed: int, purpose: str) -> torch.Generator:
    """Return a generator for one purpose: the split and the toys draw from the seed itself."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:4], "big"))
