"""All cells of a report as comma-separated values, one line each."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from kmixup.lab.report.account import Account
from kmixup.lab.report.grids import Cell, Outcome

COLUMNS = (
    "table",
    "setting",
    "data",
    "model",
    "method",
    "alpha_rule",
    "k",
    "alpha",
    "measure",
    "eps",
    "trials",
    "failed",
    "missing",
    "error_percent",
    "standard_error",
    "trained_alpha",
    "xi",
    "paper_percent",
    "paper_confidence",
    "difference",
    "difference_in_standard_errors",
)


def cells_csv(account: Account) -> str:
    """The cells with a line of headings; what is not known is empty."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for finding in account.findings:
        writer.writerows(_lines(finding.outcome))
    return stream.getvalue()


def _lines(outcome: Outcome) -> Iterator[list[object]]:
    for cell in outcome.erm:
        yield _line(outcome, "erm", "", cell)
    for i, grid in enumerate(outcome.grids):
        for cell in grid:
            if cell.k > 1:
                yield _line(outcome, outcome.table.method, grid.rule, cell)
            elif i == 0:  # k = 1 is the same in every grid
                yield _line(outcome, outcome.table.baseline, "", cell)


def _line(outcome: Outcome, method: str, rule: str, cell: Cell) -> list[object]:
    table = outcome.table
    setting = " ".join(f"{name}={value}" for name, value in outcome.distinct.items())
    what = [table.name, setting, table.data, table.model, method, rule]
    counts = [len(cell.done), len(cell.failed), cell.missing]
    figures = (cell.mean, cell.standard_error, cell.trained_alpha, cell.xi)
    against = (cell.paper, cell.confidence, cell.difference, cell.ratio)
    rounded = ["" if figure is None else f"{figure:.6g}" for figure in (*figures, *against)]
    where = [cell.k or "", cell.alpha, cell.measure, "" if cell.eps is None else cell.eps]
    return [*what, *where, *counts, *rounded]
