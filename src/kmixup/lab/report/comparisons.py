"""Comparisons between the cells of a table, and the paper's claims about them.

The paper chooses its best cells on the test error that it then reports. So best cells are
compared twice: as the paper does, and with cells chosen on half of the trials and compared on
the other half (`stats.split_choice`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kmixup.lab.evaluate.baseline import all_constant
from kmixup.lab.evaluate.scores import PERCENT, Measure
from kmixup.lab.experiments.budget import FinalTest
from kmixup.lab.paper.tables import Claim
from kmixup.lab.report import stats
from kmixup.lab.report.cells import Cell, Grid, TableResult, partition_of
from kmixup.lab.report.stats import PairedDifference, Verdict
from kmixup.lab.train.config import AlphaRule

HEURISTIC = 16  # the k that the paper recommends without a search
Choose = Callable[[Sequence[int] | None], tuple[Cell, Cell]]


@dataclass(frozen=True)
class CellComparison:
    """A new method against an old one, each the best of some cells. Below 0 is better."""

    new: str
    old: str
    rule: AlphaRule | None  # what alpha means at k > 1; None if neither side has such cells
    k: int | None  # of the new method, None if it may choose among several
    eps: float | None  # the level of the shift, None for the plain test error
    paper: float | None  # the difference between the best printed cells
    noise: float | None  # the standard error of that: as stated, else as large as ours
    chosen: tuple[Cell, Cell] | None  # best on the test error over all trials, as in the paper
    held_out: PairedDifference | None  # on held-out trials, None with too few trials
    why: str = ""  # the reason that there is none

    @property
    def on_test(self) -> float | None:
        """The difference between the cells chosen on the test error."""
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
        constant = self.chosen is not None and all(cell.constant for cell in self.chosen)
        return stats.verdict(
            self.held_out, self.new, self.old, paper=self.paper, noise=self.noise or 0.0,
            constant=constant, why=self.why,
        )  # fmt: skip


def comparisons(result: TableResult) -> tuple[CellComparison, ...]:
    """k-mixup, mixup and ERM against one another, for each eps and alpha rule."""
    return tuple(
        comparison
        for erm in result.erm
        for comparison in _at_level(result, erm)
        if comparison.chosen is not None or comparison.paper is not None
    )


def _at_level(result: TableResult, erm: Cell) -> list[CellComparison]:
    """The comparisons among the cells with the eps of `erm`."""
    grids = {grid.rule: [cell for cell in grid if cell.eps == erm.eps] for grid in result.grids}
    mixup = [cell for cell in next(iter(grids.values())) if cell.k == 1]
    compared = []
    for rule, cells in grids.items():
        several = [cell for cell in cells if cell.k > 1]
        heuristic = [cell for cell in cells if cell.k == HEURISTIC]
        name, baseline = result.method, result.baseline
        compared.append(compare(name, several, baseline, mixup, rule=rule))
        compared.append(compare(name, heuristic, baseline, mixup, rule=rule, k=HEURISTIC))
        compared.append(compare(name, several, "ERM", [erm], rule=rule))
    return [*compared, compare(result.baseline, mixup, "ERM", [erm])]


def best_against_best(result: TableResult, rule: AlphaRule) -> tuple[CellComparison, ...]:
    """The best of k > 1 against the best of k = 1, at each eps."""
    return tuple(
        comparison
        for comparison in comparisons(result)
        if (comparison.rule, comparison.k) == (rule, None) and comparison.old != "ERM"
    )


def claimed(result: TableResult, grid: Grid, claim: Claim) -> tuple[CellComparison, ...]:
    """The comparisons that a claim of the paper is about: one, or one for each column or eps."""
    several, single = any(k > 1 for k in result.ks), 1 in result.ks
    if not result.printed and several != single:  # your own sweep without k = 1, or without k > 1
        new, rule = (result.method, grid.rule) if several else (result.baseline, None)
        return tuple(
            compare(new, [cell for cell in grid if cell.eps == erm.eps], "ERM", [erm], rule=rule)
            for erm in result.erm
        )
    groups: dict[object, list[Cell]] = {}
    for cell in grid:
        column = (cell.eps, cell.alpha) if claim.each == "column" else cell.eps
        groups.setdefault(column, []).append(cell)
    return tuple(
        compare(
            result.method,
            [cell for cell in cells if cell.k > 1 and claim.k in (None, cell.k)],
            result.baseline,
            [cell for cell in cells if cell.k == 1],
            rule=grid.rule,
            k=claim.k,
        )
        for cells in groups.values()
    )


def compare(
    new: str,
    new_cells: Sequence[Cell],
    old: str,
    old_cells: Sequence[Cell],
    *,
    rule: AlphaRule | None = None,
    k: int | None = None,
) -> CellComparison:
    """The best of some cells against the best of others.

    Cells with a failed trial cannot be chosen: the mean over their other trials would flatter a
    setting that sometimes diverges.
    """
    families = [
        [cell for cell in cells if cell.errors and not cell.failed]
        for cells in (new_cells, old_cells)
    ]
    eps = next((cell.eps for cell in (*new_cells, *old_cells)), None)
    paper = printed_difference(new_cells, old_cells)
    if all(families):

        def choose(seeds: Sequence[int] | None) -> tuple[Cell, Cell]:
            return best_of(families[0], seeds), best_of(families[1], seeds)

        return chosen_by(
            choose, families, CellComparison(new, old, rule, k, eps, *paper, None, None)
        )
    name, cells = (old, old_cells) if families[0] else (new, new_cells)
    run = any(len(cell.trials) for cell in cells)
    why = f"every setting of {name} has failed trials" if run else f"{name} was not run"
    return CellComparison(new, old, rule, k, eps, *paper, None, None, why)


def chosen_by(
    choose: Choose, families: Sequence[Sequence[Cell]], comparison: CellComparison
) -> CellComparison:
    """The comparison with cells that `choose` returns for the seeds to choose on."""
    candidates = [[cell.errors for cell in family] for family in families]

    def errors(seeds: Sequence[int]) -> tuple[stats.Errors, stats.Errors]:
        first, second = choose(seeds)
        return first.errors, second.errors

    difference, why = stats.split_choice(candidates, errors, families[0][0].partition), ""
    if difference is None:
        shared = len(stats.shared_seeds([errors for family in candidates for errors in family]))
        why = f"it takes {stats.LEAST_TRIALS} trials of every cell, there are {shared}"
    return replace(comparison, chosen=choose(None), held_out=difference, why=why)


def best_of(cells: Sequence[Cell], seeds: Sequence[int] | None = None) -> Cell:
    """The cell with the lowest mean error; the first of equal ones."""
    return cells[stats.lowest([cell.errors for cell in cells], seeds)]


def printed_difference(
    new: Sequence[Cell], old: Sequence[Cell]
) -> tuple[float | None, float | None]:
    """The difference of the best printed cells, and its standard error if known."""
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


# k against k = 1 in the same column: nothing is chosen, so all trials count

ColumnTest = tuple[Cell, PairedDifference, float]  # a cell, its difference from k = 1, and its p


def column_tests(grid: Grid) -> tuple[ColumnTest, ...]:
    """Every cell with k > 1 against k = 1 at the same alpha, with Holm correction for all."""
    base = {(cell.alpha, cell.eps): cell for cell in grid if cell.k == 1}
    tested = []
    for cell in grid:
        old = base.get((cell.alpha, cell.eps))
        if cell.k > 1 and old is not None and not (cell.constant and old.constant):
            difference = stats.paired(cell.errors, old.errors, cell.partition)
            if difference is not None:
                tested.append((cell, difference))
    corrected = stats.corrected([difference for _, difference in tested])
    return tuple((*test, p) for test, p in zip(tested, corrected, strict=True))


def column_name(result: TableResult, i: int) -> str:
    """What distinguishes a column from the others of its grid."""
    column = result.columns[i]
    alpha, eps = f"α = {column.alpha:g}", f"ε = {column.eps or 0:g}"
    if len({other.eps for other in result.columns}) == 1:
        return alpha
    return eps if len({other.alpha for other in result.columns}) == 1 else f"{eps}, {alpha}"


# Methods in a final test: nothing is chosen on the test samples


@dataclass(frozen=True)
class FinalComparison:
    """Two methods in a final test, corrected for all tests of its family (Holm)."""

    data: str
    new: str
    old: str
    difference: PairedDifference | None
    p: float
    constant: bool  # whether every compared network predicts a constant

    @property
    def verdict(self) -> Verdict:
        return stats.verdict(self.difference, self.new, self.old, p=self.p, constant=self.constant)


FinalPair = tuple[str, str, FinalTest, str, FinalTest]  # data, new, its test, old, its test


def compare_tests(pairs: Sequence[FinalPair]) -> tuple[FinalComparison, ...]:
    """Compare methods in pairs, with Holm correction for all of them."""
    differences = [
        stats.paired(new.errors, old.errors, partition_of([*new.rows, *old.rows]))
        for _, _, new, _, old in pairs
    ]
    return tuple(
        FinalComparison(
            data, name, base, difference, p, all_constant(r.scores for r in (*new.done, *old.done))
        )
        for (data, name, new, base, old), difference, p in zip(
            pairs, differences, stats.corrected(differences), strict=True
        )
    )
