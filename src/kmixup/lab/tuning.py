"""A search on a data set of the lab: on validation samples to its end, then one test.

The training and the test part are divided once, by the seed of the whole search. Trials of
the search differ in which training samples are held out for validation, in their first
weights and their order; none sees the test part. When k-mixup and plain mixup have both been
searched, with as many trials, both winners and ERM are trained on the whole training part
with seeds that no search has used, and tested.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

from kmixup.lab.budget import Budget
from kmixup.lab.data import ENTRIES, Holdout, at_hand, load
from kmixup.lab.estimate import estimate
from kmixup.lab.models import check_model
from kmixup.lab.prepare import usual_for
from kmixup.lab.protocol import Method, Protocol, Trial, check_whole, known_settings, paper_protocol
from kmixup.lab.search import Config, Ran, Searched, as_in, search
from kmixup.lab.store import Row
from kmixup.lab.strategies import KS, Setting, Strategy, make_strategy
from kmixup.lab.unit import units
from kmixup.lab.words import count

TESTED = 10_000  # the first seed of the final test, beyond those of any search

Run = Callable[[Sequence[Trial]], Sequence[Row]]  # the rows of trials, in any order


@dataclass(frozen=True)
class Plan:
    """What is searched and how: all trials are `base` but for method, seed and validation."""

    name: str
    base: Trial
    strategy: Strategy
    validation: float
    tests: int

    def __post_init__(self) -> None:
        check_whole("tests", self.tests)
        for setting in self.strategy.settings:
            self.trial(Config(setting.k, setting.alpha, setting.alpha_rule))  # refuses its k

    def trial(self, config: Config) -> Trial:
        """A trial of the search."""
        method = Method("kmixup", config.k, config.alpha, config.alpha_rule)
        return replace(self.base, method=method, seed=config.seed, validation=self.validation)

    def test_trials(self, setting: Setting | None) -> list[Trial]:
        """The trials of the test, with None for ERM."""
        method = Method("erm")
        if setting is not None:
            method = Method("kmixup", setting.k, setting.alpha, setting.alpha_rule)
        first = self.base.seed + TESTED
        return [
            replace(self.base, method=method, seed=seed)
            for seed in range(first, first + self.tests)
        ]

    def first_trials(self) -> list[Trial]:
        """One seed of what the strategy asks for first."""
        settings = next(self.strategy.search()).settings
        seed = self.base.seed
        return [self.trial(Config(one.k, one.alpha, one.alpha_rule, seed)) for one in settings]


def make_plan(
    data: str,
    *,
    strategy: str = "two-step",
    model: str | None = None,
    k: Sequence[int] | None = None,
    alpha: Sequence[float] | None = None,
    alpha_rule: str | None = None,
    trials: int | None = None,
    validation: float = 0.2,
    tests: int = 10,
    seed: int = 0,
    limit: int | None = None,
    scaling: str | None = None,
    size: int | None = None,
    target: str | None = None,
    protocol: Mapping[str, Any] | None = None,
) -> Plan:
    """A plan with the paper's network and protocol for the data set, unless told otherwise.

    Args:
        data, limit, scaling, size, target: as `kmixup.lab.data.load` takes them.
        strategy, alpha, alpha_rule, trials: as in `make_strategy`.
        model: by default the paper's for the data set.
        k: by default the powers of two up to 32 that batches and training samples allow.
        validation: the share of the training samples that is held out in every trial.
        tests: seeds of the final test.
        seed: of the split into training and test part, and the first one of the trials.
        protocol: settings to replace in the paper's protocol for the data set.
    """
    holdout = Holdout(validation, seed)
    loaded = None
    if data in ENTRIES and not at_hand(data, limit=limit):  # they may be so on a cluster
        left = holdout.left(min(ENTRIES[data].train, limit or ENTRIES[data].train))
    else:
        loaded = load(
            data,
            limit=limit,
            scaling=scaling,  # type: ignore[arg-type]
            size=size,
            target=target,
            seed=seed,
            holdout=holdout,
        )
        left = len(loaded.x_train)
    kind, usual = usual_for(data, loaded)
    settings = known_settings(Protocol, protocol or {}, "protocol.")
    how = replace(paper_protocol(data, kind), **settings)
    base = Trial(
        data, model or usual, Method("erm"), how, seed, limit, scaling, size, target, split=seed
    )
    check_model(base.model)
    for one in k or ():
        if one > left:
            raise ValueError(
                f"k must be at most {left}, the training samples that validation leaves of {data}, "
                f"got {one}: lower it"
            )
    usual_ks = [one for one in KS if one <= min(left, how.batch_size)]
    chosen = make_strategy(
        strategy, k=k or usual_ks, alpha=alpha, alpha_rule=alpha_rule, trials=trials
    )
    return Plan(strategy, base, chosen, validation, tests)


@dataclass(frozen=True)
class Finalist:
    """A method in the final test: its errors in per cent by seed, of the trials that ended."""

    name: str
    setting: Setting | None
    rows: tuple[Row, ...]

    @property
    def done(self) -> list[Row]:
        return [row for row in self.rows if row["status"] == "done"]

    @property
    def errors(self) -> dict[int, float]:
        return {row["trial"]["seed"]: 100 * row["result"]["error"] for row in self.done}

    @property
    def mean(self) -> float | None:
        return fmean(self.errors.values()) if self.errors else None

    @property
    def standard_error(self) -> float | None:
        n = len(self.errors)
        return stdev(self.errors.values()) / math.sqrt(n) if n > 1 else None


@dataclass(frozen=True)
class Tuned:
    """What came of a plan: both searches, the test of k-mixup, mixup and ERM, and all rows."""

    plan: Plan
    budget: Budget
    kmixup: Searched
    mixup: Searched
    tests: tuple[Finalist, ...]
    rows: tuple[Row, ...]


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
        plan: of `make_plan`.
        run: trains the trials that have no row yet, and gives the rows of all.
        budget: of the search of k-mixup; that of mixup is allowed the same seeds.
        workers: how many units `run` works on at once.
        guess: seconds that a first trial takes, for a budget in minutes.
        told: called with a sentence before each part.
    """
    rows: dict[str, Row] = {}

    def get(trials: Sequence[Trial]) -> list[Row]:
        rows.update((row["id"], row) for row in run(trials))
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
    told("the test of k-mixup, mixup and ERM")
    finals = {"k-mixup": kmixup.winner, "mixup": mixup.winner, "ERM": None}
    get([trial for setting in finals.values() for trial in plan.test_trials(setting)])
    tests = tuple(
        Finalist(name, setting, tuple(rows[trial.id] for trial in plan.test_trials(setting)))
        for name, setting in finals.items()
    )
    return Tuned(plan, budget, kmixup, mixup, tests, tuple(rows.values()))


