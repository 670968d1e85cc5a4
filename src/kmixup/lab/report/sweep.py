"""The report of `kmixup sweep` and `kmixup reproduce`, beside the paper's numbers if it has any."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from kmixup.lab.evaluate.baseline import constant_sentence
from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.experiments.rows import Row, any_diverged, done_of, failed_of, unfitted_sentence
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import NOTHING, count, duration, number, strength
from kmixup.lab.paper.deviations import shrinkage
from kmixup.lab.paper.presets import preset_of
from kmixup.lab.paper.tables import BEST_CELLS, CLEAN, ERROR, Claim, Summary
from kmixup.lab.plotting import DASHES, shade
from kmixup.lab.report import document as doc
from kmixup.lab.report import stats
from kmixup.lab.report.comparisons import (
    HEURISTIC,
    RULE,
    best_against_best,
    claimed,
    column_tests,
    comparison_table,
    comparisons,
)
from kmixup.lab.report.frame import Cell, Grid, TableResult, cells_csv, results_of, unplaced
from kmixup.lab.report.render_html import html
from kmixup.lab.report.render_text import markdown
from kmixup.lab.report.side_by_side import side_by_side
from kmixup.lab.train.config import AlphaRule

MEASURE = {ERROR: "test error", CLEAN: "test error with recomputed batch-norm statistics"} | {
    name: f"test error under {shift.title}" for name, shift in SHIFTS.items()
}
XI = "Xi (ξ) is the strength of mixing: the root mean square distance that mixing moves a sample."
FEW = 6  # tables that a page shows unfolded
READING = (
    "Differences are in points of test error; below 0 is better. The best cells are chosen on "
    "every other trial and compared on the held-out trials, paired by trial; then the halves swap. "
    "The interval is Student's at 95 %, widened for the correlation of the two halves. It holds "
    "for the samples at hand; “new data” is the interval for other samples of the same kind "
    "(Nadeau and Bengio). "
)
PRINTED = (
    "± is the standard error of the paper's difference, from the error bar that it states, else "
    "from one as large as ours. "
)


@dataclass(frozen=True)
class Preface:
    """What a report says about the run itself."""

    name: str  # the title of the report
    command: str  # repeats it
    claim: str | None = None  # the paper's, in a sentence
    comparison: Claim = BEST_CELLS  # the claim in a form that grids can answer
    notes: Sequence[str] = ()  # how the run differs from the paper, a sentence each


def sweep_document(
    rows: Iterable[Row], results: Sequence[TableResult], preface: Preface
) -> doc.Document:
    """The report of a sweep with its `results_of(rows, tables)`."""
    rows = sorted(rows, key=lambda row: row.id)
    common, titles = short_titles([result.title for result in results])
    judged = []
    for result in results:
        for grid in result.grids:
            rule = f", {RULE[grid.rule]}" if len(result.grids) > 1 else ""
            compared = claimed(result, grid, preface.comparison)
            judged.append((f"{titles[result.title]}{rule}", compared))
    blocks: list[doc.Block] = []
    if preface.claim:
        blocks.append(doc.Paragraph(preface.claim))
    if preface.notes:
        notes = doc.Bullets(preface.notes)
        blocks.append(doc.Details("Differences from the paper's protocol", [notes]))
    reading = READING + (PRINTED if any(result.printed for result in results) else "")
    verdicts: list[doc.Block] = [
        comparison_table(judged, "table", leave_out=("chosen on the test error", "trials")),
        doc.Details("How to read this table", [doc.Paragraph(reading, style="fine")]),
    ]
    headline: Sequence[stats.Comparison] = [c for _, found in judged for c in found]
    if (beside := side_by_side(results)) is not None:
        methods, headline = beside
        blocks.append(doc.Section("All methods", [methods]))
        verdicts = [doc.Details("Best k > 1 against best k = 1", verdicts)]
    blocks.append(doc.Section("Verdicts", verdicts))
    sections = [list(_section(result)) for result in results]
    if len(results) <= FEW:
        blocks += map(doc.Section, [result.title for result in results], sections)
    else:
        folded = [doc.Details(titles[r.title], s) for r, s in zip(results, sections, strict=True)]
        blocks.append(doc.Section(f"Tables{f': {common}' if common else ''}", folded))
    blocks.append(doc.Section("Protocol", [doc.Details("All settings", list(_protocols(results)))]))
    blocks = [_headline(rows, results, headline), *blocks, *provenance(rows, preface.command)]
    return doc.Document(preface.name, blocks)


def write_sweep(
    rows: Iterable[Row], results: Sequence[TableResult], folder: Path, preface: Preface
) -> Path:
    """Write `report.html`, `report.md` and `cells.csv` into `folder`, and return the page."""
    document = sweep_document(rows, results, preface)
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
    alike = takewhile(lambda words: len({*words}) == 1, zip(*(p[:-1] for p in parts), strict=False))
    common = [words[0] for words in alike] if len({*titles}) > 1 else []
    short = {", ".join(part): ", ".join(part[len(common) :]) for part in parts}
    return ", ".join(common), short


def provenance(rows: Sequence[Row], command: str) -> Iterator[doc.Section]:
    """Failed trials, versions and machines, and the command: the end of every report."""
    labels = []
    for row in failed_of(rows):
        words = [row.trial.data, row.trial.model, row.trial.method.label, f"seed {row.trial.seed}"]
        labels.append(f"{', '.join(words)}: {row.reason}")
    if labels:
        details = doc.Details(count(len(labels), "trial"), [doc.Bullets(labels)])
        yield doc.Section("Failed trials", [details])
    facts: list[doc.Block] = []
    for kind in ("versions", "machine"):
        found = [dict(getattr(row, kind)) for row in rows]
        tally = sorted(Counter(json.dumps(each, sort_keys=True) for each in found if each).items())
        facts += [doc.Facts(json.loads(fact), f"{count(n, 'row')}:") for fact, n in tally]
    if times := [row.finished for row in rows if row.finished]:
        facts.append(doc.Facts({"first trial": min(times), "last trial": max(times)}))
    yield doc.Section("Repeat it", [doc.Code(command), doc.Details("Versions and machines", facts)])


def _headline(
    rows: Sequence[Row], results: Sequence[TableResult], judged: Sequence[stats.Comparison]
) -> doc.Headline:
    """The verdict if there is one comparison, else how many have each outcome."""
    text = "Nothing to compare"
    if len(judged) == 1:
        (comparison,) = judged
        text = comparison.verdict[0].upper() + comparison.verdict[1:]
        if comparison.difference is not None:
            text += f" ({comparison.difference.text} {results[0].unit.points})"
    elif judged:
        news, olds = ({getattr(c, side) for c in judged} for side in ("new", "old"))
        whose = f"{news.pop() if len(news) == 1 else 'All methods'} against {olds.pop()}, "
        text = f"{'' if olds else whose}{len(judged)} comparisons: {stats.tally(judged)}"
    done, failed = done_of(rows), failed_of(rows)
    extent = (
        f"{count(len(done), 'trial')} finished, {len(failed)} failed; "
        f"{duration(math.fsum(row.seconds for row in done))} of training in total."
    )
    if left := unplaced(rows, results):
        extent += f" {count(len(left), 'more row')} of the sweep fit no cell of these tables."
    return doc.Headline(f"{text}.", [extent], mood=stats.mood_of(judged))


# One table


def _section(result: TableResult) -> Iterator[doc.Block]:
    table = result.table
    trials = count(result.erm[0].expected, "trial")
    texts = [f"Mean {_subject(result)} over {trials}, ± one standard error."]
    if result.printed:
        stated = "" if table.confidence is None else f", at most ± {table.confidence:g}"
        source = f"{table.label}, {count(table.trials, 'trial')}{stated}"
        texts.append(f"The paper's numbers are in brackets: {source}.")
    elif table.measure == ERROR:
        scores = [row.scores for row in done_of(result.rows)]
        texts.append(constant_sentence(scores, diverged=any_diverged(result.rows)))
        texts.append(unfitted_sentence(result.rows))
    yield doc.Paragraph(" ".join(filter(None, texts)))
    yield from (doc.Paragraph(f"Note: {note}", style="fine") for note in table.notes)
    yield from (_errors(result, grid) for grid in result.grids)
    if compared := comparisons(result):
        shown = comparison_table((comparison.label, [comparison]) for comparison in compared)
        yield doc.Details("Best against best", [shown])
    if drawn := _training(result):
        yield doc.Details("Training curves", drawn)
    if any(cell.errors for cell in result.cells):
        note = f"Means over trials. {XI}"
        if result.printed:
            note += " The values that the paper prints seem to be half of that."
        yield doc.Details("All metrics", [_metrics(result), doc.Paragraph(note, style="fine")])


def _subject(result: TableResult) -> str:
    table, unit = result.table, result.unit
    levels = {column.eps for column in table.columns if column.eps is not None}
    where = f" of {next(iter(levels)):g}/255" if len(levels) == 1 else ""
    measure = MEASURE[table.measure].replace("error", unit.name)
    return f"{measure}{where} {unit.unit}, {table.data} with {table.model}"


def _errors(result: TableResult, grid: Grid) -> doc.HeatMap:
    tests = column_tests(grid)
    sides = Counter(test.side for test in tests.values())
    levels, alphas = ({getattr(c, name) for c in result.columns} for name in ("eps", "alpha"))

    def box(cell: Cell) -> doc.Box:
        paper = "" if cell.paper is None else f"({number(cell.paper)})"
        small = list(filter(None, (cell.spread, paper, cell.gaps)))
        test = tests.get((cell.k, cell.alpha, cell.eps))
        means = [other.mean for other in grid if other.eps == cell.eps and other.mean is not None]
        best = cell.k > 0 and cell.mean is not None and cell.mean == min(means)
        return doc.Box(cell.text, small, 0 if test is None else test.side, best)

    def head(alpha: float, eps: float | None) -> str:
        names = [f"ε = {eps or 0:g}"] if len(levels) > 1 else []
        return ", ".join(names + ([f"α = {alpha:g}"] if len(alphas) > 1 or not names else []))

    erm = [*result.erm]  # one box for all columns, or one for each
    if len(erm) > 1:
        erm = [cell for column in result.columns for cell in erm if cell.eps == column.eps]
    rows = [("ERM", [*map(box, erm)])]
    rows += [(f"k = {k}", [*map(box, row)]) for k, row in zip(result.ks, grid.cells, strict=True)]
    caption = "The lowest error is framed (*)."
    if tests:
        caption = (
            f"Of {count(len(tests), 'cell')} with k > 1, {sides[-1]} are significantly lower than "
            f"k = 1 at the same alpha (↓, blue) and {sides[1]} higher (↑, orange) after Holm "
            f"correction. {caption}"
        )
    title = f"{'Ours, ' if result.printed else ''}{RULE[grid.rule]}"
    heads = [(head(column.alpha, column.eps), "") for column in result.columns]
    return doc.HeatMap(title, heads, rows, caption)


def _metrics(result: TableResult) -> doc.ReportTable:
    rows = []
    for cell in result.cells:
        level = "" if cell.eps is None else f", ε = {cell.eps:g}"
        rule = f", {RULE[cell.rule]}" if len(result.grids) > 1 and cell.k > 1 else ""
        texts = [
            NOTHING if (value := cell.mean_of(name)) is None else format(value, metric.form)
            for name, metric in result.metrics.items()
        ]
        strengths = [strength(cell.mean_of(name)) for name in ("alpha", "xi")]
        rows.append([f"{cell.name}{level}{rule}", cell.text, *texts, *strengths])
    titles = [metric.title for metric in result.metrics.values()]
    header = ["cell", result.unit.name, *titles, "alpha as trained", "ξ"]
    return doc.ReportTable(header, rows, numeric=True)


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
        curves = {label: _curve(cell, what) for label, cell in shown.items()}
        if known := {label: curve for label, curve in curves.items() if len(curve)}:
            drawn.append(doc.Figure(title, partial(_draw_curves, known, ylabel), legend=2))
    return drawn


def _curve(cell: Cell, what: str) -> pd.Series[float]:
    """The mean over trials of a stored curve, "loss" or "error", at epochs that all have."""
    curves = [dict(zip(r.curve.epoch, getattr(r.curve, what), strict=True)) for r in cell.done]
    mean = pd.DataFrame(curves, dtype=float).dropna(axis=1).mean().sort_index()
    return mean * cell.unit.factor if what == "error" else mean


def _draw_curves(curves: Mapping[str, pd.Series[float]], ylabel: str, axes: Axes) -> None:
    for i, (label, curve) in enumerate(curves.items()):
        colour, dash = shade(i, len(curves)), DASHES[:4][i % 4]
        axes.plot(curve.index, curve, label=label, color=colour, ls=dash, linewidth=1.6)
    axes.set_ylim(bottom=0)
    axes.set(xlabel="epoch", ylabel=ylabel)


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


# The paper's Table 1, which sums up seven other tables

OURS: dict[AlphaRule, str] = {"same": "ours", "xi": "ours at equal ξ"}


def master_document(summaries: Sequence[Summary], rows: Iterable[Row]) -> doc.Document:
    """The paper's summary table, our numbers below each line, and the commands for them."""
    rows, lines, notes, commands = list(rows), [], [], []
    for summary in summaries:
        title, network = summary.table.title, summary.architecture
        name = title if network in title else f"{title}, {network}"
        errors = (summary.erm, summary.mixup, summary.kmixup, summary.heuristic)
        lines.append([name, *map(number, (*errors, summary.confidence))])
        commands.append(f"kmixup reproduce {preset_of(summary.table).name:<15}{name}")
        notes += [f"{name}: {note}" for note in summary.notes]
        for result in results_of(rows, [summary.table]):
            for grid in result.grids:
                if all(cell.mean is None for cell in (*result.erm, *grid)):
                    continue
                lines.append([f"  {OURS[grid.rule]}", *_best_errors(result, grid), ""])
                if short := shrinkage([summary.table], [row.trial for row in result.rows]):
                    notes.append(f"{name}, ours: reduced to {'; '.join(short)}.")
    header = ["test error in per cent", "ERM", "mixup", "k-mixup", f"{HEURISTIC}-mixup", "±"]
    caption = (
        f"mixup, k-mixup and {HEURISTIC}-mixup are the cells with k = 1, k > 1 and k = {HEURISTIC} "
        "that are best on the test error, as the paper chooses them. ± is the paper's largest "
        "standard error."
    )
    table, said = doc.ReportTable(header, lines, numeric=True), doc.Bullets([*dict.fromkeys(notes)])
    again = doc.Section("Re-run a line", [doc.Bullets(commands)])
    return doc.Document("The paper's Table 1", [table, doc.Paragraph(caption), said, again])


def _best_errors(result: TableResult, grid: Grid) -> Iterator[str]:
    """The lowest error of ERM, mixup, k-mixup and 16-mixup."""
    mixup = [cell for cell in grid if cell.k == 1]
    several = [cell for cell in grid if cell.k > 1]
    heuristic = [cell for cell in several if cell.k == HEURISTIC]
    for cells in (result.erm, mixup, several, heuristic):
        best = min(cells, key=lambda c: math.inf if c.mean is None else c.mean, default=None)
        yield NOTHING if best is None else f"{best.text} {best.spread}".rstrip()
