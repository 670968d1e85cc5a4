"""A plan carried out: the searches of k-mixup and of mixup, ERM, and the final test.

Both searches have the same number of trials. Then ERM is tried on the same validation samples:
not to mix is a candidate, too. At the end both winners and ERM are trained on the whole training
part, with seeds that no search has used, and tested.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from kmixup.lab.evaluate.scores import PERCENT, Measure
from kmixup.lab.experiments.estimate import estimate
from kmixup.lab.experiments.rows import Done, Row, done_of, measure_of
from kmixup.lab.experiments.units import units
from kmixup.lab.formatting import count
from kmixup.lab.train.config import Method, Trial
from kmixup.lab.tuning.budget import Budget
from kmixup.lab.tuning.plan import Plan
from kmixup.lab.tuning.search import Config, Ran, Searched, as_in, search
from kmixup.lab.tuning.strategies import Setting
from kmixup.measured import Measured

Run = Callable[[Sequence[Trial]], Sequence[Row]]  # the rows of trials, in any order


@dataclass(frozen=True)
class Finalist:
    """A method in the final test.

    Attributes:
        name: "k-mixup", "mixup" or "ERM".
        setting: what the search chose, None for ERM.
        rows: one for each seed of the test.
    """

    name: str
    setting: Setting | None
    rows: tuple[Row, ...]

    @property
    def done(self) -> list[Done]:
        return done_of(self.rows)

    @property
    def errors(self) -> dict[int, float]:
        """Test errors in the unit of `measure` by seed, of the trials that ended well."""
        return {row.trial.seed: self.measure.factor * row.error for row in self.done}

    @property
    def measure(self) -> Measure:
        """How the errors are called and written."""
        return measure_of(self.rows)

    @property
    def mean(self) -> float | None:
        return fmean(self.errors.values()) if self.errors else None

    @property
    def standard_error(self) -> float | None:
        return Measured.of(list(self.errors.values())).error if len(self.errors) > 1 else None


@dataclass(frozen=True)
class Tuned:
    """What came of a search on data, and of the test of its winners.

    Attributes:
        plan: what was searched.
        budget: of each search.
        kmixup: the search over k and alpha.
        mixup: the search over the alpha of plain mixup.
        erm: validation errors without mixing, of the seeds that the winner of `kmixup` has; NaN
            for a trial that failed.
        tests: the final test of k-mixup, mixup and ERM. Each has a `name`, the `setting` that
            the search chose, its test `errors` by seed, their `mean` and `standard_error`.
        rows: of all trials.

    Returned by `tune_data`.
    """

    plan: Plan
    budget: Budget
    kmixup: Searched
    mixup: Searched
    erm: tuple[float, ...]
    tests: tuple[Finalist, ...]
    rows: tuple[Row, ...]

    @property
    def measure(self) -> Measure:
        """How the errors are called and written."""
        return measure_of(self.rows)


def tune_plan(
    plan: Plan,
    run: Run,
    *,
    budget: Budget = Budget(),  # noqa: B008, frozen
    workers: int = 1,
    guess: Callable[[], float] = lambda: 0.0,
    told: Callable[[str], object] = lambda sentence: None,
) -> Tuned:
    """Search, then test.

    Args:
        plan: from `make_plan`.
        run: trains the trials that have no row yet, and returns the rows of all.
        budget: of the search of k-mixup. The search of mixup is allowed the same seeds.
        workers: how many units `run` works on at once.
        guess: seconds that a first trial takes, for a budget in minutes.
        told: called with a sentence before each part.
    """
    rows: dict[str, Row] = {}

    def get(trials: Sequence[Trial]) -> list[Row]:
        rows.update((row.id, row) for row in run(trials))
        return [rows[trial.id] for trial in trials]

    def errors(configs: Sequence[Config]) -> Ran:
        trials = [plan.trial(config) for config in configs]
        return Ran([_error(row) for row in get(trials)], seconds_of(trials, rows, workers))

    chosen, first = plan.strategy, plan.base.seed
    told("the search of k-mixup, on validation samples")
    allowed = budget.allowance(chosen, guess)
    kmixup = search(chosen, errors, allowed=allowed, seed=first)
    told("the search of mixup, with as many trials")
    mixup = search(chosen.mixup(), errors, allowed=as_in(kmixup), seed=first)
    told("ERM, on the same validation samples")
    plain = get(plan.plain_trials(len(kmixup.best.errors)))
    told("the test of k-mixup, mixup and ERM")
    finals = {"k-mixup": kmixup.winner, "mixup": mixup.winner, "ERM": None}
    get([trial for setting in finals.values() for trial in plan.test_trials(setting)])
    tests = tuple(
        Finalist(name, setting, tuple(rows[trial.id] for trial in plan.test_trials(setting)))
        for name, setting in finals.items()
    )
    erm = tuple(map(_error, plain))
    return Tuned(plan, budget, kmixup, mixup, erm, tests, tuple(rows.values()))


def seconds_of(trials: Sequence[Trial], rows: Mapping[str, Row], workers: int) -> float:
    """How long workers take for trials, from the training times in their rows.

    A unit is run by one worker, so that the longest unit is the least time.
    """
    times = [
        sum(row.seconds for row in done_of(rows[trial.id] for trial in unit))
        for unit in units(trials)
    ]
    return max(sum(times) / workers, max(times))


def guess_seconds(plan: Plan, workers: int) -> float:
    """Seconds that a trial of the first seed will take, 0 where they cannot be estimated."""
    trials = plan.first_trials()
    return estimate(trials).on(workers) / len(trials)


def _error(row: Row) -> float:
    return row.error if isinstance(row, Done) else math.nan


class Leader:
    """Says which setting of a plan's search is ahead, each time that rows come in."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._errors: dict[Method, list[float]] = defaultdict(list)
        self._measure = PERCENT

    def __call__(self, rows: Sequence[Row]) -> str:
        for row in done_of(rows):
            if self._searches(row.trial):
                self._errors[row.trial.method].append(row.error)
                self._measure = row.measure
        if not self._errors:
            return "none has ended well so far"
        most = max(map(len, self._errors.values()))
        ahead = [method for method, errors in self._errors.items() if len(errors) == most]
        best = min(ahead, key=lambda method: (fmean(self._errors[method]), method.k, method.alpha))
        mean = fmean(self._errors[best])
        return f"best so far: {best.label} {self._measure.text(mean)} over {count(most, 'seed')}"

    def _searches(self, trial: Trial) -> bool:
        base = self._plan.base
        alike = replace(trial, method=base.method, seed=base.seed)
        return alike == replace(base, validation=self._plan.validation)
