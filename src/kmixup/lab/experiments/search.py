"""Search k and alpha as an Optuna study.

A trial of the study is a setting, k and alpha, and its value is the mean validation error over
seeds. The paper's recipes enqueue their settings, Optuna's TPE proposes others, and Optuna's
successive halving stops the worse ones early. The study draws from its own seed only, so a
search that is repeated over the same errors asks for the same settings again: a search that was
stopped is resumed by running it again over stored rows.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kmixup.lab.checks import check_whole
from kmixup.lab.experiments.budget import DIGITS, Budget, choose, minutes
from kmixup.lab.experiments.strategy import Config, Setting, Strategy, make_strategy
from kmixup.lab.formatting import count
from kmixup.measured import Measured

if TYPE_CHECKING:
    import optuna

BATCH = 10  # settings that TPE proposes at a time, to be trained in parallel
STARTUP = 5  # settings with a result before TPE stops proposing at random


class AllFailedError(RuntimeError):
    """Raised by `tune` if no setting can win, because every setting had a failed trial."""


@dataclass(frozen=True)
class Tried:
    """A setting with its results.

    Attributes:
        setting: the setting.
        errors: validation error of each seed, NaN for a trial that failed.
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
        """Mean error of the trials that did not fail, NaN without any."""
        return fmean(self.ended) if self.ended else math.nan

    @property
    def standard_error(self) -> float:
        """Standard error of the mean, NaN with fewer than two trials."""
        return Measured.of(self.ended).error if self.ended else math.nan


@dataclass(frozen=True)
class Round:
    """Settings that were trained together, with the same seeds."""

    title: str
    tried: tuple[Tried, ...]  # with the errors of this round only
    planned: int  # how many seeds the round has if the budget allows all of them

    @property
    def seeds(self) -> int:
        """How many seeds the budget allowed."""
        return len(self.tried[0].errors)

    @property
    def trials(self) -> int:
        return self.seeds * len(self.tried)


@dataclass(frozen=True)
class Searched:
    """Result of a search, returned by `tune`.

    Attributes:
        winner: the setting with the lowest validation error.
        rounds: the trials, in the order in which they were run.
        seconds: of all trials.
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
        errors: dict[Setting, tuple[float, ...]] = {}
        for part in self.rounds:
            for tried in part.tried:
                errors[tried.setting] = errors.get(tried.setting, ()) + tried.errors
        return tuple(Tried(setting, values) for setting, values in errors.items())

    @property
    def best(self) -> Tried:
        """The winner with its errors."""
        return next(tried for tried in self.table if tried.setting == self.winner)


# trains with each of many configs; returns their errors (NaN for a trial that failed), and the
# seconds of all together
Train = Callable[[Sequence[Config]], tuple[Sequence[float], float]]


def search(
    strategy: Strategy,
    train: Train,
    *,
    budget: Budget = Budget(),  # noqa: B008, frozen
    seed: int = 0,
    guess: Callable[[], float] = lambda: 0.0,
    name: str = "k-mixup",
    storage: Path | None = None,
) -> Searched:
    """Run a search.

    Args:
        strategy: from `make_strategy`.
        train: trains with each of many configs, and returns their errors and the seconds.
        budget: a search that does not fit into it has fewer seeds, or fewer settings.
        seed: the first of the trials, and the seed of the study.
        guess: returns the seconds of the first trial, 0 if they are not known.
        name: of the study.
        storage: SQLite file that the study is written to, which `optuna-dashboard` opens.
    """
    budget = replace(budget, trials=min(budget.trials, strategy.most))
    with _quiet_optuna() as optuna:
        pruner = optuna.pruners.NopPruner()
        if strategy.halvings:
            pruner = optuna.pruners.SuccessiveHalvingPruner(strategy.seeds, reduction_factor=2)
        tpe = optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP, constant_liar=True)
        optuna_study = optuna.create_study(sampler=tpe, pruner=pruner)
    study = _Study(strategy, train, budget, seed, guess, optuna_study)
    searched = _follow(strategy, study)
    if storage is not None:  # at once, for every access to the file takes long
        with _quiet_optuna() as optuna:
            stored = optuna.create_study(storage=url_of(storage), study_name=name)
            stored.add_trials(optuna_study.get_trials(deepcopy=False))
    return searched


def _follow(strategy: Strategy, study: _Study) -> Searched:
    """Ask for the settings of a strategy, and train them."""
    settings = list(strategy.settings)
    if strategy.name == "two-step":
        first = study.ask(settings)
        study.run("alpha of mixup", first, reserve=strategy.second)
        mixup = study.winner(first)
        if strategy.ks == (1,):
            second = study.sample(strategy.second)
            study.run("proposed by TPE", second)
        else:
            ks = [k for k in strategy.ks if k > 1]
            second = study.ask(Setting(k, mixup.setting.alpha, "xi") for k in ks)
            study.run("k at that xi", second)
        return study.searched([mixup, *second])
    if strategy.name == "tpe":
        title = "alpha of mixup" if strategy.ks == (1,) else f"k at alpha = {settings[0].alpha:g}"
        study.run(title, study.ask(settings))
        while (number := int(min(study.affordable / strategy.seeds, BATCH))) >= 1:
            study.run("proposed by TPE", study.sample(number))
    else:
        if strategy.halvings:
            Random(study.seed).shuffle(settings)  # Optuna compares a setting with earlier ones only
        study.run("every setting", study.ask(settings))
    most = max((len(one.errors) for one in study.asked if not one.failed), default=0)
    return study.searched([one for one in study.asked if len(one.errors) == most])


@contextmanager
def _quiet_optuna() -> Iterator[Any]:
    """Import Optuna, and let it report warnings only."""
    try:
        import optuna
    except ImportError as error:
        raise ImportError(
            'the search needs Optuna, which is not installed: pip install "kmixup[lab]"'
        ) from error
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield optuna
    finally:
        optuna.logging.set_verbosity(verbosity)


def url_of(storage: Path) -> str:
    """Return the address of a study's file, as Optuna takes it."""
    return f"sqlite:///{quote(str(storage))}"


