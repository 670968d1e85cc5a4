"""The report of `kmixup sweep` and `kmixup reproduce`, beside the paper's numbers if it has any."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kmixup.lab.evaluate.baseline import constant_sentence
from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.experiments.rows import Row, done_of, failed_of
from kmixup.lab.figures.surfaces import Picture
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import NOTHING, count, duration, number, signed, strength
from kmixup.lab.models import MANIFOLD_LAYERS
from kmixup.lab.paper.deviations import shrinkage
from kmixup.lab.paper.presets import preset_of
from kmixup.lab.paper.tables import BEST_CELLS, CLEAN, ERROR, Claim, Summary
from kmixup.lab.report import plots, stats
from kmixup.lab.report.comparisons import (
    HEURISTIC,
    CellComparison,
    agreement,
    best_against_best,
    by_column,
    claimed,
    column_name,
    column_tests,
    comparisons,
    recipes,
    shown_ks,
    sides,
)
from kmixup.lab.report.document import (
    Block,
    Box,
    Bullets,
    Code,
    Details,
    Document,
    Facts,
    Figure,
    Figures,
    Headline,
    HeatMap,
    Image,
    Images,
    Paragraph,
    ReportTable,
    Section,
)
from kmixup.lab.report.frame import (
    Cell,
    Grid,
    TableResult,
    cells_csv,
    results_of,
    unplaced,
)
from kmixup.lab.report.render_html import html
from kmixup.lab.report.render_markdown import markdown
from kmixup.lab.train.config import AlphaRule, variant_words
from kmixup.lab.train.methods import METHODS

RULE: dict[AlphaRule, str] = {
    "same": "same alpha at every k",
    "xi": "alpha calibrated to keep ξ",
    "root": "alpha times the ratio of distances",
}
MEASURE = {ERROR: "test error", CLEAN: "test error with recomputed batch-norm statistics"} | {
    name: f"test error under {shift.title}" for name, shift in SHIFTS.items()
}
XI = "Xi (ξ) is the strength of mixing: the root mean square distance that mixing moves a sample."


@dataclass(frozen=True)
class Preface:
    """What a report says about the run itself.

    Attributes:
        name: the title of the report.
        command: the command that repeats it.
        claim: the paper's claim, in a sentence.
        comparison: the claim in a form that grids can answer.
        notes: how the run differs from the paper, a sentence each.
    """

    name: str
    command: str
    claim: str | None = None
    comparison: Claim = BEST_CELLS
    notes: Sequence[str] = ()


def sweep_document(
    rows: Iterable[Row],
    results: Sequence[TableResult],
    preface: Preface,
    pictures: Mapping[str, Sequence[Picture]] = {},
) -> Document:
    """The report of a sweep.

    Args:
        rows: all rows of the sweep.
        results: from `results_of(rows, tables)`.
        preface: the title, the claim and the command.
        pictures: decision surfaces by the name of their data.
    """
    rows = sorted(rows, key=lambda row: row.id)
    blocks: list[Block] = [_headline(rows, results, preface)]
    if preface.claim:
        blocks.append(Paragraph(preface.claim, style="claim"))
    if preface.notes:
        blocks.append(Details("Protocol of this run", [Bullets(preface.notes)], open=True))
    if (methods := side_by_side(results)) is not None:
        blocks.append(Section("All methods", [methods]))
    blocks.append(Section("Verdicts", list(_verdicts(results, preface.comparison))))
    blocks += [Section(result.title, list(_section(result))) for result in results]
    if pictures:
        blocks.append(Section("Decision surfaces", list(_surfaces(pictures))))
    blocks.append(Section("Protocol", list(_protocols(results))))
    return Document(preface.name, [*blocks, *provenance(rows, preface.command)])


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


def provenance(rows: Sequence[Row], command: str) -> Iterator[Section]:
    """Failed trials, versions and machines, and the command: the end of every report."""
    if failed := failed_of(rows):
        labels = [
            f"{t.data}, {t.model}, {t.method.label}, seed {t.seed}: {row.reason}"
            for row in failed
            for t in [row.trial]
        ]
        yield Section("Failed trials", [Details(count(len(failed), "trial"), [Bullets(labels)])])
    facts: list[Block] = [
        Facts(values, f"{count(n, 'row')}:")
        for kind in ("versions", "machine")
        for values, n in _tally(getattr(row, kind) for row in rows)
    ]
    if times := [row.finished for row in rows if row.finished]:
        facts.append(Facts({"first trial": min(times), "last trial": max(times)}))
    yield Section("Where it was run", facts)
    yield Section("Repeat it", [Code(command)])


def _tally(facts: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Every different mapping once, with the number of its occurrences."""
    tally = Counter(json.dumps(dict(fact), sort_keys=True) for fact in facts if fact)
    return ((json.loads(text), n) for text, n in sorted(tally.items()))


