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

from kmixup.lab.report.grids import Cell, Outcome
from kmixup.lab.train.config import AlphaRule

Array = NDArray[np.float64]
DECIDED = 2.0  # standard errors


@dataclass(frozen=True)
class Fit:
    """How near the cells of one alpha rule come to the paper's.

    Attributes:
        rule: the alpha rule.
        distance: the root mean square difference in points.
        rank: Spearman's rank correlation of the cells, None where all cells are equal.
        shape: the root mean square difference of the cells less the mean of their row, which
            compares how the error moves with alpha at each k, whatever its level; None where
            rows have one cell.
    """

    rule: AlphaRule
    distance: float
    rank: float | None
    shape: float | None


@dataclass(frozen=True)
class Agreement:
    """The fits of the alpha rules over the same cells with k > 1.

    Attributes:
        fits: one for each alpha rule.
        cells: the number of cells.
        gap: the mean square difference of the first rule less that of the second, in standard
            errors; None with one rule, or with too few trials.
        shape_gap: the same for shapes.
    """

    fits: tuple[Fit, ...]
    cells: int
    gap: float | None
    shape_gap: float | None

    @property
    def nearer(self) -> Fit:
        return min(self.fits, key=lambda fit: fit.distance)

    @property
    def decided(self) -> bool:
        return self.gap is not None and abs(self.gap) >= DECIDED

    @property
    def nearer_shape(self) -> Fit | None:
        """The fit with the nearer shape, None where shapes cannot be compared."""
        shaped = [fit for fit in self.fits if fit.shape is not None]
        return min(shaped, key=lambda fit: fit.shape or 0.0, default=None)

    @property
    def shape_decided(self) -> bool:
        return self.shape_gap is not None and abs(self.shape_gap) >= DECIDED


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
    centre = _centring([cell.k for cell in columns[0]])
    fits = tuple(
        Fit(
            grid.rule,
            _distance(mean - paper),
            _rank(mean, paper),
            _distance(centre @ (mean - paper)) if centre.any() else None,
        )
        for grid, mean in zip(outcome.grids, ours, strict=True)
    )
    gaps: list[float | None] = [None, None]
    if len(columns) == 2:
        confidence = outcome.table.confidence
        gaps = [
            _gap(columns[0], columns[1], paper, confidence, view)
            for view in (np.eye(len(paper)), centre)
        ]
    return Agreement(fits, len(shared), *gaps)


def _distance(difference: Array) -> float:
    return float(np.sqrt(np.mean(difference**2)))


def _centring(ks: Sequence[int]) -> Array:
    """The matrix that takes the mean of its row, the cells of the same k, from every cell."""
    same = np.equal.outer(ks, ks).astype(float)
    return np.asarray(np.eye(len(ks)) - same / same.sum(1, keepdims=True))


def _rank(ours: Array, paper: Array) -> float | None:
    if len(ours) < 3 or np.ptp(ours) == 0 or np.ptp(paper) == 0:
        return None
    return float(spearmanr(ours, paper).statistic)


def _gap(
    first: Sequence[Cell],
    second: Sequence[Cell],
    paper: Array,
    confidence: float | None,
    view: Array,
) -> float | None:
    """The difference of the two mean squares, over its standard error.

    All cells are seen through the matrix `view`, which may centre them.
    Trials are left out in turn (the jackknife) for the noise of ours. The paper's own noise
    enters through (a - p)² - (b - p)² = (a - b)(a + b - 2p), which is linear in p.
    """
    seeds = sorted(set.intersection(*(set(cell.errors) for cell in (*first, *second))))
    if len(seeds) < 2:
        return None
    a, b = (
        np.array([[cell.errors[seed] for cell in cells] for seed in seeds]) @ view.T
        for cells in (first, second)
    )
    paper = view @ paper

    def gap(a: Array, b: Array) -> float:
        return float(np.mean((a - paper) ** 2 - (b - paper) ** 2))

    n = len(seeds)
    rest = [gap(np.delete(a, i, 0).mean(0), np.delete(b, i, 0).mean(0)) for i in range(n)]
    a, b = a.mean(0), b.mean(0)
    noise = math.sqrt((n - 1) * float(np.var(rest)))
    printed = 2 * (confidence or 0.0) * float(np.linalg.norm(a - b)) / len(paper)
    both = math.hypot(noise, printed)
    return gap(a, b) / both if both else None
