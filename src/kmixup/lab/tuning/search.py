"""Searches: the stages of a strategy are run, as far as the budget goes, until one setting wins.

`tune` searches with a training function of the user's own. `kmixup.lab.tuning.carrying_out`
searches with the data sets and networks of the lab.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from kmixup.lab.checks import check_whole
from kmixup.lab.tuning.budget import Allowance, Budget, Progress
from kmixup.lab.tuning.strategies import (
    AllFailedError,
    Errors,
    Setting,
    Stage,
    Strategy,
    make_strategy,
)
from kmixup.measured import Measured


@dataclass(frozen=True)
class Config(Setting):
    """What a training function is given: a setting with the seed of a trial.

    Attributes:
        k: the size of a block; 1 is mixup.
        alpha: of the Beta distribution.
        alpha_rule: what alpha means at k > 1, as in `Setting`.
        seed: of the trial.

    Given by `tune`.
    """

    seed: int = 0


@dataclass(frozen=True)
class Ran:
    """What came of some trials.

    Attributes:
        errors: the error of every trial, NaN for a trial that failed.
        seconds: of all trials together.
    """

    errors: Sequence[float]
    seconds: float


@dataclass(frozen=True)
class Tried:
    """A setting, and how it did.

    Attributes:
        setting: what was tried.
        errors: the validation error of each seed, NaN for a trial that failed.
    """

    setting: Setting
    errors: tuple[float, ...]

    @property
    def ended(self) -> tuple[float, ...]:
        return tuple(filter(math.isfinite, self.errors))

    @property
    def failed(self) -> int:
        return len(self.errors) - len(self.ended)

    @property
    def mean(self) -> float:
        """Over the trials that ended, NaN without any."""
        return fmean(self.ended) if self.ended else math.nan

    @property
    def standard_error(self) -> float:
        """Of the mean, NaN with fewer than two trials."""
        return Measured.of(self.ended).error if self.ended else math.nan


@dataclass(frozen=True)
class Round:
    """A stage as it was carried out.

    Attributes:
        stage: what the strategy asked for.
        errors: of each seed that was allowed, of each setting.
    """

    stage: Stage
    errors: Errors

    @property
    def trials(self) -> int:
        return len(self.errors) * len(self.stage.settings)

    @property
    def whole(self) -> bool:
        return len(self.errors) == len(self.stage.seeds)


@dataclass(frozen=True)
class Searched:
    """What came of a search.

    Attributes:
        winner: the setting with the least validation error.
        rounds: the stages as they were carried out.
        seconds: of all trials.

    Returned by `tune`.
    """

    winner: Setting
    rounds: tuple[Round, ...]
    seconds: float

    @property
    def trials(self) -> int:
        """How many trials were run."""
        return sum(part.trials for part in self.rounds)

    @property
    def table(self) -> tuple[Tried, ...]:
        """Every setting once, in the order in which they were asked for.

        An entry has `setting`, the `errors` of its trials, their `mean` and `standard_error`.
        """
        by_setting: dict[Setting, list[float]] = {}
        for part in self.rounds:
            for errors in part.errors:
                for setting, error in zip(part.stage.settings, errors, strict=True):
                    by_setting.setdefault(setting, []).append(error)
        return tuple(Tried(setting, tuple(errors)) for setting, errors in by_setting.items())

    @property
    def best(self) -> Tried:
        """The winner with its errors."""
        return next(tried for tried in self.table if tried.setting == self.winner)


def search(
    chosen: Strategy,
    run: Callable[[Sequence[Config]], Ran],
    *,
    allowed: Allowance,
    seed: int = 0,
) -> Searched:
    """Carry a strategy out.

    Args:
        chosen: the strategy.
        run: trains with each of many configs, and gives their errors.
        allowed: how many seeds of a stage may be begun.
        seed: the first; a strategy counts its seeds from 0.
    """
    rounds: list[Round] = []
    at = Progress()
    searching = chosen.search()
    stage = next(searching)
    while True:
        errors: list[tuple[float, ...]] = []
        while number := allowed(stage, at):
            block = stage.seeds[at.seeds : at.seeds + number]
            ran = run([_config(setting, seed + i) for i in block for setting in stage.settings])
            size = len(stage.settings)
            errors += [tuple(ran.errors[i * size : (i + 1) * size]) for i in range(number)]
            at = Progress(
                at.rounds,
                at.seeds + number,
                at.trials + number * size,
                at.seconds + ran.seconds,
            )
        rounds.append(Round(stage, tuple(errors)))
        at = replace(at, rounds=at.rounds + 1, seeds=0)
        try:
            stage = searching.send(tuple(errors))
        except StopIteration as end:
            return Searched(end.value, tuple(rounds), at.seconds)


def as_in(other: Searched) -> Allowance:
    """As many seeds of every stage as another search was allowed."""
    seeds = [len(part.errors) for part in other.rounds]
    return lambda stage, at: seeds[at.rounds] - at.seeds


def _config(setting: Setting, seed: int) -> Config:
    return Config(setting.k, setting.alpha, setting.alpha_rule, seed)


def tune(
    train: Callable[[Config], float],
    *,
    strategy: str = "two-step",
    k: Sequence[int] | None = None,
    alpha: Sequence[float] | None = None,
    alpha_rule: str | None = None,
    trials: int | None = None,
    budget: str | int | None = None,
    seed: int = 0,
) -> Searched:
    """Search k and alpha for a training function of one's own, in this process.

    Args:
        train: trains as a `Config` says (`k`, `alpha`, `alpha_rule`, `seed`) and returns the
            error on a validation split, never on test data. A setting cannot win if `train`
            raises or returns anything but a finite number.
        strategy: "simple" (alpha = 1, and k), "two-step" (alpha of mixup, then k at that xi),
            "grid" (k and alpha) or "halving" (the same, with more seeds for the better half).
        k: to choose among; by default the powers of two up to 32.
        alpha: to choose among; by default 0.1, 0.25, 1, 4 and 16, and 1 for "simple".
        alpha_rule: what alpha means at k > 1, "same" (the default) or "xi", as in `Setting`;
            "two-step" always uses "xi".
        trials: seeds of every setting, by default 5; for "halving" the seeds of the first
            round, by default 2.
        budget: the most trials, e.g. 60, or minutes, e.g. "30m".
        seed: the first seed.

    Returns the winner, and a table of all settings with their errors. Settings are compared
    on the seeds that all have. Of equal settings the smaller k wins, then the smaller alpha.

    >>> from math import log2
    >>> search = tune(lambda config: 0.1 + abs(log2(config.k) - 3) / 100, strategy="simple")
    >>> search.winner
    Setting(k=8, alpha=1.0, alpha_rule='same')
    >>> [(tried.setting.k, round(tried.mean, 2)) for tried in search.table]
    [(1, 0.13), (2, 0.12), (4, 0.11), (8, 0.1), (16, 0.11), (32, 0.12)]
    """
    check_whole("seed", seed, least=0)
    chosen = make_strategy(strategy, k=k, alpha=alpha, alpha_rule=alpha_rule, trials=trials)
    reasons: list[Exception] = []

    def run(configs: Sequence[Config]) -> Ran:
        begin = time.perf_counter()
        errors = [_error(train, config, reasons) for config in configs]
        return Ran(errors, time.perf_counter() - begin)

    try:
        return search(chosen, run, allowed=Budget.read(budget).allowance(chosen), seed=seed)
    except AllFailedError as error:
        last = reasons[-1]
        raise AllFailedError(f"{error}, the last by {type(last).__name__}: {last}") from last


def _error(train: Callable[[Config], float], config: Config, reasons: list[Exception]) -> float:
    """The error of one trial. If it fails: NaN, a warning, and the reason added to `reasons`."""
    try:
        error = float(train(config))
        if not math.isfinite(error):
            raise ValueError(f"train must return a finite error, got {error}")
    except Exception as reason:
        reasons.append(reason)
        warnings.warn(
            f"{config.label} failed with seed {config.seed} and cannot win: "
            f"{type(reason).__name__}: {reason}",
            stacklevel=4,
        )
        return math.nan
    return error