# The verdicts


def _headline(rows: Sequence[Row], results: Sequence[TableResult], preface: Preface) -> Headline:
    judged = [
        comparison
        for result in results
        for grid in result.grids
        for comparison in claimed(result, grid, preface.comparison)
    ]
    verdicts = [comparison.verdict for comparison in judged]
    if len(judged) == 1:
        text = verdicts[0].text[0].upper() + verdicts[0].text[1:]
        if (difference := judged[0].held_out) is not None:
            text += f" ({difference.text} {judged[0].unit.points})"
    else:
        tally = Counter(verdict.outcome for verdict in verdicts)
        parts = [f"{outcome} in {tally[outcome]}" for outcome in stats.Outcome if tally[outcome]]
        text = (
            f"{count(len(judged), 'comparison')}: {', '.join(parts)}"
            if parts
            else "Nothing to compare"
        )
    done, failed = done_of(rows), failed_of(rows)
    extent = (
        f"{count(len(done), 'trial')} finished, {len(failed)} failed; "
        f"{duration(math.fsum(row.seconds for row in done))} of training in total."
    )
    if left := unplaced(rows, results):
        extent += f" {count(len(left), 'more row')} of the sweep fit no cell of these tables."
    return Headline(f"{text}.", [extent], mood=_mood(verdicts))


def _mood(verdicts: Sequence[stats.Verdict]) -> stats.Mood:
    moods = {verdict.mood for verdict in verdicts}
    if "bad" in moods:
        return "bad"
    return "good" if moods == {"good"} else "open"


def _verdicts(results: Sequence[TableResult], claim: Claim) -> Iterator[Block]:
    printed = any(result.printed for result in results)
    how = ", as the paper does" if printed else ""
    header = [
        "table", "verdict", "alpha at k > 1", "compared", "difference [95 %]", "new data [95 %]",
        f"chosen on the test error{how}", "the paper", "k and k = 1, same alpha",
    ]  # fmt: skip
    rows, moods = [], []
    for result in results:
        for grid in result.grids:
            judged = claimed(result, grid, claim)
            rows.append(_verdict_row(result, grid, judged, claim))
            moods.append(_mood([comparison.verdict for comparison in judged]))
    yield _without_empty(ReportTable(header, rows, moods=moods, verdict=1, sentences=True))
    text = (
        "Differences are in points of test error; below 0 is better. Best cells are chosen on "
        "every other trial and compared on the rest, paired by trial, then the halves swap. The "
        "interval is Student's at 95 %, widened for the correlation of the two halves. If trials "
        "split the same samples anew it holds for these samples only; “new data” is the interval "
        "for other samples of the same kind (Nadeau and Bengio). Choosing on the test error over "
        f"all trials{how} favours the method with more cells to choose from. "
    )
    if printed:
        text += (
            "± in the column of the paper is the standard error of its difference, from the error "
            "bar that it states, else from one as large as ours. "
        )
    text += (
        "The last column counts the columns of the grid in which k has a significantly lower or "
        "higher error than k = 1; nothing is chosen there."
    )
    yield Paragraph(text, style="fine")
    if any(grid.rule == "xi" for result in results for grid in result.grids):
        yield Paragraph(f"{XI} “{RULE['xi']}” raises alpha with k accordingly.", style="fine")
    corrected = list(_corrected(results))
    if corrected:
        head = ["k and k = 1, same alpha", "tests", "lower", "higher", "not significant"]
        yield ReportTable(head, corrected, "All tables, with Holm correction", sentences=True)
    if readings := [(r.title, fit) for r in results if (fit := agreement(r)) is not None]:
        yield _readings(readings)


