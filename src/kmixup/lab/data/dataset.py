"""A data set in memory: samples, their division into parts, the map to a network's input."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from kmixup._checks import CONTROLS, SettingError, check_fraction
from kmixup.tables.targets import Task

if TYPE_CHECKING:  # pandas loads slowly, and only your own tables need it
    from kmixup.tables.encoder import TableEncoder
    from kmixup.tables.schema import Schema

EMPTY = torch.empty(0)


def check_class_names(names: Iterable[str]) -> None:
    """Raise if the name of a class has control characters."""
    for name in names:
        if name != name.translate(CONTROLS):
            raise ValueError(
                "the names of classes must not have control characters, "
                f"got {name!r}: rename the class"
            )


@dataclass(frozen=True, eq=False)
class Samples:
    """Raw inputs and targets, as a reader returns them.

    Without their own test set, `x_test` is empty until `split`. With a `schema`, for your
    own tables, inputs are the numbers of rows in `frame`.
    """

    x: Tensor  # (n, ...)
    y: Tensor  # class indices (n,), or the numbers of a regression
    classes: tuple[str, ...]  # empty for a regression
    x_test: Tensor = EMPTY
    y_test: Tensor = EMPTY
    x_final: Tensor = EMPTY  # the test set, where `Holdout` keeps it next to validation samples
    y_final: Tensor = EMPTY
    schema: Schema | None = None  # how a table is read; `prepare` fits an encoder to it
    frame: Any = None  # a data frame of values, as the schema reads them
    notes: tuple[str, ...] = ()  # what a user should know about the reading
    columns: tuple[str, ...] = ()  # names of the inputs of a published table
    split_by_seed: bool = False

    def __post_init__(self) -> None:
        check_class_names(self.classes)
        if len(self.x) != len(self.y) or len(self.x_test) != len(self.y_test):
            raise ValueError(
                f"there must be a target for each input, {len(self.y)} and {len(self.y_test)} "
                f"are for {len(self.x)} and {len(self.x_test)} inputs"
            )

    def divided(self, train: Tensor, test: Tensor, *, by_seed: bool) -> Samples:
        """Return the samples with these indices as training and test set."""
        train_part = replace(self, x=self.x[train], y=self.y[train], split_by_seed=by_seed)
        return replace(train_part, x_test=self.x[test], y_test=self.y[test])

    def first(self, limit: int | None) -> Samples:
        """Return the first `limit` samples of each part, or all of it where it has fewer."""
        names = ("x", "y", "x_test", "y_test")
        return replace(self, **{name: getattr(self, name)[:limit] for name in names})

    def drawn(self, samples: int, seed: int) -> Samples:
        """Draw training samples, as equally many of each class as there are; keep the test set."""
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

    def with_label_noise(self, fraction: float, seed: int) -> Samples:
        """Redraw the labels of a fraction of the training samples at random, of all classes.

        A larger fraction redraws the same labels and more.
        """
        if not self.classes:
            raise SettingError("label_noise", f"must be left out of a regression, got {fraction}")
        generator, n = _generator(seed, "labels"), len(self.y)
        rows = torch.randperm(n, generator=generator)[: round(fraction * n)]
        drawn = torch.randint(len(self.classes), (n,), generator=generator)
        y = self.y.clone()
        y[rows] = drawn[rows]
        return replace(self, y=y)


@dataclass(frozen=True)
class Holdout:
    """Validation samples, drawn at random from the training set, in place of the test set."""

    share: float  # of the training samples, between 0 and 1
    seed: int = 0
    keep_test: bool = False  # whether the test set is kept, to be scored after training

    def __post_init__(self) -> None:
        check_fraction("validation", self.share)

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
        """Divide the first `limit` training samples into a training and a validation part."""
        n = len(samples.x[:limit])
        held = n - self.left(n)
        order = torch.randperm(n, generator=_generator(self.seed, "validation"))
        parts = samples.divided(order[held:], order[:held], by_seed=False)
        if not self.keep_test:
            return parts
        return replace(parts, x_final=samples.x_test[:limit], y_final=samples.y_test[:limit])


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set in memory."""

    name: str  # of the data set, or of your own file
    x_train: Tensor  # raw: uint8 images `(n, c, h, w)`, float32, or float64 for your own tables
    y_train: Tensor  # class indices; or, for a regression, standardised float32 (see `unscale`)
    x_test: Tensor
    y_test: Tensor
    classes: tuple[str, ...]  # names; empty for a regression
    mean: Tensor  # of the map `normalise` from raw inputs to a network's, in raw units
    std: Tensor
    scaling: str  # how `mean` and `std` were chosen
    pixel_range: tuple[float, float] | None = None  # of raw values; None without pixels
    part: str | None = None  # which part of the whole data set this is; None for all of it
    columns: tuple[str, ...] = ()  # names of the inputs of a table, where they are known
    encoder: TableEncoder | None = None  # how the cells of your own table became `x_train`
    rows: Any = None  # hashes of some of its training rows
    target_mean: float = 0.0  # of the training targets of a regression
    target_std: float = 1.0
    notes: tuple[str, ...] = ()  # what a user should know about the reading
    split_by_seed: bool = False  # whether another seed gives other samples to train and test on
    digest: str | None = None  # SHA-256 of your own files' contents; None for data with a name
    x_final: Tensor = EMPTY  # the test set, where `x_test` has validation samples; else empty
    y_final: Tensor = EMPTY

    @property
    def task(self) -> Task:
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
        """Return (x - mean) / std in float32, for a batch of raw inputs on any device."""
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

    Samples with their own test set are returned as they are. Only `seed` decides, so trial
    t of any experiment uses the split of seed t. With `stratify`, all classes are tested on in the
    same proportion, and one sample of each is left to train on.
    """
    if len(samples.x_test):
        if test_size is not None:
            raise SettingError(
                "test_size",
                f"must not be given for data with their own test set, got {test_size}",
            )
        return samples
    n = len(samples.x)
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
        taken = torch.cat([rows[:c] for rows, c in zip(by_class, counts, strict=True)])
        tested = torch.isin(order, taken)
        test, train = order[tested], order[~tested]  # not class by class: `first` cuts both
    if not len(test) or not len(train):
        raise ValueError(
            "a data set needs at least two samples to be split (two of one class if stratified), "
            f"got {n}: add more"
        )
    return samples.divided(train, test, by_seed=True)


def _generator(seed: int, purpose: str) -> torch.Generator:
    """Return a generator for one purpose: the split and the toys draw from the seed itself."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:4], "big"))
