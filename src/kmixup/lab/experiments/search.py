"""Search k and alpha as an Optuna study.

A trial of the study is a setting, k and alpha, and its value is the mean validation error over
seeds. A strategy says which settings are tried: the paper's recipes enqueue theirs, Optuna's TPE
proposes others, and Optuna's successive halving stops the worse ones early. The study draws from
its own seed only, so a search that was stopped is resumed by running it again over stored rows.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, get_args
from urllib.parse import quote

from kmixup.coefficient import Beta
from kmixup.lab.checks import SettingError, check_whole
from kmixup.lab.experiments.budget import Budget, choose, minutes, rank
from kmixup.lab.formatting import count
from kmixup.lab.train.config import AlphaRule
from kmixup.measured import Measured

if TYPE_CHECKING:
    import optuna

StrategyName = Literal["simple", "two-step", "grid", "halving", "tpe"]
STRATEGIES: tuple[StrategyName, ...] = get_args(StrategyName)
KS = (1, 2, 4, 8, 16, 32)
ALPHAS = (0.1, 0.25, 1.0, 4.0, 16.0)
SEEDS, FIRST_SEEDS = 5, 2  # of every setting; with halving, before the first half is dropped
SAMPLED = 30  # settings of a search with TPE, as many as the grid has
BATCH = 10  # settings that TPE proposes at a time, to be trained in parallel
STARTUP = 5  # settings with a result before TPE stops proposing at random


@dataclass(frozen=True)
class Setting:
    """Values to search for.

    Attributes:
        k: block size; 1 is mixup.
        alpha: parameter of the Beta distribution.
        alpha_rule: the meaning of alpha at k > 1. "same" trains with alpha as it is, "xi" with
            the alpha that perturbs at k as much as this one does at k = 1. Always "same" at
            k = 1.

    >>> Setting(k=16, alpha=1.0)
    Setting(k=16, alpha=1.0, alpha_rule='same')
    """

    k: int
    alpha: float
    alpha_rule: AlphaRule = "same"

    def __post_init__(self) -> None:
        if self.k == 1:
            object.__setattr__(self, "alpha_rule", "same")

    @property
    def label(self) -> str:
        words = f"k={self.k} alpha={self.alpha:g}"
        return f"{words} at equal xi" if self.alpha_rule == "xi" else words


@dataclass(frozen=True)
class Config(Setting):
    """Argument of a training function, passed by `tune`: a `Setting` with the seed of a trial.

    Attributes:
        k, alpha, alpha_rule: as in `Setting`.
        seed: of the trial.
    """

    seed: int = 0


@dataclass(frozen=True)
class Strategy:
    """Which settings a search tries."""

    name: StrategyName
    settings: tuple[Setting, ...]  # those that are tried first
    ks: tuple[int, ...]  # every k of the search
    alphas: tuple[float, ...]  # every alpha; TPE searches between the smallest and the largest
    alpha_rule: AlphaRule
    seeds: int  # of every setting; with halving, before the first half is dropped
    second: int = 0  # how many settings the second of two steps tries
    halvings: int = 0  # how often the worse half is dropped, and the others' seeds are doubled
    most: float = math.inf  # how many trials the search has at most

    @property
    def size(self) -> int:
        """How many settings a budget must allow one seed of."""
        return len(self.settings) + self.second

    def for_mixup(self, trials: int, seeds: int) -> Strategy:
        """Return the search over the alpha of mixup with the same budget.

        It tries the same alphas, or the default ones if there is only one, and then alphas
        that TPE proposes. This search had so many `trials`, and `seeds` in the first round.
        """
        alphas = self.alphas
        if len(alphas) == 1:
            alphas = tuple(dict.fromkeys((*alphas, *ALPHAS)))
        mixup = replace(self, ks=(1,), alphas=alphas, most=trials)
        if self.second:  # its first step is over mixup as it is
            return mixup
        first = tuple(Setting(1, alpha) for alpha in alphas[: trials // seeds])
        return replace(mixup, name="tpe", settings=first, seeds=seeds)


def make_strategy(
    name: str,
    *,
    k: Sequence[int] | None = None,
    alpha: Sequence[float] | None = None,
    alpha_rule: str | None = None,
    trials: int | None = None,
) -> Strategy:
    """Return a strategy by its name; the arguments are those of `kmixup.lab.tune`."""
    if name not in STRATEGIES:
        raise SettingError("strategy", f"must be one of {', '.join(STRATEGIES)}, got {name!r}")
    ks = tuple(sorted(set(k or KS)))
    alphas = tuple(sorted(set(map(float, alpha or ((1.0,) if name == "simple" else ALPHAS)))))
    for size in ks:
        check_whole("k", size)
    for value in alphas:
        Beta(value)  # raises on an invalid alpha
        if value == 0:
            raise ValueError("alpha must be above 0 in a search, got 0: that is ERM")
    default = FIRST_SEEDS if name == "halving" else SEEDS
    seeds = default if trials is None else trials
    check_whole("trials", seeds)
    if alpha_rule not in (None, "same", "xi"):
        raise SettingError("alpha_rule", f"must be same or xi, got {alpha_rule!r}")
    rule: AlphaRule = "xi" if alpha_rule == "xi" or name == "two-step" else "same"
    if name == "two-step":
        if alpha_rule == "same":
            raise SettingError(
                "alpha_rule",
                'must be "xi" in two steps, got "same": for that use the strategy grid',
            )
        if ks == (1,):
            raise ValueError("two-step needs a k above 1 for its second step, got 1 alone")
        mixup = tuple(Setting(1, value) for value in alphas)
        return Strategy(
            name, mixup, tuple(sorted({1, *ks})), alphas, rule, seeds, sum(k > 1 for k in ks)
        )
    if name == "simple" and len(alphas) > 1:
        raise ValueError(
            f"simple has one alpha, got {len(alphas)}: give one, or use the strategy two-step"
        )
    if name == "tpe":
        if len(alphas) == 1:
            raise ValueError(
                "tpe searches between the smallest and the largest alpha, got one: give two, or "
                "use the strategy simple"
            )
        middle = min(alphas, key=lambda value: abs(math.log(value)))
        first = tuple(Setting(size, middle, rule) for size in ks)
        return Strategy(name, first, ks, alphas, rule, seeds, most=SAMPLED * seeds)
    settings = tuple(Setting(size, value, rule) for size, value in product(ks, alphas))
    strategy = Strategy(name, settings, ks, alphas, rule, seeds)
    if name == "halving":  # until two settings are left
        size = len(settings)
        halvings = max(0, math.ceil(math.log2(size)) - 1)
        later = [math.ceil(size / 2**i) * seeds * 2 ** (i - 1) for i in range(1, halvings + 1)]
        return replace(strategy, halvings=halvings, most=size * seeds + sum(later))
    return strategy


class AllFailedError(RuntimeError):
    """Raised by `tune` if no setting can win, because every setting had a failed trial."""


@dataclass(frozen=True)
class Tried:
    """A setting with its results."""

    setting: Setting
    errors: tuple[float, ...]  # validation error of each seed, NaN for a trial that failed

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
        return sum(part.seeds * len(part.tried) for part in self.rounds)

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

    If it does not fit into the budget, it has fewer seeds or fewer settings. `seed` is the first
    of the trials and that of the study; `guess` returns the seconds of the first trial, 0 if they
    are not known. The study is written to `storage`, an SQLite file for `optuna-dashboard`.
    """
    budget = replace(budget, trials=min(budget.trials, strategy.most))
    with _quiet_optuna() as optuna:
        pruner = optuna.pruners.NopPruner()
        if strategy.halvings:
            pruner = optuna.pruners.SuccessiveHalvingPruner(strategy.seeds, reduction_factor=2)
        tpe = optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP, constant_liar=True)
        study = optuna.create_study(sampler=tpe, pruner=pruner)
        searched = _Study(strategy, train, budget, seed, guess, study).follow()
        if storage is not None:  # at once, for every access to the file takes long
            stored = optuna.create_study(storage=url_of(storage), study_name=name)
            stored.add_trials(study.get_trials(deepcopy=False))
    return searched


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

    def follow(self) -> Searched:
        """Ask for the settings of the strategy, and train them."""
        strategy = self.strategy
        settings = list(strategy.settings)
        if strategy.name == "two-step":
            first = self.ask(settings)
            self.run("alpha of mixup", first, reserve=strategy.second)
            mixup = self.winner(first)
            if strategy.ks == (1,):
                second = self.sample(strategy.second)
                self.run("proposed by TPE", second)
            else:
                ks = [k for k in strategy.ks if k > 1]
                second = self.ask(Setting(k, mixup.setting.alpha, "xi") for k in ks)
                self.run("k at that xi", second)
            return self.searched([mixup, *second])
        if strategy.name == "tpe":
            title = f"k at alpha = {settings[0].alpha:g}"
            self.run("alpha of mixup" if strategy.ks == (1,) else title, self.ask(settings))
            while (number := int(min(self.affordable / strategy.seeds, BATCH))) >= 1:
                self.run("proposed by TPE", self.sample(number))
        else:
            if strategy.halvings:  # Optuna compares a setting with earlier ones only
                Random(self.seed).shuffle(settings)
            self.run("every setting", self.ask(settings))
        most = max((len(one.errors) for one in self.asked if not one.failed), default=0)
        return self.searched([one for one in self.asked if len(one.errors) == most])

    @property
    def affordable(self) -> float:
        """How many more trials the budget allows, at the mean time of those so far."""
        left = self.budget.trials - self.trials
        if self.budget.timed:
            each = self.seconds / self.trials if self.trials else self.guess()
            in_time = (self.budget.seconds - self.seconds) / each if each else math.inf
            left = min(left, in_time)
        return max(0.0, left + 1e-9)

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
            ranked = sorted(kept, key=lambda one: rank(one.setting, one.errors))[: int(fitting)]
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
        by_setting = {one.setting: one for one in candidates}
        best = choose({setting: one.errors for setting, one in by_setting.items()})
        if best is None:
            raise AllFailedError("no setting can win: every one had a trial that failed")
        return by_setting[best]

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

    Returns:
        The winner, and a table of all settings with their errors. Of equal settings the
        smaller k wins, then the smaller alpha.

    Raises:
        AllFailedError: if every setting had a failed trial.

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