def _verdict_row(
    result: TableResult, grid: Grid, judged: Sequence[CellComparison], claim: Claim
) -> list[str]:
    if len(judged) == 1:
        said = judged[0].verdict.text
    elif judged:
        unit = "columns" if claim.each == "column" else "levels of ε"
        tally = Counter(comparison.verdict.outcome.value for comparison in judged)
        counted = [f"{outcome} in {n}" for outcome, n in sorted(tally.items())]
        said = f"of {len(judged)} {unit}: {', '.join(counted)}"
        if len(tally) == 1 and judged[0].held_out is None:
            said = judged[0].verdict.text
    else:
        said = "no verdict: there is no cell"
    best = best_against_best(result, grid.rule) or judged
    numbers = _numbers(best[0]) if len(best) == 1 else [NOTHING] * 4
    compared = NOTHING
    if best:
        compared = "best k > 1 − best k = 1" if best[0].old != "ERM" else f"{best[0].new} − ERM"
    rule = RULE[grid.rule] if any(k > 1 for k in result.ks) else NOTHING
    return [result.title, said, rule, compared, *numbers, _columns(result, grid)]


def _numbers(comparison: CellComparison) -> list[str]:
    """The difference, for new data, chosen on the test error, and in the paper."""
    held_out = comparison.held_out
    difference = NOTHING if held_out is None else held_out.text
    new_data = NOTHING if held_out is None else held_out.new_data_text or NOTHING
    on_test = NOTHING
    if comparison.chosen is not None:
        new, old = comparison.chosen
        on_test = (
            f"{signed(comparison.on_test, new.unit.digits(new.mean))}: {cell_mean(new)} "
            f"({cell_name(new)}) − {cell_mean(old)} ({cell_name(old)})"
        )
    return [difference, new_data, on_test, printed_text(comparison)]


def printed_text(comparison: CellComparison) -> str:
    """The paper's difference, with its standard error if known."""
    if comparison.paper is None or comparison.noise is None:
        return signed(comparison.paper)
    return f"{signed(comparison.paper)} ± {number(comparison.noise)}"


def _columns(result: TableResult, grid: Grid) -> str:
    texts = []
    for k in shown_ks(result):
        if not (tally := sides(grid, k)):
            continue
        text = f"k = {k}: {tally[-1]} lower, {tally[1]} higher, {tally[0]} not significant"
        printed = [(new.paper, old.paper) for new, old, _ in by_column(grid, k=k)]
        known = [new < old for new, old in printed if new is not None and old is not None]
        if known:
            text += f" (paper: {sum(known)} of {len(known)} lower)"
        texts.append(text)
    return "; ".join(texts) or NOTHING


def _without_empty(table: ReportTable) -> ReportTable:
    """Leave out the columns that have nothing to show."""
    kept = [
        i
        for i in range(len(table.header))
        if i < 2 or any(row[i] not in ("", NOTHING) for row in table.rows)
    ]
    return ReportTable(
        [table.header[i] for i in kept],
        [[row[i] for i in kept] for row in table.rows],
        table.title, table.moods, table.verdict, table.sentences, table.numeric,
    )  # fmt: skip


def _corrected(results: Sequence[TableResult]) -> Iterator[list[str]]:
    """What is significant over all tables after Holm correction, for each k and alpha rule."""
    families = dict.fromkeys(
        (k, grid.rule) for result in results for k in shown_ks(result) for grid in result.grids
    )
    for k, rule in families:
        tests = column_tests(results, k, rule)
        if len(tests) < 2:
            continue
        named = {
            side: "; ".join(
                f"{test.where} ({signed(test.difference.mean)})"
                for test in tests
                if test.side == side
            )
            for side in (-1, 1)
        }
        rest = sum(test.side == 0 for test in tests)
        label = f"k = {k}, {RULE[rule]}"
        yield [label, str(len(tests)), named[-1] or "none", named[1] or "none", str(rest)]


