"""A report as Markdown, to be put into documents."""

from __future__ import annotations

from collections.abc import Sequence

from kmixup.lab.paper.claims import Comparison as Claim
from kmixup.lab.report.account import Account, Finding, Preface
from kmixup.lab.report.grids import Cell, Grid
from kmixup.lab.report.side_by_side import EXPLANATION as NOTHING_CHOSEN
from kmixup.lab.report.side_by_side import side_by_side
from kmixup.lab.report.summary import EXPLANATION, HEADINGS, lines
from kmixup.lab.report.wording import (
    by_columns,
    cell_error,
    cell_gaps,
    column_name,
    failure,
    number,
    readings,
    sentence,
    strength,
    subject,
    title,
    unplaced_sentence,
)
from kmixup.lab.words import count


def markdown(account: Account, preface: Preface) -> str:
    """The whole report, as one document."""
    parts = [f"# {_text(preface.name)}"]
    if preface.claim:
        parts.append(f"The claim: {_text(preface.claim)}")
    parts.append(f"{count(account.done, 'trial')} ended, {len(account.failed)} failed.")
    parts += [_list(preface.notes), *_methods(account)]
    parts += ["## Verdicts", _summary(account, preface.comparison), EXPLANATION]
    if agreed := readings(account.findings):
        parts.append("Which reading of alpha the paper's figures agree with:")
        parts.append(_list([f"{of}: {reading}" for of, reading in agreed]))
    for finding in account.findings:
        parts += _finding(finding)
    if account.failed:
        parts += ["## Failed trials", _list([failure(row) for row in account.failed])]
    if text := unplaced_sentence(account.unplaced):
        parts.append(text)
    parts += ["## To repeat", f"```\n{preface.command}\n```"]
    return "\n\n".join(part for part in parts if part) + "\n"


def _finding(finding: Finding) -> list[str]:
    outcome, table = finding.outcome, finding.outcome.table
    where = "" if table.errors is None else f" The paper's are in brackets ({table.label})."
    parts = [
        f"## {_text(outcome.title)}",
        _text(f"Mean {subject(table)} ± one standard deviation of the mean.{where}"),
        _list(table.notes),
    ]
    for grid in outcome.grids:
        parts += [f"### {title(grid.rule)}", _grid(finding, grid)]
        parts += ["Alpha that was trained with, and xi:", _strengths(finding, grid)]
    return [*parts, _list([*map(sentence, finding.comparisons), *by_columns(outcome)])]


def _methods(account: Account) -> list[str]:
    found = side_by_side(account.findings)
    if found is None:
        return []
    rows = [
        (label, *(f"{box.text} {box.small}".strip() for box in boxes))
        for label, boxes in found.rows
    ]
    head = [", ".join(lines) for lines in found.head]
    return ["## Methods side by side", _table(["", *head], rows), NOTHING_CHOSEN]


def _summary(account: Account, claim: Claim) -> str:
    return _table(HEADINGS, [line.texts for line in lines(account.findings, claim)])


def _grid(finding: Finding, grid: Grid) -> str:
    outcome = finding.outcome
    rows = [("ERM", *map(_cell, outcome.erm_by_column))]
    for k, cells in zip(outcome.ks, grid.cells, strict=True):
        rows.append((f"k = {k}", *map(_cell, cells)))
    return _table(["", *(column_name(column, outcome) for column in outcome.columns)], rows)


def _cell(cell: Cell) -> str:
    printed = "" if cell.paper is None else f" ({number(cell.paper)})"
    gaps = cell_gaps(cell)
    return cell_error(cell) + printed + (f", {gaps}" if gaps else "")


def _strengths(finding: Finding, grid: Grid) -> str:
    outcome = finding.outcome
    rows = [
        (f"k = {k}", *(f"α {strength(c.trained_alpha)}, ξ {strength(c.xi)}" for c in cells))
        for k, cells in zip(outcome.ks, grid.cells, strict=True)
    ]
    return _table(["", *(column_name(column, outcome) for column in outcome.columns)], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(head) - 1)]
    full = [[*row, *[""] * (len(head) - len(row))] for row in (head, rule, *rows)]
    return "\n".join("| " + " | ".join(map(_text, row)) + " |" for row in full)


def _list(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {_text(sentence)}" for sentence in sentences)


def _text(text: str) -> str:
    """Text in which nothing is read as markup."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
