"""From rows to outcomes: every row is put into its cell.

A table under one setting of everything but method, k, alpha and seed is an `Outcome`. Rows of
different settings are never averaged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from kmixup.lab.experiments.rows import Failed, Row, done_of, failed_of
from kmixup.lab.paper.tables import CLEAN, ERROR, PaperColumn, PaperTable
from kmixup.lab.report.grids import Cell, Grid, Outcome
from kmixup.lab.train.config import AlphaRule, Method, Trial

Key = tuple[str, int, float, str]  # name, k, alpha and alpha rule of a method
ERM: Key = ("erm", 1, 0.0, "same")
RULES: tuple[AlphaRule, ...] = get_args(AlphaRule)
OF_DATA = (  # fields of a trial
    "limit", "samples", "scaling", "size", "target", "drop", "task", "resize", "validation",
    "split", "class_weights",
)  # fmt: skip


def outcomes(rows: Iterable[Row], tables: Iterable[PaperTable]) -> tuple[Outcome, ...]:
    """The outcomes of each table, from rows in any order.

    A table without rows has one outcome, whose cells are empty. A table with rows of several
    settings has one outcome for each. Where rows are in no cell of any table, the tables of
    their data and network are widened by the k and alpha of these rows.
    """
    ordered, tables = sorted(rows, key=lambda row: row.id), tuple(tables)
    placed = [outcome for table in tables for outcome in _of_table(ordered, table, [])]
    if not (left := unplaced(ordered, placed)):
        return tuple(placed)
    return tuple(outcome for table in tables for outcome in _of_table(ordered, table, left))


def unplaced(rows: Iterable[Row], shown: Iterable[Outcome]) -> tuple[Row, ...]:
    """Rows that are in no cell of any outcome."""
    ids = {row.id for outcome in shown for row in outcome.rows}
    return tuple(sorted((row for row in rows if row.id not in ids), key=lambda row: row.id))


def _of_table(rows: Sequence[Row], table: PaperTable, left: Iterable[Row]) -> list[Outcome]:
    ks, columns = _widened(table, [row.trial.method for row in left if _belongs(row, table)])
    mine = [row for row in rows if _belongs(row, table)]
    by_text = {json.dumps(setting, sort_keys=True): setting for setting in map(_setting, mine)}
    settings = [by_text[text] for text in sorted(by_text)]
    # ERM pairs nothing: its rows go with every way of pairing, and stand alone only where
    # nothing was paired
    with_erm = [_unmixed(setting) for setting in settings if setting["pairing"] is not None]
    chosen = [setting for setting in settings if setting not in with_erm] or [{}]
    differing = [
        name for name in chosen[0] if len({json.dumps(setting[name]) for setting in chosen}) > 1
    ]
    return [
        _outcome(
            [row for row in mine if _fits(row, setting)],
            table,
            ks,
            columns,
            setting,
            {name: setting[name] for name in differing},
        )
        for setting in chosen
    ]


def _widened(
    table: PaperTable, methods: Iterable[Method]
) -> tuple[tuple[int, ...], tuple[PaperColumn, ...]]:
    """The k and the columns of the table, and further ones for these methods."""
    mixing = [method for method in methods if method.entry.mixes]
    ks = sorted({*table.ks, *(method.k for method in mixing)})
    levels = dict.fromkeys(column.eps for column in table.columns)
    there = {column.alpha for column in table.columns}
    new = {method.alpha for method in mixing} - there
    columns = [*table.columns, *(PaperColumn(alpha, eps=eps) for alpha in new for eps in levels)]
    return tuple(ks), tuple(sorted(columns, key=lambda column: (column.eps or 0.0, column.alpha)))


def _belongs(row: Row, table: PaperTable) -> bool:
    """Whether a row may have a cell in a table, whatever its k and alpha."""
    trial, method = row.trial, row.trial.method
    if (trial.data, trial.model) != (table.data, table.model):
        return False
    if table.samples is not None and trial.samples != table.samples:
        return False
    if not table.trains_as(trial.protocol):
        return False
    if not _has(trial, table.measure):
        return False
    if not method.entry.mixes:
        return True
    layers = table.layers in (None, method.layers)
    return layers and table.mixes_as(method)


def _has(trial: Trial, measure: str, eps: float | None = None) -> bool:
    """Whether a trial is tested with a measure, at the level `eps` or at any."""
    if measure == ERROR:
        return True
    if measure == CLEAN:
        return bool(trial.clean_statistics)
    levels = trial.levels(measure)
    return bool(levels) if eps is None else eps in levels


def _setting(row: Row) -> dict[str, Any]:
    """All that must be equal within an outcome; ERM has neither pairing nor layers."""
    trial, method = row.trial, row.trial.method
    protocol = {**vars(trial.protocol), "milestones": list(trial.protocol.milestones)}
    data = {name: getattr(trial, name) for name in OF_DATA}
    pairing = method.pairing if method.entry.mixes else None
    return {**protocol, **data, "pairing": pairing, "layers": method.layers}


def _unmixed(setting: Mapping[str, Any]) -> dict[str, Any]:
    """The setting of ERM that goes with a setting."""
    return {**setting, "pairing": None, "layers": None}


def _fits(row: Row, setting: Mapping[str, Any]) -> bool:
    mine = _setting(row)
    return mine == setting or mine == _unmixed(setting)


def _outcome(
    rows: Iterable[Row],
    table: PaperTable,
    ks: tuple[int, ...],
    columns: tuple[PaperColumn, ...],
    setting: Mapping[str, Any],
    distinct: Mapping[str, Any],
) -> Outcome:
    by_method: dict[Key, list[Row]] = {}
    for row in rows:
        by_method.setdefault(_key(row), []).append(row)
    expected = max((len(set(map(_seed, cell))) for cell in by_method.values()), default=0)

    def cell(key: Key, column: PaperColumn, paper: float | None) -> Cell:
        trials = _by_seed(by_method.get(key, ()), table.measure, column.eps)
        return Cell(
            k=0 if key == ERM else key[1],
            alpha=key[2],
            eps=column.eps,
            measure=table.measure,
            expected=expected,
            paper=paper,
            confidence=table.confidence,
            done=tuple(done_of(trials)),
            failed=tuple(failed_of(trials)),
        )

    def row_of(k: int, rule: AlphaRule) -> tuple[Cell, ...]:
        name, rule = (table.baseline, "same") if k == 1 else (table.method, rule)
        return tuple(
            cell((name, k, column.alpha, rule), column, table.error_at(k, column))
            for column in columns
        )

    levels = dict.fromkeys(column.eps for column in columns)
    erm = tuple(cell(ERM, PaperColumn(0.0, eps=eps), table.erm) for eps in levels)
    run = {rule for name, k, _, rule in by_method if name == table.method and k > 1}
    rules = [rule for rule in RULES if rule in run] or RULES[:1]
    grids = tuple(Grid(rule, tuple(row_of(k, rule) for k in ks)) for rule in rules)
    return Outcome(table, ks, columns, setting, distinct, erm, grids)


def _key(row: Row) -> Key:
    method = row.trial.method
    return method.name, method.k, method.alpha, method.alpha_rule


def _seed(row: Row) -> int:
    return row.trial.seed


def _by_seed(rows: Iterable[Row], measure: str, eps: float | None) -> list[Row]:
    """One row for each seed, of the rows with this measure; if possible a row that is done.

    The same network may have been trained again for other measures: its rows agree.
    """
    chosen: dict[int, Row] = {}
    for row in rows:
        if not _has(row.trial, measure, eps):
            continue
        seed = _seed(row)
        if seed not in chosen or isinstance(chosen[seed], Failed):
            chosen[seed] = row
    return [chosen[seed] for seed in sorted(chosen)]
