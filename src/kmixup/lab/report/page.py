"""A report as one HTML page that needs nothing but itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kmixup.lab.report import maps, wording
from kmixup.lab.report.account import Account, Finding, Preface
from kmixup.lab.report.curves import Line, against_k, course, training
from kmixup.lab.report.grids import Cell, Grid, Outcome
from kmixup.lab.report.side_by_side import EXPLANATION as NOTHING_CHOSEN
from kmixup.lab.report.side_by_side import side_by_side
from kmixup.lab.report.summary import EXPLANATION, HEADINGS, lines
from kmixup.lab.report.surfaces import Picture


@dataclass(frozen=True)
class Drawing:
    """An inline SVG and its caption."""

    caption: str
    svg: Markup


@dataclass(frozen=True)
class Section:
    """What the page shows of one finding."""

    finding: Finding
    errors: tuple[maps.Map, ...]
    differences: tuple[maps.Map, ...]
    strengths: tuple[maps.Map, ...]
    against_k: tuple[Drawing, ...]
    training: tuple[Drawing, ...]
    sentences: tuple[str, ...]


def page(account: Account, preface: Preface, *, pictures: Mapping[str, Sequence[Picture]]) -> str:
    """The whole page."""
    return rendered(
        "page.html",
        name=preface.name,
        account=account,
        preface=preface,
        pictures=pictures,
        methods=side_by_side(account.findings),
        nothing_chosen=NOTHING_CHOSEN,
        headings=HEADINGS,
        lines=lines(account.findings, preface.comparison),
        explanation=EXPLANATION,
        readings=wording.readings(account.findings),
        sections=[_section(i, finding) for i, finding in enumerate(account.findings, 1)],
        settings=_settings(account.findings),
    )


def rendered(template: str, **values: Any) -> str:
    """A page from one of the templates, with everything escaped."""
    environment = Environment(
        loader=PackageLoader("kmixup.lab.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    return environment.get_template(template).render(words=wording, **values)


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
    panels = [
        (f"Ours, {wording.RULE[grid.rule]}", [_ours(outcome, grid, j) for j in _columns(outcome)])
        for grid in outcome.grids
    ]
    if outcome.table.errors is not None:
        paper = [_printed(outcome, j) for j in _columns(outcome)]
        panels.append((f"The paper, {outcome.table.label}", paper))
    top = 1.05 * max((line.top for _, those in panels for line in those), default=0.0) or None
    return tuple(
        Drawing(caption, Markup(against_k(those, name=f"{name}{i}", top=top)))
        for i, (caption, those) in enumerate(panels)
        if any(line.x for line in those)
    )


def _columns(outcome: Outcome) -> range:
    return range(len(outcome.columns))


def _ours(outcome: Outcome, grid: Grid, j: int) -> Line:
    cells = [row[j] for row in grid.cells]
    known = [
        (cell.k, cell.mean, cell.standard_error or 0.0) for cell in cells if cell.mean is not None
    ]
    return _line(outcome, j, known)


def _printed(outcome: Outcome, j: int) -> Line:
    cells = [row[j] for row in outcome.grids[0].cells]
    return _line(
        outcome, j, [(cell.k, cell.paper, 0.0) for cell in cells if cell.paper is not None]
    )


def _line(outcome: Outcome, j: int, points: Sequence[tuple[int, float, float]]) -> Line:
    x, y, errors = zip(*points, strict=True) if points else ((), (), ())
    return Line(wording.column_name(outcome.columns[j], outcome), x, y, errors)


def _training(finding: Finding, name: str) -> tuple[Drawing, ...]:
    """The course of ERM and of the cells that are best on the test error."""
    outcome = finding.outcome
    shown: dict[str, Cell] = {"ERM": outcome.erm[0]}
    for grid in outcome.grids:
        first, *_ = *wording.best_against_best(finding, grid.rule), None
        if first is not None and first.chosen is not None:
            new, old = first.chosen
            rule = "" if len(outcome.grids) == 1 else f" ({grid.rule})"
            shown[f"{first.baseline}, {wording.cell_name(old)}"] = old
            shown[f"{wording.cell_name(new)}{rule}"] = new
    drawn = []
    for figure, ylabel, caption in (
        ("loss", "training loss", "Mean training loss, of mixed samples where there are any"),
        ("error", "error in per cent", "Mean test error, as training goes on"),
    ):
        found = [course(cell, label, figure) for label, cell in shown.items()]
        known = [line for line in found if line is not None]
        if known:
            svg = training(known, ylabel=ylabel, name=f"{name}{figure}")
            drawn.append(Drawing(caption, Markup(svg)))
    return tuple(drawn)


def _settings(findings: Sequence[Finding]) -> list[tuple[str, Mapping[str, Any]]]:
    """Every different setting once, with the tables that it is of and the size of their data."""
    titles: dict[str, list[str]] = {}
    for outcome in (finding.outcome for finding in findings):
        data: Mapping[str, Any] = next((row["data"] for row in outcome.rows if "data" in row), {})
        size = {f"{part} samples": data[part] for part in ("train", "test") if part in data}
        if outcome.setting:
            chosen = {key: one for key, one in outcome.setting.items() if one is not None}
            plain = {"network": outcome.table.model, **chosen, **size}
            titles.setdefault(json.dumps(plain), []).append(outcome.title)
    return [("; ".join(those), json.loads(plain)) for plain, those in titles.items()]
