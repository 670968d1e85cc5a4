"""How often classes are crossed where the match looks at labels: `Optimal(k, labels=c)`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from kmixup.matching import Optimal
from kmixup.measured import Measured
from kmixup.sampling import subset_pairs
from kmixup.theory.matching import Indices

WEIGHTS = (-1.0, -0.5, -0.2, 0.0, 0.2, 0.5, 1.0, 2.0)
MATCHES, LEAST_BLOCKS = 2048, 4  # of each weight
NUMBERS = 1 << 22  # in the samples that are matched at once
LABELS_K = 16  # the k of these readings, if there are enough samples


@dataclass(frozen=True)
class LabelReading:
    """What matching with one weight of labels does.

    Attributes:
        k: size of the matched sets.
        labels: the cost c of a pair of different classes, in mean distances of a block.
        crossing: share of partners of another class.
        ratio: mean squared distance of partners, as a share of that of random pairs.

    A part of an `Inspection`. Returned by `inspect`.
    """

    k: int
    labels: float
    crossing: Measured
    ratio: Measured


def read_labels(
    points: Tensor, labels: Indices, k: int, *, generator: Generator | None
) -> tuple[LabelReading, ...]:
    """A reading for each of `WEIGHTS`, on the same sets of `k` samples."""
    blocks = max(LEAST_BLOCKS, min(MATCHES, NUMBERS // points.shape[1]) // k)
    first, second = subset_pairs(len(points), k, blocks, disjoint=True, generator=generator)
    a, b = points[first.flatten()], points[second.flatten()]
    classes = torch.from_numpy(labels)
    y1, y2 = classes[first.flatten()], classes[second.flatten()]
    random = float(2 * points.var(0).sum())
    readings = []
    for weight in WEIGHTS:
        partner = Optimal(k, labels=weight)(a, b, targets=(y1, y2))
        crossing = (y1 != y2[partner]).double().view(blocks, k).mean(1)
        square = (a - b[partner]).square().sum(1).view(blocks, k).mean(1) / random
        readings.append(
            LabelReading(k, weight, Measured.of(crossing.tolist()), Measured.of(square.tolist()))
        )
    return tuple(readings)
