"""Measured numbers with their standard errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Measured:
    """A measured number.

    Attributes:
        value: the number.
        error: its standard error; 0 if the number is exact, NaN if the error is unknown.

    >>> Measured.of([1.0, 2.0, 3.0, 6.0])
    Measured(value=3.0, error=1.0801234497346435)
    """

    value: float
    error: float

    @classmethod
    def of(cls, samples: ArrayLike) -> Measured:
        """Return the mean of independent `samples` `(n,)`. For one sample the error is unknown."""
        numbers = np.asarray(samples, dtype=np.float64)
        if numbers.ndim != 1 or not len(numbers):
            raise ValueError(
                f"samples must be a list of at least one number, got the shape {numbers.shape}"
            )
        return cls(float(numbers.mean()), float(standard_error(numbers)))

    def __truediv__(self, scale: float) -> Measured:
        return Measured(self.value / scale, self.error / scale)


def standard_error(samples: NDArray[Any]) -> NDArray[np.float64]:
    """Return the standard error of the mean over the first axis; NaN for fewer than two."""
    n = len(samples)
    if n < 2:
        return np.full(samples.shape[1:], np.nan)
    return np.asarray(samples.std(0, ddof=1) / math.sqrt(n))
