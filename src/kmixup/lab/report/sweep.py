"""The report of `kmixup sweep` and `kmixup reproduce`, beside the paper's numbers if it has any."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kmixup.lab.evaluate.baseline import constant_sentence
from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.experiments.rows import Row, any_diverged, done_of, failed_of, unfitted_sentence
from kmixup.lab.figures.surfaces import Picture
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import NOTHING, count, duration, number, signed, strength
from kmixup.lab.paper.tables import BEST_CELLS, CLEAN, ERROR, Claim
from kmixup.lab.report import document as doc
from kmixup.lab.report import plots, stats
from kmixup.lab.report.cells import Cell, Grid, TableResult, cells_csv
from kmixup.lab.report.comparisons import (
    CellComparison,
    best_against_best,
    claimed,
    column_name,
    column_tests,
    comparisons,
)
from kmixup.lab.report.frame import unplaced
from kmixup.lab.report.render_html import html
from kmixup.lab.report.render_markdown import markdown
from kmixup.lab.report.side_by_side import side_by_side
from kmixup.lab.train.config import AlphaRule

RULE: dict[AlphaRule, str] = {
    "same": "same alpha at every k",
    "xi": "alpha calibrated to keep ξ",
    "root": "alpha times the ratio of distances",
}
MEASURE = {ERROR: "test error", CLEAN: "test error with recomputed batch-norm statistics"} | {
    name: f"test error under {shift.title}" for name, shift in SHIFTS.items()
}
XI = "Xi (ξ) is the strength of mixing: the root mean square distance that mixing moves a sample."
FEW = 6  # tables that a page shows unfolded


@dataclass(frozen=True)
class Preface:
    """What a report says about the run itself."""

    name: str  # the title of the report
    command: str  # repeats it
    claim: str | None = None  # the paper's, in a sentence
    comparison: Claim = BEST_CELLS  # the claim in a form that grids can answer
    notes: Sequence[str] = ()  # how the run differs from the paper, a sentence each


def sweep_document(
    rows: Iterable[Row],
    results: Sequence[TableResult],
    preface: Preface,
    pictures: Mapping[str, Sequence[Picture]] = {},
) -> doc.Document:
    """The report of a sweep.

    Args:
        rows: all rows of the sweep.
        results: from `results_of(rows, tables)`.
        preface: the title, the claim and the command.
        pictures: decision surfaces by the name of their data.
    """
    rows = sorted(rows, key=lambda row: row.id)
    judged = [
        (result, grid, claimed(result, grid, preface.comparison))
        for result in results
        for grid in result.grids
    ]
    blocks: list[doc.Block] = [_headline(rows, results, [c for *_, found in judged for c in found])]
    if preface.claim:
        blocks.append(doc.Paragraph(preface.claim))
    if preface.notes:
        blocks.append(
            doc.Details("Differences from the paper's protocol", [doc.Bullets(preface.notes)])
        )
    if (methods := side_by_side(results)) is not None:
        blocks.append(doc.Section("All methods", [methods]))
    common, titles = short_titles([result.title for result in results])
    blocks.append(doc.Section("Verdicts", list(_verdicts(judged, titles, preface.comparison))))
    sections = [list(_section(result)) for result in results]
    if len(results) <= FEW:
        blocks += map(doc.Section, [result.title for result in results], sections)
    else:
        folded = [doc.Details(titles[r.title], s) for r, s in zip(results, sections, strict=True)]
        blocks.append(doc.Section(f"Tables{f': {common}' if common else ''}", folded))
    if pictures:
        blocks.append(doc.Section("Decision surfaces", list(_surfaces(pictures))))
    blocks.append(doc.Section("Protocol", [doc.Details("All settings", list(_protocols(results)))]))
    return doc.Document(preface.name, [*blocks, *provenance(rows, preface.command)])


def write_sweep(
    rows: Iterable[Row],
    results: Sequence[TableResult],
    folder: Path,
    preface: Preface,
    pictures: Mapping[str, Sequence[Picture]] = {},
) -> Path:
    """Write `report.html`, `report.md` and `cells.csv` into `folder`, and return the page."""
    document = sweep_document(rows, results, preface, pictures)
    replace_content(folder / "report.md", markdown(document))
    replace_content(folder / "cells.csv", cells_csv(results))
    replace_content(folder / "report.html", html(document))
    return folder / "report.html"


def short_titles(titles: Sequence[str]) -> tuple[str, dict[str, str]]:
    """What all titles begin with, and each title without it.

    >>> short_titles(["mnist, lenet, mixup", "mnist, lenet, kmixup"])
    ('mnist, lenet', {'mnist, lenet, mixup': 'mixup', 'mnist, lenet, kmixup': 'kmixup'})
    """
    parts = [title.split(", ") for title in titles]
    shared = 0
    if len({*titles}) > 1:
        while all(len(p) > shared + 1 and p[shared] == parts[0][shared] for p in parts):
            shared += 1
    short = {title: ", ".join(p[shared:]) for title, p in zip(titles, parts, strict=True)}
    return ", ".join(parts[0][:shared]) if parts else "", short


def provenance(rows: Sequence[Row], command: str) -> Iterator[doc.Section]:
    """Failed trials, versions and machines, and the command: the end of every report."""
    if failed := failed_of(rows):
        labels = [
            f"{t.data}, {t.model}, {t.method.label}, seed {t.seed}: {row.reason}"
            for row in failed
            for t in [row.trial]
        ]
        yield doc.Section(
            "Failed trials", [doc.Details(count(len(failed), "trial"), [doc.Bullets(labels)])]
        )
    facts: list[doc.Block] = []
    for kind in ("versions", "machine"):
        known = [json.dumps(dict(getattr(row, kind)), sort_keys=True) for row in rows]
        tally = sorted(Counter(known).items())
        facts += [
            doc.Facts(json.loads(fact), f"{count(n, 'row')}:") for fact, n in tally if fact != "{}"
        ]
    if times := [row.finished for row in rows if row.finished]:
        facts.append(doc.Facts({"first trial": min(times), "last trial": max(times)}))
    yield doc.Section("Repeat it", [doc.Code(command), doc.Details("Versions and machines", facts)])


# The verdicts


def _headline(
    rows: Sequence[Row], results: Sequence[TableResult], judged: Sequence[CellComparison]
) -> doc.Headline:
    verdicts = [comparison.verdict for comparison in judged]
    difference = judged[0].held_out if len(judged) == 1 else None
    if difference is not None or len({verdict.text for verdict in verdicts}) == 1:
        text = verdicts[0].text[0].upper() + verdicts[0].text[1:]
        if difference is not None:
            text += f" ({difference.text} {judged[0].unit.points})"
        elif len(judged) > 1:
            text += f" (in all {len(judged)} comparisons)"
    elif judged:
        pairs = {f"{comparison.new} against {comparison.old}, " for comparison in judged}
        whose = pairs.pop() if len(pairs) == 1 else ""
        text = f"{whose}{count(len(judged), 'comparison')}: {_tally(verdicts)}"
    else:
        text = "Nothing to compare"
    done, failed = done_of(rows), failed_of(rows)
    extent = (
        f"{count(len(done), 'trial')} finished, {len(failed)} failed; "
        f"{duration(math.fsum(row.seconds for row in done))} of training in total."
    )
    if left := unplaced(rows, results):
        extent += f" {count(len(left), 'more row')} of the sweep fit no cell of these tables."
    return doc.Headline(f"{text}.", [extent], mood=stats.together(verdicts))


def _tally(verdicts: Sequence[stats.Verdict]) -> str:
    """How many verdicts have each outcome."""
    tally = Counter(verdict.outcome for verdict in verdicts)
    ruled_out = tally.pop(stats.Outcome.SIZE_RULED_OUT, 0)
    tally[stats.Outcome.NOT_SIGNIFICANT] += ruled_out
    text = "; ".join(f"{word} in {tally[word]}" for word in stats.Outcome if tally[word])
    return f"{text} (the paper's effect size is ruled out in {ruled_out})" if ruled_out else text


Judged = tuple[TableResult, Grid, Sequence[CellComparison]]


def _verdicts(
    judged: Sequence[Judged], titles: Mapping[str, str], claim: Claim
) -> Iterator[doc.Block]:
    rows = [
        [titles[result.title], *_verdict_row(result, grid, found, claim)]
        for result, grid, found in judged
    ]
    moods = [stats.together([comparison.verdict for comparison in found]) for *_, found in judged]
    header = [
        "table", "verdict", "alpha at k > 1", "difference [95 %]", "new data [95 %]", "the paper",
        "k > 1 against k = 1 at the same alpha (Holm)",
    ]  # fmt: skip
    yield without_empty(doc.ReportTable(header, rows, moods=moods, verdict=1, sentences=True))
    printed = any(result.printed for result, *_ in judged)
    text = (
        "Differences are in points of test error; below 0 is better. The best cells are chosen on "
        "every other trial and compared on the held-out trials, paired by trial; then the halves "
        "swap. The interval is Student's at 95 %, widened for the correlation of the two halves. "
        "It holds for the samples at hand; “new data” is the interval for other samples of the "
        "same kind (Nadeau and Bengio). "
    )
    if printed:
        text += (
            "± is the standard error of the paper's difference, from the error bar that it states, "
            "else from one as large as ours. "
        )
    text += (
        "The last column compares all cells without a choice: it counts those that are still "
        "significant after Holm correction for the table."
    )
    if any(grid.rule == "xi" for _, grid, _ in judged):
        text += f" {XI} “{RULE['xi']}” raises alpha with k accordingly."
    yield doc.Details("How to read this table", [doc.Paragraph(text, style="fine")])


def _verdict_row(
    result: TableResult, grid: Grid, judged: Sequence[CellComparison], claim: Claim
) -> list[str]:
    verdicts = [comparison.verdict for comparison in judged]
    if not judged:
        said = "no verdict: there is no cell"
    elif len({verdict.text for verdict in verdicts}) == 1 and not judged[0].held_out:
        said = verdicts[0].text
    elif len(judged) > 1:
        unit = "columns" if claim.each == "column" else "levels of ε"
        said = f"of {len(judged)} {unit}: {_tally(verdicts)}"
    else:
        said = verdicts[0].text
    best = best_against_best(result, grid.rule) or judged
    held_out = best[0].held_out if len(best) == 1 else None
    return [
        said,
        RULE[grid.rule] if any(k > 1 for k in result.ks) else NOTHING,
        NOTHING if held_out is None else held_out.text,
        NOTHING if held_out is None else held_out.new_data_text or NOTHING,
        printed_text(best[0]) if len(best) == 1 else NOTHING,
        _columns(grid),
    ]


def printed_text(comparison: CellComparison) -> str:
    """The paper's difference, with its standard error if known."""
    if comparison.paper is None or comparison.noise is None:
        return signed(comparison.paper)
    return f"{signed(comparison.paper)} ± {number(comparison.noise)}"


