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
from types import SimpleNamespace
from typing import Any, get_args

import pandas as pd

from kmixup.lab.evaluate.baseline import all_constant
from kmixup.lab.evaluate.scores import PERCENT, AnyScores, Measure, Metric, Scores, metrics_of
from kmixup.lab.experiments.rows import Done, Row, done_of, measure_of
from kmixup.lab.formatting import count, number
from kmixup.lab.paper.tables import CLEAN, ERROR, MEASURES, PaperColumn, PaperTable
from kmixup.lab.report.stats import Partition
from kmixup.lab.train.config import AlphaRule, Method, Trial, variant_words
from kmixup.lab.train.methods import METHODS, NO_VARIANT, VARIANTS, baseline_of, method_entry
from kmixup.measured import Measured

RULES: tuple[AlphaRule, ...] = get_args(AlphaRule)
# fields of a trial that a table shows, rather than holds fixed
SHOWN = ("data", "model", "method", "protocol", "seed", "shifts", "clean_statistics")
Key = tuple[str, int, float, str]  # name, k, alpha and alpha rule of a method
ERM: Key = ("erm", 1, 0.0, "same")
Test = tuple[str, float | None]  # a measure, and the level of a shift
NO_TRIALS = pd.DataFrame(columns=["row", "done", "seed", "error", "eps"])


def frame_of(rows: Iterable[Row]) -> pd.DataFrame:
    """One line for each trial and test, sorted by trial id.

    Columns: `id`, `data`, `model`, `key` (name, k, alpha and alpha rule of the method), `seed`,
    `setting` (what trials of one table must share, as JSON), `mixing` (pairing and layers as
    JSON, "" without mixing), `measure`, `eps`, `done`, `row`, and for finished trials `error` in
    table units, `alpha` (as trained), `xi`, and every further metric under its own name.
    """
    ordered = sorted(rows, key=lambda row: row.id)
    return pd.DataFrame([line for row in ordered for line in _lines(row)])


def tests_of(trial: Trial) -> list[Test]:
    """What a trained network is tested on."""
    plain: list[Test] = [(ERROR, None)]
    if trial.clean_statistics:
        plain.append((CLEAN, None))
    return plain + [(name, eps) for name, levels in trial.shifts for eps in levels]


def _lines(row: Row) -> Iterator[dict[str, Any]]:
    trial, method = row.trial, row.trial.method
    common = {
        "id": row.id,
        "data": trial.data,
        "model": trial.model,
        "key": (method.name, method.k, method.alpha, method.alpha_rule),
        "seed": trial.seed,
        "setting": json.dumps(_setting(trial), sort_keys=True),
        "mixing": json.dumps([method.pairing, method.layers]) if method.entry.mixes else "",
        "done": isinstance(row, Done),
        "row": row,
    }
    for measure, eps in tests_of(trial):
        line = {**common, "measure": measure, "eps": eps}
        if isinstance(row, Done):
            scores = _scores(row, measure, eps)
            metrics = {name: value for name, value in vars(scores).items() if name != "error"}
            error = row.measure.factor * scores.error
            line |= {"error": error, "alpha": row.alpha, "xi": row.xi, **metrics}
        yield line


def _scores(row: Done, measure: str, eps: float | None) -> AnyScores:
    if measure == CLEAN:
        # a network without batch norm is the same with any statistics
        return row.scores if row.clean is None else row.clean
    return row.scores if eps is None else row.shifts[measure][eps]


def _setting(trial: Trial) -> dict[str, Any]:
    """What trials of one table must share, except pairing and layers."""
    plain = trial.to_dict()
    return {**plain["protocol"], **{k: v for k, v in vars(trial).items() if k not in SHOWN}}


