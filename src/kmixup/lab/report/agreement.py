"""Which reading of alpha the paper's figures agree with.

Its text raises alpha with k so that xi stays; its public script trains with the alpha it
was given. Where both were run, the cells with k > 1 tell them apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from kmixup.lab.protocol import AlphaRule
from kmixup.lab.report.grids import Cell, Outcome

Array = NDArray[np.float64]
DECIDED = 2.0  # standard errors


@dataclass(frozen=True)
class Fit:
    """How near the cells of one alpha rule come to the paper's.

    `distance` is the root mean square difference in points, `rank` Spearman's correlation
    of the order of the cells, None where all on one side are equal.
    """

    rule: AlphaRule
    distance: float
    rank: float | None


@dataclass(frozen=True)
class Agreement:
    """The fits of the alpha rules over the same `cells` with k > 1.

    `gap` is the mean square difference of the first rule less that of the second, in
    standard errors; None with one rule, or where trials are too few to tell.
    """

    fits: tuple[Fit, ...]
    cells: int
    gap: float | None

    @property
    def nearer(self) -> Fit:
        return min(self.fits, key=lambda fit: fit.distance)

    @property
    def decided(self) -> bool:
        return self.gap is not None and abs(self.gap) >= DECIDED


def agreement(outcome: Outcome) -> Agreement | None:
    """Compare every alpha rule with the paper; None where there is nothing to compare."""
    several = [[cell for cell in grid if cell.k > 1] for grid in outcome.grids]
    shared = [
        cells
        for cells in zip(*several, strict=True)
        if all(cell.difference is not None for cell in cells)
    ]
    if not shared:
        return None
    paper = np.array([cells[0].paper for cells in shared], dtype=float)
    columns = list(zip(*shared, strict=True))
    ours = [np.array([cell.mean for cell in column], dtype=float) for column in columns]
    fits = tuple(
        Fit(grid.rule, float(np.sqrt(np.mean((mean - paper) ** 2))), _rank(mean, paper))
        for grid, mean in zip(outcome.grids, ours, strict=True)
    )
    gap = (
        _gap(columns[0], columns[1], paper, outcome.table.confidence) if len(columns) == 2 else None
    )
    return Agreement(fits, len(shared), gap)


def _rank(ours: Array, paper: Array) -> float | None:
    if len(ours) < 3 or np.ptp(ours) == 0 or np.ptp(paper) == 0:
        return None
    return float(spearmanr(ours, paper).statistic)


def _gap(
    one: Sequence[Cell], two: Sequence[Cell], paper: Array, confidence: float | None
) -> float | None:
    """The difference of the two mean squares, over its standard error.

    Trials are left out in turn (the jackknife) for the noise of ours. The paper's own noise
    enters through (a - p)² - (b - p)² = (a - b)(a + b - 2p), which is linear in p.
    """
    seeds = sorted(set.intersection(*(set(cell.errors) for cell in (*one, *two))))
    if len(seeds) < 2:
        return None
    a, b = (np.array([[cell.errors[s] for cell in cells] for s in seeds]) for cells in (one, two))

    def gap(a: Array, b: Array) -> float:
        return float(np.mean((a - paper) ** 2 - (b - paper) ** 2))

    n = len(seeds)
    rest = [gap(np.delete(a, i, 0).mean(0), np.delete(b, i, 0).mean(0)) for i in range(n)]
    a, b = a.mean(0), b.mean(0)
    noise = math.sqrt((n - 1) * float(np.var(rest)))
    printed = 2 * (confidence or 0.0) * float(np.linalg.norm(a - b)) / len(paper)
    both = math.hypot(noise, printed)
    return gap(a, b) / both if both else None
