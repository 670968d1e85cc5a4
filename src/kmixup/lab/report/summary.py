"""The verdicts at a glance: one line for each table and alpha rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kmixup.lab.paper.claims import Comparison as Claim
from kmixup.lab.report.account import Finding
from kmixup.lab.report.grids import Grid, Outcome
from kmixup.lab.report.verdict import Comparison, claimed
from kmixup.lab.report.wording import (
    RULE,
    best_against_best,
    honest,
    mood,
    on_test,
    shown_ks,
    sides,
    signed,
)

HEADINGS = (
    "table",
    "alpha at k > 1",
    "the claim",
    "best k > 1 less best k = 1 [95 %]",
    "chosen on the test error, as the paper does",
    "the paper",
    "at the same alpha",
)
EXPLANATION = (
    "Differences are in points of test error, and below 0 is better. Best cells are chosen on "
    "every other trial and compared on the rest, paired by trial, and the other way round; the "
    "interval is Student's at 95 %, widened because what is low in one turn wins in the other. "
    "Beside it are the cells that are best on the test error over all trials, which is how the "
    "paper chooses and which flatters whoever has more cells to choose from. The last column "
    "counts the columns of the grid in which a k is lower than k = 1, higher, or neither at "
    "95 %; nothing is chosen there."
)


@dataclass(frozen=True)
class Line:
    """What is said of one table under one alpha rule: `texts` in the order of `HEADINGS`."""

    texts: tuple[str, ...]
    mood: str

    @property
    def sentence(self) -> str:
        """The line for a terminal."""
        table, rule, verdict, difference, chosen, paper, columns = self.texts
        parts = [f"{table}, {rule}: {verdict}"]
        parts += [f"best k > 1 less best k = 1 {difference}"] if difference != "–" else []
        parts += [f"chosen on the test error {chosen}"] if chosen != "–" else []
        parts += [f"in the paper {paper}"] if paper != "–" else []
        parts += [f"at the same alpha {columns}"] if columns != "–" else []
        return "; ".join(parts)


def lines(findings: Sequence[Finding], claim: Claim) -> tuple[Line, ...]:
    """A line for each finding and alpha rule."""
    return tuple(
        _line(finding, grid, claim) for finding in findings for grid in finding.outcome.grids
    )


def _line(finding: Finding, grid: Grid, claim: Claim) -> Line:
    outcome = finding.outcome
    found = claimed(outcome, grid, claim)
    verdicts = [one.verdict for one in found]
    said = verdicts[0] if len(verdicts) == 1 else _tally(verdicts, claim)
    best = best_against_best(finding, grid.rule)
    figures = _figures(best[0]) if len(best) == 1 else ("–", "–", "–")
    texts = (outcome.title, RULE[grid.rule], said, *figures, _columns(outcome, grid))
    return Line(texts, mood(verdicts))


def _figures(best: Comparison) -> tuple[str, str, str]:
    return honest(best), on_test(best), signed(best.paper)


def _tally(verdicts: Sequence[str], claim: Claim) -> str:
    """Verdicts on columns or on levels of noise, counted."""
    if not verdicts:
        return "no verdict: there is no cell"
    unit = "columns" if claim.each == "column" else "levels of ε"
    tally = Counter(verdict.split(":")[0] for verdict in verdicts)
    counted = [f"{verdict} in {n}" for verdict, n in sorted(tally.items())]
    return f"of {len(verdicts)} {unit}: {', '.join(counted)}"


def _columns(outcome: Outcome, grid: Grid) -> str:
    found = []
    for k in shown_ks(outcome):
        tally = sides(grid, k)
        if tally:
            found.append(f"k = {k}: {tally[-1]} lower, {tally[1]} higher, {tally[0]} neither")
    return "; ".join(found) or "–"