@dataclass(frozen=True)
class Cell:
    """All trials of one k and alpha."""

    k: int  # 0 for ERM
    alpha: float  # of mixup, before calibration; 0 for ERM
    eps: float | None  # the level of the shift, None for the plain test error
    measure: str  # one of `MEASURES`
    expected: int  # the number of trials in the fullest cell of the table
    paper: float | None  # the error that the paper prints
    confidence: float | None  # the standard error that the paper states
    trials: pd.DataFrame = field(repr=False, compare=False)  # lines of the frame, one per seed

    @cached_property
    def done(self) -> tuple[Done, ...]:
        """The rows of finished trials."""
        return tuple(done_of(self.trials.row))

    @property
    def failed(self) -> int:
        """The number of failed trials."""
        return len(self.trials) - len(self.done)

    @property
    def missing(self) -> int:
        """The number of trials that other cells have and this one lacks."""
        return self.expected - len(self.trials)

    @cached_property
    def errors(self) -> dict[int, float]:
        """The error of every finished trial by its seed, in table units."""
        if not self.done:
            return {}
        done = self.trials[self.trials.done]
        return dict(zip(done.seed.tolist(), done.error.tolist(), strict=True))

    @property
    def unit(self) -> Measure:
        """How the errors are called and written."""
        return measure_of(self.done)

    @cached_property
    def mean(self) -> float | None:
        return fmean(self.errors.values()) if self.errors else None

    @cached_property
    def standard_error(self) -> float | None:
        if len(self.errors) < 2:
            return None
        return Measured.of(list(self.errors.values())).error

    @property
    def name(self) -> str:
        """Where the cell is in its grid."""
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
        if self.standard_error is None:
            return ""
        return f"± {number(self.standard_error, self.unit.digits(self.mean))}"

    @property
    def gaps(self) -> str:
        """The trials that the cell lacks, empty if it lacks none."""
        failed = f"{self.failed} failed" if self.failed and self.done else ""
        few = f"{len(self.done)} of {count(self.expected, 'trial')}"
        return ", ".join(filter(None, [failed, few if self.missing and self.done else ""]))

    @property
    def paper_error(self) -> float | None:
        """The standard error of the paper's number: as stated, else as large as ours."""
        return self.standard_error if self.confidence is None else self.confidence

    @property
    def partition(self) -> Partition:
        return partition_of(self.done)

    @property
    def constant(self) -> bool:
        """Whether every network predicts a constant."""
        return all_constant(row.scores for row in self.done)

    def mean_of(self, column: str) -> float | None:
        """The mean of a column of the frame over finished trials, ignoring unknown values."""
        if column not in self.trials:
            return None
        known = self.trials[column].dropna().tolist()
        return fmean(known) if known else None

    @property
    def difference(self) -> float | None:
        """Ours − the paper's, in points."""
        return None if self.mean is None or self.paper is None else self.mean - self.paper

    @property
    def ratio(self) -> float | None:
        """The difference in standard errors of both together."""
        if self.difference is None or self.standard_error is None or self.confidence is None:
            return None
        both = math.hypot(self.standard_error, self.confidence)
        return self.difference / both if both else None


@dataclass(frozen=True)
class Grid:
    """The cells `[k][column]` of a table for one alpha rule. All grids share the row k = 1."""

    rule: AlphaRule
    cells: tuple[tuple[Cell, ...], ...]

    def __iter__(self) -> Iterator[Cell]:
        return (cell for row in self.cells for cell in row)


@dataclass(frozen=True)
class TableResult:
    """A table of the paper or of your own sweep, and what was measured for it."""

    table: PaperTable
    ks: tuple[int, ...]  # of the table, and any others that were run
    columns: tuple[PaperColumn, ...]  # of the table, and any others that were run
    setting: Mapping[str, Any]  # all that the trials share except method, k, alpha and seed
    distinct: Mapping[str, Any]  # where the setting differs from other results of the table
    erm: tuple[Cell, ...]  # one for each eps
    grids: tuple[Grid, ...]  # one for each alpha rule

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell once."""
        first, *others = self.grids
        return (*self.erm, *first, *(cell for grid in others for cell in grid if cell.k > 1))

    @property
    def erm_by_column(self) -> tuple[Cell, ...]:
        """The ERM cell of each column, or a single cell if all columns share it."""
        if len(self.erm) == 1:
            return self.erm
        by_eps = {cell.eps: cell for cell in self.erm}
        return tuple(by_eps[column.eps] for column in self.columns)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for cell in self.cells for row in cell.trials.row)

    @cached_property
    def unit(self) -> Measure:
        """How the errors are called and written."""
        return measure_of(self.rows)

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """The metrics of the cells beside the error, by name."""
        scores = [line.scores for cell in self.cells for line in cell.done[:1]]
        kind = type(scores[0]) if self.table.measure in (ERROR, CLEAN) and scores else Scores
        return {name: metric for name, metric in metrics_of(kind).items() if metric.shown}

    @property
    def printed(self) -> bool:
        """Whether the table has numbers of the paper."""
        return self.table.errors is not None

    @property
    def method(self) -> str:
        """What the method with k > 1 is called."""
        return self.table.method_title

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
    mine = frame
    if len(frame):
        alike = (frame.data == table.data) & (frame.model == table.model)
        mine = frame[alike & (frame.measure == table.measure)]
        mine = mine[[_fits(row.trial, table) for row in mine.row]]
    wider = {row.id for row in left}
    methods = [row.trial.method for row in (mine.row if len(mine) else ()) if row.id in wider]
    ks, columns = _widened(table, methods)
    if mine.empty:
        return [_result(mine, table, ks, columns, {}, {})]
    groups: list[tuple[dict[str, Any], pd.DataFrame]] = []
    for setting, lines in mine.groupby("setting", sort=True):
        # ERM has no pairing: its rows go with every pairing, and alone only if nothing was mixed
        for mixing in sorted(set(lines.mixing) - {""}) or [""]:
            pairing, layers = json.loads(mixing) if mixing else (None, None)
            own = {**json.loads(str(setting)), "pairing": pairing, "layers": layers}
            groups.append((own, lines[lines.mixing.isin([mixing, ""])]))
    settings = pd.DataFrame([setting for setting, _ in groups]).map(json.dumps)
    differing = [str(name) for name in settings if settings[name].nunique() > 1]
    return [
        _result(lines, table, ks, columns, setting, {name: setting[name] for name in differing})
        for setting, lines in groups
    ]


def _fits(trial: Trial, table: PaperTable) -> bool:
    """Whether a trial of the table's data, network and measure fits, whatever its k and alpha."""
    if table.samples not in (None, trial.samples) or not table.trains_as(trial.protocol):
        return False
    method = trial.method
    return not method.entry.mixes or (
        table.layers in (None, method.layers) and table.mixes_as(method)
    )


