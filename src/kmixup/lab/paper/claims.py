"""A claim of the paper in a form that a grid of errors can answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Figures = Sequence[float | None]


@dataclass(frozen=True)
class Comparison:
    """`better` has a lower error than `than`: one of them is "mixup", the row k = 1.

    The other names the method of the rows k > 1, all of them or `k` alone. What is compared
    is the best cell of either side: in the whole table, or in each column by itself.
    """

    better: str = "kmixup"
    than: str = "mixup"
    k: int | None = None
    each: Literal["table", "column"] = "table"

    def __post_init__(self) -> None:
        if (self.better == "mixup") == (self.than == "mixup"):
            raise ValueError(
                'one of better and than must be "mixup", the row k = 1, '
                f"got {self.better!r} and {self.than!r}"
            )

    def margins(self, ks: Sequence[int], errors: Sequence[Figures]) -> tuple[float | None, ...]:
        """By how much `better` is below `than`, for the table or for each column.

        Args:
            ks: k of every row.
            errors: `[k][column]`, None for a cell that was not run.

        A margin below 0 speaks against the claim; None: one side was not run.

        >>> Comparison().margins([1, 4, 16], [[3.0, 2.0], [2.5, 4.0], [1.0, None]])
        (1.0,)
        >>> Comparison(each="column").margins([1, 4, 16], [[3.0, 2.0], [2.5, 4.0], [1.0, None]])
        (2.0, -2.0)
        """
        mixup = [row for k, row in zip(ks, errors, strict=True) if k == 1]
        others = [
            row
            for k, row in zip(ks, errors, strict=True)
            if k > 1 and (self.k is None or k == self.k)
        ]
        sides = (others, mixup) if self.than == "mixup" else (mixup, others)
        width = len(errors[0]) if errors else 0
        groups = [[i] for i in range(width)] if self.each == "column" else [list(range(width))]
        return tuple(_margin(*(_least(rows, group) for rows in sides)) for group in groups)


BEST_CELLS = Comparison()  # the best k > 1 is below the best k = 1


def _least(rows: Sequence[Figures], group: Sequence[int]) -> float | None:
    found = [error for row in rows for i in group if (error := row[i]) is not None]
    return min(found, default=None)


def _margin(better: float | None, than: float | None) -> float | None:
    return None if better is None or than is None else than - better
