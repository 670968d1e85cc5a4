"""Where points half-way between partners lie: near the data, or near a third class?

A mixed point far from all data is not a plausible sample. A mixed point among samples of a
third class teaches a wrong label there, which is called manifold intrusion. Both are measured
against the samples outside of the two matched sets. The partners themselves are measured in
the same way, for comparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kmixup.measured import Measured, standard_error
from kmixup.theory.matching import Array, Indices

PRODUCTS = 1e10  # multiplications that the search for nearest samples may take at one k
FEWEST, MOST = 256, 2048  # points to look at
BLOCKS = 16  # least number of blocks that these points come from, if there are as many
CELLS = 1 << 23  # distances held in memory at a time


@dataclass(frozen=True)
class Halfway:
    """Points half-way between partners, compared with the partners themselves.

    The nearest sample is always one outside of the two matched sets.

    Attributes:
        distance: mean distance from half-way points to their nearest sample, divided by that
            from partners to theirs.
        contradiction: share of half-way points whose nearest sample is of neither partner's
            class; None without labels.
        disagreement: share of partners whose nearest sample is not of their own class; None
            without labels.

    A part of a `Reading`. Returned by `inspect`.
    """

    distance: Measured
    contradiction: Measured | None
    disagreement: Measured | None

    @classmethod
    def of(
        cls, points: Tensor, labels: Indices | None, firsts: Indices, seconds: Indices
    ) -> Halfway | None:
        """Measure half-way points of the partners `firsts` and `seconds`.

        Returns None if fewer than 2k samples are outside of the sets, or if samples coincide.

        Args:
            points: centred samples in float64, `(n, d)`.
            labels: their classes, `(n,)`.
            firsts: indices into `points`, `(blocks, k)`.
            seconds: indices of the partners, `(blocks, k)`.
        """
        k = firsts.shape[1]
        if len(points) < 4 * k:
            return None
        mixed, own, contradicted, disagreeing = [], [], [], []
        for first, second, taken in _blocks(points, firsts, seconds):
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
        shares = (Measured.of(np.concatenate(parts)) for parts in (contradicted, disagreeing))
        return cls(distance, *shares)


def _blocks(
    points: Tensor, firsts: Indices, seconds: Indices
) -> Iterator[tuple[Indices, Indices, Tensor]]:
    """Some partners of some blocks, `(m, few)` each, and all samples of these blocks, `(m, 2k)`."""
    n, d = points.shape
    wanted = int(min(max(PRODUCTS / (2 * n * d), FEWEST), MOST))
    few = min(firsts.shape[1], max(1, wanted // BLOCKS))
    blocks = min(len(firsts), math.ceil(wanted / few))
    step = max(1, CELLS // (few * n))
    for start in range(0, blocks, step):
        part = slice(start, min(start + step, blocks))
        taken = torch.from_numpy(np.concatenate([firsts[part], seconds[part]], 1))
        yield firsts[part, :few], seconds[part, :few], taken


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
    """Ratio of the means of two figures `(blocks,)`; None if the second mean is 0."""
    if not under.mean() > 0:
        return None
    value = over.mean() / under.mean()
    # both figures are of the same blocks: what counts is the spread of their difference
    return Measured(float(value), float(standard_error(over - value * under) / under.mean()))
