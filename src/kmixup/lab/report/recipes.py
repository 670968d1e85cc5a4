"""The appendix's recipes for k and alpha, as claims that a grid can answer.

The paper says of the first, alpha = 1 and a search over k, that it outperforms or matches mixup
at any alpha but for one UCI data set; and of the second, the best alpha of mixup and then a
search over k, that it "always outperforms 1-mixup".
"""

from __future__ import annotations

from collections.abc import Sequence

from kmixup.lab.report.comparing import (
    CellComparison,
    best_of,
    compare,
    honest_difference,
    printed_difference,
)
from kmixup.lab.report.grids import Cell, Grid, Outcome


def recipes(outcome: Outcome, grid: Grid) -> tuple[CellComparison, ...]:
    """Both recipes against mixup; none under a shift, or where trials are missing."""
    mixup = [cell for cell in grid if cell.k == 1]
    several = [cell for cell in grid if cell.k > 1]
    complete = all(cell.errors and not cell.failed for cell in grid)
    if outcome.table.measure != "error" or not (mixup and several and complete):
        return ()
    at_one = [cell for cell in several if cell.alpha == 1]
    simple = compare("alpha = 1 and the best k", at_one, "mixup", mixup, rule=grid.rule)
    return (simple, _two_steps(mixup, several, grid)) if at_one else ()


def _two_steps(mixup: Sequence[Cell], several: Sequence[Cell], grid: Grid) -> CellComparison:
    def choose(seeds: Sequence[int] | None) -> tuple[Cell, Cell]:
        old = best_of(mixup, seeds)
        return best_of(_with_alpha(several, old.alpha), seeds), old

    honest, why = honest_difference((several, mixup), choose)
    printed = [cell for cell in mixup if cell.paper is not None]
    paper: tuple[float | None, float | None] = (None, None)
    if printed:
        least = min(printed, key=lambda cell: cell.paper or 0.0)
        paper = printed_difference(_with_alpha(several, least.alpha), [least])
    return CellComparison(
        "the best alpha of mixup and the best k", "mixup", grid.rule, None, None,
        paper[0], choose(None), honest, why, paper[1],
    )  # fmt: skip


def _with_alpha(cells: Sequence[Cell], alpha: float) -> list[Cell]:
    return [cell for cell in cells if cell.alpha == alpha]
