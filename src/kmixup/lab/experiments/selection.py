"""Rules of `kmixup tune` and `kmixup league`.

Every method may train the same number of networks to choose its settings. Settings are compared
by validation error only. The test part is read once, with the settings chosen before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, TypeVar

from kmixup._measured import Measured
from kmixup.lab.evaluate.scores import Measure
from kmixup.lab.experiments.rows import Done, Row, done_of, measure_of
from kmixup.lab.train.config import Method, Trial

if TYPE_CHECKING:
    from kmixup.lab.experiments.search import Setting

DIGITS = 12  # mean errors that agree to this many decimals are equal

Run = Callable[[Sequence[Trial]], Iterable[Row]]  # trains trials, and returns rows in any order
Candidate = TypeVar("Candidate", "Setting", Method)


def validation_error(row: Row) -> float:
    """Return the error that a method may be chosen by, NaN for a trial that failed."""
    return row.error if isinstance(row, Done) else math.nan


def choose(errors: Mapping[Candidate, Sequence[float]]) -> Candidate | None:
    """Return the candidate with the lowest mean of the validation errors by seed.

    Of equal candidates the smaller k wins, then the smaller alpha. A candidate with a failed trial
    (NaN) cannot win; None if all failed.
    """
    whole = [one for one, values in errors.items() if all(map(math.isfinite, values))]

    def rank(candidate: Candidate) -> tuple[float, int, float]:
        return round(fmean(errors[candidate]), DIGITS), candidate.k, candidate.alpha

    return min(whole, key=rank, default=None)


def final_trials(base: Trial, chosen: Mapping[int, Method]) -> list[Trial]:
    """Return the trials of the final test: `base` with the method chosen for every seed."""
    return [base.with_method(method, seed=seed, validation=None) for seed, method in chosen.items()]


@dataclass(frozen=True)
class FinalTest:
    """Final test of one method."""

    rows: tuple[Row, ...]  # one for each seed

    @property
    def done(self) -> list[Done]:
        return done_of(self.rows)

    @property
    def measure(self) -> Measure:
        return measure_of(self.rows)

    @property
    def errors(self) -> dict[int, float]:
        """Test errors by seed in the unit of `measure`, without failed trials."""
        return {row.trial.seed: row.measure.factor * row.error for row in self.done}

    @property
    def mean(self) -> float | None:
        """Mean test error; None without any trial."""
        return Measured.of([*self.errors.values()]).value if self.errors else None

    @property
    def standard_error(self) -> float | None:
        """Standard error of the mean; None with fewer than two trials."""
        return Measured.of([*self.errors.values()]).error if len(self.errors) > 1 else None