def _columns(grid: Grid) -> str:
    sides = Counter(stats.corrected_side(test, p) for _, test, p in column_tests(grid))
    if sides.total() < 2:
        return NOTHING
    return f"of {count(sides.total(), 'cell')}: {sides[-1]} lower, {sides[1]} higher"


def without_empty(table: doc.ReportTable) -> doc.ReportTable:
    """Leave out the columns that have nothing to show, except the first two."""
    kept = [
        i
        for i in range(len(table.header))
        if i < 2 or any(row[i] not in ("", NOTHING) for row in table.rows)
    ]
    header = [table.header[i] for i in kept]
    return replace(table, header=header, rows=[[row[i] for i in kept] for row in table.rows])


# One table


def _section(result: TableResult) -> Iterator[doc.Block]:
    table = result.table
    trials = count(result.erm[0].expected, "trial")
    text = f"Mean {subject(result)} over {trials}, ± one standard error."
    if result.printed:
        text += (
            f" The paper's numbers are in brackets: {table.label}, {count(table.trials, 'trial')}"
        )
        text += "." if table.confidence is None else f", at most ± {table.confidence:g}."
    elif table.measure == ERROR:
        scores = [row.scores for row in done_of(result.rows)]
        constant = constant_sentence(scores, diverged=any_diverged(result.rows))
        text = f"{text} {constant}".rstrip()
        text = f"{text} {unfitted_sentence(result.rows)}".rstrip()
    yield doc.Paragraph(text)
    yield from (doc.Paragraph(f"Note: {note}", style="fine") for note in table.notes)
    yield from (_errors(result, grid) for grid in result.grids)
    if drawn := _against_k(result):
        yield doc.Figures(drawn)
    if compared := comparisons(result):
        yield doc.Details("Best against best", [_compared(compared)])
    if drawn := _training(result):
        yield doc.Details("Training curves", [doc.Figures(drawn)])
    if any(cell.errors for cell in result.cells):
        note = f"Means over trials. {XI}"
        if result.printed:
            note += " The values that the paper prints seem to be half of that."
        yield doc.Details("All metrics", [_metrics(result), doc.Paragraph(note, style="fine")])


