"""A report on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Lines

from kmixup.lab.paper.claims import Comparison as Claim
from kmixup.lab.report.account import Account, Finding
from kmixup.lab.report.grids import Cell, Grid
from kmixup.lab.report.side_by_side import side_by_side
from kmixup.lab.report.summary import lines
from kmixup.lab.report.wording import (
    RULE,
    cell_error,
    cell_gaps,
    column_name,
    number,
    reading,
    signed,
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
        if finding.agreement is not None:
            said = f"The paper's figures agree with: {reading(finding.agreement)}"
            console.print(said, highlight=False)
    if (methods := _methods(account)) is not None:
        console.print(methods)
    console.print()
    for line in lines(account.findings, claim):
        console.print(line.sentence, style=STYLE[line.mood], highlight=False, markup=False)
    if account.failed:
        console.print(f"[red]{len(account.failed)} failed[/]", highlight=False)
    if text := unplaced_sentence(account.unplaced):
        console.print(text, highlight=False)


def _methods(account: Account) -> Lines | None:
    found = side_by_side(account.findings)
    if found is None:
        return None
    table = Lines(title=found.title, caption="mean ± standard error, difference from mixup [95 %]")
    table.add_column("")
    for head in found.head:
        table.add_column(escape("\n".join(head)), justify="right")
    for label, boxes in found.rows:
        texts = (escape(f"{box.text}\n{box.small}".strip()) for box in boxes)
        table.add_row(label, *texts)
    return table


def _grid(finding: Finding, grid: Grid) -> Lines:
    outcome = finding.outcome
    against = "" if outcome.table.errors is None else ", the paper's (difference)"
    table = Lines(
        title=escape(f"{outcome.title}, {RULE[grid.rule]}"),
        caption=escape(f"{subject(outcome.table)}: mean ± standard error{against}"),
    )
    table.add_column("k", justify="right")
    for column in outcome.columns:
        table.add_column(column_name(column, outcome), justify="right")
    best = min((cell.mean for cell in grid if cell.mean is not None), default=None)
    table.add_row("ERM", *(_cell(cell, None) for cell in outcome.erm_by_column), end_section=True)
    for k, cells in zip(outcome.ks, grid.cells, strict=True):
        table.add_row(str(k), *(_cell(cell, best) for cell in cells))
    return table


def _cell(cell: Cell, best: float | None) -> str:
    text = cell_error(cell)
    if cell.mean is not None and cell.mean == best:
        text = f"[bold]{text}[/]"
    if cell.paper is not None:
        text += f"\n[dim]{number(cell.paper)} ({signed(cell.difference)})[/]"
    gaps = cell_gaps(cell)
    return f"{text}\n[red]{gaps}[/]" if gaps else text
