"""Tables for a sweep that is none of the paper's: their cells are all those that were run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from kmixup.lab.paper.tables import Column, Measure, Table
from kmixup.lab.report.grids import Row

MEASURES: tuple[Measure, ...] = get_args(Measure)
Key = tuple[str, str, str, Measure, float | None]


def tables_of(rows: Iterable[Row]) -> tuple[Table, ...]:
    """One table for each data set, network, method and measure, and each eps of the latter.

    What else the rows differ in, a protocol say, becomes an outcome of its own.
    """
    rows = list(rows)
    found = {key for row in rows for key in _keys(row, rows)}
    return tuple(_table(rows, key) for key in sorted(found, key=_rank))


def _keys(row: Row, rows: list[Row]) -> list[Key]:
    trial = row["trial"]
    data, model = trial["data"], trial["model"]
    methods = _names(rows, data, model) - {"erm", "mixup"} or {"kmixup"}
    levels = [
        ("error", None),
        *((name, eps) for name in MEASURES[1:] for eps in trial.get(name, ())),
    ]
    return [(data, model, method, *level) for method in methods for level in levels]


def _rank(key: Key) -> tuple[str, str, str, int, float]:
    data, model, method, measure, eps = key
    return data, model, method, MEASURES.index(measure), eps or 0.0


def _names(rows: list[Row], data: str, model: str) -> set[str]:
    trials = (row["trial"] for row in rows)
    return {t["method"]["name"] for t in trials if (t["data"], t["model"]) == (data, model)}


def _table(rows: list[Row], key: Key) -> Table:
    data, model, method, measure, eps = key
    trials = [
        row["trial"]
        for row in rows
        if (row["trial"]["data"], row["trial"]["model"]) == (data, model)
    ]
    if measure != "error":
        trials = [trial for trial in trials if eps in trial.get(measure, ())]
    mixed = [t["method"] for t in trials if t["method"]["name"] in ("mixup", method)]
    alphas = sorted({m["alpha"] for m in mixed}) or [0.0]  # a column for ERM alone to stand in
    suffix = "" if measure == "error" else f", {measure} of {eps:g}/255"
    return Table(
        name="-".join([data, model, method, *([] if eps is None else [measure, f"{eps:g}"])]),
        title=f"{data}, {model}, {method}{suffix}",
        label="a sweep of one's own",
        data=data,
        model=model,
        ks=tuple(sorted({m["k"] for m in mixed})),
        columns=tuple(Column(alpha, eps=eps) for alpha in alphas),
        errors=None,
        erm=None,
        confidence=None,
        trials=len({trial["seed"] for trial in trials}),
        measure=measure,
        method=method,
    )