def _readings(readings: Sequence[tuple[str, stats.Agreement]]) -> ReportTable:
    """Which meaning of alpha the paper's numbers agree with."""
    rules = list(dict.fromkeys(fit.rule for _, found in readings for fit in found.fits))
    rows = []
    for title, found in readings:
        fits = {fit.rule: fit for fit in found.fits}
        numbers = [
            " / ".join(number(value) for value in (fit.distance, fit.rank, fit.shape))
            if (fit := fits.get(rule))
            else NOTHING
            for rule in rules
        ]
        level = shape = NOTHING
        if len(fits) > 1:
            level = _closer(found.nearer, decided=found.decided)
            if found.nearer_shape is not None:
                shape = _closer(found.nearer_shape, decided=found.shape_decided)
        rows.append([title, str(found.cells), *numbers, level, shape])
    header = ["table", "cells with k > 1", *(RULE[rule] for rule in rules)]  # type: ignore[index]
    return _without_empty(
        ReportTable(
            [*header, "closer by level", "closer by shape"],
            rows,
            "Agreement with the paper's cells: RMS difference / rank correlation / RMS difference "
            "after subtracting each row's mean",
            sentences=True,
        )
    )


def _closer(fit: stats.Fit, *, decided: bool) -> str:
    return f"{RULE[fit.rule]}{'' if decided else ' (not significant)'}"  # type: ignore[index]


# One table


def _section(result: TableResult) -> Iterator[Block]:
    table = result.table
    trials = count(result.erm[0].expected, "trial")
    text = f"Mean {subject(result)} over {trials}, ± one standard error."
    if result.printed:
        text += (
            f" The paper's numbers are in brackets: {table.label}, {count(table.trials, 'trial')}"
        )
        text += "." if table.confidence is None else f", at most ± {table.confidence:g}."
    elif table.measure == ERROR:
        text = f"{text} {constant_sentence(row.scores for row in done_of(result.rows))}".rstrip()
    yield Paragraph(text)
    yield from (Paragraph(f"Note: {note}", style="fine") for note in table.notes)
    values = [value for cell in result.cells for value in (cell.mean, cell.paper)]
    yield from (_errors(result, grid, values) for grid in result.grids)
    if result.printed:
        yield _printed(result, values)
        yield from (_differences(result, grid) for grid in result.grids)
    if compared := comparisons(result):
        yield Details("Best against best", [_compared(compared)], open=len(compared) < 9)
    tried = [recipe for grid in result.grids for recipe in recipes(result, grid)]
    if result.printed and tried:
        yield Details("The recipes of the paper's appendix", [_compared(tried)])
    if drawn := _against_k(result):
        yield Figures(drawn)
    if drawn := _training(result):
        yield Section("Training", [Figures(drawn)], level=3)
    note = "Means over trials. " + XI
    if result.printed:
        note += " The values that the paper prints seem to be half of that."
    strengths = [_strengths(result, grid) for grid in result.grids]
    yield Details("Alpha as trained, and ξ", [Paragraph(note, style="fine"), *strengths])


def subject(result: TableResult) -> str:
    """What is measured, and on what."""
    table, unit = result.table, result.unit
    levels = {column.eps for column in table.columns if column.eps is not None}
    where = f" of {next(iter(levels)):g}/255" if len(levels) == 1 else ""
    measure = MEASURE[table.measure].replace("error", unit.name)
    return f"{measure}{where} {unit.unit}, {table.data} with {table.model}"


def cell_name(cell: Cell) -> str:
    """Where a cell is in its grid."""
    if cell.k == 0:
        return "ERM"
    place = f"α = {cell.alpha:g}"
    return place if cell.k == 1 else f"k = {cell.k}, {place}"


def cell_mean(cell: Cell) -> str:
    """The mean in table units, or why there is none."""
    if cell.mean is None:
        return "failed" if cell.failed else "not run"
    return number(cell.mean, cell.unit.digits(cell.mean))


def cell_spread(cell: Cell) -> str:
    """The standard error of the mean, empty if there is none."""
    if cell.standard_error is None:
        return ""
    return f"± {number(cell.standard_error, cell.unit.digits(cell.mean))}"


def cell_gaps(cell: Cell) -> str:
    """The trials that a cell lacks, empty if it lacks none."""
    parts = []
    if cell.failed and cell.done:
        parts.append(f"{cell.failed} failed")
    if cell.missing and cell.done:
        parts.append(f"{len(cell.done)} of {count(cell.expected, 'trial')}")
    return ", ".join(parts)


def _best(grid: Grid, values: Mapping[int, float | None]) -> set[int]:
    """The ids of the cells that are best at their eps."""
    least: dict[float | None, float] = {}
    for cell in grid:
        if (value := values[id(cell)]) is not None:
            least[cell.eps] = min(value, least.get(cell.eps, value))
    return {
        id(cell)
        for cell in grid
        if values[id(cell)] is not None and values[id(cell)] == least[cell.eps]
    }


