"""From rows to a pandas DataFrame, and from the frame to the cells of tables.

`frame_of` has one line for each trial and test. `results_of` puts the lines into the cells of
tables: of the paper's, or of tables that the rows themselves define (`tables_of`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any, get_args

import numpy as np
import pandas as pd

from kmixup._measured import Measured
from kmixup.lab.evaluate.baseline import all_constant
from kmixup.lab.evaluate.scores import PERCENT, AnyScores, Measure, Metric, Scores, metrics_of
from kmixup.lab.experiments.rows import Done, Row, done_of, measure_of
from kmixup.lab.formatting import count, number
from kmixup.lab.paper.tables import ERROR, MEASURES, PaperColumn, PaperTable
from kmixup.lab.report.stats import Partition
from kmixup.lab.train.config import CLEAN, AlphaRule, Method, Trial, variant_words
from kmixup.lab.train.methods import METHODS, VARIANTS, baseline_of, method_entry

RULES: tuple[AlphaRule, ...] = get_args(AlphaRule)
# fields of a trial that a table shows, rather than holds fixed
SHOWN = ("data", "model", "method", "protocol", "seed", "shifts", "clean_statistics", "code")
DIGEST = 8  # digits of a digest in titles
Key = tuple[str, int, float, AlphaRule]  # name, k, alpha and alpha rule of a method
ERM: Key = ("erm", 1, 0.0, "same")
NO_LINES = pd.DataFrame(
    columns=["id", "data", "model", "key", "seed", "setting", "mixing", "measure", "eps", "done",
             "row", "error"]
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """All trials of one method, k and alpha."""

    method: str  # its name in the registry
    k: int  # 0 for ERM
    alpha: float  # of mixup, before calibration; 0 for ERM
    rule: AlphaRule  # what alpha means at k > 1
    eps: float | None  # the level of the shift, None for the plain test error
    expected: int  # the number of trials in the fullest cell of the table
    paper: float | None  # the error that the paper prints
    confidence: float | None  # the standard error that the paper states
    trials: pd.DataFrame = field(repr=False, compare=False)  # lines of the frame, one per seed

    @cached_property
    def done(self) -> tuple[Done, ...]:
        return tuple(done_of(self.trials.row))

    @property
    def failed(self) -> int:
        return len(self.trials) - len(self.done)

    @property
    def missing(self) -> int:
        """The number of trials that other cells have and this one lacks."""
        return self.expected - len(self.trials)

    @cached_property
    def errors(self) -> dict[int, float]:
        """The error of every finished trial by its seed, in table units."""
        done = self.trials[self.trials.done.astype(bool)]
        return dict(zip(done.seed.tolist(), done.error.tolist(), strict=True))

    @property
    def unit(self) -> Measure:
        return measure_of(self.done)

    @cached_property
    def mean(self) -> float | None:
        return fmean(self.errors.values()) if self.errors else None

    @cached_property
    def standard_error(self) -> float | None:
        return Measured.of(list(self.errors.values())).error if len(self.errors) > 1 else None

    @property
    def name(self) -> str:
        if self.k == 0:
            return "ERM"
        return f"α = {self.alpha:g}" if self.k == 1 else f"k = {self.k}, α = {self.alpha:g}"

    @property
    def text(self) -> str:
        """The mean in table units, or why there is none."""
        if self.mean is None:
            return "failed" if self.failed else "not run"
        return number(self.mean, self.unit.digits(self.mean))

    @property
    def spread(self) -> str:
        """The standard error of the mean, empty if there is none."""
        error = self.standard_error
        return "" if error is None else f"± {number(error, self.unit.digits(self.mean))}"

    @property
    def gaps(self) -> str:
        """The trials that the cell lacks, empty if it lacks none or has no mean."""
        failed = [f"{self.failed} failed"] if self.failed else []
        few = [f"{len(self.done)} of {count(self.expected, 'trial')}"] if self.missing else []
        return ", ".join(failed + few) if self.done else ""

    @property
    def partition(self) -> Partition:
        return partition_of(self.done)

    @property
    def constant(self) -> bool:
        """Whether every network predicts a constant."""
        return all_constant(row.scores for row in self.done)

    def mean_of(self, column: str) -> float | None:
        """The mean of a column of the frame, ignoring unknown values."""
        known = self.trials[column].dropna().tolist() if column in self.trials else []
        return fmean(known) if known else None


@dataclass(frozen=True)
class Grid:
    """The cells `[k][column]` of a table for one alpha rule. All grids share the row k = 1."""

    rule: AlphaRule
    cells: tuple[tuple[Cell, ...], ...]

    def __iter__(self) -> Iterator[Cell]:
        return (cell for row in self.cells for cell in row)


@dataclass(frozen=True)
class TableResult:
    """A table of the paper or of your sweep, and what was measured for it."""

    table: PaperTable
    ks: tuple[int, ...]  # of the table, and any others that were run
    columns: tuple[PaperColumn, ...]  # of the table, and any others that were run
    setting: Mapping[str, Any]  # all that the trials share except method, k, alpha and seed
    distinct: Mapping[str, Any]  # where the setting differs from other results of the table
    erm: tuple[Cell, ...]  # one for each eps
    grids: tuple[Grid, ...]  # one for each alpha rule

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        first, *others = self.grids
        return (*self.erm, *first, *(cell for grid in others for cell in grid if cell.k > 1))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for cell in self.cells for row in cell.trials.row)

    @cached_property
    def unit(self) -> Measure:
        return measure_of(self.rows)

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """The metrics of the cells beside the error, by name."""
        scores = [row.scores for row in done_of(self.rows)[:1]]
        kind = type(scores[0]) if self.table.measure in (ERROR, CLEAN) and scores else Scores
        return {name: metric for name, metric in metrics_of(kind).items() if metric.shown}

    @property
    def printed(self) -> bool:
        """Whether the table has numbers of the paper."""
        return self.table.errors is not None

    @property
    def baseline(self) -> str:
        """What the row k = 1 is called."""
        own = self.table.baseline == self.table.method
        return f"{self.table.method} with k = 1" if own else self.table.baseline

    @property
    def title(self) -> str:
        """The title of the table, with the settings that distinguish this result."""
        settings = ", ".join(f"{name} = {value}" for name, value in self.distinct.items())
        return f"{self.table.title} ({settings})" if settings else self.table.title


def partition_of(rows: Iterable[Row]) -> Partition:
    """What trials were tested on, by the first finished one."""
    row = next(iter(done_of(rows)), None)
    if row is None:
        return Partition()
    data, trial = row.data, row.trial
    split_anew = data.split_by_seed and trial.split is None and trial.validation is None
    return Partition(
        resolution=PERCENT.factor / data.test if row.measure is PERCENT and data.test else 0.0,
        ratio=data.test / data.train if split_anew else None,
    )


def frame_of(rows: Iterable[Row]) -> pd.DataFrame:
    """One line for each trial and test, sorted by trial id.

    Columns are those of `NO_LINES`: `setting` is what trials of one table must share, `mixing` the
    pairing and layers ("" without mixing), both as JSON. Finished trials also have `error` in table
    units, `alpha` as trained, `xi`, and every further metric under its own name.
    """
    ordered = sorted(rows, key=lambda row: row.id)
    return pd.DataFrame([line for row in ordered for line in _lines(row)]) if ordered else NO_LINES


def tests_of(trial: Trial) -> list[tuple[str, float | None]]:
    """What a trained network is tested on: a measure, and the level of a shift."""
    clean = [(CLEAN, None)] if trial.clean_statistics else []
    return [(ERROR, None), *clean, *((name, e) for name, levels in trial.shifts for e in levels)]


def _lines(row: Row) -> Iterator[dict[str, Any]]:
    trial, method = row.trial, row.trial.method
    setting = {name: value for name, value in vars(trial).items() if name not in SHOWN}
    # versions of your own code never share a cell
    code = {f"{part} code": digest[:DIGEST] for part, digest in trial.code}
    of_method = {name: code.pop(name) for name in ("method code",) if name in code}
    mixing = {"pairing": method.pairing, "layers": method.layers, **of_method}
    common = {
        "id": row.id,
        "data": trial.data,
        "model": trial.model,
        "key": (method.name, method.k, method.alpha, method.alpha_rule),
        "seed": trial.seed,
        "setting": json.dumps(trial.to_dict()["protocol"] | setting | code, sort_keys=True),
        "mixing": json.dumps(mixing) if method.entry.mixes else "",
        "done": isinstance(row, Done),
        "row": row,
    }
    for measure, eps in tests_of(trial):
        line = {**common, "measure": measure, "eps": eps, "error": math.nan}
        if isinstance(row, Done):
            scores: AnyScores = row.scores
            if eps is not None:
                scores = row.shifts[measure][eps]
            elif measure == CLEAN and row.clean is not None:  # None without batch norm
                scores = row.clean
            error = row.measure.factor * scores.error
            line |= {"alpha": row.alpha, "xi": row.xi, **vars(scores), "error": error}
        yield line


def results_of(rows: Iterable[Row], tables: Iterable[PaperTable]) -> tuple[TableResult, ...]:
    """The results of each table, from rows in any order.

    A table without rows has one result with empty cells, a table with rows of several settings
    one for each. If some rows fit no cell, the tables of their data and network are widened by
    the k and alpha of these rows.
    """
    rows, tables = list(rows), tuple(tables)
    frame = frame_of(rows)
    placed = [result for table in tables for result in _of_table(frame, table, ())]
    if not (left := unplaced(rows, placed)):
        return tuple(placed)
    return tuple(result for table in tables for result in _of_table(frame, table, left))


def unplaced(rows: Iterable[Row], results: Iterable[TableResult]) -> tuple[Row, ...]:
    """Rows that are in no cell of any result."""
    ids = {row.id for result in results for row in result.rows}
    return tuple(sorted((row for row in rows if row.id not in ids), key=lambda row: row.id))


def _of_table(frame: pd.DataFrame, table: PaperTable, left: Sequence[Row]) -> list[TableResult]:
    alike = (frame.data == table.data) & (frame.model == table.model)
    mine = frame[alike & (frame.measure == table.measure)]
    mine = mine[np.array([_fits(row.trial, table) for row in mine.row], dtype=bool)]
    wider = [row.trial.method for row in mine[mine.id.isin([row.id for row in left])].row]
    new = [method for method in wider if method.entry.mixes]
    ks = tuple(sorted({*table.ks, *(method.k for method in new)}))
    alphas = {method.alpha for method in new} - {*table.alphas}
    levels = dict.fromkeys(column.eps for column in table.columns)
    further = (PaperColumn(alpha, eps=eps) for alpha in alphas for eps in levels)
    columns = sorted((*table.columns, *further), key=lambda at: (at.eps or 0.0, at.alpha))
    groups = []
    for setting, lines in mine.groupby("setting", sort=True):
        # ERM has no pairing: its rows go with every pairing, and alone only if nothing was mixed
        for mixing in sorted(set(lines.mixing) - {""}) or [""]:
            own = {"pairing": None, "layers": None, **json.loads(mixing or "{}")}
            own = {**json.loads(str(setting)), **own}
            groups.append((own, lines[lines.mixing.isin([mixing, ""])]))
    settings = pd.DataFrame([setting for setting, _ in groups]).map(json.dumps)
    differing = [str(name) for name in settings if settings[name].nunique() > 1]
    return [
        _result(lines, table, ks, columns, setting, {name: setting.get(name) for name in differing})
        for setting, lines in groups or [({}, mine)]
    ]


def _fits(trial: Trial, table: PaperTable) -> bool:
    """Whether a trial of the table's data, network and measure fits, whatever its k and alpha."""
    # a limit, as in `--quick`, replaces the random subset
    subset = table.samples in (None, trial.samples) or trial.limit is not None
    if not subset or not table.trains_as(trial.protocol):
        return False
    fits = table.layers in (None, trial.method.layers) and table.mixes_as(trial.method)
    return fits or not trial.method.entry.mixes


