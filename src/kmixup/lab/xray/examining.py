"""From a data set in memory to what was found in it, as a network would be given it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from kmixup.inspection import Inspection, inspect
from kmixup.inspection.inspecting import LARGEST_K, SIZE, draw
from kmixup.lab.data import Dataset

FEWEST = 4
COMPARED = 16  # the k to show beside 1 where none above is advised


@dataclass(frozen=True, eq=False)
class Xray:
    """Training samples of `data` and what was `found` in them.

    `drawn`: which they are, `(m,)`; `points`: the same as a network is given them,
    `(m, d)`. `seed`: of all draws.
    """

    data: Dataset
    drawn: Tensor
    points: Tensor
    found: Inspection
    seed: int

    @property
    def labels(self) -> Tensor:
        """Class indices of the samples, `(m,)`."""
        return self.data.y_train[self.drawn]

    @property
    def labelled(self) -> bool:
        """Whether there are classes to tell apart."""
        return len(self.found.classes) > 1

    @property
    def compared(self) -> tuple[int, ...]:
        """1 and the advised k, or one to compare with where that is 1 itself."""
        advised = self.found.advice.k
        if advised > 1:
            return 1, advised
        others = [one.k for one in self.found.readings if 1 < one.k <= COMPARED]
        return (1, *others[-1:])

    def class_name(self, i: int) -> str:
        return self.data.classes[int(self.labels[i])]


def examine(
    data: Dataset,
    *,
    batch_size: int,
    alpha: float = 1.0,
    largest_k: int = LARGEST_K,
    size: int = SIZE,
    seed: int = 0,
    watch: Callable[[int], object] = lambda k: None,
) -> Xray:
    """Inspect the training part of a data set; the arguments are those of `kmixup.inspect`.

    Only samples that are looked at become floats. They are those that `kmixup.inspect`
    would have drawn from all, with a generator of this seed.
    """
    _check(data)
    n, generator = len(data.x_train), torch.Generator().manual_seed(seed)
    some = draw(n, math.prod(data.shape), size=max(size, FEWEST), generator=generator)
    drawn = torch.arange(n) if some is None else some
    points = data.normalise(data.x_train[drawn]).flatten(1)
    if (points == points[0]).all():
        raise ValueError(
            f"{data.name} must have samples that differ, the {len(drawn):,} that were looked at "
            "are all the same"
        )
    found = inspect(
        points, data.y_train[drawn], alpha=alpha, largest_k=largest_k, batch_size=batch_size,
        size=size, generator=generator, watch=watch,
    )  # fmt: skip
    return Xray(data, drawn, points, replace(found, samples=n), seed)


def _check(data: Dataset) -> None:
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
