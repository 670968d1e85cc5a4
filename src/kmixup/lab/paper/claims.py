"""A claim of the paper in a form that a grid of errors can answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Claim:
    """One method has a lower error than another: the best cell of each side is compared.

    Attributes:
        better: the method with the lower error; "mixup" stands for the row k = 1, any other
            name for the rows k > 1.
        than: the method with the higher error; one of the two methods is "mixup".
        k: the only k > 1 to compare, None for all of them.
        each: whether cells are compared in the whole table, or in each column by itself.
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


BEST_CELLS = Claim()  # the best k > 1 is below the best k = 1