def _result(
    lines: pd.DataFrame,
    table: PaperTable,
    ks: Sequence[int],
    columns: Sequence[PaperColumn],
    setting: Mapping[str, Any],
    distinct: Mapping[str, Any],
) -> TableResult:
    by_key: dict[Any, pd.DataFrame] = dict(list(lines.groupby("key", sort=False)))
    expected = max((group.seed.nunique() for group in by_key.values()), default=0)

    def cell(key: Key, eps: float | None, paper: float | None) -> Cell:
        name, k, alpha, rule = key
        trials = _by_seed(by_key.get(key, NO_LINES), eps)
        k = 0 if key == ERM else k
        return Cell(name, k, alpha, rule, eps, expected, paper, table.confidence, trials)

    def row_of(k: int, rule: AlphaRule) -> tuple[Cell, ...]:
        name, rule = (table.baseline, "same") if k == 1 else (table.method, rule)
        return tuple(
            cell((name, k, column.alpha, rule), column.eps, table.error_at(k, column))
            for column in columns
        )

    erm = tuple(cell(ERM, eps, table.erm) for eps in dict.fromkeys(c.eps for c in columns))
    run = {rule for name, k, _, rule in by_key if name == table.method and k > 1}
    rules = [rule for rule in RULES if rule in run] or RULES[:1]
    grids = tuple(Grid(rule, tuple(row_of(k, rule) for k in ks)) for rule in rules)
    return TableResult(table, tuple(ks), tuple(columns), setting, distinct, erm, grids)


