"""Analyses of the paper's claims that the documentation shows.

`recipes` tests what the paper's appendix says about choosing k and alpha. `agreement` asks which
meaning of alpha at k > 1 the paper's numbers agree with: its text raises alpha with k to keep xi,
its public script uses alpha as given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from kmixup.lab.report.comparisons import (
    CellComparison,
    best_of,
    chosen_by,
    compare,
    printed_difference,
)
from kmixup.lab.report.frame import Cell, Grid, TableResult
from kmixup.lab.report.stats import Errors, shared_seeds
from kmixup.lab.trial import AlphaRule

DECIDED = 2.0  # standard errors
Array = NDArray[np.float64]


def recipes(grid: Grid) -> tuple[CellComparison, CellComparison]:
    """The two recipes of the paper's appendix against mixup.

    The paper says that "alpha = 1 and a search over k" matches or outperforms mixup at any alpha
    except on one UCI data set, and that "the best alpha of mixup, then a search over k" always
    outperforms mixup.
    """
    mixup = [cell for cell in grid if cell.k == 1]
    several = [cell for cell in grid if cell.k > 1]

    def choose(seeds: Sequence[int] | None) -> tuple[Cell, Cell]:
        old = best_of(mixup, seeds)
        return best_of([cell for cell in several if cell.alpha == old.alpha], seeds), old

    least = min(mixup, key=lambda cell: cell.paper or math.inf)
    at_least = [cell for cell in several if cell.alpha == least.alpha]
    paper, noise = printed_difference(at_least, [least])
    name = "mixup's best alpha, then the best k"
    steps = CellComparison(new=name, old="mixup", difference=None, paper=paper, noise=noise)
    at_one = [cell for cell in several if cell.alpha == 1]
    simple = compare(at_one, mixup, new="alpha = 1 and the best k", old="mixup")
    return simple, chosen_by(choose, (several, mixup), steps)


@dataclass(frozen=True)
class Agreement:
    """How close the cells of two alpha rules are to the paper's, over the cells with k > 1.

    Attributes:
        distances: the root mean square differences in points, by alpha rule.
        gap: the mean square difference of the first rule − that of the second, in standard errors.
    """

    distances: dict[AlphaRule, float]
    gap: float

    @property
    def nearer(self) -> AlphaRule | None:
        """The rule whose cells are significantly closer, if any."""
        if abs(self.gap) < DECIDED:
            return None
        return min(self.distances, key=self.distances.__getitem__)


def agreement(result: TableResult, *, shape: bool = False) -> Agreement:
    """Compare the cells of both alpha rules with the paper's.

    Args:
        result: a table with a grid for each of the two rules.
        shape: subtract the mean of each k first, which compares how the error changes with alpha.
    """
    several = [[cell for cell in grid if cell.k > 1] for grid in result.grids]
    printed = np.array([cell.paper for cell in several[0]], dtype=float)
    ks = [cell.k for cell in several[0]]
    view = np.eye(len(ks))
    if shape:
        same = np.equal.outer(ks, ks).astype(float)
        view = view - same / same.sum(1, keepdims=True)
    distances: dict[AlphaRule, float] = {}
    for grid, cells in zip(result.grids, several, strict=True):
        gaps = view @ (np.array([fmean(cell.errors.values()) for cell in cells]) - printed)
        distances[grid.rule] = float(np.sqrt(np.mean(gaps**2)))
    first, second = ([cell.errors for cell in cells] for cells in several)
    noise = np.array([_printed_error(cells) for cells in zip(*several, strict=True)])
    return Agreement(distances, _gap(first, second, printed, noise, view))


def _printed_error(cells: Sequence[Cell]) -> float:
    """The standard error that the paper states, else one as large as ours."""
    if cells[0].confidence is not None:
        return cells[0].confidence
    return math.sqrt(fmean((cell.standard_error or 0.0) ** 2 for cell in cells))


def _gap(
    first: Sequence[Errors],
    second: Sequence[Errors],
    paper: Array,
    confidence: Array,
    view: Array,
) -> float:
    """The difference of the two mean squares over its standard error, seen through `view`.

    The jackknife over trials gives the noise of ours. The paper's own noise enters through
    (a - p)² - (b - p)² = (a - b)(a + b - 2p), which is linear in p.
    """
    seeds = shared_seeds([*first, *second])
    a, b = (
        np.array([[errors[seed] for errors in cells] for seed in seeds]) @ view.T
        for cells in (first, second)
    )
    paper = view @ paper

    def gap(a: Array, b: Array) -> float:
        return float(np.mean((a - paper) ** 2 - (b - paper) ** 2))

    n = len(seeds)
    rest = [gap(np.delete(a, i, 0).mean(0), np.delete(b, i, 0).mean(0)) for i in range(n)]
    a, b = a.mean(0), b.mean(0)
    noise = math.sqrt((n - 1) * float(np.var(rest)))
    printed = 2 * float(np.linalg.norm(confidence * (view.T @ (a - b)))) / len(paper)
    return gap(a, b) / math.hypot(noise, printed)
