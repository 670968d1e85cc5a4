"""Rules of `kmixup tune` and `kmixup league`.

Every method may train the same number of networks to choose its settings. Settings are compared
by validation error only. The test part is read once, with the settings chosen before.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, TypeVar

from kmixup.lab.checks import SettingError
from kmixup.lab.evaluate.scores import Measure
from kmixup.lab.experiments.rows import Done, Row, done_of, measure_of
from kmixup.lab.formatting import count
from kmixup.lab.train.config import Method, Trial
from kmixup.measured import Measured

if TYPE_CHECKING:
    from kmixup.lab.experiments.search import Setting

DIGITS = 12  # mean errors that agree to this many decimals are equal

Run = Callable[[Sequence[Trial]], Iterable[Row]]  # trains trials, and returns rows in any order
Candidate = TypeVar("Candidate", "Setting", Method)


@dataclass(frozen=True)
class Budget:
    """Limits of a search: networks to train, and seconds of training.

    >>> Budget.read("60"), Budget.read("1.5m").text
    (Budget(trials=60.0, seconds=inf), '1.5 minutes')
    """

    trials: float = math.inf
    seconds: float = math.inf

    @classmethod
    def read(cls, text: str | int | None) -> Budget:
        """Parse a number of trials, or a number of minutes followed by "m"."""
        if text is None:
            return cls()
        match = re.fullmatch(r"(\d+)|(\d+(?:\.\d+)?) ?m(?:in)?", str(text).strip())
        amount = float(match[1] or match[2]) if match else 0.0
        if match is None or not amount:
            raise SettingError(
                "budget", f"must be a number of trials or of minutes, e.g. 60 or 30m, got {text!r}"
            )
        return cls(seconds=60 * amount) if match[2] else cls(trials=amount)

    @property
    def timed(self) -> bool:
        return math.isfinite(self.seconds)

    @property
    def limited(self) -> bool:
        return self.timed or math.isfinite(self.trials)

    @property
    def text(self) -> str:
        return minutes(self.seconds) if self.timed else count(int(self.trials), "trial")


def minutes(seconds: float) -> str:
    return f"{seconds / 60:.3g} minutes"


def validation_error(row: Row) -> float:
    """Return the error that a method may be chosen by, NaN for a trial that failed."""
    if row.trial.validation is None:
        raise ValueError(f"methods are chosen on validation samples, {row.id} was tested")
    return row.error if isinstance(row, Done) else math.nan


def choose(errors: Mapping[Candidate, Sequence[float]]) -> Candidate | None:
    """Return the candidate with the lowest mean of the validation errors by seed.

    Means are over the seeds that all candidates have. Of equal candidates the smaller k wins,
    then the smaller alpha. A candidate with a failed trial (NaN) cannot win; None if all failed.
    """
    whole = {
        candidate: values
        for candidate, values in errors.items()
        if values and all(map(math.isfinite, values))
    }
    shared = min(map(len, whole.values()), default=0)

    return min(whole, key=lambda one: rank(one, whole[one][:shared]), default=None)


def rank(candidate: Candidate, errors: Sequence[float]) -> tuple[float, int, float]:
    """Return the key by which candidates are sorted, the best first."""
    return round(fmean(errors), DIGITS), candidate.k, candidate.alpha


def final_trials(base: Trial, chosen: Mapping[int, Method]) -> list[Trial]:
    """Return the trials of the final test: `base` with the method chosen for every seed."""
    return [
        replace(base, method=method, seed=seed, validation=None) for seed, method in chosen.items()
    ]


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
