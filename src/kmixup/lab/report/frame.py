"""From the tidy frame of results to the cells of tables.

`results_of` puts results into the cells of tables: of the paper's, or of tables that the results
themselves define (`tables_of`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from statistics import fmean
from typing import Any, get_args

import pandas as pd

from kmixup._measured import Measured
from kmixup.lab.evaluate.scores import (
    PERCENT,
    RMSE,
    AnyScores,
    ClassScores,
    Measure,
    Metric,
    NumberScores,
    Scores,
    metrics_of,
)
from kmixup.lab.formatting import count, number
from kmixup.lab.methods import METHODS, VARIANTS, baseline_of, method_entry
from kmixup.lab.paper.tables import ERROR, MEASURES, ErrorColumn, ErrorTable
from kmixup.lab.report.stats import Partition
from kmixup.lab.results import LEFT_OUT, PROTOCOL, RENAMED, VALIDATION, lines_of, methods_of
from kmixup.lab.trial import CLEAN, TEST, AlphaRule, Method, Trial, variant_words

RULES: tuple[AlphaRule, ...] = get_args(AlphaRule)
# fields of a trial that a table shows, rather than holds fixed
SHOWN = ("data", "model", "seed", "clean_statistics", *LEFT_OUT)
HELD = [
    *PROTOCOL,
    *(RENAMED.get(name, name) for name in (f.name for f in fields(Trial)) if name not in SHOWN),
]
VERSIONS = {"code_data": "data code", "code_model": "model code"}  # of your own code, in titles
DIGEST = 8  # digits of a digest in titles
Key = tuple[str, int, float, AlphaRule]  # name, k, alpha and alpha rule of a method
KEY = ["method", "k", "alpha", "alpha_rule"]
ERM: Key = ("erm", 1, 0.0, "same")


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
    trials: pd.DataFrame = field(repr=False, compare=False)  # one of `lines_of` for each seed

    @cached_property
    def done(self) -> pd.DataFrame:
        return self.trials[self.trials.failure.isna()]

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
        errors = self.unit.factor * self.done.error
        return dict(zip(self.done.seed.tolist(), errors.tolist(), strict=True))

    @cached_property
    def unit(self) -> Measure:
        return unit_of(self.trials)

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
        return ", ".join(failed + few) if len(self.done) else ""

    @cached_property
    def partition(self) -> Partition:
        return partition_of(self.trials)

    @property
    def constant(self) -> bool:
        return len(self.done) > 0 and bool(self.done.constant.all())

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

    table: ErrorTable
    ks: tuple[int, ...]  # of the table, and any others that were run
    columns: tuple[ErrorColumn, ...]  # of the table, and any others that were run
    setting: Mapping[str, Any]  # all that the trials share except method, k, alpha and seed
    distinct: Mapping[str, Any]  # where the setting differs from other results of the table
    erm: tuple[Cell, ...]  # one for each eps
    grids: tuple[Grid, ...]  # one for each alpha rule

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        first, *others = self.grids
        return (*self.erm, *first, *(cell for grid in others for cell in grid if cell.k > 1))

    @cached_property
    def lines(self) -> pd.DataFrame:
        return pd.concat([cell.trials for cell in self.cells], ignore_index=True)

    @cached_property
    def unit(self) -> Measure:
        return unit_of(self.lines)

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """The metrics of the cells other than the error, by name."""
        kind: type[AnyScores] = NumberScores if self.unit is RMSE else Scores
        if "balanced_accuracy" in self.lines and self.lines.balanced_accuracy.notna().any():
            kind = ClassScores
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


def unit_of(lines: pd.DataFrame) -> Measure:
    return RMSE if lines.regression.eq(True).any() else PERCENT


def partition_of(lines: pd.DataFrame) -> Partition:
    """What trials were tested on, by the first finished one."""
    done = lines[lines.failure.isna()]
    if done.empty:
        return Partition()
    first = done.iloc[0]
    split_anew = first.split_by_seed and pd.isna(first.split) and pd.isna(first.validation)
    train, test = int(first.train_samples), int(first.test_samples)
    return Partition(
        resolution=PERCENT.factor / test if unit_of(lines) is PERCENT and test else 0.0,
        ratio=test / train if split_anew else None,
    )


def results_of(frame: pd.DataFrame, tables: Iterable[ErrorTable]) -> tuple[TableResult, ...]:
    """The results of each table, from a tidy frame in any order.

    A table without results has one with empty cells, a table with results of several settings one
    for each. If some trials fit no cell, the tables of their data and network are widened by the k
    and alpha of these trials.
    """
    lines, tables = _by_measure(frame), tuple(tables)
    placed = [result for table in tables for result in _of_table(lines, table, set())]
    if not (left := unplaced(frame, placed)):
        return tuple(placed)
    return tuple(result for table in tables for result in _of_table(lines, table, left))


def unplaced(frame: pd.DataFrame, results: Iterable[TableResult]) -> set[str]:
    """Ids of trials that are in no cell of any result."""
    return set(frame.id).difference(*(result.lines.id for result in results))


def _by_measure(frame: pd.DataFrame) -> pd.DataFrame:
    """A line for each trial and test, with the measure of tables and the method."""
    lines = lines_of(frame)
    # trials that choose are tested on validation samples, in the place of the test set
    measure = lines.test.mask(lines.test == VALIDATION, TEST).replace({TEST: ERROR})
    return lines.assign(measure=measure, by=methods_of(lines))[measure.isin(MEASURES)]


def _of_table(lines: pd.DataFrame, table: ErrorTable, left: set[str]) -> list[TableResult]:
    alike = (lines.data == table.data) & (lines.model == table.model)
    mine = lines[alike & (lines.measure == table.measure)]
    groups: list[tuple[dict[str, Any], pd.DataFrame]] = []
    wider: list[Method] = []
    for setting, same in _by_setting(mine, table):
        some = same[[_fits(method, table) for method in same.by]]
        wider += [method for method in some[some.id.isin(left)].by if method.entry.mixes]
        groups += [({**setting, **mixing}, group) for mixing, group in _by_mixing(some)]
    ks, columns = _widened(table, wider)
    names = dict.fromkeys(name for setting, _ in groups for name in setting)
    differing = [name for name in names if len({setting.get(name) for setting, _ in groups}) > 1]
    return [
        _result(group, table, ks, columns, setting, {name: setting.get(name) for name in differing})
        for setting, group in groups or [({}, mine[:0])]
    ]


def _widened(
    table: ErrorTable, methods: Sequence[Method]
) -> tuple[tuple[int, ...], list[ErrorColumn]]:
    """The k and columns of a table and of more methods."""
    ks = tuple(sorted({*table.ks, *(method.k for method in methods)}))
    alphas = {method.alpha for method in methods} - {*table.alphas}
    levels = dict.fromkeys(column.eps for column in table.columns)
    further = (ErrorColumn(alpha, eps=eps) for alpha in alphas for eps in levels)
    return ks, sorted((*table.columns, *further), key=lambda at: (at.eps or 0.0, at.alpha))


def _by_setting(
    lines: pd.DataFrame, table: ErrorTable
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """The settings that trials of a table share, apart from the method, and their lines."""
    held = [*HELD, *(name for name in VERSIONS if name in lines)]
    groups = []
    for _, some in lines.groupby(held, dropna=False, sort=False):
        first = some[held][:1].astype(object).iloc[0].items()
        setting = {str(name): None if pd.isna(value) else value for name, value in first}
        for name in ("digest", *VERSIONS):
            if (digest := setting.pop(name, None)) is not None:
                setting[VERSIONS.get(name, name)] = digest[:DIGEST]
        # a limit, as in `--quick`, replaces the random subset
        subset = table.samples in (None, setting["samples"]) or setting["limit"] is not None
        if subset and table.trains_as(setting):
            groups.append((setting, some))
    yield from sorted(groups, key=lambda group: repr(sorted(group[0].items())))


def _fits(method: Method, table: ErrorTable) -> bool:
    """Whether a method is of a table, whatever its k and alpha."""
    fits = table.layers in (None, method.layers) and table.mixes_as(method)
    return fits or not method.entry.mixes


def _by_mixing(lines: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """What mixing the trials of a setting share apart from k and alpha, and their lines."""
    if lines.empty:
        return
    mixing = [_mixing(line) for _, line in lines.iterrows()]
    # ERM has no pairing: its lines go with every pairing, and alone only if nothing was mixed
    for own in sorted({*mixing} - {()}, key=repr) or [()]:
        shared = {"pairing": None, "layers": None, **dict(own)}
        yield shared, lines[[some in (own, ()) for some in mixing]]


def _mixing(line: pd.Series[Any]) -> tuple[tuple[str, str | None], ...]:
    """What mixing trials of a result share apart from k and alpha; nothing without mixing."""
    method: Method = line.by
    if not method.entry.mixes:
        return ()
    code = line.get("code_method")
    own = () if pd.isna(code) else (("method code", code[:DIGEST]),)
    return (("pairing", method.pairing), ("layers", method.layers), *own)


def _result(
    lines: pd.DataFrame,
    table: ErrorTable,
    ks: Sequence[int],
    columns: Sequence[ErrorColumn],
    setting: Mapping[str, Any],
    distinct: Mapping[str, Any],
) -> TableResult:
    by_key: dict[Any, pd.DataFrame] = dict(list(lines.groupby(KEY, sort=False)))
    expected = max((group.seed.nunique() for group in by_key.values()), default=0)

    def cell(key: Key, eps: float | None, paper: float | None) -> Cell:
        name, k, alpha, rule = key
        trials = _by_seed(by_key.get(key, lines[:0]), eps)
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
    lines = lines[lines.level.isna()] if eps is None else lines[lines.level == eps]
    ordered = lines.assign(failed=lines.failure.notna())
    return ordered.sort_values(["seed", "failed"], kind="stable").drop_duplicates("seed")


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
        "trained_alpha": cell.mean_of("trained_alpha"),
        "xi": cell.mean_of("xi"),
        "paper": cell.paper,
        **{name: cell.mean_of(name) for name in result.metrics},
    }


# Tables of your own sweep


def tables_of(frame: pd.DataFrame) -> tuple[ErrorTable, ...]:
    """One table for each data set, network, method, measure and eps that was run.

    Results that differ in anything else, e.g. the protocol, are results of the same table.
    """
    lines = _by_measure(frame)
    tables: list[ErrorTable] = []
    for (data, model, measure), mine in lines.groupby(["data", "model", "measure"]):
        for level in [None] if mine.level.isna().all() else sorted(mine.level.unique()):
            some = mine if level is None else mine[mine.level == level]
            place = (str(data), str(model), str(measure), level)
            trials = some.seed.nunique()
            tables += [_table(*place, method, some.by, trials) for method in _methods(some.by)]
    return tuple(sorted(tables, key=lambda table: (table.data, table.model, _order(table))))


def _order(table: ErrorTable) -> int:
    return MEASURES.index(table.measure)


def _methods(used: pd.Series[Any]) -> Iterator[Method]:
    """Methods with a table: those with a k, and those whose row k = 1 is in no other table.

    Each is returned with each of its variants. ERM is in every table. If nothing was mixed it is in
    that of the default method.
    """
    names = {method.name for method in used}
    tabled = {name for name in names if method_entry(name).has_k}
    homeless = names - {baseline_of(name) for name in tabled}
    tabled |= {name for name, entry in METHODS.items() if entry.at_one in homeless}
    for name in sorted(tabled or {Method().name}):
        methods = [method for method in used if method.name == name] or [Method(name)]
        variants = {tuple(variant_words(method)): method for method in methods}
        yield from (variants[words] for words in sorted(variants))


def _table(
    data: str,
    model: str,
    measure: str,
    eps: float | None,
    method: Method,
    used: pd.Series[Any],
    trials: int,
) -> ErrorTable:
    words = variant_words(method)
    mixed = [
        other
        for other in used
        if baseline_of(method.name) == other.name
        or (method.name == other.name and variant_words(other) == words)
    ]
    alphas = sorted({mixing.alpha for mixing in mixed}) or [0.0]  # a column for ERM if alone
    level = "" if eps is None else f"{eps:g}"
    shift = "" if measure == ERROR else measure
    tested = {ERROR: "", CLEAN: "recomputed batch-norm statistics"}
    title = [data, model, " ".join([method.name, *words])]
    title.append(tested.get(measure, f"{measure} {level}/255"))
    return ErrorTable(
        name="-".join(filter(None, [data, model, method.name, shift, level, *words])),
        title=", ".join(filter(None, title)),
        label="your own sweep",
        data=data,
        model=model,
        ks=tuple(sorted({mixing.k for mixing in mixed})),
        columns=tuple(ErrorColumn(alpha, eps=eps) for alpha in alphas),
        errors=None,
        erm=None,
        confidence=None,
        trials=trials,
        measure=measure,
        method=method.name,
        **{name: getattr(method, name) for name in VARIANTS},
    )
