"""Tables for a sweep of the user's own: their cells are all cells that were run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from kmixup.lab.experiments.rows import Row
from kmixup.lab.paper.tables import CLEAN, ERROR, MEASURES, PaperColumn, PaperTable
from kmixup.lab.train.config import Method, Trial, variant_words
from kmixup.lab.train.methods import METHODS, NO_VARIANT, VARIANTS, baseline_of

Place = tuple[str, str, str, float | None]  # data, network, measure and eps


def tables_of(rows: Iterable[Row]) -> tuple[PaperTable, ...]:
    """One table for each data set, network, method, measure and eps.

    Rows that differ in anything else, e.g. the protocol, become outcomes of the same table.
    """
    places: dict[Place, list[Trial]] = {}
    for row in rows:
        for place in _places(row.trial):
            places.setdefault(place, []).append(row.trial)
    return tuple(
        _table(place, method, variant, places[place])
        for place in sorted(places, key=_rank)
        for method in _methods(places[place])
        for variant in _variants(method, places[place])
    )


def _places(trial: Trial) -> list[Place]:
    data, model = trial.data, trial.model
    plain = [ERROR, CLEAN] if trial.clean_statistics else [ERROR]
    levels = [(name, eps) for name, values in trial.shifts for eps in values]
    return [
        *((data, model, measure, None) for measure in plain),
        *((data, model, *level) for level in levels),
    ]


def _rank(place: Place) -> tuple[str, str, int, float]:
    data, model, measure, eps = place
    return data, model, MEASURES.index(measure), eps or 0.0


def _methods(trials: Iterable[Trial]) -> list[str]:
    """Methods that have a table: those with a k, and those whose row k = 1 has no other table.

    Plain training is in every table. Where nothing was mixed it has that of the default method.
    """
    names = {trial.method.name for trial in trials}
    tabled = {name for name in names if METHODS[name].has_k}
    homeless = names - {baseline_of(name) for name in tabled}
    tabled |= {name for name, entry in METHODS.items() if entry.at_one in homeless}
    return sorted(tabled or {Method().name})


def _variants(name: str, trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """The variants of a method, each once; the plain one where there is no other."""
    methods = [trial.method for trial in trials]
    variants = {
        tuple(getattr(method, setting) for setting in VARIANTS): method
        for method in methods
        if name == method.name
    }
    ordered = sorted(variants, key=lambda values: variant_words(variants[values]))
    return [dict(zip(VARIANTS, values, strict=True)) for values in ordered] or [{}]


def _table(
    place: Place, method: str, variant: dict[str, Any], trials: Sequence[Trial]
) -> PaperTable:
    data, model, measure, eps = place
    words = variant_words(SimpleNamespace(**(NO_VARIANT | variant)))
    mixed = [
        trial.method
        for trial in trials
        if baseline_of(method) == trial.method.name
        or (method == trial.method.name and variant_words(trial.method) == words)
    ]
    # a column for ERM alone to stand in, where nothing was mixed
    alphas = sorted({mixing.alpha for mixing in mixed}) or [0.0]
    level = [] if measure == ERROR else [measure] if eps is None else [measure, f"{eps:g}"]
    under = [] if eps is None else [f"{measure} {eps:g}/255"]
    under += ["clean statistics"] * (measure == CLEAN)
    return PaperTable(
        name="-".join([data, model, method, *level, *words]),
        title=", ".join([data, model, " ".join([method, *words]), *under]),
        label="a sweep of one's own",
        data=data,
        model=model,
        ks=tuple(sorted({mixing.k for mixing in mixed})),
        columns=tuple(PaperColumn(alpha, eps=eps) for alpha in alphas),
        errors=None,
        erm=None,
        confidence=None,
        trials=len({trial.seed for trial in trials}),
        measure=measure,
        method=method,
        **variant,
    )
