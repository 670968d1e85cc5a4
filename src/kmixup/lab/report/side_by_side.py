"""All methods of a sweep in one table: methods and k in rows, data sets and alphas in columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from kmixup.lab.formatting import NOTHING
from kmixup.lab.paper.tables import ERROR
from kmixup.lab.report.comparisons import RULE, compare_trials, holm_corrected
from kmixup.lab.report.document import Box, Figure, HeatMap
from kmixup.lab.report.frame import Cell, TableResult
from kmixup.lab.report.plots import dots
from kmixup.lab.report.stats import Comparison
from kmixup.lab.train.config import CLEAN, variant_words
from kmixup.lab.train.methods import MANIFOLD_LAYERS

MIXUP = "mixup"
NOT_IN_HEAD = ("pairing", "layers", "test_every")  # settings of the method, or without effect
Place = tuple[str, str, str, float]  # data, network, setting as JSON, and alpha
CAPTION = (
    "± is one standard error. Differences are paired by trial, from mixup at the same alpha; "
    "k-mixup with a memory, with labels or on features is compared with k-mixup of the same k, or "
    "of the largest k without. Blue (↓) is lower, orange (↑) higher, and still significant after "
    "Holm correction. Nothing is chosen here."
)


def side_by_side(
    results: Iterable[TableResult],
) -> tuple[HeatMap, Sequence[Figure], Sequence[Comparison]] | None:
    """A map of all methods, a plot of each column, and the comparisons; None with one method."""
    results = [r for r in results if r.rows and r.table.measure in (ERROR, CLEAN)]
    if len({(result.table.method_title, result.setting.get("layers")) for result in results}) < 2:
        return None
    cells: dict[str, dict[Place, Cell]] = {}  # by the label of the row
    plain: dict[Place, dict[int, Cell]] = {}  # k-mixup without variants by k
    mixup: dict[Place, dict[str | None, Cell]] = {}  # mixup by pairing
    pairings: dict[tuple[str, Place], str | None] = {}
    variants: set[str] = set()
    for result in results:
        varied = bool(variant_words(result.table))
        alphas = [column.alpha for column in result.columns]
        for cell in result.cells:
            label = _label(result, cell)
            for alpha in [cell.alpha] if cell.k else alphas:  # ERM is in every column
                place = (result.table.data, result.table.model, _setting(result), alpha)
                cells.setdefault(label, {})[place] = cell
                pairings[label, place] = pairing = result.setting["pairing"]
                if cell.method == MIXUP:
                    mixup.setdefault(place, {})[pairing] = cell
                if cell.k > 1 and varied:
                    variants.add(label)
                elif cell.k > 1 and cell.method == "kmixup" and cell.rule == "same":
                    plain.setdefault(place, {})[cell.k] = cell
    compared: dict[tuple[str, Place], Comparison] = {}
    for label, row in cells.items():
        for place, cell in row.items():
            alike, name = mixup.get(place, {}), MIXUP
            base = alike.get(pairings[label, place]) or next(iter(alike.values()), None)
            if label in variants:
                ks = plain.get(place, {})
                base = ks.get(cell.k) or ks.get(max(ks, default=0))
                name = "" if base is None else f"k = {base.k}"
            if base is not None and cell.method != MIXUP:
                compared[label, place] = compare_trials(label, cell, name, base)
    compared = holm_corrected({at: c for at, c in compared.items() if c.difference is not None})
    places = list(cells["ERM"])
    means = {place: [row[place].mean for row in cells.values() if place in row] for place in places}

    def box(label: str, place: Place) -> Box:
        if (cell := cells[label].get(place)) is None:
            return Box(NOTHING)
        text, side = "", 0
        if (comparison := compared.get((label, place))) and comparison.difference is not None:
            base = "" if comparison.old == MIXUP else f" from {comparison.old}"
            text, side = f"{comparison.difference.text}{base}", comparison.side
        known = [mean for mean in means[place] if mean is not None]
        best = cell.mean is not None and cell.mean == min(known) < max(known)
        return Box(cell.text, list(filter(None, (cell.spread, text, cell.gaps))), side, best)

    shown = [(label, [box(label, place) for place in places]) for label in cells]
    title = "Mean test error in per cent, and difference from mixup [95 %]"
    heads = _heads(places)
    figures = []
    for place, head in zip(places, heads, strict=True):
        found = {
            label: (row[place].mean or 0.0, row[place].standard_error)
            for label, row in cells.items()
            if place in row and row[place].mean is not None
        }
        figures.append(dots(", ".join(head), "test error in per cent", found))
    return HeatMap(title, heads, shown, CAPTION), figures, list(compared.values())


def _setting(result: TableResult) -> str:
    """The settings of a column as JSON."""
    common = {
        name: value
        for name, value in result.setting.items()
        if name not in NOT_IN_HEAD and value is not None
    }
    clean = {"statistics": CLEAN} if result.table.measure == CLEAN else {}
    return json.dumps(common | clean, sort_keys=True)


def _label(result: TableResult, cell: Cell) -> str:
    if cell.k == 0:
        return "ERM"
    words = [MIXUP] if cell.method == MIXUP else [result.table.method_title, f"k = {cell.k}"]
    if (layers := result.setting.get("layers")) not in (None, MANIFOLD_LAYERS):
        words.append(str(layers))
    if "pairing" in result.distinct:
        words.append(f"pairing {result.distinct['pairing']}")
    if cell.k > 1 and cell.rule != "same":
        words.append(RULE[cell.rule])
    return ", ".join(words)


def _heads(places: Sequence[Place]) -> list[tuple[str, str]]:
    """Data and network above alpha and the settings that differ between columns of both."""
    heads = []
    for data, model, setting, alpha in places:
        alike = [json.loads(other[2]) for other in places if other[:2] == (data, model)]
        differing = [
            f"{name} {value}"
            for name, value in json.loads(setting).items()
            if any(other.get(name) != value for other in alike)
        ]
        heads.append((f"{data}, {model}", ", ".join([f"α = {alpha:g}", *differing])))
    return heads