def _widened(
    table: PaperTable, methods: Iterable[Method]
) -> tuple[tuple[int, ...], tuple[PaperColumn, ...]]:
    """The k and columns of the table, and further ones for these methods."""
    mixing = [method for method in methods if method.entry.mixes]
    ks = sorted({*table.ks, *(method.k for method in mixing)})
    levels = dict.fromkeys(column.eps for column in table.columns)
    new = {method.alpha for method in mixing} - {column.alpha for column in table.columns}
    columns = [*table.columns, *(PaperColumn(alpha, eps=eps) for alpha in new for eps in levels)]
    return tuple(ks), tuple(sorted(columns, key=lambda column: (column.eps or 0.0, column.alpha)))


def _result(
    lines: pd.DataFrame,
    table: PaperTable,
    ks: tuple[int, ...],
    columns: tuple[PaperColumn, ...],
    setting: Mapping[str, Any],
    distinct: Mapping[str, Any],
) -> TableResult:
    by_key: dict[Key, pd.DataFrame] = {}
    if len(lines):
        by_key = dict(list(lines.groupby("key", sort=False)))  # type: ignore[arg-type]
    expected = max((group.seed.nunique() for group in by_key.values()), default=0)

    def cell(key: Key, column: PaperColumn, paper: float | None) -> Cell:
        k, trials = 0 if key == ERM else key[1], _by_seed(by_key.get(key, NO_TRIALS), column.eps)
        return Cell(k, key[2], column.eps, table.measure, expected, paper, table.confidence, trials)

    def row_of(k: int, rule: AlphaRule) -> tuple[Cell, ...]:
        name, rule = (table.baseline, "same") if k == 1 else (table.method, rule)
        return tuple(
            cell((name, k, column.alpha, rule), column, table.error_at(k, column))
            for column in columns
        )

    levels = dict.fromkeys(column.eps for column in columns)
    erm = tuple(cell(ERM, PaperColumn(0.0, eps=eps), table.erm) for eps in levels)
    run = {rule for name, k, _, rule in by_key if name == table.method and k > 1}
    rules = [rule for rule in RULES if rule in run] or RULES[:1]
    grids = tuple(Grid(rule, tuple(row_of(k, rule) for k in ks)) for rule in rules)
    return TableResult(table, ks, columns, setting, distinct, erm, grids)


def _by_seed(lines: pd.DataFrame, eps: float | None) -> pd.DataFrame:
    """One line for each seed at a level, if possible of a finished trial.

    The same network may have been trained again for other tests: its rows agree.
    """
    lines = lines[lines.eps.isna()] if eps is None else lines[lines.eps == eps]
    ordered = lines.sort_values(["seed", "done"], ascending=[True, False], kind="stable")
    return ordered.drop_duplicates("seed")


