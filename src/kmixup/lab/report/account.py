"""All that a report says, worked out once for every way of showing it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kmixup.lab.experiments.rows import Failed, Row, done_of, failed_of
from kmixup.lab.paper.tables import Claim, PaperTable
from kmixup.lab.report.agreement import Agreement, agreement
from kmixup.lab.report.comparing import CellComparison, comparisons
from kmixup.lab.report.grids import Outcome
from kmixup.lab.report.outcomes import outcomes, unplaced


@dataclass(frozen=True)
class Preface:
    """What is known of a report beforehand.

    Attributes:
        name: the heading of the report.
        command: what to type to repeat it.
        claim: what the paper says of its tables, in a sentence.
        comparison: the claim in a form that grids can answer.
        notes: how the run departs from the paper, a sentence each.
    """

    name: str
    command: str
    claim: str | None
    comparison: Claim
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """An outcome, and what follows from it.

    Attributes:
        outcome: a table and its measured cells.
        comparisons: best cells against best cells.
        agreement: which alpha rule the paper's figures agree with, None where it prints none.
    """

    outcome: Outcome
    comparisons: tuple[CellComparison, ...]
    agreement: Agreement | None


@dataclass(frozen=True)
class Account:
    """What a report says.

    Attributes:
        rows: all rows of the sweep, in the order of their ids.
        findings: one for each outcome of each table.
    """

    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]

    @property
    def unplaced(self) -> tuple[Row, ...]:
        """The rows that are in no cell of any table."""
        return unplaced(self.rows, (finding.outcome for finding in self.findings))

    @property
    def failed(self) -> tuple[Failed, ...]:
        return tuple(failed_of(self.rows))

    @property
    def done(self) -> int:
        """The number of trials that ended well."""
        return len(self.rows) - len(self.failed)

    @property
    def seconds(self) -> float:
        """Seconds of training in total, over all processes."""
        return math.fsum(row.seconds for row in done_of(self.rows))

    @property
    def finished(self) -> tuple[str, str] | None:
        """When the first and the last trial ended."""
        times = [row.finished for row in self.rows]
        return (min(times), max(times)) if times else None

    @property
    def sources(self) -> tuple[tuple[Mapping[str, Any], int], ...]:
        """The different versions, then the different machines, with the number of rows of each."""
        versions = _tally(row.versions for row in self.rows)
        return versions + _tally(row.machine for row in self.rows)


def account_of(rows: Iterable[Row], tables: Iterable[PaperTable]) -> Account:
    """The findings for tables, from rows in any order."""
    ordered = tuple(sorted(rows, key=lambda row: row.id))
    return Account(
        ordered,
        tuple(
            Finding(outcome, comparisons(outcome), agreement(outcome))
            for outcome in outcomes(ordered, tables)
        ),
    )


def _tally(facts: Iterable[Mapping[str, Any]]) -> tuple[tuple[Mapping[str, Any], int], ...]:
    """Every different mapping once, with the number of its occurrences."""
    tally = Counter(json.dumps(fact, sort_keys=True) for fact in facts)
    return tuple((json.loads(text), n) for text, n in sorted(tally.items()))
