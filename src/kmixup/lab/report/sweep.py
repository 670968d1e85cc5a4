"""The report of `kmixup sweep` and `kmixup reproduce`, with the paper's numbers if it has any."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from kmixup.lab.evaluate.baseline import baseline_sentence
from kmixup.lab.experiments.rows import Row
from kmixup.lab.formatting import NOTHING, count, duration, number, strength
from kmixup.lab.paper.deviations import shrinkage
from kmixup.lab.paper.presets import preset_of
from kmixup.lab.paper.tables import BEST_CELLS, ERROR, Claim, ErrorColumn, Summary
from kmixup.lab.report import document as doc
from kmixup.lab.report import stats
from kmixup.lab.report.comparisons import (
    HEURISTIC,
    RULE,
    claimed,
    column_tests,
    comparison_table,
    comparisons,
)
from kmixup.lab.report.frame import Cell, Grid, TableResult, results_of, unplaced
from kmixup.lab.report.plots import Mean, curves
from kmixup.lab.report.side_by_side import side_by_side
from kmixup.lab.results import frame_of, methods_of
from kmixup.lab.trial import Trial

XI = "Xi (ξ) is the strength of mixing: the root mean square distance that mixing moves a sample."
READING = (
    "The best cells are chosen on half of the trials and compared on the other half, in pairs of "
    "trials; then the halves swap. Differences are in percentage points; below 0 is better. "
    f"A comparison takes {stats.LEAST_TRIALS} trials."
)


@dataclass(frozen=True)
class Preface:
    """What a report says about the run itself."""

    name: str  # the title of the report
    command: str  # repeats it
    extent: str = ""  # what was reduced against the paper, in a sentence
    claim: str | None = None  # the paper's, in a sentence
    comparison: Claim = BEST_CELLS  # the claim in a form that grids can answer
    notes: Sequence[str] = ()  # how the run differs from the paper, a sentence each


def sweep_document(
    frame: pd.DataFrame, results: Sequence[TableResult], preface: Preface
) -> doc.Document:
    """The report of a sweep, a tidy frame, with its `results_of(frame, tables)`."""
    judged = [judgement for result in results for judgement in _judged(result, preface.comparison)]
    headline: Sequence[stats.Comparison] = [c for _, found in judged for c in found]
    blocks: list[doc.Block] = []
    if preface.claim:
        blocks.append(doc.Paragraph(preface.claim))
    if preface.notes:
        notes = doc.Bullets(preface.notes)
        blocks.append(doc.Details("Differences from the paper's protocol", [notes]))
    shown = [result for result in results if len(result.lines)]
    sections = [(result.title, list(_section(result))) for result in shown]
    figures: Sequence[doc.Figure] = [
        _plot(result, grid) for result in shown for grid in result.grids[:1]
    ]
    if (beside := side_by_side(results)) is not None:
        methods, figures, headline = beside
        folded = [doc.Details(title, section) for title, section in sections]
        blocks += [doc.Section("All methods", [methods]), doc.Section("Tables", folded)]
    else:
        verdicts = comparison_table(judged, "table")
        reading = doc.Paragraph(READING, style="fine")
        blocks.append(doc.Section("Verdicts", [verdicts, reading]))
        blocks += [doc.Section(title, section) for title, section in sections]
    found = _headline(frame, results, headline, preface.extent)
    blocks = [found, *figures, *blocks, *provenance(frame, preface.command)]
    return doc.Document(preface.name, blocks)


def _judged(result: TableResult, claim: Claim) -> Iterator[tuple[str, Sequence[stats.Comparison]]]:
    """The comparisons of a table that the claim is about, under a title for each alpha rule."""
    for grid in result.grids:
        rule = f", {RULE[grid.rule]}" if len(result.grids) > 1 else ""
        yield f"{result.title}{rule}", claimed(result, grid, claim)


def provenance(frame: pd.DataFrame, command: str) -> Iterator[doc.Section]:
    """Failed trials, versions and machines, and the command: the end of every report."""
    trials = frame.drop_duplicates("id").sort_values("id")
    failed = trials[trials.failure.notna()]
    labels = [
        f"{line.data}, {line.model}, {method.label}, seed {line.seed}: {line.failure}"
        for line, method in zip(failed.itertuples(), methods_of(failed), strict=True)
    ]
    if labels:
        details = doc.Details(count(len(labels), "trial"), [doc.Bullets(labels)])
        yield doc.Section("Failed trials", [details])
    facts: list[doc.Block] = []
    for kind in ("version_", "machine_"):
        columns = [str(name) for name in trials if str(name).startswith(kind)]
        found = Counter(
            tuple((str(at).removeprefix(kind), fact) for at, fact in each.dropna().items())
            for _, each in trials[columns].astype(object).iterrows()
        )
        tally = sorted(found.items(), key=repr)
        facts += [doc.Facts(dict(fact), f"{count(n, 'row')}:") for fact, n in tally if fact]
    title = "Versions and machines"
    own = [name for name in ("version_kmixup", "version_commit") if name in trials]
    if len(kmixups := trials[own].drop_duplicates()) > 1:
        title += f": rows are of {len(kmixups)} versions of kmixup"
    yield doc.Section("Repeat it", [doc.Code(command), doc.Details(title, facts)])


def unfitted_sentence(frame: pd.DataFrame) -> str:
    """Say how many networks have not fitted their training data; empty if all have."""
    trials = frame.drop_duplicates("id")
    known = trials.fitted.dropna()
    if known.empty or known.all():
        return ""
    diverged = trials.failure.str.contains("DivergedError", na=False).any()
    ways = "a lower" if diverged else "smaller batches, more epochs or a higher"
    unfitted = len(known) - int(known.sum())
    return (
        f"{unfitted} of {len(known)} networks have not fitted their training data, so differences "
        f"may only show how fast methods train: use {ways} learning rate."
    )


def _headline(
    frame: pd.DataFrame,
    results: Sequence[TableResult],
    judged: Sequence[stats.Comparison],
    reduced: str,
) -> doc.Headline:
    """The verdict if there is one comparison, else how many have each outcome."""
    text = "Nothing to compare"
    if len(judged) == 1:
        (comparison,) = judged
        text = comparison.verdict[0].upper() + comparison.verdict[1:]
        if comparison.difference is not None:
            text += f" ({comparison.difference.text} {results[0].unit.points})"
    elif judged:
        news, olds = {c.new for c in judged}, {c.old for c in judged}
        who = news.pop() if len(news) == 1 else "All methods"
        whose = f"{who} against {olds.pop()}, " if len(olds) == 1 else ""
        text = f"{whose}{len(judged)} comparisons: {stats.tally(judged)}"
    trials = frame.drop_duplicates("id")
    failed = trials.failure.notna()
    extent = (
        f"{count(int((~failed).sum()), 'trial')} finished, {failed.sum()} failed; "
        f"{duration(math.fsum(trials.seconds.dropna()))} of training in total."
    )
    if left := unplaced(frame, results):
        extent += f" {count(len(left), 'more row')} of the sweep fit no cell of these tables."
    sentences = filter(None, [reduced, _against_erm(results, judged), extent])
    return doc.Headline(f"{text}.", list(sentences), mood=stats.mood_of(judged))


def _against_erm(results: Sequence[TableResult], judged: Sequence[stats.Comparison]) -> str:
    """What a headline that compares with mixup says about ERM."""
    if not judged or all(comparison.old == "ERM" for comparison in judged):
        return ""
    against: dict[str, list[stats.Comparison]] = {}
    for comparison in (c for result in results for c in comparisons(result)):
        if comparison.old == "ERM" and comparison.chosen is not None:
            against.setdefault(comparison.new, []).append(comparison)
    if not against:
        return ""
    return f"Against ERM: {', '.join(f'{n}: {stats.tally(c)}' for n, c in against.items())}."


# One table


def _section(result: TableResult) -> Iterator[doc.Block]:
    table = result.table
    trials = count(result.erm[0].expected, "trial")
    texts = [
        f"Mean test {result.unit.name} {result.unit.unit} ± one standard error, {trials} of "
        f"{table.model} on {table.data}."
    ]
    if result.printed:
        source = f"{table.label}, {count(table.trials, 'trial')}"
        texts.append(f"The paper's numbers are in brackets ({source}).")
    elif table.measure == ERROR:
        known = result.lines
        if "baseline" in known:
            known = known[known.baseline.notna()]
            stuck = int(known.constant.eq(True).sum())
            texts.append(baseline_sentence(result.unit, known.baseline.tolist(), stuck))
        texts.append(unfitted_sentence(result.lines))
    yield doc.Paragraph(" ".join(filter(None, texts)))
    yield from (doc.Paragraph(f"Note: {note}", style="fine") for note in table.notes)
    yield from (_errors(result, grid) for grid in result.grids)
    if compared := comparisons(result):
        labelled = [(comparison.label, [comparison]) for comparison in compared]
        yield doc.Details("Best against best", [comparison_table(labelled, chosen=True)])
    if any(cell.errors for cell in result.cells):
        note = f"{XI} The paper's values seem to be half of that." if result.printed else XI
        yield doc.Details("All metrics", [_metrics(result), doc.Paragraph(note, style="fine")])
    yield doc.Details("Settings", [_settings(result)])


def _plot(result: TableResult, grid: Grid) -> doc.Figure:
    """The error over alpha, or the level of a shift, or k if both have a single value."""
    levels, alphas = ({getattr(c, name) for c in result.columns} for name in ("eps", "alpha"))
    axis = "level" if len(levels) > 1 else "alpha" if len(alphas) > 1 else "k"
    lines: dict[str, dict[float, Mean]] = {}

    def add(cell: Cell, name: str) -> None:
        if cell.mean is not None:
            at = {"level": cell.eps or 0.0, "alpha": cell.alpha, "k": float(cell.k)}[axis]
            lines.setdefault(name, {})[at] = cell.mean, cell.standard_error

    for cell in grid:
        name = f"k = {cell.k}" if cell.k > 1 else result.baseline
        name += f", α = {cell.alpha:g}" if axis == "level" and len(alphas) > 1 else ""
        add(cell, result.table.method_title if axis == "k" else name)
    base = None
    if axis == "level":
        for cell in result.erm:
            add(cell, "ERM")
    elif (mean := result.erm[0].mean) is not None:
        base = mean, result.erm[0].standard_error
    return curves(f"{result.title}: {result.unit.name} {result.unit.unit}", axis, base, lines)


def _errors(result: TableResult, grid: Grid) -> doc.HeatMap:
    tests = column_tests(grid)

    def box(cell: Cell) -> doc.Box:
        paper = "" if cell.paper is None else f"({number(cell.paper)})"
        small = list(filter(None, (cell.spread, paper, cell.gaps)))
        test = tests.get((cell.k, cell.alpha, cell.eps))
        alike = [other for other in (*result.erm, *grid) if other.eps == cell.eps]
        best = cell.mean is not None and cell.mean == min(
            other.mean for other in alike if other.mean is not None
        )
        return doc.Box(cell.text, small, 0 if test is None else test.side, best)

    run = [row for row in grid.cells if _is_run(row)]
    # the first column for ERM alone
    shown = [i for i, column in enumerate(zip(*run, strict=True)) if _is_run(column)] or [0]
    columns = [result.columns[i] for i in shown]
    erm = [*result.erm]  # one box for all columns, or one for each
    if len(erm) > 1:
        erm = [cell for column in columns for cell in erm if cell.eps == column.eps]
    rows = [("ERM", [*map(box, erm)])]
    rows += [(f"k = {row[0].k}", [box(row[i]) for i in shown]) for row in run]
    title = f"{'Ours, ' if result.printed else ''}{RULE[grid.rule]}"
    return doc.HeatMap(title, _heads(result, columns), rows, _caption([*tests.values()]))


def _caption(tests: Sequence[stats.Comparison]) -> str:
    caption = "The lowest error is framed (*)."
    sides = Counter(test.side for test in tests)
    if not tests:
        return caption
    return (
        f"Of {count(len(tests), 'cell')} with k > 1, {sides[-1]} are significantly lower than "
        f"k = 1 at the same alpha (↓, blue) and {sides[1]} higher (↑, orange) after Holm "
        f"correction. {caption}"
    )


def _heads(result: TableResult, columns: Sequence[ErrorColumn]) -> list[tuple[str, str]]:
    """The level of each column if there are several, and its alpha likewise or alone."""
    levels, alphas = ({getattr(c, name) for c in result.columns} for name in ("eps", "alpha"))
    heads = []
    for column in columns:
        names = [f"ε = {column.eps or 0:g}"] if len(levels) > 1 else []
        names += [f"α = {column.alpha:g}"] if len(alphas) > 1 or not names else []
        heads.append((", ".join(names), ""))
    return heads


def _is_run(cells: Sequence[Cell]) -> bool:
    return any(len(cell.trials) for cell in cells)


def _metrics(result: TableResult) -> doc.ReportTable:
    rows, cells = [], [cell for cell in result.cells if cell.errors]
    metrics = {
        name: metric
        for name, metric in result.metrics.items()
        if any(cell.mean_of(name) is not None for cell in cells)
    }
    for cell in cells:
        level = "" if cell.eps is None else f", ε = {cell.eps:g}"
        rule = f", {RULE[cell.rule]}" if len(result.grids) > 1 and cell.k > 1 else ""
        texts = [
            NOTHING if (value := cell.mean_of(name)) is None else format(value, metric.form)
            for name, metric in metrics.items()
        ]
        strengths = [strength(cell.mean_of(name)) for name in ("trained_alpha", "xi")]
        rows.append([f"{cell.name}{level}{rule}", cell.text, *texts, *strengths])
    titles = [metric.title for metric in metrics.values()]
    header = ["cell", result.unit.name, *titles, "alpha as trained", "ξ"]
    return doc.ReportTable(header, rows, numeric=True)


def settings_of(trial: Trial) -> dict[str, Any]:
    plain = trial.to_dict()
    rest = {name: value for name, value in plain.items() if name not in ("method", "protocol")}
    return {**rest, **plain["protocol"]}


def _settings(result: TableResult) -> doc.Facts:
    facts = {"network": result.table.model, **result.setting}
    done = result.lines[result.lines.failure.isna()]
    for name in ("train_samples", "test_samples"):
        facts |= {name.replace("_", " "): int(number) for number in done[name][:1]}
    return doc.Facts(facts)


# The paper's Table 1, which sums up seven other tables


def master_document(summaries: Sequence[Summary], rows: Sequence[Row]) -> doc.Document:
    """The paper's summary table, our numbers below each line, and the commands for them."""
    trials, lines, notes, commands = {row.id: row.trial for row in rows}, [], [], []
    frame = frame_of(rows)
    for summary in summaries:
        title, network = summary.table.title, summary.architecture
        name = title if network in title else f"{title}, {network}"
        errors = (summary.erm, summary.mixup, summary.kmixup, summary.heuristic)
        lines.append([name, *map(number, (*errors, summary.confidence))])
        commands.append(f"kmixup reproduce {preset_of(summary.table).name:<15}{name}")
        notes += [f"{name}: {note}" for note in summary.notes]
        result = max(results_of(frame, [summary.table]), key=_completeness)
        for grid in result.grids:
            if all(cell.mean is None for cell in (*result.erm, *grid)):
                continue
            ours = "ours" if grid.rule == "same" else f"ours, {RULE[grid.rule]}"
            lines.append([f"  {ours}", *_best_errors(result, grid), ""])
            if short := shrinkage([summary.table], [trials[name] for name in result.lines.id]):
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


def _completeness(result: TableResult) -> tuple[bool, int, int]:
    """Order the results of a table by their samples, epochs and finished trials."""
    whole = result.setting.get("limit") is None
    return whole, result.setting.get("epochs", 0), int(result.lines.failure.isna().sum())


def _best_errors(result: TableResult, grid: Grid) -> Iterator[str]:
    """The lowest error of ERM, mixup, k-mixup and 16-mixup."""
    mixup = [cell for cell in grid if cell.k == 1]
    several = [cell for cell in grid if cell.k > 1]
    heuristic = [cell for cell in several if cell.k == HEURISTIC]
    for cells in (result.erm, mixup, several, heuristic):
        best = min(cells, key=lambda c: math.inf if c.mean is None else c.mean, default=None)
        yield NOTHING if best is None else f"{best.text} {best.spread}".rstrip()
