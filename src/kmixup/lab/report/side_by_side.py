"""All methods of a sweep in one table: methods and k in rows, data sets and alphas in columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from kmixup.lab.formatting import NOTHING
from kmixup.lab.models import MANIFOLD_LAYERS
from kmixup.lab.paper.tables import CLEAN, ERROR
from kmixup.lab.report import stats
from kmixup.lab.report.cells import Cell, TableResult
from kmixup.lab.report.document import Box, HeatMap
from kmixup.lab.train.config import variant_words
from kmixup.lab.train.methods import METHODS

MIXUP, KMIXUP = "mixup", METHODS["kmixup"].title
OF_METHOD = ("pairing", "layers")  # what a setting says about the method
HIDDEN = ("test_every",)  # settings that change no result
Place = tuple[str, str, str, float]  # data, network, setting as JSON, and alpha
Cells = Mapping[str, Mapping[Place, Cell]]  # by the label of the row


def side_by_side(results: Sequence[TableResult]) -> HeatMap | None:
    """A map of all methods; None with one method only."""
    results = [result for result in results if result.table.measure in (ERROR, CLEAN)]
    if len({(result.method, result.setting.get("layers")) for result in results}) < 2:
        return None
    cells: dict[str, dict[Place, Cell]] = {}
    variants: set[str] = set()
    for result in results:
        for label, place, cell in _placed(result):
            cells.setdefault(label, {})[place] = cell
            if cell.k > 1 and variant_words(result.table):
                variants.add(label)
    places = list(dict.fromkeys(place for result in results for place in _places(result)))
    compared = {
        (label, place): found
        for label, row in cells.items()
        for place in row
        if (found := _compared(cells, label, place, variant=label in variants)) is not None
    }
    p = stats.corrected([difference for difference, _ in compared.values()])
    sides = {
        at: stats.corrected_side(difference, p)
        for (at, (difference, _)), p in zip(compared.items(), p, strict=True)
    }

    def box(label: str, place: Place) -> Box:
        cell = cells[label].get(place)
        if cell is None:
            return Box(NOTHING)
        difference, base = compared.get((label, place), (None, ""))
        text = "" if difference is None else f"{difference.text}{base}"
        small = [part for part in (cell.spread, text, cell.gaps) if part]
        means = [m for row in cells.values() if place in row and (m := row[place].mean) is not None]
        best = cell.mean is not None and cell.mean == min(means) < max(means)
        return Box(cell.text, small, sides.get((label, place), 0), best)

    return HeatMap(
        "Mean test error in per cent, and difference from mixup [95 %]",
        _heads(places),
        [(label, [box(label, place) for place in places]) for label in cells],
        caption="± is one standard error. Differences are paired by trial, from mixup at the same "
        "alpha; k-mixup with a memory, with labels or on features is compared with k-mixup of the "
        "same k, or of the largest k without. Blue (↓) is lower, orange (↑) higher, and still "
        "significant after Holm correction. Nothing is chosen here.",
    )


def _places(result: TableResult) -> Iterator[Place]:
    """The columns of a result."""
    table = result.table
    common = {
        name: value
        for name, value in result.setting.items()
        if name not in (*OF_METHOD, *HIDDEN) and value is not None
    }
    if table.measure == CLEAN:
        common["statistics"] = CLEAN
    for column in result.columns:
        yield table.data, table.model, json.dumps(common, sort_keys=True), column.alpha


def _placed(result: TableResult) -> Iterator[tuple[str, Place, Cell]]:
    """Every cell of a result with the name of its row, and its column."""
    places = list(_places(result))
    yield from (("ERM", place, result.erm[0]) for place in places)
    for grid in result.grids:
        for k, cells in zip(result.ks, grid.cells, strict=True):
            for place, cell in zip(places, cells, strict=True):
                yield _label(result, k, grid.rule), place, cell


def _label(result: TableResult, k: int, rule: str) -> str:
    words = [result.method, f"k = {k}"]
    if k == 1 and result.table.baseline == MIXUP:
        words = [MIXUP]
    if (layers := result.setting.get("layers")) not in (None, MANIFOLD_LAYERS):
        words.append(str(layers))
    if "pairing" in result.distinct:
        words.append(f"pairing {result.distinct['pairing']}")
    if rule == "xi" and k > 1:
        words.append("equal ξ")
    return ", ".join(words)


def _heads(places: Sequence[Place]) -> list[tuple[str, str]]:
    """Data and network above alpha and the settings that differ between columns of both."""
    heads = []
    for data, model, setting, alpha in places:
        own = json.loads(setting)
        alike = [json.loads(other[2]) for other in places if other[:2] == (data, model)]
        differing = [
            f"{name} {value}"
            for name, value in own.items()
            if any(other.get(name) != value for other in alike)
        ]
        heads.append((f"{data}, {model}", ", ".join([f"α = {alpha:g}", *differing])))
    return heads


def _compared(
    cells: Cells, label: str, place: Place, *, variant: bool
) -> tuple[stats.PairedDifference, str] | None:
    """The difference from mixup, or of a variant from k-mixup, and what it is from."""
    cell, base, name = cells[label][place], cells.get(MIXUP, {}).get(place), ""
    if variant:
        start = f"{KMIXUP}, k = "
        plain = {
            row[place].k: row[place]
            for other, row in cells.items()
            if other.startswith(start) and place in row
        }
        base = plain.get(cell.k) or plain.get(max(plain, default=0))
        name = "" if base is None else f" from k = {base.k}"
    if base is None or label == MIXUP:
        return None
    difference = stats.paired(cell.errors, base.errors, cell.partition)
    return None if difference is None else (difference, name)