def _by_seed(lines: pd.DataFrame, eps: float | None) -> pd.DataFrame:
    """One line for each seed at a level, if possible of a finished trial.

    The same network may have been trained again for other tests: its rows agree.
    """
    lines = lines[lines.eps.isna()] if eps is None else lines[lines.eps == eps]
    ordered = lines.sort_values(["seed", "done"], ascending=[True, False], kind="stable")
    return ordered.drop_duplicates("seed")


def cells_csv(results: Iterable[TableResult]) -> str:
    """All cells as comma-separated values; unknown values are empty."""
    lines = [_csv_line(result, cell) for result in results for cell in result.cells]
    return pd.DataFrame(lines).to_csv(index=False, lineterminator="\n", float_format="%.6g")


def _csv_line(result: TableResult, cell: Cell) -> dict[str, object]:
    table = result.table
    return {
        "table": table.name,
        "setting": " ".join(f"{name}={value}" for name, value in result.distinct.items()),
        "data": table.data,
        "model": table.model,
        "method": cell.method,
        "alpha_rule": cell.rule if cell.k > 1 else "",
        "k": cell.k or "",
        "alpha": cell.alpha,
        "measure": table.measure,
        "eps": cell.eps,
        "trials": len(cell.done),
        "failed": cell.failed,
        "missing": cell.missing,
        "unit": "%" if result.unit is PERCENT else result.unit.name,
        "error": cell.mean,
        "standard_error": cell.standard_error,
        "trained_alpha": cell.mean_of("alpha"),
        "xi": cell.mean_of("xi"),
        "paper": cell.paper,
        **{name: cell.mean_of(name) for name in result.metrics},
    }


