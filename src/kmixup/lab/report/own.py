"""Tables for a sweep that is none of the paper's: their cells are all those that were run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import get_args

from kmixup.lab.paper.tables import Column, Measure, Table, baseline_of
from kmixup.lab.report.grids import Row

MEASURES: tuple[Measure, ...] = get_args(Measure)
Place = tuple[str, str, Measure, float | None]  # data, network, measure and eps


def tables_of(rows: Iterable[Row]) -> tuple[Table, ...]:
    """One table for each data set, network, method and measure, and each eps of the latter.

    What else the rows differ in, a protocol say, becomes an outcome of its own.
    """
    places: dict[Place, list[Row]] = {}
    for row in rows:
        for place in _places(row["trial"]):
            places.setdefault(place, []).append(row["trial"])
    return tuple(
        _table(place, method, places[place])
        for place in sorted(places, key=_rank)
        for method in _methods(places[place])
    )


def _places(trial: Row) -> list[Place]:
    data, model = trial["data"], trial["model"]
    levels = [(name, eps) for name in MEASURES[1:] for eps in trial.get(name, ())]
    return [(data, model, MEASURES[0], None), *((data, model, *level) for level in levels)]


def _rank(place: Place) -> tuple[str, str, int, float]:
    data, model, measure, eps = place
    return data, model, MEASURES.index(measure), eps or 0.0


def _methods(trials: Iterable[Row]) -> list[str]:
    """Methods that have a table; ERM goes with any, mixup with those it is the row k = 1 of."""
    names = {trial["method"]["name"] for trial in trials}
    found = names - {"erm", "mixup"}
    lost = "mixup" in names and not any(baseline_of(name) == "mixup" for name in found)
    return sorted(found | ({"kmixup"} if lost or not found else set()))


def _table(place: Place, method: str, trials: Sequence[Row]) -> Table:
    data, model, measure, eps = place
    names = (baseline_of(method), method)
    mixed = [trial["method"] for trial in trials if trial["method"]["name"] in names]
    alphas = sorted({m["alpha"] for m in mixed}) or [0.0]  # a column for ERM alone to stand in
    level = [] if eps is None else [measure, f"{eps:g}"]
    return Table(
        name="-".join([data, model, method, *level]),
        title=", ".join([data, model, method, *([f"{measure} {eps:g}/255"] if level else [])]),
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
