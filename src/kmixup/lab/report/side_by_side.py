"""Several methods in one map: a row for each method and k, a column for each data set and alpha."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from kmixup.lab.models import MANIFOLD_LAYERS
from kmixup.lab.pages.heat import Box, HeatMap, sequential
from kmixup.lab.paper.tables import CLEAN, ERROR
from kmixup.lab.report import wording
from kmixup.lab.report.account import Finding
from kmixup.lab.report.grids import Cell, Outcome
from kmixup.lab.report.verdict import judge, paired
from kmixup.lab.train.config import variant_words
from kmixup.lab.train.methods import METHODS

TITLE = "All methods"
EXPLANATION = (
    "Mean test error in per cent ± one standard deviation of that mean, and the difference "
    "from mixup with the same alpha, paired by trial, with its interval of 95 % confidence. "
    "k-mixup with a memory, with labels or on features is compared with plain k-mixup of the same "
    "k, or of the greatest k that was run without. Nothing is chosen here."
)
MIXUP = "mixup"
OF_METHOD = ("pairing", "layers")  # what an outcome's setting says of the method

Place = tuple[str, float]  # a setting and an alpha


def side_by_side(findings: Sequence[Finding]) -> HeatMap | None:
    """The cells of all tables of test errors, None where there is only one method.

    Networks that were also tested with clean statistics have a second column for these.
    """
    outcomes = [finding.outcome for finding in findings]
    outcomes = [outcome for outcome in outcomes if outcome.table.measure in (ERROR, CLEAN)]
    kinds = {(outcome.table.method_title, outcome.setting.get("layers")) for outcome in outcomes}
    if len(kinds) < 2:
        return None
    labelled: dict[str, dict[Place, Cell]] = {}
    variants = {
        _label(outcome, k, grid.rule)
        for outcome in outcomes
        for grid in outcome.grids
        for k in outcome.ks
        if k > 1 and variant_words(outcome.table)
    }
    head: dict[Place, tuple[str, str]] = {}
    for outcome in outcomes:
        for label, place, cell in _placed(outcome):
            labelled.setdefault(label, {})[place] = cell
            head[place] = (f"{outcome.table.data}, {outcome.table.model}", _under(outcome, place))
    columns = [_boxes(labelled, place, variants) for place in head]
    rows = tuple((label, tuple(column[label] for column in columns)) for label in labelled)
    return HeatMap(TITLE, tuple(_told_apart(head)), rows)


def _placed(outcome: Outcome) -> Iterator[tuple[str, Place, Cell]]:
    """Every cell of an outcome with the name of its row and its column."""
    table = outcome.table
    common = {name: value for name, value in outcome.setting.items() if name not in OF_METHOD}
    common |= {"statistics": CLEAN} if table.measure == CLEAN else {}
    setting = json.dumps([table.data, table.model, common], sort_keys=True)
    for column in outcome.columns:
        yield "ERM", (setting, column.alpha), outcome.erm[0]
    for grid in outcome.grids:
        for k, cells in zip(outcome.ks, grid.cells, strict=True):
            for cell in cells:
                yield _label(outcome, k, grid.rule), (setting, cell.alpha), cell


def _label(outcome: Outcome, k: int, rule: str) -> str:
    table, layers = outcome.table, outcome.setting.get("layers")
    plain = k == 1 and table.baseline == MIXUP
    words = [MIXUP] if plain else [table.method_title, f"k = {k}"]
    words += [] if layers in (None, MANIFOLD_LAYERS) else [str(layers)]
    words += [f"pairing {value}" for name, value in outcome.distinct.items() if name == "pairing"]
    words += ["equal ξ"] * (rule == "xi" and k > 1)
    return ", ".join(words)


def _under(outcome: Outcome, place: Place) -> str:
    told = [f"{name} {value}" for name, value in outcome.distinct.items() if name not in OF_METHOD]
    return ", ".join([f"α = {place[1]:g}", *told])


def _told_apart(head: Mapping[Place, tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The headings of the columns; those that would be equal name the settings that differ."""
    settings = {place: json.loads(place[0])[2] for place in head}
    for place, text in head.items():
        alike = [settings[other] for other in head if head[other] == text and settings[other]]
        told = [
            f"{name} {value}"
            for name, value in settings[place].items()
            if name != "test_every" and any(other.get(name) != value for other in alike)
        ]
        yield text[0], ", ".join([text[1], *told])


def _boxes(
    labelled: dict[str, dict[Place, Cell]], place: Place, variants: set[str]
) -> dict[str, Box]:
    """One column: its best cell is marked, and colours are of it alone."""
    cells = {label: places[place] for label, places in labelled.items() if place in places}
    tint = sequential(cell.mean for cell in cells.values())
    least = min((cell.mean for cell in cells.values() if cell.mean is not None), default=None)

    def box(label: str) -> Box:
        if label not in cells:
            return Box("–")
        cell = cells[label]
        base = cells.get(MIXUP) if label != MIXUP else None
        compared = _difference(cell, base)
        if label in variants:
            compared = _against_plain(cell, cells)
        small = [wording.cell_spread(cell), compared, wording.cell_gaps(cell)]
        best = cell.mean is not None and cell.mean == least
        return Box(wording.cell_mean(cell), ", ".join(filter(None, small)), tint(cell.mean), best)

    return {label: box(label) for label in labelled}


def _against_plain(cell: Cell, cells: Mapping[str, Cell]) -> str:
    """The difference of a variant from plain k-mixup, and the verdict."""
    start = f"{METHODS['kmixup'].title}, k = "
    plain = {other.k: other for label, other in cells.items() if label.startswith(start)}
    if not plain:
        return ""
    base = plain.get(cell.k) or plain[max(plain)]
    difference = paired(cell.errors, base.errors, cell.partition)
    if difference is None:
        return ""
    verdict = judge(difference, None).label.format(challenger="it")
    return f"{difference.text} from k = {base.k}, {verdict}"


def _difference(cell: Cell, base: Cell | None) -> str:
    """The paired difference from `base`, empty where there is none."""
    difference = None if base is None else paired(cell.errors, base.errors, cell.partition)
    return "" if difference is None else difference.text