def partition_of(rows: Iterable[Row]) -> Partition:
    """What trials were tested on, by the first finished one."""
    row = next(iter(done_of(rows)), None)
    if row is None:
        return Partition()
    resolution = 0.0
    if row.measure is PERCENT and row.data.test:
        resolution = PERCENT.factor / row.data.test
    split_anew = row.data.split_by_seed and row.trial.split is None
    if not split_anew or row.trial.validation is not None:
        return Partition(resolution)
    return Partition(resolution, row.data.test / row.data.train)


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
        _table(*place, method, variant, places[place])
        for place in in_order
        for method in _methods(places[place])
        for variant in _variants(method, places[place])
    )


def _methods(trials: Iterable[Trial]) -> list[str]:
    """Methods with a table: those with a k, and those whose row k = 1 is in no other table.

    ERM is in every table. If nothing was mixed it is in that of the default method.
    """
    names = {trial.method.name for trial in trials}
    tabled = {name for name in names if method_entry(name).has_k}
    homeless = names - {baseline_of(name) for name in tabled}
    tabled |= {name for name, entry in METHODS.items() if entry.at_one in homeless}
    return sorted(tabled or {Method().name})


def _variants(name: str, trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """The variants of a method, each once; the plain one if there is no other."""
    variants = {
        tuple(variant_words(trial.method)): {v: getattr(trial.method, v) for v in VARIANTS}
        for trial in trials
        if name == trial.method.name
    }
    return [variants[words] for words in sorted(variants)] or [NO_VARIANT]


def _table(
    data: str,
    model: str,
    measure: str,
    eps: float | None,
    method: str,
    variant: Mapping[str, Any],
    trials: Sequence[Trial],
) -> PaperTable:
    words = variant_words(SimpleNamespace(**variant))
    mixed = [
        trial.method
        for trial in trials
        if baseline_of(method) == trial.method.name
        or (method == trial.method.name and variant_words(trial.method) == words)
    ]
    shift = [] if measure == ERROR else [measure]
    shift += [] if eps is None else [f"{eps:g}"]
    title = [data, model, " ".join([method, *words])]
    if measure == CLEAN:
        title.append("recomputed batch-norm statistics")
    elif measure != ERROR:
        title.append(f"{measure} {eps:g}/255")
    return PaperTable(
        name="-".join([data, model, method, *shift, *words]),
        title=", ".join(title),
        label="your own sweep",
        data=data,
        model=model,
        ks=tuple(sorted({mixing.k for mixing in mixed})),
        columns=tuple(  # a column for ERM if alone
            PaperColumn(alpha, eps=eps)
            for alpha in sorted({mixing.alpha for mixing in mixed}) or [0.0]
        ),
        errors=None,
        erm=None,
        confidence=None,
        trials=len({trial.seed for trial in trials}),
        measure=measure,
        method=method,
        **variant,
    )


def cells_csv(results: Iterable[TableResult]) -> str:
    """All cells as comma-separated values; unknown values are empty."""
    lines = [
        _csv_line(result, method, rule, cell)
        for result in results
        for method, rule, cell in _named_cells(result)
    ]
    return str(pd.DataFrame(lines, dtype=object).to_csv(index=False, lineterminator="\n"))


def _named_cells(result: TableResult) -> Iterator[tuple[str, str, Cell]]:
    """Every cell once, with its method and alpha rule."""
    table = result.table
    yield from (("erm", "", cell) for cell in result.erm)
    for i, grid in enumerate(result.grids):
        for cell in grid:
            if cell.k > 1:
                yield table.method, grid.rule, cell
            elif i == 0:  # k = 1 is the same in every grid
                yield table.baseline, "", cell


def _csv_line(result: TableResult, method: str, rule: str, cell: Cell) -> dict[str, object]:
    table = result.table
    numbers = {
        "error_percent": cell.mean,
        "standard_error": cell.standard_error,
        "trained_alpha": cell.mean_of("alpha"),
        "xi": cell.mean_of("xi"),
        "paper_percent": cell.paper,
        "paper_confidence": cell.confidence,
        "difference": cell.difference,
        "difference_in_standard_errors": cell.ratio,
        **{name: cell.mean_of(name) for name in result.metrics},
    }
    return {
        "table": table.name,
        "setting": " ".join(f"{name}={value}" for name, value in result.distinct.items()),
        "data": table.data,
        "model": table.model,
        "method": method,
        "alpha_rule": rule,
        "k": cell.k or "",
        "alpha": cell.alpha,
        "measure": cell.measure,
        "eps": "" if cell.eps is None else cell.eps,
        "trials": len(cell.done),
        "failed": cell.failed,
        "missing": cell.missing,
        **{name: "" if value is None else f"{value:.6g}" for name, value in numbers.items()},
    }
