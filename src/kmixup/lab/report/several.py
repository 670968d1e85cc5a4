"""Several tests at once: what is beyond chance after Holm's correction.

Of 15 tests at 95 % confidence one comes out wrong in more than half of all experiments. Holm's
p-values hold for all tests together: with 95 % confidence none of those below 0.05 is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kmixup.lab.formatting import count, signed
from kmixup.lab.report.account import Finding
from kmixup.lab.report.comparing import by_column
from kmixup.lab.report.verdict import LEVEL, PairedDifference
from kmixup.lab.report.wording import RULE, column_name, shown_ks
from kmixup.lab.train.config import AlphaRule


@dataclass(frozen=True)
class ColumnTest:
    """k against k = 1 in one column of a table.

    Attributes:
        where: the table and the column.
        difference: of the errors, paired by trial.
        p: the p-value, corrected for all tests of its family.
    """

    where: str
    difference: PairedDifference
    p: float

    @property
    def side(self) -> int:
        """-1 if k is lower beyond chance, 1 if it is higher, else 0."""
        return corrected_side(self.difference, self.p)


def corrected_side(difference: PairedDifference, p: float) -> int:
    """-1 if a difference is below 0 beyond chance, 1 if above, else 0; by a corrected p-value."""
    if p > 1 - LEVEL:
        return 0
    return 1 if difference.mean > 0 else -1


def holm(values: Sequence[float]) -> tuple[float, ...]:
    """p-values corrected for their number, in the same order (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    (0.03, 0.06, 0.06)
    """
    corrected, worst = [1.0] * len(values), 0.0
    for rank, i in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        worst = max(worst, min(1.0, (len(values) - rank) * values[i]))
        corrected[i] = worst
    return tuple(corrected)


def column_tests(findings: Sequence[Finding], k: int, rule: AlphaRule) -> tuple[ColumnTest, ...]:
    """k against k = 1 in all columns of all tables, as one family of tests."""
    places, differences = [], []
    for outcome in (finding.outcome for finding in findings):
        for grid in outcome.grids:
            if grid.rule != rule or k not in outcome.ks or 1 not in outcome.ks:
                continue
            cells = zip(outcome.columns, by_column(grid, k=k), strict=True)
            for column, (*_, difference) in cells:
                if difference is not None:
                    places.append(f"{outcome.title}, {column_name(column, outcome)}")
                    differences.append(difference)
    corrected = holm([difference.p for difference in differences])
    return tuple(map(ColumnTest, places, differences, corrected))


def sentences(findings: Sequence[Finding]) -> tuple[str, ...]:
    """What is beyond chance over all tables, one sentence for each k and alpha rule."""
    families = {
        (k, grid.rule): True
        for finding in findings
        for k in shown_ks(finding.outcome)
        for grid in finding.outcome.grids
    }
    texts = []
    for k, rule in families:
        tests = column_tests(findings, k, rule)
        if len(tests) < 2:
            continue
        parts = [
            f"{word} in {'; '.join(map(_named, chosen))}"
            for word, side in (("lower", -1), ("higher", 1))
            if (chosen := [test for test in tests if test.side == side])
        ]
        rest = sum(test.side == 0 for test in tests)
        parts += [f"undecided in {'all others' if parts else 'all'} ({rest})"] * bool(rest)
        texts.append(
            f"k = {k} against k = 1 in the same column, {RULE[rule]}, corrected for "
            f"{count(len(tests), 'test')} (Holm): {', '.join(parts)}."
        )
    return tuple(texts)


def _named(test: ColumnTest) -> str:
    return f"{test.where} ({signed(test.difference.mean)})"
