"""Inspect the training set of a data set: `kmixup.inspect` on the inputs of a network."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from kmixup._checks import check_whole
from kmixup.inspection import Inspection, inspect
from kmixup.inspection.readings import LARGEST_K, SIZE, draw
from kmixup.lab.data import Dataset

FEWEST = 4
THIRDS = ("lowest third", "middle third", "highest third")
PairedBy = Literal["loaders", "batch"]
COMPARED = 16  # the k to show next to 1, if there are enough samples


@dataclass(frozen=True, eq=False)
class DataInspection:
    """Samples of a data set and their inspection."""

    data: Dataset  # a regression has the thirds of its targets as classes
    drawn: Tensor  # indices of the inspected training samples, `(m,)`
    points: Tensor  # these samples as the inputs of a network, `(m, d)`
    inspection: Inspection
    seed: int  # of all draws
    pairing: PairedBy = "loaders"
    regression: bool = False  # whether the classes are thirds of numbers

    @property
    def labels(self) -> Tensor:
        """Class indices of the samples, `(m,)`."""
        return self.data.y_train[self.drawn]

    @property
    def labelled(self) -> bool:
        """Whether there are two or more classes."""
        return len(self.inspection.classes) > 1

    @property
    def compared(self) -> tuple[int, ...]:
        """The two k to show: 1, and 16 or the largest k below."""
        ks = [reading.k for reading in self.inspection.readings if 1 < reading.k <= COMPARED]
        return (1, *ks[-1:])

    def class_name(self, i: int) -> str:
        return self.data.classes[int(self.labels[i])]


def inspect_data(
    data: Dataset,
    *,
    alpha: float = 1.0,
    largest_k: int = LARGEST_K,
    size: int = SIZE,
    pairing: PairedBy = "loaders",
    seed: int = 0,
    watch: Callable[[int], object] = lambda k: None,
) -> DataInspection:
    """Inspect the training set of a data set; the arguments are those of `kmixup.inspect`.

    Partners are drawn as `kmixup train` does with this `pairing`. The samples are those that
    `kmixup.inspect` would draw with a generator of this seed; only these are turned into floats.
    """
    seed = check_whole("seed", seed, least=0)
    regression = data.task == "regression"
    if regression:
        bounds = data.y_train.quantile(torch.tensor([1 / 3, 2 / 3]))
        thirds = [torch.bucketize(y, bounds) for y in (data.y_train, data.y_test)]
        data = replace(data, y_train=thirds[0], y_test=thirds[1], classes=THIRDS)
    n, classes = len(data.x_train), len(data.y_train.unique())
    if n < FEWEST:
        raise ValueError(
            f"{data.name} must have at least {FEWEST} training samples to be inspected, has {n} "
            "once those for testing are set aside: use more rows"
        )
    if 2 * classes > n:
        raise ValueError(
            f"{data.name} must have classes that occur more than once, has {classes:,} in "
            f"{n:,} samples: name a target that holds classes"
        )
    generator = torch.Generator().manual_seed(seed)
    some = draw(n, math.prod(data.shape), size=max(size, FEWEST), generator=generator)
    drawn = torch.arange(n) if some is None else some
    points = data.normalise(data.x_train[drawn]).flatten(1)
    if (points == points[0]).all():
        raise ValueError(
            f"{data.name} must have samples that differ, the {len(drawn):,} that were inspected "
            "are all the same"
        )
    inspection = inspect(
        points, data.y_train[drawn], alpha=alpha, largest_k=largest_k, size=size,
        disjoint=pairing == "batch", generator=generator, watch=watch,
    )  # fmt: skip
    whole = replace(inspection, samples=n)
    return DataInspection(data, drawn, points, whole, seed, pairing, regression)
