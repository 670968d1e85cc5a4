"""Comparisons between the cells of a table, and the table that shows comparisons of any report.

The paper chooses its best cells on the test error that it then reports. So best cells are
compared twice: as the paper does, and with cells chosen on half of the trials and compared on
the other half (`stats.split_choice`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from statistics import fmean
from typing import TypeVar

from kmixup.lab.formatting import NOTHING, number, signed
from kmixup.lab.paper.tables import Claim
from kmixup.lab.report import stats
from kmixup.lab.report.document import ReportTable
from kmixup.lab.report.frame import Cell, Grid, TableResult
from kmixup.lab.report.stats import Comparison
from kmixup.lab.trial import AlphaRule

HEURISTIC = 16  # the k that the paper recommends without a search
RULE: dict[AlphaRule, str] = {
    "same": "same alpha at every k",
    "xi": "alpha calibrated to keep ξ",
}
Choose = Callable[[Sequence[int] | None], tuple[Cell, Cell]]


@dataclass(frozen=True, kw_only=True)
class CellComparison(Comparison):
    """The best of some cells against the best of others."""

    rule: AlphaRule | None = None  # what alpha means at k > 1; None if there are no such cells
    k: int | None = None  # of the new method, None if it may choose among several
    eps: float | None = None  # the level of the shift, None for the plain test error
    chosen: tuple[Cell, Cell] | None = None  # best on the test error over all trials

    @property
    def label(self) -> str:
        which = "" if self.k is None else f" with k = {self.k}"
        level = "" if self.eps is None else f" at ε = {self.eps:g}/255"
        rule = "" if self.rule is None else f", {RULE[self.rule]}"
        return f"{self.new}{which} − {self.old}{level}{rule}"

    @property
    def on_test(self) -> float | None:
        """The difference between the cells chosen on the test error."""
        new, old = (cell.mean for cell in self.chosen) if self.chosen else (None, None)
        return None if new is None or old is None else new - old


def comparisons(result: TableResult) -> tuple[CellComparison, ...]:
    """k-mixup, mixup and ERM against one another, for each eps and alpha rule."""
    compared = []
    for erm in result.erm:
        mixup = [cell for cell in result.grids[0] if cell.k == 1 and cell.eps == erm.eps]
        for grid in result.grids:
            several = [cell for cell in grid if cell.k > 1 and cell.eps == erm.eps]
            heuristic = [cell for cell in several if cell.k == HEURISTIC]
            against = partial(compare, new=result.table.method_title, rule=grid.rule)
            compared += [
                against(several, mixup, old=result.baseline),
                against(heuristic, mixup, old=result.baseline, k=HEURISTIC),
                against(several, [erm], old="ERM"),
            ]
        compared.append(compare(mixup, [erm], new=result.baseline, old="ERM"))
    return tuple(c for c in compared if c.chosen is not None or c.paper is not None)


def best_against_best(result: TableResult, rule: AlphaRule) -> tuple[CellComparison, ...]:
    """The best of k > 1 against the best of k = 1, at each eps."""
    found = (c for c in comparisons(result) if (c.rule, c.k) == (rule, None))
    return tuple(comparison for comparison in found if comparison.old != "ERM")


def claimed(result: TableResult, grid: Grid, claim: Claim) -> tuple[CellComparison, ...]:
    """The comparisons that a claim of the paper is about: one, or one for each column or eps."""
    several, single = max(result.ks, default=0) > 1, 1 in result.ks
    if not result.printed and several != single:  # your own sweep without k = 1, or without k > 1
        new, rule = (result.table.method_title, grid.rule) if several else (result.baseline, None)
        return tuple(
            compare([c for c in grid if c.eps == erm.eps], [erm], new=new, old="ERM", rule=rule)
            for erm in result.erm
        )
    groups: dict[object, list[Cell]] = {}
    for cell in grid:
        groups.setdefault((cell.eps, claim.each == "column" and cell.alpha), []).append(cell)
    against = partial(
        compare, new=result.table.method_title, old=result.baseline, rule=grid.rule, k=claim.k
    )
    return tuple(
        against(
            [cell for cell in cells if cell.k > 1 and claim.k in (None, cell.k)],
            [cell for cell in cells if cell.k == 1],
        )
        for cells in groups.values()
    )


def compare(
    new_cells: Sequence[Cell],
    old_cells: Sequence[Cell],
    *,
    new: str,
    old: str,
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
    paper, noise = printed_difference(new_cells, old_cells)
    eps = next((cell.eps for cell in (*new_cells, *old_cells)), None)
    comparison = CellComparison(
        new=new, old=old, difference=None, paper=paper, noise=noise, rule=rule, k=k, eps=eps
    )

    def choose(seeds: Sequence[int] | None) -> tuple[Cell, Cell]:
        return best_of(families[0], seeds), best_of(families[1], seeds)

    return chosen_by(choose, families, comparison) if all(families) else comparison


def chosen_by(
    choose: Choose, families: Sequence[Sequence[Cell]], comparison: CellComparison
) -> CellComparison:
    """The comparison with cells that `choose` returns for the seeds to choose on."""
    candidates = [cell.errors for family in families for cell in family]

    def errors(seeds: Sequence[int]) -> tuple[stats.Errors, stats.Errors]:
        first, second = choose(seeds)
        return first.errors, second.errors

    chosen = choose(None)
    return replace(
        comparison,
        chosen=chosen,
        difference=stats.split_choice(candidates, errors, families[0][0].partition),
        constant=all(cell.constant for cell in chosen),
    )


def best_of(cells: Sequence[Cell], seeds: Sequence[int] | None = None) -> Cell:
    """The cell with the lowest mean error over `seeds` or all; the first of equal ones.

    Error rates are compared as counts of wrong answers: equal means may round differently.
    """

    def mean(cell: Cell) -> float | Fraction:
        errors = [cell.errors[s] for s in (cell.errors if seeds is None else seeds)]
        if answer := cell.partition.resolution:
            wrong = math.fsum(errors) / answer
            if abs(wrong - round(wrong)) < stats.ROUNDING:
                return Fraction(round(wrong), len(errors)) * Fraction(answer)
        return fmean(errors)

    return min(cells, key=mean)


def printed_difference(
    new: Sequence[Cell], old: Sequence[Cell]
) -> tuple[float | None, float | None]:
    """The difference of the best printed cells, and its standard error if known.

    The standard error of a printed number is the one that the paper states, else as large as ours.
    """
    printed = [[(c.paper, c) for c in cells if c.paper is not None] for cells in (new, old)]
    if not all(printed):
        return None, None
    best = [min(pairs, key=lambda pair: pair[0]) for pairs in printed]
    errors = [c.standard_error if c.confidence is None else c.confidence for _, c in best]
    known = [error for error in errors if error is not None]
    return best[0][0] - best[1][0], math.hypot(*known) if len(known) == 2 else None


# Comparisons without a choice, in which all trials count

Key = TypeVar("Key")


def compare_trials(
    new: str,
    tested: stats.Errors,
    old: str,
    base: stats.Errors,
    partition: stats.Partition,
    *,
    constant: bool = False,
) -> Comparison:
    """Compare the errors of two methods in pairs of trials."""
    difference = stats.paired(tested, base, partition)
    return Comparison(new=new, old=old, difference=difference, constant=constant)


def compare_cells(new: str, tested: Cell, old: str, base: Cell) -> Comparison:
    """Compare two cells in pairs of trials."""
    constant = tested.constant and base.constant
    return compare_trials(new, tested.errors, old, base.errors, tested.partition, constant=constant)


def holm_corrected(compared: Mapping[Key, Comparison]) -> dict[Key, Comparison]:
    """The same comparisons with p-values corrected for all of them."""
    p = stats.corrected(comparison.difference for comparison in compared.values())
    return {key: replace(compared[key], p=value) for key, value in zip(compared, p, strict=True)}


def column_tests(grid: Grid) -> dict[tuple[int, float, float | None], Comparison]:
    """k > 1 against k = 1 at the same alpha, by k, alpha and eps, with Holm correction for all."""
    base = {(cell.alpha, cell.eps): cell for cell in grid if cell.k == 1}
    tests = {
        (cell.k, cell.alpha, cell.eps): compare_cells(cell.name, cell, old.name, old)
        for cell in grid
        if cell.k > 1 and (old := base.get((cell.alpha, cell.eps))) is not None
    }
    known = {at: test for at, test in tests.items() if test.difference and not test.constant}
    return holm_corrected(known)


# The table

HEADER = (
    "verdict", "difference [95 %]", "largest gain not excluded", "for new data [95 %]",
    "p (Holm)", "chosen on the test error", "the paper",
)  # fmt: skip


def comparison_table(
    compared: Iterable[tuple[str, Sequence[Comparison]]],
    first: str = "comparison",
    *,
    chosen: bool = False,
) -> ReportTable:
    """A row for each label: the verdict on its comparison, or the tally of several.

    Columns that have nothing to show are left out. `chosen` adds the cells chosen on the test
    error.
    """
    compared = [(label, found) for label, found in compared if found]
    rows = [{first: label, **_cells(found, chosen=chosen)} for label, found in compared]
    known = {"verdict"}.union(*rows)
    header = [first, *(name for name in HEADER if name in known)]
    cells = [[row.get(name, NOTHING) for name in header] for row in rows]
    return ReportTable(header, cells, moods=[stats.mood_of(found) for _, found in compared])


def _cells(found: Sequence[Comparison], *, chosen: bool) -> dict[str, str]:
    if len(found) > 1:
        return {"verdict": f"{len(found)} comparisons: {stats.tally(found)}"}
    (comparison,) = found
    cells = {"verdict": comparison.verdict}
    if (difference := comparison.difference) is not None:
        cells["difference [95 %]"] = difference.text
        if difference.new_data_text is not None:
            cells["for new data [95 %]"] = difference.new_data_text
        if not comparison.side and not comparison.constant:
            cells["largest gain not excluded"] = comparison.largest_gain_text
        if comparison.p is not None:
            cells["p (Holm)"] = stats.p_text(comparison.p)
    if chosen and isinstance(comparison, CellComparison) and comparison.chosen is not None:
        new, old = comparison.chosen
        change = signed(comparison.on_test, new.unit.digits(new.mean))
        text = f"{change}: {new.text} ({new.name}) − {old.text} ({old.name})"
        cells["chosen on the test error"] = text
    if comparison.paper is not None:
        cells["the paper"] = printed_text(comparison)
    return cells


def printed_text(comparison: Comparison) -> str:
    """The paper's difference, with its standard error if known."""
    noise = "" if comparison.noise is None else f" ± {number(comparison.noise)}"
    return f"{signed(comparison.paper)}{noise}"