def _map(
    result: TableResult,
    grid: Grid,
    title: str,
    boxes: Mapping[int, Box],
    *,
    erm: bool = True,
    **options: Any,
) -> HeatMap:
    head = [(column_name(result, i), "") for i in range(len(result.columns))]
    rows = [
        (f"k = {k}", [boxes[id(cell)] for cell in cells])
        for k, cells in zip(result.ks, grid.cells, strict=True)
    ]
    if erm:
        rows.insert(0, ("ERM", [boxes[id(cell)] for cell in result.erm_by_column]))
    return HeatMap(title, head, rows, **options)


def _errors(result: TableResult, grid: Grid, values: Sequence[float | None]) -> HeatMap:
    best = _best(grid, {id(cell): cell.mean for cell in grid})
    boxes = {}
    for cell in (*result.erm, *grid):
        paper = "" if cell.paper is None else f"({number(cell.paper)})"
        small = [text for text in (cell_spread(cell), paper, cell_gaps(cell)) if text]
        boxes[id(cell)] = Box(cell_mean(cell), small, cell.mean, id(cell) in best)
    title = f"{'Ours, ' if result.printed else ''}{RULE[grid.rule]}"
    return _map(result, grid, title, boxes, scale="sequential", values=values)


def _printed(result: TableResult, values: Sequence[float | None]) -> HeatMap:
    grid = result.grids[0]
    best = _best(grid, {id(cell): cell.paper for cell in grid})
    boxes = {
        id(cell): Box(number(cell.paper), (), cell.paper, id(cell) in best)
        for cell in (*result.erm, *grid)
    }
    shown = _map(
        result, grid, f"The paper, {result.table.label}", boxes,
        erm=result.table.erm is not None, scale="sequential", values=values, repeats=True,
    )  # fmt: skip
    xis = [f"ξ = {column.xi:g}" if column.xi else "" for column in result.columns]
    head = [(first, xi) for (first, _), xi in zip(shown.head, xis, strict=True)]
    return HeatMap(**{**vars(shown), "head": head})


def _differences(result: TableResult, grid: Grid) -> HeatMap:
    boxes = {}
    for cell in (*result.erm, *grid):
        small = [] if cell.ratio is None else [f"{signed(cell.ratio, 1)} s.e."]
        boxes[id(cell)] = Box(signed(cell.difference), small, cell.difference)
    return _map(
        result, grid, f"Ours − the paper's, {RULE[grid.rule]}", boxes,
        erm=result.table.erm is not None, scale="diverging",
        values=[cell.difference for cell in result.cells], repeats=True,
    )  # fmt: skip


def _strengths(result: TableResult, grid: Grid) -> HeatMap:
    boxes = {
        id(cell): Box(
            f"α {strength(cell.mean_of('alpha'))},", [f"ξ {strength(cell.mean_of('xi'))}"]
        )
        for cell in grid
    }
    return _map(result, grid, RULE[grid.rule], boxes, erm=False)


def _compared(compared: Sequence[CellComparison]) -> ReportTable:
    header = [
        "comparison", "verdict", "held-out trials [95 %]", "new data [95 %]",
        "chosen on the test error", "the paper", "trials",
    ]  # fmt: skip
    rows = [
        [
            _heading(comparison),
            comparison.verdict.text,
            *_numbers(comparison),
            NOTHING if comparison.held_out is None else str(comparison.held_out.trials),
        ]
        for comparison in compared
    ]
    moods = [comparison.verdict.mood for comparison in compared]
    return _without_empty(ReportTable(header, rows, moods=moods, verdict=1, sentences=True))


def _heading(comparison: CellComparison) -> str:
    which = "" if comparison.k is None else f" with k = {comparison.k}"
    text = f"{comparison.new}{which} − {comparison.old}"
    if comparison.eps is not None:
        text += f" at ε = {comparison.eps:g}/255"
    return text if comparison.rule is None else f"{text}, {RULE[comparison.rule]}"


def _against_k(result: TableResult) -> list[Figure]:
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
        Figure(title, plots.against_k(curves, ylabel=unit, top=top, erm=plain), legend=3)
        for title, curves, plain in panels
        if any(curve.x for curve in curves)
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


