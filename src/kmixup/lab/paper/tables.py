"""Results tables and claims of the paper, as frozen dataclasses.

A table is a grid of test errors over k and alpha. Sweeps that the paper doesn't have use the same
classes, without printed errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.methods import VARIANTS, baseline_of, method_entry
from kmixup.lab.results import scalar
from kmixup.lab.trial import CLEAN, Method, PairedWith, Protocol, Shifts, variant_words

ERROR = "error"  # the test error
MEASURES = (ERROR, CLEAN, *SHIFTS)
PrintedErrors = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class ErrorColumn:
    """One column of a grid."""

    alpha: float  # of mixup, k = 1
    # root mean square perturbation that the paper prints; it seems to lack a factor of 2
    xi: float | None = None
    eps: float | None = None  # size of noise or attack in 255ths, None for the clean test error


@dataclass(frozen=True)
class ErrorTable:
    """A grid of test errors with a row for every k, and the settings of its networks."""

    name: str  # in the lab
    title: str  # in reports
    label: str  # where it is in the paper
    data: str
    model: str
    ks: tuple[int, ...]  # of every row, 1 first
    columns: tuple[ErrorColumn, ...]
    errors: PrintedErrors | None  # [k][column] in per cent; None if the paper has no such sweep
    erm: float | None  # error without mixup in per cent, None if the paper gives none
    confidence: float | None  # largest standard deviation of a mean in the grid, in per cent
    trials: int  # networks behind each cell
    measure: str = ERROR  # one of MEASURES
    method: str = "kmixup"  # of the rows k > 1; the row k = 1 has the `baseline`
    notes: tuple[str, ...] = ()  # misprints and doubts, a sentence each
    layers: str | None = None  # at which manifold mixup mixes, None for all other methods
    samples: int | None = None  # training samples, if they are a random subset
    protocol: Protocol | None = None  # None for the data set's default
    scaling: str | None = None  # of the inputs, None for the data set's default
    pairing: PairedWith = "loaders"  # where partners come from
    # Levels at which the networks are tested under shift. They are part of a trial's id, so all
    # tables of the same networks have the same levels, and share trials.
    shifts: Shifts = ()
    # settings of the rows k > 1, as in `Method`
    memory: int | None = None
    labels: float | None = None
    match_on: str | None = None
    metric: str | None = None

    @property
    def baseline(self) -> str:
        """The method of the row k = 1."""
        return baseline_of(self.method)

    @property
    def method_title(self) -> str:
        """What reports call the method of the rows k > 1."""
        return " ".join([method_entry(self.method).title, *variant_words(self)])

    @property
    def variant(self) -> dict[str, Any]:
        """Settings that change the pairs of the rows k > 1."""
        return {name: getattr(self, name) for name in VARIANTS}

    def mixes_as(self, method: Method) -> bool:
        """Whether a method belongs to one of the rows, whatever its k and alpha.

        The row k = 1, whose pairs are random, has no variants.
        """
        if method.name not in (self.baseline, self.method):
            return False
        own = self.method == method.name and method.k > 1
        return not own or self.variant == {name: getattr(method, name) for name in VARIANTS}

    def trains_as(self, settings: Mapping[str, Any]) -> bool:
        """Whether settings of a trial, by column, agree with the table's protocol, if it has one.

        Epochs may differ.
        """
        own = {} if self.protocol is None else vars(self.protocol)
        return all(
            settings[name] == scalar(value)
            for name, value in own.items()
            if name not in ("epochs", "test_every")
        )

    @property
    def alphas(self) -> tuple[float, ...]:
        """Every alpha of the columns once."""
        return tuple(dict.fromkeys(column.alpha for column in self.columns))

    def error_at(self, k: int, column: ErrorColumn) -> float | None:
        """Return the printed error, None if the paper has no such cell."""
        if self.errors is None or k not in self.ks or column not in self.columns:
            return None
        return self.errors[self.ks.index(k)][self.columns.index(column)]


@dataclass(frozen=True)
class Claim:
    """A claim that a grid of errors can test: the best cells of two methods are compared."""

    better: str = "kmixup"  # has lower error; "mixup" is the row k = 1, all others the rows k > 1
    than: str = "mixup"  # has higher error; one of the two methods is "mixup"
    k: int | None = None  # the only k > 1 to compare, None for all of them
    each: Literal["table", "column"] = "table"  # where the best cells are looked for


BEST_CELLS = Claim()  # the best k > 1 has lower error than the best k = 1


@dataclass(frozen=True)
class Summary:
    """One line of the paper's Table 1, errors in per cent as printed."""

    table: ErrorTable  # the sweep behind the line
    architecture: str  # the network's name in the paper
    erm: float
    mixup: float  # best error with k = 1
    kmixup: float  # best error with k > 1
    heuristic: float  # best error with k = 16
    confidence: float  # largest standard deviation of a mean in the sweep
    notes: tuple[str, ...] = ()  # a sentence each