def seconds_of(trials: Sequence[Trial], rows: Mapping[str, Row], workers: int) -> float:
    """How long workers take for trials, from the training times in their rows.

    A fleet is one worker's: no number of workers is faster than the longest unit.
    """
    times = [
        sum(float(rows[trial.id].get("seconds", 0.0)) for trial in unit) for unit in units(trials)
    ]
    return max(sum(times) / workers, max(times))


def guess_seconds(plan: Plan, workers: int) -> float:
    """Seconds that a trial of the first seed will take, 0 where that cannot be told."""
    trials = plan.first_trials()
    return estimate(trials).on(workers) / len(trials)


def _error(row: Row) -> float:
    return float(row["result"]["error"]) if row["status"] == "done" else math.nan


class Leader:
    """Words on which setting is ahead, as the rows of a plan's search come in."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._errors: dict[Method, list[float]] = defaultdict(list)

    def __call__(self, rows: Sequence[Row]) -> str:
        for row in rows:
            trial = Trial.from_dict(row["trial"])
            if row["status"] == "done" and self._searches(trial):
                self._errors[trial.method].append(row["result"]["error"])
        if not self._errors:
            return "none has ended well so far"
        most = max(map(len, self._errors.values()))
        ahead = [method for method, errors in self._errors.items() if len(errors) == most]
        best = min(ahead, key=lambda one: (fmean(self._errors[one]), one.k, one.alpha))
        mean = fmean(self._errors[best])
        return f"best so far: {best.label} {mean:.2%} over {count(most, 'seed')}"

    def _searches(self, trial: Trial) -> bool:
        base = self._plan.base
        alike = replace(trial, method=base.method, seed=base.seed)
        return alike == replace(base, validation=self._plan.validation)
