"""From rows to grids: what every cell of a table came to, beside what the paper prints.

A table under one setting of everything but method, k, alpha and seed is an `Outcome`;
rows of different settings are never averaged. Errors are in per cent from here on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, stdev
from typing import Any, get_args

from kmixup.lab.paper.tables import Column, Table
from kmixup.lab.protocol import AlphaRule

Row = Mapping[str, Any]
Key = tuple[str, int, float, str]  # name, k, alpha and alpha rule of a method
ERM: Key = ("erm", 1, 0.0, "same")
RULES: tuple[AlphaRule, ...] = get_args(AlphaRule)


@dataclass(frozen=True)
class Cell:
    """All trials of one k and alpha; `k` and `alpha` are 0 for ERM.

    `expected` is the number of trials in the fullest cell of the outcome, `paper` and
    `confidence` what the paper prints, None where it prints nothing.
    """

    k: int
    alpha: float
    eps: float | None
    measure: str
    expected: int
    paper: float | None
    confidence: float | None
    done: tuple[Row, ...] = field(repr=False)
    failed: tuple[Row, ...] = field(repr=False)

    @cached_property
    def errors(self) -> dict[int, float]:
        """Test error of every trial that ended well, by its number."""
        return {
            row["trial"]["seed"]: 100 * _error(row, self.measure, self.eps) for row in self.done
        }

    @cached_property
    def mean(self) -> float | None:
        return fmean(self.errors.values()) if self.errors else None

    @cached_property
    def standard_error(self) -> float | None:
        """One standard deviation of the mean over trials, the error bar of the paper."""
        if len(self.errors) < 2:
            return None
        return stdev(self.errors.values()) / math.sqrt(len(self.errors))

    @property
    def missing(self) -> int:
        """Trials that other cells have and this one neither ended nor failed."""
        return self.expected - len(self.done) - len(self.failed)

    @cached_property
    def trained_alpha(self) -> float | None:
        # rows are JSON, which has no infinity and says null
        return _mean_of(math.inf if row["alpha"] is None else row["alpha"] for row in self.done)

    @cached_property
    def xi(self) -> float | None:
        return _mean_of(row["xi"] for row in self.done)

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, in points."""
        return None if self.mean is None or self.paper is None else self.mean - self.paper

    @property
    def ratio(self) -> float | None:
        """The difference in units of the standard error of both together."""
        if self.difference is None or self.standard_error is None or self.confidence is None:
            return None
        both = math.hypot(self.standard_error, self.confidence)
        return self.difference / both if both else None


@dataclass(frozen=True)
class Grid:
    """The cells of a table for one alpha rule, a row for each k; k = 1 is in every grid."""

    rule: AlphaRule
    cells: tuple[tuple[Cell, ...], ...]

    def __iter__(self) -> Iterator[Cell]:
        return (cell for row in self.cells for cell in row)


@dataclass(frozen=True)
class Outcome:
    """A table and what was measured for it under one `setting`.

    `ks` and `columns` are the table's, and any others that were run. `distinct` is the part
    of the setting in which outcomes of the table differ; `erm` has one cell for each eps.
    """

    table: Table
    ks: tuple[int, ...]
    columns: tuple[Column, ...]
    setting: Mapping[str, Any]
    distinct: Mapping[str, Any]
    erm: tuple[Cell, ...]
    grids: tuple[Grid, ...]

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell once: those of mixup are in all grids."""
        first, *others = self.grids
        more = (cell for grid in others for cell in grid if cell.k > 1)
        return (*self.erm, *first, *more)

    @property
    def erm_by_column(self) -> tuple[Cell, ...]:
        """The cell of ERM for each column, or a single one where all columns share it."""
        if len(self.erm) == 1:
            return self.erm
        by_eps = {cell.eps: cell for cell in self.erm}
        return tuple(by_eps[column.eps] for column in self.columns)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for cell in self.cells for row in (*cell.done, *cell.failed))

    @property
    def baseline(self) -> str:
        """What the row k = 1 is called."""
        own = self.table.baseline == self.table.method
        return f"{self.table.method} with k = 1" if own else self.table.baseline

    @property
    def title(self) -> str:
        """The table's title, with the settings that tell it from its neighbours."""
        told = ", ".join(f"{name} = {value}" for name, value in self.distinct.items())
        return f"{self.table.title} ({told})" if told else self.table.title


def outcomes(rows: Iterable[Row], tables: Iterable[Table]) -> tuple[Outcome, ...]:
    """What the rows, in any order, have to say to each of the tables.

    A table without rows has one outcome all the same, whose cells are missing; a table
    with rows of several settings has one for each. Where rows are in no cell of any table,
    the tables of their data and network get the k and alpha that they lack.
    """
    ordered, tables = sorted(rows, key=lambda row: str(row["id"])), tuple(tables)
    found = [outcome for table in tables for outcome in _of_table(ordered, table, [])]
    if not (left := unplaced(ordered, found)):
        return tuple(found)
    return tuple(outcome for table in tables for outcome in _of_table(ordered, table, left))


def unplaced(rows: Iterable[Row], shown: Iterable[Outcome]) -> tuple[Row, ...]:
    """Rows that are in no cell of any outcome."""
    ids = {row["id"] for outcome in shown for row in outcome.rows}
    return tuple(sorted((r for r in rows if r["id"] not in ids), key=lambda row: str(row["id"])))


