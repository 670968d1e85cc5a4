"""Grids of test errors: what every cell of a table came to, beside what the paper prints.

Errors are in per cent from here on; those of a regression in the unit of its target.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any

from kmixup.lab.evaluate.scores import PERCENT, Measure
from kmixup.lab.experiments.rows import Done, Failed, Row, done_of, measure_of
from kmixup.lab.paper.tables import CLEAN, PaperColumn, PaperTable
from kmixup.lab.report.verdict import Partition
from kmixup.lab.train.config import AlphaRule
from kmixup.measured import Measured


@dataclass(frozen=True)
class Cell:
    """All trials of one k and alpha.

    Attributes:
        k: 0 for ERM.
        alpha: of mixup, before calibration; 0 for ERM.
        eps: the level of the shift, None for the plain test error.
        measure: one of `MEASURES`.
        expected: the number of trials in the fullest cell of the outcome.
        paper: the error that the paper prints, None where it prints nothing.
        confidence: the standard error that the paper states, None where it states nothing.
        done: the rows of trials that ended well.
        failed: the rows of trials that failed.
    """

    k: int
    alpha: float
    eps: float | None
    measure: str
    expected: int
    paper: float | None
    confidence: float | None
    done: tuple[Done, ...] = field(repr=False)
    failed: tuple[Failed, ...] = field(repr=False)

    @cached_property
    def errors(self) -> dict[int, float]:
        """The error of every trial that ended well, by its seed."""
        return {
            row.trial.seed: self.unit.factor * _error(row, self.measure, self.eps)
            for row in self.done
        }

    @property
    def unit(self) -> Measure:
        """How the errors are called and written."""
        return measure_of(self.done)

    @cached_property
    def mean(self) -> float | None:
        return fmean(self.errors.values()) if self.errors else None

    @cached_property
    def standard_error(self) -> float | None:
        """One standard deviation of the mean over trials, the error bar of the paper."""
        if len(self.errors) < 2:
            return None
        return Measured.of(list(self.errors.values())).error

    @property
    def paper_error(self) -> float | None:
        """The standard error of the paper's figure: as stated, else as large as ours."""
        return self.standard_error if self.confidence is None else self.confidence

    @property
    def partition(self) -> Partition:
        """What the trials were tested on."""
        return partition_of(self.done)

    @property
    def rows(self) -> tuple[Row, ...]:
        return (*self.done, *self.failed)

    @property
    def missing(self) -> int:
        """The number of trials that other cells have and that this cell lacks."""
        return self.expected - len(self.done) - len(self.failed)

    @cached_property
    def trained_alpha(self) -> float | None:
        """The mean alpha that networks were trained with."""
        return _mean_of(row.alpha for row in self.done)

    @cached_property
    def xi(self) -> float | None:
        """The mean strength of mixing."""
        return _mean_of(row.xi for row in self.done)

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
    """The cells of a table for one alpha rule. The row k = 1 is in every grid of an outcome.

    Attributes:
        rule: how alpha was read at k > 1.
        cells: `[k][column]`.
    """

    rule: AlphaRule
    cells: tuple[tuple[Cell, ...], ...]

    def __iter__(self) -> Iterator[Cell]:
        return (cell for row in self.cells for cell in row)


@dataclass(frozen=True)
class Outcome:
    """A table, and what was measured for it under one setting.

    Attributes:
        table: the table of the paper, or of a sweep of the user's own.
        ks: the k of the table, and any others that were run.
        columns: the columns of the table, and any others that were run.
        setting: all that the trials have in common but method, k, alpha and seed.
        distinct: the part of the setting in which the outcomes of the table differ.
        erm: the cells without mixing, one for each eps.
        grids: one for each alpha rule.
    """

    table: PaperTable
    ks: tuple[int, ...]
    columns: tuple[PaperColumn, ...]
    setting: Mapping[str, Any]
    distinct: Mapping[str, Any]
    erm: tuple[Cell, ...]
    grids: tuple[Grid, ...]

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell once: the row k = 1 is in all grids."""
        first, *others = self.grids
        more = (cell for grid in others for cell in grid if cell.k > 1)
        return (*self.erm, *first, *more)

    @property
    def erm_by_column(self) -> tuple[Cell, ...]:
        """The cell of ERM for each column, or a single cell where all columns share it."""
        if len(self.erm) == 1:
            return self.erm
        by_eps = {cell.eps: cell for cell in self.erm}
        return tuple(by_eps[column.eps] for column in self.columns)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for cell in self.cells for row in cell.rows)

    @cached_property
    def unit(self) -> Measure:
        """How the errors are called and written."""
        return measure_of(self.rows)

    @property
    def baseline(self) -> str:
        """What the row k = 1 is called."""
        own = self.table.baseline == self.table.method
        return f"{self.table.method} with k = 1" if own else self.table.baseline

    @property
    def title(self) -> str:
        """The title of the table, with the settings in which its outcomes differ."""
        told = ", ".join(f"{name} = {value}" for name, value in self.distinct.items())
        return f"{self.table.title} ({told})" if told else self.table.title


def partition_of(rows: Iterable[Row]) -> Partition:
    """What trials were tested on, by the first of them that ended well."""
    row = next(iter(done_of(rows)), None)
    if row is None:
        return Partition()
    trial, resolution = row.trial, 0.0
    if row.measure is PERCENT and row.data.test:
        resolution = PERCENT.factor / row.data.test
    split_anew = row.data.split_by_seed and trial.split is None
    if not split_anew or trial.validation is not None:
        return Partition(resolution)
    return Partition(resolution, row.data.test / row.data.train)


def _error(row: Done, measure: str, eps: float | None) -> float:
    if measure == CLEAN:
        # a network without batch norm is the same with any statistics
        return row.error if row.clean is None else row.clean.error
    return row.error if eps is None else row.shifts[measure][eps].error


def _mean_of(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
