"""A report as Markdown, to be put into documents."""

from __future__ import annotations

from collections.abc import Sequence

from kmixup.lab.formatting import TextTable, count, escaped, number, strength
from kmixup.lab.paper.tables import Claim
from kmixup.lab.report import several
from kmixup.lab.report.account import Account, Finding, Preface
from kmixup.lab.report.grids import Cell, Grid, Outcome
from kmixup.lab.report.recipes import recipes
from kmixup.lab.report.side_by_side import EXPLANATION as NOTHING_CHOSEN
from kmixup.lab.report.side_by_side import side_by_side
from kmixup.lab.report.summary import explanation, headings, is_printed, lines
from kmixup.lab.report.wording import (
    by_columns,
    cell_error,
    cell_gaps,
    column_name,
    constant,
    failure,
    readings,
    sentence,
    subject,
    title,
    unplaced_sentence,
)


def markdown(account: Account, preface: Preface) -> str:
    """The whole report, as one document."""
    parts = [f"# {escaped(preface.name)}"]
    if preface.claim:
        parts.append(f"{escaped(preface.claim)}")
    parts.append(f"{count(account.done, 'trial')} ended, {len(account.failed)} failed.")
    parts += [_list(preface.notes), *_methods(account)]
    parts += ["## Verdicts", _summary(account, preface.comparison)]
    parts += [explanation(account.findings), _list(several.sentences(account.findings))]
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
    where = f"The paper's are in brackets ({table.label})." if table.errors else constant(outcome)
    parts = [
        f"## {escaped(outcome.title)}",
        escaped(f"Mean {subject(outcome)} ± one standard deviation of the mean. {where}".rstrip()),
        _list(table.notes),
    ]
    for grid in outcome.grids:
        parts += [f"### {title(grid.rule)}", _grid(finding, grid)]
        parts += ["Alpha that was trained with, and xi:", _strengths(finding, grid)]
    parts.append(_list([*map(sentence, finding.comparisons), *by_columns(outcome)]))
    if table.errors is not None:
        tried = [recipe for grid in outcome.grids for recipe in recipes(outcome, grid)]
        parts += ["The appendix's recipes:", _list([*map(sentence, tried)])] if tried else []
    return parts


def _methods(account: Account) -> list[str]:
    methods = side_by_side(account.findings)
    if methods is None:
        return []
    table = methods.table(between=" ", between_heads=", ")
    return ["## Methods side by side", table.markdown(), NOTHING_CHOSEN]


def _summary(account: Account, claim: Claim) -> str:
    findings = account.findings
    printed = is_printed(findings)
    texts = [line.texts(printed=printed) for line in lines(findings, claim)]
    return TextTable(headings(findings), texts).markdown()


def _grid(finding: Finding, grid: Grid) -> str:
    outcome = finding.outcome
    rows = [("ERM", *map(_cell, outcome.erm_by_column))]
    for k, cells in zip(outcome.ks, grid.cells, strict=True):
        rows.append((f"k = {k}", *map(_cell, cells)))
    return _by_k(outcome, rows)


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
    return _by_k(outcome, rows)


def _by_k(outcome: Outcome, rows: Sequence[Sequence[str]]) -> str:
    header = ["", *(column_name(column, outcome) for column in outcome.columns)]
    return TextTable(header, rows).markdown()


def _list(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {escaped(sentence)}" for sentence in sentences)
