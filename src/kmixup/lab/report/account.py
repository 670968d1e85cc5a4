"""All that a report says, worked out once for every way of showing it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kmixup.lab.paper.claims import Comparison as Claim
from kmixup.lab.paper.tables import Table
from kmixup.lab.report.agreement import Agreement, agreement
from kmixup.lab.report.grids import Outcome, Row, outcomes, unplaced
from kmixup.lab.report.verdict import Comparison, comparisons


@dataclass(frozen=True)
class Preface:
    """What is known of a report beforehand.

    `claim` is what the paper says of its tables, in a sentence, and `comparison` the same
    for grids to answer; `notes` say how the run departs from the paper.
    """

    name: str
    command: str
    claim: str | None
    comparison: Claim
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """An outcome, and what follows from it."""

    outcome: Outcome
    comparisons: tuple[Comparison, ...]
    agreement: Agreement | None


@dataclass(frozen=True)
class Account:
    """The findings of a sweep and where its rows come from; `rows` are in the order of ids."""

    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]

    @property
    def unplaced(self) -> tuple[Row, ...]:
        return unplaced(self.rows, (finding.outcome for finding in self.findings))

    @property
    def failed(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row["status"] != "done")

    @property
    def done(self) -> int:
        return len(self.rows) - len(self.failed)

    @property
    def seconds(self) -> float:
        """Of training in total, over all processes."""
        return math.fsum(row["seconds"] for row in self.rows if row["status"] == "done")

    @property
    def finished(self) -> tuple[str, str] | None:
        """When the first and the last trial ended."""
        times = [row["finished"] for row in self.rows]
        return (min(times), max(times)) if times else None

    def sources(self, name: str) -> tuple[tuple[Mapping[str, Any], int], ...]:
        """The different "versions" or "machine" of the rows, with the number of rows of each."""
        tally = Counter(json.dumps(row[name], sort_keys=True) for row in self.rows)
        return tuple((json.loads(text), n) for text, n in sorted(tally.items()))


def account_of(rows: Iterable[Row], tables: Iterable[Table]) -> Account:
    """Work out the findings of rows, in any order, for tables."""
    ordered = tuple(sorted(rows, key=lambda row: str(row["id"])))
    return Account(
        ordered,
        tuple(
            Finding(outcome, comparisons(outcome), agreement(outcome))
            for outcome in outcomes(ordered, tables)
        ),
    )
