"""What every reader ends in: a data set in memory, split, with its map to a network's input."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Samples:
    """Inputs `(n, ...)` with one class index each, as yet without a split.

    `columns`: names of the columns of a table, where they are known.
    """

    x: Tensor
    y: Tensor
    classes: tuple[str, ...]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Parts:
    """A training and a test part of raw inputs, and the names of their classes and columns."""

    x_train: Tensor
    y_train: Tensor
    x_test: Tensor
    y_test: Tensor
    classes: tuple[str, ...]
    columns: tuple[str, ...] = ()

    def first(self, limit: int | None) -> Parts:
        """The first `limit` samples of each part, or all of it where it has fewer."""
        return Parts(
            self.x_train[:limit],
            self.y_train[:limit],
            self.x_test[:limit],
            self.y_test[:limit],
            self.classes,
            self.columns,
        )


@dataclass(frozen=True)
class Holdout:
    """A random `share` of the training samples, held out for validation by `seed`.

    It stands where the test part was, which is gone: whatever trains and tests on the rest
    chooses without having seen a test sample.
    """

    share: float
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ValueError(
                f"validation must be a share between 0 and 1, e.g. 0.2, got {self.share}"
            )

    def left(self, n: int) -> int:
        """How many of `n` training samples remain to train on."""
        left = n - max(1, round(self.share * n))
        if left < 1:
            raise ValueError(
                f"validation={self.share:g} must leave a sample to train on, there are {n}: "
                "lower it"
            )
        return left

    def of(self, parts: Parts, limit: int | None = None) -> Parts:
        """The first `limit` training samples, divided; of the test part nothing is looked at.

        >>> x, y = torch.arange(10.0)[:, None], torch.zeros(10, dtype=torch.long)
        >>> parts = Holdout(0.2).of(Parts(x, y, x, y, ("a",)))
        >>> len(parts.x_train), len(parts.x_test)
        (8, 2)
        """
        x, y = parts.x_train[:limit], parts.y_train[:limit]
        held = len(x) - self.left(len(x))
        # not the seed itself: the split and the toys have drawn from that already
        digest = hashlib.sha256(f"{self.seed}/validation".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:4], "big"))
        order = torch.randperm(len(x), generator=generator)
        test, train = order[:held], order[held:]
        return Parts(x[train], y[train], x[test], y[test], parts.classes, parts.columns)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set in memory.

    `x_train`, `x_test`: raw inputs, uint8 images `(n, channels, height, width)` or
    float32. `y_train`, `y_test`: class indices into `classes`. `normalise` maps raw
    inputs to what a network is given; `mean` and `std` are in raw units, and `scaling`
    names how they were chosen. `pixel_range`: the least and the greatest raw value of a
    pixel, None where inputs are not images. `part`: which part of the whole data set
    this is, in words for reports; None for all of it. `columns`: the names of the columns
    of a table, empty where they are not known.
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

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return tuple(self.x_train.shape[1:])

    @property
    def title(self) -> str:
        """The name as reports print it, with the part where it is not the whole."""
        return self.name if self.part is None else f"{self.name} ({self.part})"

    def normalise(self, x: Tensor) -> Tensor:
        """(x - mean) / std in float32, of a batch of raw inputs on any device.

        >>> data = Dataset("d", *[torch.tensor([[255]], dtype=torch.uint8)] * 4, ("a",),
        ...                mean=torch.tensor(0.0), std=torch.tensor(255.0), scaling="minmax")
        >>> data.normalise(data.x_train)
        tensor([[1.]])
        """
        return (x.float() - self.mean.to(x.device)) / self.std.to(x.device)

    def pixel_step(self, epsilon: float) -> float:
        """`epsilon`/255 of the pixel range, in raw units: the size of a noise or an attack."""
        if self.pixel_range is None:
            raise ValueError(
                f"{self.name} has no pixels, so epsilon/255 has no meaning: use an image data set"
            )
        low, high = self.pixel_range
        return epsilon / 255 * (high - low)


def split(samples: Samples, *, seed: int) -> Parts:
    """Random split, a third (rounded up) for testing: 100 / 50 of Iris's 150.

    `seed` alone decides, so trial t of any experiment uses the split of seed t.
    """
    n = len(samples.x)
    if n < 2:
        raise ValueError(f"a data set needs at least 2 samples to be split, got {n}")
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    test, train = order[: -(-n // 3)], order[-(-n // 3) :]
    x, y = samples.x, samples.y
    return Parts(x[train], y[train], x[test], y[test], samples.classes, samples.columns)