def subject(result: TableResult) -> str:
    """What is measured, and on what."""
    table, unit = result.table, result.unit
    levels = {column.eps for column in table.columns if column.eps is not None}
    where = f" of {next(iter(levels)):g}/255" if len(levels) == 1 else ""
    measure = MEASURE[table.measure].replace("error", unit.name)
    return f"{measure}{where} {unit.unit}, {table.data} with {table.model}"


def _errors(result: TableResult, grid: Grid) -> doc.HeatMap:
    tests = {id(cell): stats.corrected_side(test, p) for cell, test, p in column_tests(grid)}
    least: dict[float | None, float] = {}
    for cell in grid:
        if cell.mean is not None:
            least[cell.eps] = min(cell.mean, least.get(cell.eps, cell.mean))

    def box(cell: Cell) -> doc.Box:
        paper = "" if cell.paper is None else f"({number(cell.paper)})"
        small = [text for text in (cell.spread, paper, cell.gaps) if text]
        best = cell.k > 0 and cell.mean is not None and cell.mean == least[cell.eps]
        return doc.Box(cell.text, small, tests.get(id(cell), 0), best)

    title = f"{'Ours, ' if result.printed else ''}{RULE[grid.rule]}"
    caption = ""
    if any(tests.values()):
        caption = (
            "Blue (↓) is significantly lower than k = 1 at the same alpha, orange (↑) higher, "
            "after Holm correction. The lowest error is framed (*)."
        )
    rows = [("ERM", [box(cell) for cell in result.erm_by_column])]
    for k, cells in zip(result.ks, grid.cells, strict=True):
        rows.append((f"k = {k}", [box(cell) for cell in cells]))
    head = [(column_name(result, i), "") for i in range(len(result.columns))]
    return doc.HeatMap(title, head, rows, caption)


