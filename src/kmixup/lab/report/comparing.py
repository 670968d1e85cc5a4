"""Comparisons of best cells with best cells, to judge the claims of the paper.

The paper chooses its best cells on the test error that it then reports: the best of 25 equal
cells looks better than the best of 5. So cells are compared twice, in the paper's way and in
an honest way, in which cells are chosen on one half of the trials and compared on the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from kmixup.lab.evaluate.scores import PERCENT, Measure
from kmixup.lab.paper.tables import Claim
from kmixup.lab.report.grids import Cell, Grid, Outcome
from kmixup.lab.report.verdict import (
    Mood,
    PairedDifference,
    Verdict,
    interval,
    judge,
    mood_of,
    paired,
)
from kmixup.lab.train.config import AlphaRule

HEURISTIC = 16  # the k that the paper recommends without a search
LEAST_TRIALS = 4  # two to choose on and two to compare
# Correlation of the means of two turns that choose on each other's trials, at most. With m
# equal cells and normal errors it is e²/(m - 1), where e is the expected greatest of m standard
# normal draws: 0.32 for m = 2, 0.36 for 3, and less for more.
BETWEEN_TURNS = 0.36


@dataclass(frozen=True)
class CellComparison:
    """A challenger against a baseline, each the best of some cells.

    Differences are the challenger's error less the baseline's: below 0 is better.

    Attributes:
        challenger: the name of the first method.
        baseline: the name of the second method.
        rule: how alpha was read at k > 1, None where neither side has such cells.
        k: the k of all cells of the challenger, None where it may choose among several.
        eps: the level of the shift, None for the plain test error.
        paper: the difference between the best printed cells, None where none are printed.
        chosen: the cells that are best on the test error over all trials, as the paper
            chooses them.
        honest: the difference between cells that were chosen on other trials, None where
            there are too few trials.
        why: the reason that `honest` is None.
        noise: the standard error of the paper's difference, if its trials were not paired:
            as it states, or as large as ours; None where neither is known.
    """

    challenger: str
    baseline: str
    rule: AlphaRule | None
    k: int | None
    eps: float | None
    paper: float | None
    chosen: tuple[Cell, Cell] | None
    honest: PairedDifference | None
    why: str = ""
    noise: float | None = None

    @property
    def difference(self) -> float | None:
        """Between the cells chosen on the test error."""
        if self.chosen is None:
            return None
        new, old = (cell.mean for cell in self.chosen)
        return None if new is None or old is None else new - old

    @property
    def unit(self) -> Measure:
        """How the errors are called and written."""
        return PERCENT if self.chosen is None else self.chosen[0].unit

    @property
    def verdict(self) -> Verdict:
        return (
            Verdict.NONE
            if self.honest is None
            else judge(self.honest, self.paper, self.noise or 0.0)
        )

    @property
    def label(self) -> str:
        """The verdict in a few words."""
        return self.verdict.label.format(challenger=self.challenger)

    @property
    def text(self) -> str:
        """The verdict with its reason."""
        side = "worse" if self.honest is not None and self.honest.side > 0 else "better"
        reason = self.verdict.reason.format(challenger=self.challenger, side=side, why=self.why)
        return f"{self.label}: {reason}" if reason else self.label

    @property
    def mood(self) -> Mood:
        return mood_of([self.verdict])


def comparisons(outcome: Outcome) -> tuple[CellComparison, ...]:
    """k-mixup, mixup and ERM against one another, for each eps and each alpha rule."""
    return tuple(
        comparison
        for erm in outcome.erm
        for comparison in _at_level(outcome, erm)
        if comparison.chosen is not None or comparison.paper is not None
    )


def _at_level(outcome: Outcome, erm: Cell) -> list[CellComparison]:
    """The comparisons among the cells with the eps of `erm`."""
    name = _name(outcome)
    grids = {grid.rule: [cell for cell in grid if cell.eps == erm.eps] for grid in outcome.grids}
    mixup = [cell for cell in next(iter(grids.values())) if cell.k == 1]
    against: list[CellComparison] = []
    for rule, cells in grids.items():
        several = [cell for cell in cells if cell.k > 1]
        heuristic = [cell for cell in cells if cell.k == HEURISTIC]
        against.append(compare(name, several, outcome.baseline, mixup, rule=rule))
        against.append(compare(name, heuristic, outcome.baseline, mixup, rule=rule, k=HEURISTIC))
        against.append(compare(name, several, "ERM", [erm], rule=rule))
    return [*against, compare(outcome.baseline, mixup, "ERM", [erm])]


def claimed(outcome: Outcome, grid: Grid, claim: Claim) -> tuple[CellComparison, ...]:
    """The comparisons that a claim of the paper is about: one, or one for each column or eps."""
    if (without := _without_a_side(outcome, grid)) is not None:
        return without
    groups: dict[object, list[Cell]] = {}
    for cell in grid:
        column = (cell.eps, cell.alpha) if claim.each == "column" else cell.eps
        groups.setdefault(column, []).append(cell)
    return tuple(
        compare(
            _name(outcome),
            [cell for cell in cells if cell.k > 1 and claim.k in (None, cell.k)],
            outcome.baseline,
            [cell for cell in cells if cell.k == 1],
            rule=grid.rule,
            k=claim.k,
        )
        for cells in groups.values()
    )


def _without_a_side(outcome: Outcome, grid: Grid) -> tuple[CellComparison, ...] | None:
    """Comparisons with ERM in a sweep of the user's own that lacks k = 1, or k > 1.

    None where both sides were asked for, or where the table is the paper's.
    """
    several, single = any(k > 1 for k in outcome.ks), 1 in outcome.ks
    if outcome.table.errors is not None or several == single:
        return None
    challenger = _name(outcome) if several else outcome.baseline
    rule = grid.rule if several else None
    return tuple(
        compare(challenger, [cell for cell in grid if cell.eps == erm.eps], "ERM", [erm], rule=rule)
        for erm in outcome.erm
    )


def _name(outcome: Outcome) -> str:
    """The method with k > 1, as the paper calls it."""
    return outcome.table.method_title


def compare(
    challenger: str,
    new: Sequence[Cell],
    baseline: str,
    old: Sequence[Cell],
    *,
    rule: AlphaRule | None = None,
    k: int | None = None,
) -> CellComparison:
    """The best of the cells `new`, all with `k` if that is given, against the best of `old`.

    Cells with a failed trial cannot be chosen: the mean over their other trials would flatter
    a setting that sometimes fails.
    """
    candidates = [
        [cell for cell in cells if cell.errors and not cell.failed] for cells in (new, old)
    ]
    eps = next((cell.eps for cell in (*new, *old)), None)
    chosen, honest, why = None, None, ""
    if all(candidates):
        first, second = candidates

        def choose(seeds: Sequence[int] | None) -> tuple[Cell, Cell]:
            return best_of(first, seeds), best_of(second, seeds)

        chosen = choose(None)
        honest, why = honest_difference(candidates, choose)
    else:
        lacking, cells = (challenger, new) if not candidates[0] else (baseline, old)
        run = any(cell.rows for cell in cells)
        why = (
            f"no cell of {lacking} has trials that all ended well"
            if run
            else f"{lacking} was not run"
        )
    paper, noise = printed_difference(new, old)
    return CellComparison(challenger, baseline, rule, k, eps, paper, chosen, honest, why, noise)


def by_column(grid: Grid, *, k: int) -> tuple[tuple[Cell, Cell, PairedDifference | None], ...]:
    """The cells of `k` and of k = 1 under the same alpha, and their paired difference.

    Nothing is chosen here, so all trials count.
    """
    new, old = ([cell for cell in grid if cell.k == row] for row in (k, 1))
    return tuple(
        (a, b, paired(a.errors, b.errors, a.partition)) for a, b in zip(new, old, strict=True)
    )


def honest_difference(
    families: Sequence[Sequence[Cell]],
    choose: Callable[[Sequence[int] | None], tuple[Cell, Cell]],
) -> tuple[PairedDifference | None, str]:
    """Choose on every other trial, compare on the rest in pairs, and the other way round.

    The differences of both turns go into one interval. The turns may compare different
    cells: the interval is of the procedure (search both families on half of the trials, take
    the winners), not of one pair of cells. No trial has a part in the choice that it is used
    to compare, so no difference is flattered. But a cell with low errors in one turn wins in
    the other, which makes the means of the turns alike. Without an allowance for this
    correlation the interval would cover 91 to 93 % where cells are equal.
    """
    cells = [cell for family in families for cell in family]
    seeds = sorted(set.intersection(*(set(cell.errors) for cell in cells)))
    if len(seeds) < LEAST_TRIALS:
        return None, (
            f"an honest comparison needs {LEAST_TRIALS} trials that all cells have, "
            f"there {'is' if len(seeds) == 1 else 'are'} {len(seeds)}"
        )
    differences = []
    for half, rest in ((seeds[::2], seeds[1::2]), (seeds[1::2], seeds[::2])):
        winner, rival = choose(half)
        differences += [winner.errors[seed] - rival.errors[seed] for seed in rest]
    correlation = BETWEEN_TURNS if len(cells) > len(families) else 0.0
    return interval(differences, correlation=correlation, partition=cells[0].partition), ""


def best_of(cells: Sequence[Cell], seeds: Sequence[int] | None = None) -> Cell:
    """The cell with the least mean error; of equal cells the first in the grid."""

    def mean(cell: Cell) -> float:
        errors: Mapping[int, float] = cell.errors
        return fmean(errors.values() if seeds is None else [errors[seed] for seed in seeds])

    return min(cells, key=mean)


def printed_difference(
    new: Sequence[Cell], old: Sequence[Cell]
) -> tuple[float | None, float | None]:
    """The difference of the best printed cells, and its standard error where that is known."""
    best = []
    for cells in (new, old):
        printed = [cell for cell in cells if cell.paper is not None]
        if not printed:
            return None, None
        best.append(min(printed, key=lambda cell: cell.paper or 0.0))
    first, second = best
    errors = first.paper_error, second.paper_error
    noise = None if None in errors else math.hypot(*(error or 0.0 for error in errors))
    return (first.paper or 0.0) - (second.paper or 0.0), noise
