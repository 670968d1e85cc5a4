"""A results table of the paper: a grid of test errors over k and alpha, as printed.

The tables are those of Greenewald et al. 2023, "k-Mixup Regularization for Deep Learning
via Optimal Transport". Figures are copied as printed, misprints included: a table's `notes`
name what looks wrong, and nothing is corrected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.train.config import Method, PairedWith, Protocol, Shifts, variant_words
from kmixup.lab.train.methods import METHODS, VARIANTS, baseline_of

ERROR = "error"  # the measure of the test part as it is
CLEAN = "clean"  # the same, with clean statistics of batch norm
MEASURES = (ERROR, CLEAN, *SHIFTS)
PrintedErrors = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class PaperColumn:
    """One column of a grid.

    Attributes:
        alpha: the alpha of mixup, k = 1.
        xi: the root mean square perturbation that the paper prints for the column; it seems to
            lack a factor of 2.
        eps: the size of the noise or attack in 255ths, None for the test error as it is.
    """

    alpha: float
    xi: float | None = None
    eps: float | None = None


@dataclass(frozen=True)
class PaperTable:
    """A grid of test errors with a row for every k, and the networks behind it.

    Attributes:
        name: its name in the lab.
        title: its title on pages.
        label: where it is in the paper.
        data: the data set.
        model: the network.
        ks: k of every row, 1 first.
        columns: the columns.
        errors: `[k][column]` in per cent; None for a sweep that the paper does not have.
        erm: the error without mixing in per cent, None where the paper gives none.
        confidence: the greatest standard deviation of a mean in the grid, in per cent.
        trials: number of networks behind each figure.
        measure: "error" for the test error as it is, "clean" for that with clean statistics of
            batch norm, or the name of the shift that it is under.
        method: the method of the rows k > 1; that of the row k = 1 is the `baseline`.
        notes: misprints and doubts, a sentence each.
        layers: where manifold mixup mixes, None for all other methods.
        epochs: the length of training where it is not the paper's.
        limit: the number of samples where not all are used.
        samples: the number of training samples where they are drawn.
        protocol: of the networks, where it is not that of the data set.
        scaling: of the inputs, where it is not that of the data set.
        pairing: where partners come from.
        shifts: levels of the tests under shift, where the paper has none; all tables of the same
            networks must have the same.
        memory, labels, match_on: of the rows k > 1, as in `Method`.
    """

    name: str
    title: str
    label: str
    data: str
    model: str
    ks: tuple[int, ...]
    columns: tuple[PaperColumn, ...]
    errors: PrintedErrors | None
    erm: float | None
    confidence: float | None
    trials: int
    measure: str = ERROR
    method: str = "kmixup"
    notes: tuple[str, ...] = ()
    layers: str | None = None
    epochs: int | None = None
    limit: int | None = None
    samples: int | None = None
    protocol: Protocol | None = None
    scaling: str | None = None
    pairing: PairedWith = "loaders"
    shifts: Shifts = ()
    memory: int | None = None
    labels: float | None = None
    match_on: str | None = None

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise ValueError(
                f"measure of {self.name} must be one of {', '.join(MEASURES)}, got {self.measure!r}"
            )
        rows, columns = len(self.ks), len(self.columns)
        if self.errors is not None and [len(row) for row in self.errors] != [columns] * rows:
            raise ValueError(
                f"errors of {self.name} must have {rows} rows (one for each k) of {columns} "
                f"figures, got rows of {[len(row) for row in self.errors]}"
            )

    @property
    def baseline(self) -> str:
        """The method of the row k = 1."""
        return baseline_of(self.method)

    @property
    def method_title(self) -> str:
        """What reports call the method of the rows k > 1."""
        return " ".join([METHODS[self.method].title, *variant_words(self)])

    @property
    def variant(self) -> dict[str, Any]:
        """What sets the pairs of the rows k > 1 apart from those of the plain method."""
        return {name: getattr(self, name) for name in VARIANTS}

    def mixes_as(self, method: Method) -> bool:
        """Whether a method is that of one of the rows, whatever its k and alpha.

        The row k = 1, whose pairs are random, has no variants.
        """
        if method.name not in (self.baseline, self.method):
            return False
        own = self.method == method.name and method.k > 1
        return not own or self.variant == {name: getattr(method, name) for name in VARIANTS}

    def trains_as(self, protocol: Protocol) -> bool:
        """Whether a protocol is the table's own, if it has one, whatever the length of training."""
        if self.protocol is None:
            return True
        length: dict[str, Any] = {"epochs": 1, "test_every": None}
        return replace(protocol, **length) == replace(self.protocol, **length)

    @property
    def alphas(self) -> tuple[float, ...]:
        """Every alpha of the columns once."""
        return tuple(dict.fromkeys(column.alpha for column in self.columns))

    def error_at(self, k: int, column: PaperColumn) -> float | None:
        """The printed error, None where the paper has no such cell."""
        if self.errors is None or k not in self.ks or column not in self.columns:
            return None
        return self.errors[self.ks.index(k)][self.columns.index(column)]


def columns(
    alphas: tuple[float, ...], xis: tuple[float, ...] | None = None, *, eps: float | None = None
) -> tuple[PaperColumn, ...]:
    """A column for every alpha, with its xi where the paper prints it."""
    if xis is None:
        return tuple(PaperColumn(alpha, eps=eps) for alpha in alphas)
    return tuple(PaperColumn(alpha, xi, eps) for alpha, xi in zip(alphas, xis, strict=True))


def transposed(rows: PrintedErrors) -> PrintedErrors:
    """Turn a grid that is printed with a column for each k into `[k][column]`."""
    return tuple(zip(*rows, strict=True))
