"""A report on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as TerminalTable
from rich.text import Text

from kmixup.lab.formatting import number, signed, terminal_table
from kmixup.lab.paper.tables import Claim
from kmixup.lab.report import several
from kmixup.lab.report.account import Account, Finding
from kmixup.lab.report.grids import Cell, Grid
from kmixup.lab.report.side_by_side import side_by_side
from kmixup.lab.report.summary import lines
from kmixup.lab.report.wording import (
    RULE,
    cell_error,
    cell_gaps,
    column_name,
    constant,
    reading,
    subject,
    unplaced_sentence,
)

STYLE = {"good": "green", "bad": "red", "open": "yellow"}


def show(account: Account, console: Console, *, claim: Claim) -> None:
    """Print every grid beside the paper's figures, then the verdicts."""
    for finding in account.findings:
        console.print()
        for grid in finding.outcome.grids:
            console.print(_grid(finding, grid))
        if said := constant(finding.outcome):
            console.print(said, highlight=False, markup=False)
        if finding.agreement is not None:
            said = f"The paper's figures agree with: {reading(finding.agreement)}"
            console.print(said, highlight=False, markup=False)
    if (methods := _methods(account)) is not None:
        console.print(methods)
    console.print()
    for line in lines(account.findings, claim):
        console.print(line.sentence, style=STYLE[line.mood], highlight=False, markup=False)
    for sentence in several.sentences(account.findings):
        console.print(sentence, highlight=False, markup=False)
    if account.failed:
        console.print(f"[red]{len(account.failed)} failed[/]", highlight=False)
    if text := unplaced_sentence(account.unplaced):
        console.print(text, highlight=False, markup=False)


def _methods(account: Account) -> TerminalTable | None:
    methods = side_by_side(account.findings)
    if methods is None:
        return None
    caption = "mean ± standard error, difference from mixup [95 %]"
    return methods.table(between="\n", between_heads="\n", caption=caption).printed()


def _grid(finding: Finding, grid: Grid) -> TerminalTable:
    outcome = finding.outcome
    against = "" if outcome.table.errors is None else ", the paper's (difference)"
    best = min((cell.mean for cell in grid if cell.mean is not None), default=None)
    rows: list[list[str | Text]] = [["ERM", *(_cell(cell, None) for cell in outcome.erm_by_column)]]
    for k, cells in zip(outcome.ks, grid.cells, strict=True):
        rows.append([str(k), *(_cell(cell, best) for cell in cells)])
    table = terminal_table(
        ["k", *(column_name(column, outcome) for column in outcome.columns)],
        rows,
        title=f"{outcome.title}, {RULE[grid.rule]}",
        caption=f"{subject(outcome)}: mean ± standard error{against}",
        first="right",
    )
    table.rows[0].end_section = True
    return table


def _cell(cell: Cell, best: float | None) -> Text:
    parts = [(cell_error(cell), "bold" if cell.mean is not None and cell.mean == best else "")]
    if cell.paper is not None:
        parts.append((f"\n{number(cell.paper)} ({signed(cell.difference)})", "dim"))
    if gaps := cell_gaps(cell):
        parts.append((f"\n{gaps}", "red"))
    return Text.assemble(*parts)