# Tables of your own sweep


def tables_of(rows: Iterable[Row]) -> tuple[PaperTable, ...]:
    """One table for each data set, network, method, measure and eps that was run.

    Rows that differ in anything else, e.g. the protocol, are results of the same table.
    """
    places: dict[tuple[str, str, str, float | None], list[Trial]] = {}
    for row in rows:
        for test in tests_of(row.trial):
            places.setdefault((row.trial.data, row.trial.model, *test), []).append(row.trial)
    in_order = sorted(places, key=lambda at: (at[0], at[1], MEASURES.index(at[2]), at[3] or 0.0))
    return tuple(
        _table(*place, method, places[place])
        for place in in_order
        for method in _methods(places[place])
    )


def _methods(trials: Sequence[Trial]) -> Iterator[Method]:
    """Methods with a table: those with a k, and those whose row k = 1 is in no other table.

    Each is returned with each of its variants. ERM is in every table. If nothing was mixed it is in
    that of the default method.
    """
    names = {trial.method.name for trial in trials}
    tabled = {name for name in names if method_entry(name).has_k}
    homeless = names - {baseline_of(name) for name in tabled}
    tabled |= {name for name, entry in METHODS.items() if entry.at_one in homeless}
    for name in sorted(tabled or {Method().name}):
        methods = [trial.method for trial in trials if trial.method.name == name] or [Method(name)]
        variants = {tuple(variant_words(method)): method for method in methods}
        yield from (variants[words] for words in sorted(variants))


def _table(
    data: str, model: str, measure: str, eps: float | None, method: Method, trials: Sequence[Trial]
) -> PaperTable:
    words = variant_words(method)
    mixed = [
        trial.method
        for trial in trials
        if baseline_of(method.name) == trial.method.name
        or (method.name == trial.method.name and variant_words(trial.method) == words)
    ]
    alphas = sorted({mixing.alpha for mixing in mixed}) or [0.0]  # a column for ERM if alone
    level = "" if eps is None else f"{eps:g}"
    shift = "" if measure == ERROR else measure
    tested = {ERROR: "", CLEAN: "recomputed batch-norm statistics"}
    title = [data, model, " ".join([method.name, *words])]
    title.append(tested.get(measure, f"{measure} {level}/255"))
    return PaperTable(
        name="-".join(filter(None, [data, model, method.name, shift, level, *words])),
        title=", ".join(filter(None, title)),
        label="your own sweep",
        data=data,
        model=model,
        ks=tuple(sorted({mixing.k for mixing in mixed})),
        columns=tuple(PaperColumn(alpha, eps=eps) for alpha in alphas),
        errors=None,
        erm=None,
        confidence=None,
        trials=len({trial.seed for trial in trials}),
        measure=measure,
        method=method.name,
        **{name: getattr(method, name) for name in VARIANTS},
    )
