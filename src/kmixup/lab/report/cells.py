"""The cells of a table: all trials of one k and alpha, their errors and how they are written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any

import pandas as pd

from kmixup.lab.evaluate.baseline import all_constant
from kmixup.lab.evaluate.scores import PERCENT, Measure, Metric, Scores, metrics_of
from kmixup.lab.experiments.rows import Done, Row, done_of, measure_of
from kmixup.lab.formatting import count, number
from kmixup.lab.paper.tables import CLEAN, ERROR, PaperColumn, PaperTable
from kmixup.lab.report.stats import Partition
from kmixup.lab.train.config import AlphaRule
from kmixup.measured import Measured


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


def cells_csv(results: Iterable[TableResult]) -> str:
    """All cells as comma-separated values; unknown values are empty."""
    lines = [_csv_line(result, cell) for result in results for cell in result.cells]
    return pd.DataFrame(lines, dtype=object).to_csv(index=False, lineterminator="\n")


def _csv_line(result: TableResult, cell: Cell) -> dict[str, object]:
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
        "method": cell.method,
        "alpha_rule": cell.rule if cell.k > 1 else "",
        "k": cell.k or "",
        "alpha": cell.alpha,
        "measure": table.measure,
        "eps": cell.eps,
        "trials": len(cell.done),
        "failed": cell.failed,
        "missing": cell.missing,
        **{name: "" if value is None else f"{value:.6g}" for name, value in numbers.items()},
    }
