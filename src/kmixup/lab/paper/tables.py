"""What a results table of the paper is: a grid of test errors over k and alpha, as printed.

The tables are those of Greenewald et al. 2023, "k-Mixup Regularization for Deep Learning
via Optimal Transport". Figures are copied as they stand, misprints included: what looks
wrong is said in a table's `notes` and corrected nowhere.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Measure = Literal["error", "noise", "fgsm"]
Grid = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Column:
    """One column of a grid.

    `alpha`: of mixup, k = 1. `xi`: the root mean square perturbation that the paper prints
    for it, which seems to lack a factor of 2. `eps`: of the noise or attack, in 255ths.
    """

    alpha: float
    xi: float | None = None
    eps: float | None = None


@dataclass(frozen=True)
class Cell:
    """One figure of a grid, per cent."""

    k: int
    column: Column
    error: float


@dataclass(frozen=True)
class Table:
    """A grid of test errors with a row for every k, and how the paper came by it.

    `label`: where it is in the paper. `errors`: per cent, `[k][column]`; None for a sweep
    that the paper does not have. `erm`: the error without mixing, per cent. `confidence`:
    the greatest standard deviation of a mean in the grid, per cent. `trials`: networks
    behind each figure. `method`: of the rows with k > 1; that of the row k = 1 is the
    `baseline`. `layers`: those of manifold mixup. `epochs` and `limit`: of a grid that is
    not the paper's, where they are not those of its protocol and of all the data.
    """

    name: str
    title: str
    label: str
    data: str
    model: str
    ks: tuple[int, ...]
    columns: tuple[Column, ...]
    errors: Grid | None
    erm: float | None
    confidence: float | None
    trials: int
    measure: Measure = "error"
    method: str = "kmixup"
    notes: tuple[str, ...] = ()
    layers: str | None = None
    epochs: int | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
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
    def alphas(self) -> tuple[float, ...]:
        """The alphas of the columns, each once."""
        return tuple(dict.fromkeys(column.alpha for column in self.columns))

    def error_at(self, k: int, column: Column) -> float | None:
        """The printed error, None where the paper has no such cell."""
        if self.errors is None or k not in self.ks or column not in self.columns:
            return None
        return self.errors[self.ks.index(k)][self.columns.index(column)]

    def best(self, ks: Collection[int] | None = None) -> Cell | None:
        """The cell with the lowest printed error, of the rows `ks` or of all; the first of equals.

        >>> columns = (Column(0.5), Column(1.0))
        >>> table = Table("t", "T", "", "iris", "mlp-iris", (1, 4), columns,
        ...               ((3.0, 2.0), (2.5, 1.5)), erm=None, confidence=None, trials=20)
        >>> table.best().error, table.best([1]).column.alpha
        (1.5, 1.0)
        """
        cells = [
            Cell(k, column, error)
            for k, row in zip(self.ks, self.errors or (), strict=False)
            for column, error in zip(self.columns, row, strict=True)
            if ks is None or k in ks
        ]
        return min(cells, key=lambda cell: cell.error, default=None)


def baseline_of(method: str) -> str:
    """The same method with k = 1: random pairs make mixup of k-mixup and of nearest."""
    return "mixup" if method in ("kmixup", "nearest") else method


def columns(
    alphas: tuple[float, ...], xis: tuple[float, ...] | None = None, *, eps: float | None = None
) -> tuple[Column, ...]:
    """A column for every alpha, with its xi where the paper prints them."""
    if xis is None:
        return tuple(Column(alpha, eps=eps) for alpha in alphas)
    return tuple(Column(alpha, xi, eps) for alpha, xi in zip(alphas, xis, strict=True))


def transposed(rows: Grid) -> Grid:
    """`[k][column]` of a grid that is printed with k across."""
    return tuple(zip(*rows, strict=True))