def _metrics(result: TableResult) -> doc.ReportTable:
    """The mean of every metric in every cell, with alpha as trained and ξ."""
    rules = {id(cell): grid.rule for grid in result.grids for cell in grid if cell.k > 1}
    several = len(result.grids) > 1
    rows = []
    for cell in result.cells:
        level = "" if cell.eps is None else f", ε = {cell.eps:g}"
        rule = f", {RULE[rules[id(cell)]]}" if several and cell.k > 1 else ""
        texts = [
            NOTHING if (value := cell.mean_of(name)) is None else format(value, metric.form)
            for name, metric in result.metrics.items()
        ]
        strengths = [strength(cell.mean_of(name)) for name in ("alpha", "xi")]
        rows.append([f"{cell.name}{level}{rule}", cell.text, *texts, *strengths])
    titles = [metric.title for metric in result.metrics.values()]
    header = ["cell", result.unit.name, *titles, "alpha as trained", "ξ"]
    return doc.ReportTable(header, rows, numeric=True)


def _compared(compared: Sequence[CellComparison]) -> doc.ReportTable:
    header = [
        "comparison", "verdict", "held-out trials [95 %]", "new data [95 %]",
        "chosen on the test error", "the paper", "trials",
    ]  # fmt: skip
    rows = []
    for comparison in compared:
        held_out, on_test = comparison.held_out, NOTHING
        if comparison.chosen is not None:
            new, old = comparison.chosen
            on_test = (
                f"{signed(comparison.on_test, new.unit.digits(new.mean))}: {new.text} "
                f"({new.name}) − {old.text} ({old.name})"
            )
        rows.append(
            [
                _heading(comparison),
                comparison.verdict.text,
                NOTHING if held_out is None else held_out.text,
                NOTHING if held_out is None else held_out.new_data_text or NOTHING,
                on_test,
                printed_text(comparison),
                NOTHING if held_out is None else str(held_out.trials),
            ]
        )
    moods = [comparison.verdict.mood for comparison in compared]
    return without_empty(doc.ReportTable(header, rows, moods=moods, verdict=1, sentences=True))


