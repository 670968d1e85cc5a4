"""A report as one HTML page that needs nothing but itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kmixup.lab.experiments.rows import done_of
from kmixup.lab.formatting import count
from kmixup.lab.pages.heat import HeatMap
from kmixup.lab.pages.html import Drawing, Origin, Picture, render
from kmixup.lab.report import maps, several, wording
from kmixup.lab.report.account import Account, Finding, Preface
from kmixup.lab.report.curves import Curve, against_k, course, training
from kmixup.lab.report.grids import Cell, Grid, Outcome
from kmixup.lab.report.side_by_side import EXPLANATION as NOTHING_CHOSEN
from kmixup.lab.report.side_by_side import side_by_side
from kmixup.lab.report.summary import explanation, headings, is_printed, lines


@dataclass(frozen=True)
class Section:
    """What the page shows of one finding.

    Attributes:
        finding: an outcome and what follows from it.
        errors: our grids and the paper's.
        differences: ours less the paper's.
        strengths: the alpha that was trained with, and its xi.
        against_k: error against k.
        training: the course of training.
        sentences: how k > 1 compares with k = 1, column by column.
    """

    finding: Finding
    errors: tuple[HeatMap, ...]
    differences: tuple[HeatMap, ...]
    strengths: tuple[HeatMap, ...]
    against_k: tuple[Drawing, ...]
    training: tuple[Drawing, ...]
    sentences: tuple[str, ...]


def page(account: Account, preface: Preface, *, pictures: Mapping[str, Sequence[Picture]]) -> str:
    """The whole page; `pictures` are decision surfaces by the name of their data."""
    return render(
        "kmixup.lab.report",
        "page.html",
        name=preface.name,
        words=wording,
        account=account,
        preface=preface,
        pictures=pictures,
        methods=side_by_side(account.findings),
        nothing_chosen=NOTHING_CHOSEN,
        printed=is_printed(account.findings),
        headings=headings(account.findings),
        lines=lines(account.findings, preface.comparison),
        explanation=explanation(account.findings),
        several=several.sentences(account.findings),
        readings=wording.readings(account.findings),
        sections=[_section(i, finding) for i, finding in enumerate(account.findings, 1)],
        settings=_settings(account.findings),
        origin=origin(account),
    )


def origin(account: Account) -> Origin:
    """Where the rows come from, and which of them failed."""
    return Origin(
        failures=tuple(wording.failure(row) for row in account.failed),
        sources=tuple((count(rows, "row"), dict(plain)) for plain, rows in account.sources),
        finished=account.finished,
    )


def _section(number: int, finding: Finding) -> Section:
    outcome = finding.outcome
    return Section(
        finding,
        maps.errors(outcome),
        maps.differences(outcome),
        maps.strengths(outcome),
        _against_k(outcome, f"k{number}"),
        _training(finding, f"t{number}"),
        wording.by_columns(outcome),
    )


def _against_k(outcome: Outcome, name: str) -> tuple[Drawing, ...]:
    """Error against k for each alpha rule and in the paper, on axes of one height."""
    whose = "" if outcome.table.errors is None else "Ours, "
    # where columns differ in eps each has an ERM of its own
    erm = outcome.erm[0].mean if len(outcome.erm) == 1 else None
    panels = [
        (
            f"{whose}{wording.RULE[grid.rule]}",
            [_ours(outcome, grid, j) for j in _columns(outcome)],
            erm,
        )
        for grid in outcome.grids
    ]
    if outcome.table.errors is not None:
        paper = [_printed(outcome, j) for j in _columns(outcome)]
        panels.append((f"The paper, {outcome.table.label}", paper, outcome.table.erm))
    tops = [curve.top for _, curves, _ in panels for curve in curves]
    top = 1.05 * max([*tops, *(plain or 0.0 for *_, plain in panels)], default=0.0) or None
    return tuple(
        Drawing(
            title,
            against_k(curves, name=f"{name}{i}", top=top, erm=plain, ylabel=_axis(outcome)),
        )
        for i, (title, curves, plain) in enumerate(panels)
        if any(curve.x for curve in curves)
    )


def _axis(outcome: Outcome) -> str:
    return f"{outcome.unit.name} {outcome.unit.unit}"


def _columns(outcome: Outcome) -> range:
    return range(len(outcome.columns))


def _ours(outcome: Outcome, grid: Grid, j: int) -> Curve:
    cells = [row[j] for row in grid.cells]
    known = [
        (cell.k, cell.mean, cell.standard_error or 0.0) for cell in cells if cell.mean is not None
    ]
    return _curve(outcome, j, known)


def _printed(outcome: Outcome, j: int) -> Curve:
    cells = [row[j] for row in outcome.grids[0].cells]
    return _curve(
        outcome, j, [(cell.k, cell.paper, 0.0) for cell in cells if cell.paper is not None]
    )


def _curve(outcome: Outcome, j: int, points: Sequence[tuple[int, float, float]]) -> Curve:
    x, y, errors = zip(*points, strict=True) if points else ((), (), ())
    return Curve(wording.column_name(outcome.columns[j], outcome), x, y, errors)


def _training(finding: Finding, name: str) -> tuple[Drawing, ...]:
    """The course of training with ERM, and of the cells that are best on the test error."""
    outcome = finding.outcome
    shown: dict[str, Cell] = {"ERM": outcome.erm[0]}
    for grid in outcome.grids:
        first, *_ = *wording.best_against_best(finding, grid.rule), *finding.comparisons, None
        if first is not None and first.chosen is not None:
            new, old = first.chosen
            rule = "" if len(outcome.grids) == 1 else f" ({grid.rule})"
            if first.baseline != "ERM":
                shown[f"{first.baseline}, {wording.cell_name(old)}"] = old
            name = wording.cell_name(new)
            shown[f"{name if new.k > 1 else f'{first.challenger}, {name}'}{rule}"] = new
    drawn = []
    for figure, ylabel, title in (
        ("loss", "training loss", "Mean training loss, of mixed samples where there are any"),
        ("error", _axis(outcome), f"Mean test {outcome.unit.name}, as training goes on"),
    ):
        courses = [course(cell, label, figure) for label, cell in shown.items()]
        known = [curve for curve in courses if curve is not None]
        if known:
            drawn.append(Drawing(title, training(known, ylabel=ylabel, name=f"{name}{figure}")))
    return tuple(drawn)


def _settings(findings: Sequence[Finding]) -> list[tuple[str, Mapping[str, Any]]]:
    """Every setting once, with the titles of its tables and the size of their data."""
    titles: dict[str, list[str]] = {}
    for outcome in (finding.outcome for finding in findings):
        data = next((row.data for row in done_of(outcome.rows)), None)
        size = {} if data is None else {"train samples": data.train, "test samples": data.test}
        if outcome.setting:
            chosen = {key: value for key, value in outcome.setting.items() if value is not None}
            plain = {"network": outcome.table.model, **chosen, **size}
            titles.setdefault(json.dumps(plain), []).append(outcome.title)
    return [("; ".join(tables), json.loads(plain)) for plain, tables in titles.items()]
