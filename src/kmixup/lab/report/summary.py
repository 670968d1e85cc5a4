"""The verdicts at a glance: one line for each table and alpha rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kmixup.lab.report.account import Finding
from kmixup.lab.report.grids import Grid
from kmixup.lab.report.verdict import HEURISTIC, Comparison, by_column
from kmixup.lab.report.wording import RULE, honest, main_claim, mood, on_test, signed

HEADINGS = (
    "table",
    "alpha at k > 1",
    "k > 1 against k = 1",
    "difference [95 %]",
    "chosen on the test error, as the paper does",
    "the paper",
    "at the same alpha",
)
EXPLANATION = (
    "Differences are in points of test error, the best cell with k > 1 less the best with "
    "k = 1: below 0 is better. Best cells are chosen on every other trial and compared on the "
    "rest, paired by trial, and the other way round; the interval is Student's at 95 %, widened "
    "because what is low in one turn wins in the other. Beside it are the cells that are best "
    "on the test error over all trials, which is how the paper chooses and which flatters "
    "whoever has more cells to choose from. The last column counts the columns of the grid in "
    f"which k = {HEURISTIC}, or the largest k where there is no such, is lower than k = 1, "
    "higher, or neither at 95 %."
)


@dataclass(frozen=True)
class Line:
    """What is said of one table under one alpha rule, in the order of `HEADINGS`."""

    table: str
    rule: str
    verdict: str
    honest: str
    on_test: str
    paper: str
    columns: str

    @property
    def mood(self) -> str:
        return mood(self.verdict)


def lines(findings: Sequence[Finding]) -> tuple[Line, ...]:
    """A line for each finding and alpha rule."""
    found = []
    for finding in findings:
        claims = main_claim(finding.comparisons)
        for grid in finding.outcome.grids:
            those = [claim for claim in claims if claim.rule == grid.rule]
            said = _several(those) if len(those) != 1 else _one(those[0])
            title = finding.outcome.title
            found.append(Line(title, RULE[grid.rule], *said, _columns(grid)))
    return tuple(found)


def _one(claim: Comparison) -> tuple[str, str, str, str]:
    return claim.verdict, honest(claim), on_test(claim), signed(claim.paper)


def _several(claims: Sequence[Comparison]) -> tuple[str, str, str, str]:
    """Claims at several eps, counted by their verdicts; none at all without both sides."""
    if not claims:
        return "no verdict: k = 1 or k > 1 was not run", "–", "–", "–"
    tally = Counter(claim.verdict.split(":")[0] for claim in claims)
    verdicts = ", ".join(f"{verdict} at {n}" for verdict, n in sorted(tally.items()))
    return f"{len(claims)} levels of ε: {verdicts}", "–", "–", "–"


def _columns(grid: Grid) -> str:
    ks = sorted({cell.k for cell in grid if cell.k > 1})
    if not ks or not any(cell.k == 1 for cell in grid):
        return "–"
    k = HEURISTIC if HEURISTIC in ks else ks[-1]
    sides = Counter(estimate.side for *_, estimate in by_column(grid, k=k) if estimate is not None)
    if not sides:
        return "–"
    return f"k = {k}: {sides[-1]} lower, {sides[1]} higher, {sides[0]} neither"