def _training(result: TableResult) -> list[Figure]:
    """Training with ERM, and of the cells that are best on the test error."""
    shown: dict[str, Cell] = {"ERM": result.erm[0]}
    for grid in result.grids:
        first, *_ = *best_against_best(result, grid.rule), *comparisons(result), None
        if first is not None and first.chosen is not None:
            new, old = first.chosen
            rule = "" if len(result.grids) == 1 else f" ({grid.rule})"
            if first.old != "ERM":
                shown[f"{first.old}, {cell_name(old)}"] = old
            name = cell_name(new) if new.k > 1 else f"{first.new}, {cell_name(new)}"
            shown[f"{name}{rule}"] = new
    drawn = []
    for what, ylabel, title in (
        ("loss", "training loss", "Mean training loss, on mixed samples if there are any"),
        ("error", f"{result.unit.name} {result.unit.unit}", f"Mean test {result.unit.name}"),
    ):
        curves = [plots.training_curve(cell, label, what) for label, cell in shown.items()]
        known = [curve for curve in curves if curve is not None]
        if known:
            drawn.append(Figure(title, plots.training(known, ylabel=ylabel), legend=2))
    return drawn


# All methods in one map

MIXUP = "mixup"
OF_METHOD = ("pairing", "layers")  # what a setting says about the method
Place = tuple[str, float]  # a setting and an alpha


def side_by_side(results: Sequence[TableResult]) -> HeatMap | None:
    """All methods and k in rows, data sets and alphas in columns; None with one method only."""
    results = [result for result in results if result.table.measure in (ERROR, CLEAN)]
    if len({(result.method, result.setting.get("layers")) for result in results}) < 2:
        return None
    cells: dict[str, dict[Place, Cell]] = {}
    variants: set[str] = set()
    head: dict[Place, tuple[str, str]] = {}
    for result in results:
        for label, place, cell in _placed(result):
            cells.setdefault(label, {})[place] = cell
            head[place] = (f"{result.table.data}, {result.table.model}", _under(result, place))
            if cell.k > 1 and variant_words(result.table):
                variants.add(label)
    columns = [_column(cells, place, variants) for place in head]
    return HeatMap(
        "Mean test error in per cent, and difference from mixup [95 %]",
        _distinct_heads(head),
        [(label, [column[label] for column in columns]) for label in cells],
        caption="± is one standard error. Differences are paired by trial, from mixup with the "
        "same alpha; k-mixup with a memory, with labels or on features is compared with plain "
        "k-mixup of the same k, or of the largest k without. Nothing is chosen here.",
        scale="sequential",
        by_column=True,
    )


def _placed(result: TableResult) -> Iterator[tuple[str, Place, Cell]]:
    """Every cell of a result with the name of its row, and its column."""
    table = result.table
    common = {name: value for name, value in result.setting.items() if name not in OF_METHOD}
    if table.measure == CLEAN:
        common["statistics"] = CLEAN
    setting = json.dumps([table.data, table.model, common], sort_keys=True)
    for column in result.columns:
        yield "ERM", (setting, column.alpha), result.erm[0]
    for grid in result.grids:
        for k, cells in zip(result.ks, grid.cells, strict=True):
            for cell in cells:
                yield _label(result, k, grid.rule), (setting, cell.alpha), cell


def _label(result: TableResult, k: int, rule: str) -> str:
    layers = result.setting.get("layers")
    words = [result.method, f"k = {k}"]
    if k == 1 and result.table.baseline == MIXUP:
        words = [MIXUP]
    if layers not in (None, MANIFOLD_LAYERS):
        words.append(str(layers))
    if "pairing" in result.distinct:
        words.append(f"pairing {result.distinct['pairing']}")
    if rule == "xi" and k > 1:
        words.append("equal ξ")
    return ", ".join(words)


def _under(result: TableResult, place: Place) -> str:
    distinct = result.distinct.items()
    settings = [f"{name} {value}" for name, value in distinct if name not in OF_METHOD]
    return ", ".join([f"α = {place[1]:g}", *settings])


