"""Comparisons between the cells of a table, and the paper's claims about them.

The paper chooses its best cells on the test error that it then reports. So best cells are
compared twice: as the paper does, and with cells chosen on half of the trials and compared on
the other half (`stats.split_choice`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kmixup.lab.evaluate.scores import PERCENT, Measure
from kmixup.lab.paper.tables import Claim
from kmixup.lab.report import stats
from kmixup.lab.report.frame import Cell, Grid, TableResult
from kmixup.lab.report.stats import PairedDifference, Verdict
from kmixup.lab.train.config import AlphaRule

HEURISTIC = 16  # the k that the paper recommends without a search
Choose = Callable[[Sequence[int] | None], tuple[Cell, Cell]]


@dataclass(frozen=True)
class CellComparison:
    """A new method against an old one, each the best of some cells. Below 0 is better.

    Attributes:
        new: the name of the first method.
        old: the name of the second method.
        rule: what alpha means at k > 1; None if neither side has such cells.
        k: the k of the new method, None if it may choose among several.
        eps: the level of the shift, None for the plain test error.
        paper: the difference between the best printed cells, if any.
        noise: the standard error of the paper's difference for unpaired trials: as stated, or as
            large as ours; None if neither is known.
        chosen: the cells that are best on the test error over all trials, as the paper chooses.
        held_out: the difference on held-out trials, None with too few trials.
        why: the reason that `held_out` is None.
    """

    new: str
    old: str
    rule: AlphaRule | None
    k: int | None
    eps: float | None
    paper: float | None
    noise: float | None
    chosen: tuple[Cell, Cell] | None
    held_out: PairedDifference | None
    why: str = ""

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
        return stats.verdict(
            self.held_out, self.new, self.old,
            paper=self.paper, noise=self.noise or 0.0, why=self.why,
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
    families = [_complete(cells) for cells in (new_cells, old_cells)]
    eps = next((cell.eps for cell in (*new_cells, *old_cells)), None)
    paper = printed_difference(new_cells, old_cells)
    if all(families):

        def choose(seeds: Sequence[int] | None) -> tuple[Cell, Cell]:
            return best_of(families[0], seeds), best_of(families[1], seeds)

        return _compared(new, old, rule, k, eps, paper, families, choose)
    name, cells = (old, old_cells) if families[0] else (new, new_cells)
    run = any(len(cell.trials) for cell in cells)
    why = f"every setting of {name} has failed trials" if run else f"{name} was not run"
    return CellComparison(new, old, rule, k, eps, *paper, None, None, why)


def _compared(
    new: str,
    old: str,
    rule: AlphaRule | None,
    k: int | None,
    eps: float | None,
    paper: tuple[float | None, float | None],
    families: Sequence[Sequence[Cell]],
    choose: Choose,
) -> CellComparison:
    candidates = [[cell.errors for cell in family] for family in families]

    def errors(seeds: Sequence[int]) -> tuple[stats.Errors, stats.Errors]:
        first, second = choose(seeds)
        return first.errors, second.errors

    difference, why = stats.split_choice(candidates, errors, families[0][0].partition), ""
    if difference is None:
        shared = len(stats.shared_seeds([errors for family in candidates for errors in family]))
        why = f"it takes {stats.LEAST_TRIALS} trials of every cell, there are {shared}"
    return CellComparison(new, old, rule, k, eps, *paper, choose(None), difference, why)


def _complete(cells: Iterable[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell.errors and not cell.failed]


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


def recipes(result: TableResult, grid: Grid) -> tuple[CellComparison, ...]:
    """The two recipes of the paper's appendix against mixup; none if trials are missing.

    The paper says that "alpha = 1 and a search over k" matches or outperforms mixup at any alpha
    except on one UCI data set, and that "the best alpha of mixup, then a search over k" always
    outperforms mixup.
    """
    mixup = [cell for cell in grid if cell.k == 1]
    several = [cell for cell in grid if cell.k > 1]
    at_one = [cell for cell in several if cell.alpha == 1]
    complete = all(cell.errors and not cell.failed for cell in grid)
    if result.table.measure != "error" or not (mixup and at_one and complete):
        return ()

    def choose(seeds: Sequence[int] | None) -> tuple[Cell, Cell]:
        old = best_of(mixup, seeds)
        return best_of([cell for cell in several if cell.alpha == old.alpha], seeds), old

    paper: tuple[float | None, float | None] = (None, None)
    if printed := [cell for cell in mixup if cell.paper is not None]:
        least = min(printed, key=lambda cell: cell.paper or 0.0)
        paper = printed_difference([c for c in several if c.alpha == least.alpha], [least])
    two_steps = _compared(
        "mixup's best alpha, then the best k", "mixup", grid.rule, None, None,
        paper, (several, mixup), choose,
    )  # fmt: skip
    simple = compare("alpha = 1 and the best k", at_one, "mixup", mixup, rule=grid.rule)
    return simple, two_steps


# k against k = 1 in the same column: nothing is chosen, so all trials count


@dataclass(frozen=True)
class ColumnTest:
    """k against k = 1 in one column of a table.

    Attributes:
        where: the table and the column.
        difference: of the errors, paired by trial.
        p: the p-value after Holm correction for all columns.
    """

    where: str
    difference: PairedDifference
    p: float

    @property
    def side(self) -> int:
        """-1 if k is significantly lower, 1 if it is higher, else 0."""
        return stats.corrected_side(self.difference, self.p)


def by_column(grid: Grid, *, k: int) -> tuple[tuple[Cell, Cell, PairedDifference | None], ...]:
    """The cells of `k` and of k = 1 at the same alpha, and their paired difference."""
    new, old = ([cell for cell in grid if cell.k == row] for row in (k, 1))
    return tuple(
        (a, b, stats.paired(a.errors, b.errors, a.partition)) for a, b in zip(new, old, strict=True)
    )


def sides(grid: Grid, k: int) -> Counter[int]:
    """In how many columns `k` is below k = 1 (-1), above (1), or neither (0)."""
    return Counter(difference.side for *_, difference in by_column(grid, k=k) if difference)


def shown_ks(result: TableResult) -> list[int]:
    """The k that are compared with k = 1 by column: the recommended one and the largest."""
    ks = [k for k in result.ks if k > 1]
    return sorted({HEURISTIC} & {*ks} | {max(ks)}) if ks and 1 in result.ks else []


def column_tests(results: Sequence[TableResult], k: int, rule: AlphaRule) -> tuple[ColumnTest, ...]:
    """k against k = 1 in all columns of all tables, corrected as one family of tests."""
    places, differences = [], []
    for result in results:
        for grid in result.grids:
            if grid.rule != rule or k not in result.ks or 1 not in result.ks:
                continue
            for i, (*_, difference) in enumerate(by_column(grid, k=k)):
                if difference is not None:
                    places.append(f"{result.title}, {column_name(result, i)}")
                    differences.append(difference)
    corrected = stats.holm([difference.p for difference in differences])
    return tuple(map(ColumnTest, places, differences, corrected))


def column_name(result: TableResult, i: int) -> str:
    """What distinguishes a column from the others of its grid."""
    column = result.columns[i]
    alpha, eps = f"α = {column.alpha:g}", f"ε = {column.eps or 0:g}"
    if len({other.eps for other in result.columns}) == 1:
        return alpha
    return eps if len({other.alpha for other in result.columns}) == 1 else f"{eps}, {alpha}"


def agreement(result: TableResult) -> stats.Agreement | None:
    """Which meaning of alpha the paper's numbers agree with, over the cells with k > 1.

    The paper's text raises alpha with k to keep xi; its public script uses alpha as given. None
    if there is nothing to compare.
    """
    several = [[cell for cell in grid if cell.k > 1] for grid in result.grids]
    shared = [
        cells
        for cells in zip(*several, strict=True)
        if all(cell.difference is not None for cell in cells)
    ]
    if not shared:
        return None
    return stats.agreement(
        {grid.rule: [cells[i].errors for cells in shared] for i, grid in enumerate(result.grids)},
        [cells[0].paper or 0.0 for cells in shared],
        [cells[0].k for cells in shared],
        result.table.confidence,
    )