def _heading(comparison: CellComparison) -> str:
    which = "" if comparison.k is None else f" with k = {comparison.k}"
    text = f"{comparison.new}{which} − {comparison.old}"
    if comparison.eps is not None:
        text += f" at ε = {comparison.eps:g}/255"
    return text if comparison.rule is None else f"{text}, {RULE[comparison.rule]}"


def _against_k(result: TableResult) -> list[doc.Figure]:
    """Error against k for each alpha rule and in the paper, on axes of one height."""
    unit = f"{result.unit.name} {result.unit.unit}"
    # if columns differ in eps each has its own ERM
    erm = result.erm[0].mean if len(result.erm) == 1 else None
    whose = "Ours, " if result.printed else ""
    panels = [
        (f"{whose}{RULE[grid.rule]}", _by_column(result, grid, ours=True), erm)
        for grid in result.grids
    ]
    if result.printed:
        curves = _by_column(result, result.grids[0], ours=False)
        panels.append((f"The paper, {result.table.label}", curves, result.table.erm))
    tops = [curve.top for _, curves, _ in panels for curve in curves]
    top = 1.05 * max([*tops, *(plain or 0.0 for *_, plain in panels)], default=0.0) or None
    return [
        doc.Figure(title, plots.against_k(curves, ylabel=unit, top=top, erm=plain), legend=3)
        for title, curves, plain in panels
        if any(len(curve.x) > 1 for curve in curves)
    ]


def _by_column(result: TableResult, grid: Grid, *, ours: bool) -> list[plots.Curve]:
    """Error against k for every column: ours with error bars, or the paper's."""
    curves = []
    for j, column in enumerate(zip(*grid.cells, strict=True)):
        points = [
            (cell.k, value, (cell.standard_error or 0.0) if ours else 0.0)
            for cell in column
            if (value := cell.mean if ours else cell.paper) is not None
        ]
        x, y, errors = zip(*points, strict=True) if points else ((), (), ())
        curves.append(plots.Curve(column_name(result, j), x, y, errors))
    return curves


def _training(result: TableResult) -> list[doc.Figure]:
    """Training with ERM, and of the cells that are best on the test error."""
    shown: dict[str, Cell] = {"ERM": result.erm[0]}
    for grid in result.grids:
        first, *_ = *best_against_best(result, grid.rule), *comparisons(result), None
        if first is not None and first.chosen is not None:
            new, old = first.chosen
            rule = "" if len(result.grids) == 1 else f" ({grid.rule})"
            if first.old != "ERM":
                shown[f"{first.old}, {old.name}"] = old
            shown[f"{new.name if new.k > 1 else f'{first.new}, {new.name}'}{rule}"] = new
    drawn = []
    for what, ylabel, title in (
        ("loss", "training loss", "Mean training loss, on mixed samples if there are any"),
        ("error", f"{result.unit.name} {result.unit.unit}", f"Mean test {result.unit.name}"),
    ):
        curves = [plots.training_curve(cell, label, what) for label, cell in shown.items()]
        if known := [curve for curve in curves if curve is not None]:
            drawn.append(doc.Figure(title, plots.training(known, ylabel=ylabel), legend=2))
    return drawn


# The end of a report


def _surfaces(pictures: Mapping[str, Sequence[Picture]]) -> Iterator[doc.Block]:
    yield doc.Paragraph(
        "Predictions of one network for each method over the plane, trained for this picture: blue "
        "for class 1, orange for class 0, white in between; with some of the training data.",
        style="fine",
    )
    for data, shown in pictures.items():
        images = [doc.Image(p.title, lambda p=p: p.png, p.caption) for p in shown]  # type: ignore[misc]
        yield doc.Section(data, [doc.Images(images)], level=3)


def _protocols(results: Sequence[TableResult]) -> Iterator[doc.Facts]:
    """Every setting once, with the data sets that it was used on."""
    used: dict[str, dict[str, None]] = {}
    for result in results:
        data = next((row.data for row in done_of(result.rows)), None)
        size = {} if data is None else {"train samples": data.train, "test samples": data.test}
        if result.setting:
            chosen = {key: value for key, value in result.setting.items() if value is not None}
            facts = {"network": result.table.model, **chosen, **size}
            used.setdefault(json.dumps(facts), {})[result.table.data] = None
    for facts_json, names in used.items():
        yield doc.Facts(json.loads(facts_json), ", ".join(names))