def _distinct_heads(head: Mapping[Place, tuple[str, str]]) -> list[tuple[str, str]]:
    """The headings of the columns; equal ones name the settings that differ."""
    settings = {place: json.loads(place[0])[2] for place in head}
    heads = []
    for place, text in head.items():
        alike = [settings[other] for other in head if head[other] == text and settings[other]]
        differing = [
            f"{name} {value}"
            for name, value in settings[place].items()
            if name != "test_every" and any(other.get(name) != value for other in alike)
        ]
        heads.append((text[0], ", ".join([text[1], *differing])))
    return heads


def _column(
    cells: Mapping[str, Mapping[Place, Cell]], place: Place, variants: set[str]
) -> dict[str, Box]:
    column = {label: places[place] for label, places in cells.items() if place in places}
    least = min((cell.mean for cell in column.values() if cell.mean is not None), default=None)
    boxes = {}
    for label in cells:
        if label not in column:
            boxes[label] = Box(NOTHING)
            continue
        cell = column[label]
        difference = _from_plain(cell, column) if label in variants else _from_mixup(label, column)
        small = [text for text in (cell_spread(cell), difference, cell_gaps(cell)) if text]
        best = cell.mean is not None and cell.mean == least
        boxes[label] = Box(cell_mean(cell), small, cell.mean, best)
    return boxes


def _from_mixup(label: str, column: Mapping[str, Cell]) -> str:
    cell, base = column[label], column.get(MIXUP)
    if base is None or label == MIXUP:
        return ""
    difference = stats.paired(cell.errors, base.errors, cell.partition)
    return "" if difference is None else difference.text


def _from_plain(cell: Cell, column: Mapping[str, Cell]) -> str:
    """The difference of a variant from plain k-mixup, and the verdict."""
    start = f"{METHODS['kmixup'].title}, k = "
    plain = {other.k: other for label, other in column.items() if label.startswith(start)}
    if not plain:
        return ""
    base = plain.get(cell.k) or plain[max(plain)]
    difference = stats.paired(cell.errors, base.errors, cell.partition)
    if difference is None:
        return ""
    outcome = stats.verdict(difference, "it", f"k = {base.k}").outcome
    return f"{difference.text} from k = {base.k}, {outcome}"


# The end of a report


def _surfaces(pictures: Mapping[str, Sequence[Picture]]) -> Iterator[Block]:
    yield Paragraph(
        "Predictions of one network for each method over the plane, trained for this picture: blue "
        "for class 1, orange for class 0, white in between; with some of the training data.",
        style="fine",
    )
    for data, shown in pictures.items():
        images = [Image(p.title, lambda p=p: p.png, p.caption) for p in shown]  # type: ignore[misc]
        yield Section(data, [Images(images)], level=3)


def _protocols(results: Sequence[TableResult]) -> Iterator[Facts]:
    """Every setting once, with the titles of its tables and the size of their data."""
    titles: dict[str, list[str]] = {}
    for result in results:
        data = next((row.data for row in done_of(result.rows)), None)
        size = {} if data is None else {"train samples": data.train, "test samples": data.test}
        if result.setting:
            chosen = {key: value for key, value in result.setting.items() if value is not None}
            facts = {"network": result.table.model, **chosen, **size}
            titles.setdefault(json.dumps(facts), []).append(result.title)
    for facts_json, tables in titles.items():
        yield Facts(json.loads(facts_json), "; ".join(tables))


# The paper's Table 1

OURS: dict[AlphaRule, str] = {"same": "ours", "xi": "ours at equal ξ"}


def master_document(summaries: Sequence[Summary], rows: Iterable[Row]) -> Document:
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
    return Document(
        "The paper's Table 1",
        [
            ReportTable(header, lines, numeric=True),
            Paragraph(caption),
            Bullets(list(dict.fromkeys(notes))),
            Section("Re-run a line", [Bullets(commands)]),
        ],
    )


def _best_errors(result: TableResult, grid: Grid) -> Iterator[str]:
    """The lowest error of ERM, mixup, k-mixup and 16-mixup."""
    for cells in (
        result.erm,
        [cell for cell in grid if cell.k == 1],
        [cell for cell in grid if cell.k > 1],
        [cell for cell in grid if cell.k == HEURISTIC],
    ):
        best = min(cells, key=lambda c: math.inf if c.mean is None else c.mean, default=None)
        yield NOTHING if best is None else f"{cell_mean(best)} {cell_spread(best)}".rstrip()