def _of_table(rows: Sequence[Row], table: Table, left: Iterable[Row]) -> list[Outcome]:
    ks, columns = _widened(table, [row["trial"] for row in left if _belongs(row, table)])
    mine = [row for row in rows if _belongs(row, table)]
    settings = {json.dumps(one, sort_keys=True): one for one in map(_setting, mine)}
    found = [settings[key] for key in sorted(settings)]
    # ERM pairs nothing: its rows go with every way of pairing, and stand alone only without one
    paired = [_unmixed(one) for one in found if one["pairing"] is not None]
    chosen = [one for one in found if one not in paired] or [{}]
    distinct = [
        {name: one[name] for name in one if len({json.dumps(other[name]) for other in chosen}) > 1}
        for one in chosen
    ]
    return [
        _outcome([row for row in mine if _fits(row, setting)], table, ks, columns, setting, told)
        for setting, told in zip(chosen, distinct, strict=True)
    ]


def _widened(table: Table, trials: Iterable[Row]) -> tuple[tuple[int, ...], tuple[Column, ...]]:
    """Rows and columns of the table, and those of further trials."""
    methods = [trial["method"] for trial in trials if trial["method"]["name"] != "erm"]
    ks = sorted({*table.ks, *(method["k"] for method in methods)})
    levels = dict.fromkeys(column.eps for column in table.columns)
    there = {column.alpha for column in table.columns}
    new = {method["alpha"] for method in methods} - there
    columns = [*table.columns, *(Column(alpha, eps=eps) for alpha in new for eps in levels)]
    return tuple(ks), tuple(sorted(columns, key=lambda one: (one.eps or 0.0, one.alpha)))


def _belongs(row: Row, table: Table) -> bool:
    trial, method = row["trial"], row["trial"]["method"]
    if (trial["data"], trial["model"]) != (table.data, table.model):
        return False
    if table.measure != "error" and not trial.get(table.measure):
        return False
    if method["name"] == "erm":
        return True
    layers = table.layers in (None, method.get("layers"))
    return layers and method["name"] in (table.baseline, table.method)


def _setting(row: Row) -> dict[str, Any]:
    """All that must be equal within an outcome; ERM has neither pairing nor layers."""
    trial, method = row["trial"], row["trial"]["method"]
    data = {name: trial[name] for name in ("limit", "scaling", "size", "target")}
    data |= {name: trial.get(name) for name in ("validation", "split")}  # old rows have none
    pairing = None if method["name"] == "erm" else method["pairing"]
    return {**trial["protocol"], **data, "pairing": pairing, "layers": method.get("layers")}


def _unmixed(setting: Mapping[str, Any]) -> dict[str, Any]:
    """The setting of ERM that goes with a setting."""
    return {**setting, "pairing": None, "layers": None}


def _fits(row: Row, setting: Mapping[str, Any]) -> bool:
    mine = _setting(row)
    return mine == setting or mine == _unmixed(setting)


def _outcome(
    rows: Iterable[Row],
    table: Table,
    ks: tuple[int, ...],
    columns: tuple[Column, ...],
    setting: Mapping[str, Any],
    distinct: Mapping[str, Any],
) -> Outcome:
    by_method: dict[Key, list[Row]] = {}
    for row in rows:
        by_method.setdefault(_key(row), []).append(row)
    expected = max((len(set(map(_seed, those))) for those in by_method.values()), default=0)

    def cell(key: Key, column: Column, paper: float | None) -> Cell:
        trials = _one_of_each_seed(by_method.get(key, ()), table.measure, column.eps)
        return Cell(
            k=0 if key[0] == "erm" else key[1],
            alpha=key[2],
            eps=column.eps,
            measure=table.measure,
            expected=expected,
            paper=paper,
            confidence=table.confidence,
            done=tuple(row for row in trials if row["status"] == "done"),
            failed=tuple(row for row in trials if row["status"] != "done"),
        )

    def line(k: int, rule: AlphaRule) -> tuple[Cell, ...]:
        name, rule = (table.baseline, "same") if k == 1 else (table.method, rule)
        return tuple(
            cell((name, k, one.alpha, rule), one, table.error_at(k, one)) for one in columns
        )

    levels = dict.fromkeys(column.eps for column in columns)
    erm = tuple(cell(ERM, Column(0.0, eps=eps), table.erm) for eps in levels)
    found = {rule for name, k, _, rule in by_method if name == table.method and k > 1}
    rules = [rule for rule in RULES if rule in found] or RULES[:1]
    grids = tuple(Grid(rule, tuple(line(k, rule) for k in ks)) for rule in rules)
    return Outcome(table, ks, columns, setting, distinct, erm, grids)


def _key(row: Row) -> Key:
    method = row["trial"]["method"]
    return method["name"], method["k"], float(method["alpha"]), method["alpha_rule"]


def _seed(row: Row) -> int:
    return int(row["trial"]["seed"])


def _one_of_each_seed(rows: Iterable[Row], measure: str, eps: float | None) -> list[Row]:
    """The rows with this measure, by seed; of several, one that ended well.

    The same network may have been trained again for other measures: its rows agree.
    """
    chosen: dict[int, Row] = {}
    for row in rows:
        if measure != "error" and eps not in row["trial"][measure]:
            continue
        seed = _seed(row)
        if seed not in chosen or chosen[seed]["status"] != "done":
            chosen[seed] = row
    return [chosen[seed] for seed in sorted(chosen)]


def _error(row: Row, measure: str, eps: float | None) -> float:
    if measure == "error":
        return float(row["result"]["error"])
    return float(next(entry["error"] for entry in row[measure] if entry["eps"] == eps))


def _mean_of(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
