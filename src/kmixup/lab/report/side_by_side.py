"""All methods of a sweep in one table: methods and k in rows, data sets and alphas in columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kmixup.lab.formatting import NOTHING
from kmixup.lab.methods import MANIFOLD_LAYERS
from kmixup.lab.paper.tables import ERROR
from kmixup.lab.report.comparisons import RULE, compare_cells, holm_corrected
from kmixup.lab.report.document import Box, Figure, HeatMap
from kmixup.lab.report.frame import Cell, TableResult
from kmixup.lab.report.plots import dots
from kmixup.lab.report.stats import Comparison
from kmixup.lab.trial import CLEAN, variant_words

MIXUP = "mixup"
NOT_IN_HEAD = ("pairing", "layers", "test_every")  # settings of the method, or without effect
Setting = tuple[tuple[str, Any], ...]  # names and values
Place = tuple[str, str, Setting, float]  # data, network, setting and alpha
CAPTION = (
    "± is one standard error. Differences are paired by trial, from mixup at the same alpha; "
    "k-mixup with a memory, with labels or on features is compared with k-mixup of the same k, or "
    "of the largest k without. Blue (↓) is lower, orange (↑) higher, and still significant after "
    "Holm correction. Nothing is chosen here."
)


@dataclass
class _Methods:
    """The cells of all methods, and those that they are compared with."""

    cells: dict[str, dict[Place, Cell]] = field(default_factory=dict)  # by the label of the row
    plain: dict[Place, dict[int, Cell]] = field(default_factory=dict)  # k-mixup by k
    mixup: dict[Place, dict[str | None, Cell]] = field(default_factory=dict)  # by pairing
    pairings: dict[tuple[str, Place], str | None] = field(default_factory=dict)
    variants: set[str] = field(default_factory=set)  # labels of k-mixup with a variant

    def add(self, result: TableResult) -> None:
        varied, pairing = bool(variant_words(result.table)), result.setting["pairing"]
        for cell in result.cells:
            label = _label(result, cell)
            if cell.k > 1 and varied:
                self.variants.add(label)
            # ERM is in every column
            for alpha in [cell.alpha] if cell.k else [column.alpha for column in result.columns]:
                place = (result.table.data, result.table.model, _setting(result), alpha)
                self.cells.setdefault(label, {})[place] = cell
                self.pairings[label, place] = pairing
                if cell.method == MIXUP:
                    self.mixup.setdefault(place, {})[pairing] = cell
                if not varied and (cell.k > 1, cell.method, cell.rule) == (True, "kmixup", "same"):
                    self.plain.setdefault(place, {})[cell.k] = cell

    def base(self, label: str, place: Place) -> tuple[str, Cell | None]:
        """What a cell is compared with: mixup of its pairing, or k-mixup without its variant."""
        if label in self.variants:
            ks = self.plain.get(place, {})
            plain = ks.get(self.cells[label][place].k) or ks.get(max(ks, default=0))
            return "" if plain is None else f"k = {plain.k}", plain
        alike = self.mixup.get(place, {})
        return MIXUP, alike.get(self.pairings[label, place]) or next(iter(alike.values()), None)

    def tests(self) -> dict[tuple[str, Place], Comparison]:
        compared = {}
        for label, row in self.cells.items():
            for place, cell in row.items():
                name, base = self.base(label, place)
                if base is not None and cell.method != MIXUP:
                    compared[label, place] = compare_cells(label, cell, name, base)
        return holm_corrected({at: c for at, c in compared.items() if c.difference is not None})

    def column(self, place: Place) -> dict[str, tuple[float, float | None]]:
        """Mean errors of a column, with their standard errors, by the label of the row."""
        cells = {label: row[place] for label, row in self.cells.items() if place in row}
        return {
            label: (cell.mean, cell.standard_error)
            for label, cell in cells.items()
            if cell.mean is not None
        }


def side_by_side(
    results: Iterable[TableResult],
) -> tuple[HeatMap, Sequence[Figure], Sequence[Comparison]] | None:
    """A map of all methods, a plot of each column, and the comparisons; None with one method."""
    results = [r for r in results if len(r.lines) and r.table.measure in (ERROR, CLEAN)]
    if len({(result.table.method_title, result.setting.get("layers")) for result in results}) < 2:
        return None
    methods = _Methods()
    for result in results:
        methods.add(result)
    compared, places = methods.tests(), list(methods.cells["ERM"])
    columns = {place: methods.column(place) for place in places}

    def box(label: str, place: Place) -> Box:
        if (cell := methods.cells[label].get(place)) is None:
            return Box(NOTHING)
        text, side = "", 0
        if (comparison := compared.get((label, place))) and comparison.difference is not None:
            base = "" if comparison.old == MIXUP else f" from {comparison.old}"
            text, side = f"{comparison.difference.text}{base}", comparison.side
        known = [mean for mean, _ in columns[place].values()]
        best = cell.mean is not None and cell.mean == min(known) < max(known)
        return Box(cell.text, list(filter(None, (cell.spread, text, cell.gaps))), side, best)

    shown = [(label, [box(label, place) for place in places]) for label in methods.cells]
    title = "Mean test error in per cent, and difference from mixup [95 %]"
    heads = _heads(places)
    figures = [
        dots(", ".join(head), "test error in per cent", columns[place])
        for place, head in zip(places, heads, strict=True)
    ]
    return HeatMap(title, heads, shown, CAPTION), figures, list(compared.values())


def _setting(result: TableResult) -> Setting:
    common = {
        name: value
        for name, value in result.setting.items()
        if name not in NOT_IN_HEAD and value is not None
    }
    clean = {"statistics": CLEAN} if result.table.measure == CLEAN else {}
    return tuple(sorted((common | clean).items()))


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
        alike = [dict(other[2]) for other in places if other[:2] == (data, model)]
        differing = [
            f"{name} {value}"
            for name, value in setting
            if any(other.get(name) != value for other in alike)
        ]
        heads.append((f"{data}, {model}", ", ".join([f"α = {alpha:g}", *differing])))
    return heads
