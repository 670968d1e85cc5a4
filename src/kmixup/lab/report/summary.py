"""The verdicts at a glance: one line for each table and alpha rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kmixup.lab.formatting import NOTHING
from kmixup.lab.paper.tables import Claim
from kmixup.lab.report.account import Finding
from kmixup.lab.report.comparing import CellComparison, claimed
from kmixup.lab.report.grids import Grid, Outcome
from kmixup.lab.report.verdict import Mood, Verdict, mood_of
from kmixup.lab.report.wording import (
    RULE,
    best_against_best,
    honest,
    on_test,
    printed,
    shown_ks,
    sides,
)

BEST = "best k > 1 less best k = 1"
HEADINGS = (
    "table",
    "alpha at k > 1",
    "the claim",
    f"{BEST} [95 %]",
    "chosen on the test error, as the paper does",
    "the paper",
    "at the same alpha",
)
OWN_HEADINGS = (
    "table",
    "alpha at k > 1",
    "compared",
    "verdict",
    "difference [95 %]",
    "chosen on the test error",
    "at the same alpha",
)
EXPLANATION = (
    "Differences are in points of test error, and below 0 is better. Best cells are chosen on "
    "every other trial and compared on the rest, paired by trial, and the other way round; the "
    "interval is Student's at 95 %, widened because what is low in one turn wins in the other. "
    "Where trials split the same samples anew it holds for these samples alone; “new data” is "
    "the interval for others of their kind (Nadeau and Bengio). "
    "Beside it are the cells that are best on the test error over all trials, {how}. {noise}The "
    "last column counts the columns of the grid in which a k is lower than k = 1, higher, or "
    "neither at 95 %; nothing is chosen there."
)
HOW = "which is how the paper chooses and which flatters whoever has more cells to choose from"
NOISE = (
    "± in the column of the paper is the standard error of its difference, from the error bar "
    "that it states, else from one as large as ours. "
)
XI = (
    "Xi (ξ) is the strength of mixing, the root mean square distance that a sample is moved: "
    "“alpha calibrated to keep xi” raises alpha with k, so that samples move as far as at k = 1."
)
OWN_HOW = HOW.removeprefix("which is how the paper chooses and ")


@dataclass(frozen=True)
class SummaryLine:
    """What is said of one table under one alpha rule.

    Attributes:
        table: the title of the table.
        rule: how alpha was read at k > 1.
        verdict: on the claim, or on what was compared.
        compared: the two sides, the first less the second.
        difference: between the two sides, with its interval.
        chosen: the difference between cells that were chosen on the test error.
        paper: the difference in the paper.
        columns: how k > 1 compares with k = 1 at the same alpha.
        mood: how the verdicts turned out together.
    """

    table: str
    rule: str
    verdict: str
    compared: str
    difference: str
    chosen: str
    paper: str
    columns: str
    mood: Mood

    def texts(self, *, printed: bool) -> tuple[str, ...]:
        """One text for each of `HEADINGS` where figures of the paper are printed beside ours,
        else for each of `OWN_HEADINGS`.
        """
        figures = (self.difference, self.chosen)
        if printed:
            return (
                self.table, self.rule, self.verdict, *figures, self.paper, self.columns,
            )  # fmt: skip
        return (self.table, self.rule, self.compared, self.verdict, *figures, self.columns)

    @property
    def sentence(self) -> str:
        """The line for a terminal."""
        about = self.table if self.rule == NOTHING else f"{self.table}, {self.rule}"
        parts = [f"{about}: {self.verdict}"]
        for name, text in (
            (self.compared, self.difference),
            ("chosen on the test error", self.chosen),
            ("in the paper", self.paper),
            ("at the same alpha", self.columns),
        ):
            parts += [f"{name} {text}"] if text != NOTHING else []
        return "; ".join(parts)


def lines(findings: Sequence[Finding], claim: Claim) -> tuple[SummaryLine, ...]:
    """A line for each finding and alpha rule."""
    return tuple(
        _line(finding, grid, claim) for finding in findings for grid in finding.outcome.grids
    )


def is_printed(findings: Sequence[Finding]) -> bool:
    """Whether figures of the paper stand beside ours."""
    return any(finding.outcome.table.errors is not None for finding in findings)


def headings(findings: Sequence[Finding]) -> tuple[str, ...]:
    """What stands above the texts of the lines."""
    return HEADINGS if is_printed(findings) else OWN_HEADINGS


def explanation(findings: Sequence[Finding]) -> str:
    """How to read the lines."""
    how, noise = (HOW, NOISE) if is_printed(findings) else (OWN_HOW, "")
    text = EXPLANATION.format(how=how, noise=noise)
    rules = {grid.rule for finding in findings for grid in finding.outcome.grids}
    return f"{text} {XI}" if "xi" in rules else text


def _line(finding: Finding, grid: Grid, claim: Claim) -> SummaryLine:
    outcome = finding.outcome
    judged = claimed(outcome, grid, claim)
    said = judged[0].text if len(judged) == 1 else _tally(judged, claim)
    best = best_against_best(finding, grid.rule) or judged
    figures = _figures(best[0]) if len(best) == 1 else (NOTHING,) * 3
    return SummaryLine(
        outcome.title,
        RULE[grid.rule] if any(k > 1 for k in outcome.ks) else NOTHING,
        said,
        _compared(best[0]) if best else NOTHING,
        *figures,
        _columns(outcome, grid),
        mood_of(comparison.verdict for comparison in judged),
    )


def _compared(best: CellComparison) -> str:
    return BEST if best.baseline != "ERM" else f"best {best.challenger} less ERM"


def _figures(best: CellComparison) -> tuple[str, str, str]:
    return honest(best), on_test(best), printed(best)


def _tally(comparisons: Sequence[CellComparison], claim: Claim) -> str:
    """Verdicts on columns or on levels of noise, counted."""
    if not comparisons:
        return f"{Verdict.NONE.label}: there is no cell"
    unit = "columns" if claim.each == "column" else "levels of ε"
    tally = Counter(comparison.label for comparison in comparisons)
    counted = [f"{label} in {n}" for label, n in sorted(tally.items())]
    return f"of {len(comparisons)} {unit}: {', '.join(counted)}"


def _columns(outcome: Outcome, grid: Grid) -> str:
    texts = []
    for k in shown_ks(outcome):
        if tally := sides(grid, k):
            texts.append(f"k = {k}: {tally[-1]} lower, {tally[1]} higher, {tally[0]} neither")
    return "; ".join(texts) or NOTHING
