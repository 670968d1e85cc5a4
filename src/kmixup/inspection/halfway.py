"""Where points half-way between partners lie, seen from samples that had no part in them.

A mixed point that falls into a void is none that the data could have given, and one that
falls among samples of a third class teaches the wrong label there: manifold intrusion. Both
are measured against the samples outside of the two matched sets, and so are the partners
themselves, for comparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kmixup.theory.matching import Array, Indices

PRODUCTS = 1e10  # that the search for nearest samples may take at one k
FEWEST, MOST = 256, 2048  # points to look at
BLOCKS = 16  # least number of blocks they come from, if there are as many
CELLS = 1 << 23  # distances held in memory at a time


@dataclass(frozen=True)
class Measured:
    """A number and its standard `error`."""

    value: float
    error: float


def mean_of(blocks: Array) -> Measured:
    """The mean of independent figures."""
    return Measured(float(blocks.mean()), float(blocks.std(ddof=1)) / math.sqrt(len(blocks)))


@dataclass(frozen=True)
class Halfway:
    """Points half-way between partners, beside the partners themselves.

    `distance`: to the nearest sample left out, divided by the same of the partners.
    `contradiction`: the share whose nearest sample is of neither partner's class;
    `disagreement`: the share of the partners themselves whose nearest sample is not of their
    class. Both are None without labels.
    """

    distance: Measured
    contradiction: Measured | None
    disagreement: Measured | None

    @property
    def excess(self) -> float | None:
        """How much more often mixed points are contradicted than samples are, 0 if less."""
        if self.contradiction is None or self.disagreement is None:
            return None
        return max(self.contradiction.value - self.disagreement.value, 0.0)

    @classmethod
    def of(
        cls, points: Tensor, labels: Indices | None, one: Indices, two: Indices
    ) -> Halfway | None:
        """Measure for partners `one` and `two`, indices `(blocks, k)` into `points`.

        The points are centred, in float64. None where fewer than 2k samples are left out, or
        where the samples coincide.
        """
        k = one.shape[1]
        if len(points) < 4 * k:
            return None
        mixed, own, contradicted, disagreeing = [], [], [], []
        for first, second, taken in _blocks(points, one, two):
            far, nearest = _nearest(points, (points[first] + points[second]) / 2, taken)
            near, neighbour = _nearest(points, points[first], taken)
            mixed.append(far.mean(1).numpy())
            own.append(near.mean(1).numpy())
            if labels is not None:
                third = (labels[nearest] != labels[first]) & (labels[nearest] != labels[second])
                contradicted.append(third.mean(1))
                disagreeing.append((labels[neighbour] != labels[first]).mean(1))
        distance = _ratio(np.concatenate(mixed), np.concatenate(own))
        if distance is None or labels is None:
            return None if distance is None else cls(distance, None, None)
        shares = (mean_of(np.concatenate(these)) for these in (contradicted, disagreeing))
        return cls(distance, *shares)


def _blocks(
    points: Tensor, one: Indices, two: Indices
) -> Iterator[tuple[Indices, Indices, Tensor]]:
    """Some partners of some blocks, `(m, few)` each, and all samples of these blocks, `(m, 2k)`."""
    n, d = points.shape
    wanted = int(min(max(PRODUCTS / (2 * n * d), FEWEST), MOST))
    few = min(one.shape[1], max(1, wanted // BLOCKS))
    blocks = min(len(one), math.ceil(wanted / few))
    step = max(1, CELLS // (few * n))
    for start in range(0, blocks, step):
        part = slice(start, min(start + step, blocks))
        taken = torch.from_numpy(np.concatenate([one[part], two[part]], 1))
        yield one[part, :few], two[part, :few], taken


def _nearest(points: Tensor, queries: Tensor, taken: Tensor) -> tuple[Tensor, Indices]:
    """Distance to the nearest point that is not `taken`, and its index, both `(m, few)`.

    The queries are `(m, few, d)` and `taken` `(m, 2k)`.
    """
    m, few, d = queries.shape
    norms = points.square().sum(1)[None, :]
    square = torch.addmm(norms, queries.view(-1, d), points.T, alpha=-2).view(m, few, -1)
    square.scatter_(2, taken[:, None, :].expand(m, few, -1), math.inf)
    nearest = square.argmin(2)
    return (queries - points[nearest]).square().sum(2).sqrt(), nearest.numpy()


def _ratio(over: Array, under: Array) -> Measured | None:
    """Ratio of two means, and its error from the blocks they share."""
    if not under.mean() > 0:
        return None
    value = over.mean() / under.mean()
    spread = (over - value * under).std(ddof=1) / under.mean()
    return Measured(float(value), float(spread) / math.sqrt(len(over)))