@dataclass(eq=False)
class _Asked:
    """A setting that the study asked for, and its errors so far."""

    trial: optuna.Trial
    setting: Setting
    errors: list[float] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return not (self.errors and all(map(math.isfinite, self.errors)))

    @property
    def rank(self) -> tuple[float, int, float]:
        return round(fmean(self.errors), DIGITS), self.setting.k, self.setting.alpha


@dataclass
class _Study:
    """An Optuna study whose trials are trained with one seed after another."""

    strategy: Strategy
    train: Train
    budget: Budget
    seed: int
    guess: Callable[[], float]
    study: optuna.Study
    asked: list[_Asked] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    trials: int = 0
    seconds: float = 0.0

    @property
    def affordable(self) -> float:
        """How many more trials the budget allows, at the mean time of those so far."""
        each = 0.0
        if self.budget.timed:
            each = self.seconds / self.trials if self.trials else self.guess()
        return self.budget.affordable(self.trials, self.seconds, each)

    def ask(self, settings: Iterable[Setting]) -> list[_Asked]:
        """Enqueue settings, and ask for them."""
        settings = list(settings)
        for setting in settings:
            self.study.enqueue_trial({"k": setting.k, "alpha": setting.alpha})
        return self.sample(len(settings))

    def sample(self, number: int) -> list[_Asked]:
        """Ask for settings, which TPE proposes if none are enqueued."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution

        low, high = min(self.strategy.alphas), max(self.strategy.alphas)
        space = {
            "k": CategoricalDistribution(self.strategy.ks),
            "alpha": FloatDistribution(low, high, log=True),
        }
        new = []
        for _ in range(number):
            trial = self.study.ask(space)
            k, alpha = trial.params["k"], trial.params["alpha"]
            new.append(_Asked(trial, Setting(k, alpha, self.strategy.alpha_rule)))
        self.asked += new
        return new

    def run(self, title: str, asked: list[_Asked], *, reserve: int = 0) -> None:
        """Train settings; with halving, the better half again and again with twice the seeds.

        The budget must leave `reserve` trials for later settings.
        """
        last = self.strategy.seeds * 2**self.strategy.halvings
        whole = self._round(title, asked, self.strategy.seeds, reserve)
        while whole and len(asked[0].errors) < last and (better := self._better(asked)):
            asked = better
            whole = self._round(f"the best {len(asked)}", asked, len(asked[0].errors), 0)
        for one in asked:
            self._tell(one, pruned=False)

    def _round(self, title: str, asked: Sequence[_Asked], seeds: int, reserve: int) -> bool:
        """Train with as many seeds as the budget allows; return whether these are all."""
        before = len(asked[0].errors)
        missing = seeds
        while missing:
            fitting = (self.affordable - reserve) / len(asked)
            number = int(min(fitting, 1 if self.budget.timed else missing, missing))
            if number < 1:
                break
            first = self.seed + len(asked[0].errors)
            seeds_now = range(first, first + number)
            configs = [Config(**vars(one.setting), seed=i) for i in seeds_now for one in asked]
            errors, seconds = self.train(configs)
            for i, error in enumerate(errors):
                asked[i % len(asked)].errors.append(error)
            self.trials += len(configs)
            self.seconds += seconds
            missing -= number
        if not self.trials:
            raise ValueError(self._too_small())
        tried = tuple(Tried(one.setting, tuple(one.errors[before:])) for one in asked)
        self.rounds.append(Round(title, tried, seeds))
        for one in asked:
            if not one.failed:
                one.trial.report(fmean(one.errors), step=len(one.errors))
        return not missing

    def _better(self, asked: Sequence[_Asked]) -> list[_Asked]:
        """Return the settings that the pruner keeps and the budget allows; none if it ended."""
        kept = [one for one in asked if not one.failed and not one.trial.should_prune()]
        fitting = self.affordable / len(asked[0].errors)
        if len(kept) > fitting:
            ranked = sorted(kept, key=lambda one: one.rank)[: int(fitting)]
            kept = [one for one in kept if one in ranked]
        if kept:
            for one in asked:
                if one not in kept:
                    self._tell(one, pruned=True)
        return kept

    def _tell(self, one: _Asked, *, pruned: bool) -> None:
        from optuna.trial import TrialState

        if one.failed:
            self.study.tell(one.trial, state=TrialState.FAIL)
        elif pruned:
            self.study.tell(one.trial, state=TrialState.PRUNED)
        else:
            self.study.tell(one.trial, fmean(one.errors))

    def winner(self, candidates: Sequence[_Asked]) -> _Asked:
        best = choose({one.setting: one.errors for one in candidates})
        if best is None:
            raise AllFailedError("no setting can win: every one had a trial that failed")
        return next(one for one in candidates if one.setting == best)

    def searched(self, candidates: Sequence[_Asked]) -> Searched:
        return Searched(self.winner(candidates).setting, tuple(self.rounds), self.seconds)

    def _too_small(self) -> str:
        each = self.guess() if self.budget.timed else 0.0

        def cost(trials: int) -> str:
            # rounded up to tenths of a minute, so that the budget asked for is enough
            if self.budget.timed:
                return minutes(math.ceil(trials * each / 6) * 6)
            return count(trials, "trial")

        need, simple = self.strategy.size, len(self.strategy.ks)
        remedy = "name fewer k"
        if simple < need:
            remedy = f"use the strategy simple, which needs {cost(simple)}"
        return (
            f"budget must be at least {cost(need)} for one seed of {count(need, 'setting')}, got "
            f"{self.budget.text}: raise it, or {remedy}"
        )


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
    """Search k and alpha for your own training function, in this process.

    Args:
        train: trains with a `Config` (`k`, `alpha`, `alpha_rule`, `seed`) and returns the
            error on a validation split, never on test data. A setting cannot win if `train`
            raises or returns anything but a finite number.
        strategy: "simple" (alpha = 1, and k), "two-step" (alpha of mixup, then k at that xi),
            "grid" (k and alpha), "halving" (the same, with more seeds for the better half) or
            "tpe" (k at alpha = 1, then what Optuna's TPE proposes).
        k: to choose from; by default the powers of two up to 32.
        alpha: to choose from; by default 0.1, 0.25, 1, 4 and 16, and 1 for "simple". "tpe"
            chooses between the smallest and the largest.
        alpha_rule: the meaning of alpha at k > 1, "same" (the default) or "xi", as in `Setting`;
            "two-step" always uses "xi".
        trials: seeds of every setting, by default 5; for "halving" the seeds before the first
            half is dropped, by default 2.
        budget: the most trials, e.g. 60, or minutes, e.g. "30m".
        seed: the first seed.

    Returns the winner, and a table of all settings with their errors. Of equal settings the
    smaller k wins, then the smaller alpha.

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

    def run(configs: Sequence[Config]) -> tuple[list[float], float]:
        begin = time.perf_counter()
        errors = [_error(train, config, reasons) for config in configs]
        return errors, time.perf_counter() - begin

    try:
        return search(chosen, run, budget=Budget.read(budget), seed=seed)
    except AllFailedError as error:
        last = reasons[-1]
        raise AllFailedError(f"{error}, the last by {type(last).__name__}: {last}") from last


def _error(train: Callable[[Config], float], config: Config, reasons: list[Exception]) -> float:
    """Return the error of one trial. If it fails: NaN, a warning, and its reason in `reasons`."""
    try:
        error = float(train(config))
        if not math.isfinite(error):
            raise ValueError(f"train must return a finite error, got {error}")
    except Exception as reason:
        reasons.append(reason)
        warnings.warn(
            f"{config.label} failed with seed {config.seed} and cannot win: "
            f"{type(reason).__name__}: {reason}",
            stacklevel=6,
        )
        return math.nan
    return error
