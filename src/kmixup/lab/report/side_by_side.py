"""Several methods in one map: a row for each method and k, a column for each data set and alpha."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from kmixup.lab.paper.family import METHODS
from kmixup.lab.protocol import MANIFOLD_LAYERS
from kmixup.lab.report import wording
from kmixup.lab.report.account import Finding
from kmixup.lab.report.grids import Cell, Outcome
from kmixup.lab.report.heat import sequential
from kmixup.lab.report.maps import Box, Map
from kmixup.lab.report.verdict import Estimate, interval

TITLE = "All methods"
EXPLANATION = (
    "Mean test error in per cent ± one standard deviation of that mean, and the difference "
    "from mixup with the same alpha, paired by trial, with its interval of 95 % confidence. "
    "Nothing is chosen here."
)
MIXUP = "mixup"
OF_METHOD = ("pairing", "layers")  # what an outcome's setting says of the method

Place = tuple[str, float]  # a setting and an alpha


def side_by_side(findings: Sequence[Finding]) -> Map | None:
    """The cells of all tables of test errors, None where they are of one method."""
    outcomes = [one.outcome for one in findings if one.outcome.table.measure == "error"]
    if len({(one.table.method, one.setting.get("layers")) for one in outcomes}) < 2:
        return None
    found: dict[str, dict[Place, Cell]] = {}
    head: dict[Place, tuple[str, str]] = {}
    for outcome in outcomes:
        for label, place, cell in _placed(outcome):
            found.setdefault(label, {})[place] = cell
            head[place] = (f"{outcome.table.data}, {outcome.table.model}", _under(outcome, place))
    columns = [_boxes(found, place) for place in head]
    rows = tuple((label, tuple(column[label] for column in columns)) for label in found)
    return Map(TITLE, tuple(head.values()), rows)


def _placed(outcome: Outcome) -> Iterator[tuple[str, Place, Cell]]:
    """Every cell of an outcome with the name of its row and its column."""
    table = outcome.table
    common = {name: value for name, value in outcome.setting.items() if name not in OF_METHOD}
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
    words = [MIXUP] if plain else [METHODS.get(table.method, table.method), f"k = {k}"]
    words += [] if layers in (None, MANIFOLD_LAYERS) else [str(layers)]
    words += [f"pairing {value}" for name, value in outcome.distinct.items() if name == "pairing"]
    words += ["equal ξ"] * (rule == "xi" and k > 1)
    return ", ".join(words)


def _under(outcome: Outcome, place: Place) -> str:
    told = [f"{name} {value}" for name, value in outcome.distinct.items() if name not in OF_METHOD]
    return ", ".join([f"α = {place[1]:g}", *told])


def _boxes(found: dict[str, dict[Place, Cell]], place: Place) -> dict[str, Box]:
    """One column: its best cell is marked, and colours are of it alone."""
    cells = {label: those[place] for label, those in found.items() if place in those}
    tint = sequential(cell.mean for cell in cells.values())
    least = min((cell.mean for cell in cells.values() if cell.mean is not None), default=None)

    def box(label: str) -> Box:
        if label not in cells:
            return Box("–")
        cell = cells[label]
        base = cells.get(MIXUP) if label != MIXUP else None
        small = [wording.cell_spread(cell), _difference(cell, base), wording.cell_gaps(cell)]
        best = cell.mean is not None and cell.mean == least
        return Box(wording.cell_mean(cell), ", ".join(filter(None, small)), tint(cell.mean), best)

    return {label: box(label) for label in found}


def _difference(cell: Cell, base: Cell | None) -> str:
    """From `base`, over the trials that both have."""
    seeds = [] if base is None else sorted(cell.errors.keys() & base.errors.keys())
    if base is None or len(seeds) < 2:
        return ""
    one: Estimate = interval([cell.errors[seed] - base.errors[seed] for seed in seeds])
    return (
        f"{wording.signed(one.difference)} [{wording.signed(one.low)}, {wording.signed(one.high)}]"
    )
