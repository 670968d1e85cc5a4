"""Search k and alpha as an Optuna study, and choose a setting.

A trial of the study is a setting, k and alpha, and its value is the mean validation score over
seeds. A strategy says which settings are tried: the paper's recipes enqueue theirs, and Optuna's
TPE proposes others. ERM is always tried, before the study. The study draws from its own seed only,
so a search that was stopped is resumed by running it again over stored rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Literal, get_args
from urllib.parse import quote

from kmixup._checks import SettingError, check_choice, check_whole
from kmixup._measured import Measured
from kmixup.coefficient import Beta
from kmixup.lab.trial import AlphaRule

if TYPE_CHECKING:
    import optuna

StrategyName = Literal["simple", "two-step", "grid", "tpe"]
STRATEGIES: tuple[StrategyName, ...] = get_args(StrategyName)
KS = (1, 2, 4, 8, 16, 32)
ALPHAS = (0.05, 0.2, 1.0, 4.0, 16.0)
SIMPLE = (0.2,)  # alpha of the strategy "simple": the default
SEEDS = 5  # of every setting
SAMPLED = 30  # settings of a search with TPE, as many as the grid has
BATCH = 10  # settings that TPE proposes at a time, to be trained in parallel
STUDY_NAME = "k-mixup"
STARTUP = 5  # settings with a result before TPE stops proposing at random
DIGITS = 12  # mean scores that agree to this many decimals are equal


@dataclass(frozen=True)
class Setting:
    """Values to search for.

    Attributes:
        k: block size; 1 is mixup.
        alpha: parameter of the Beta distribution; 0 is ERM, training without mixup.
        alpha_rule: the meaning of alpha. "same" trains with alpha as it is, "xi", in the second
            of two steps, with the alpha that perturbs at k as much as this one does at k = 1.

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
        if self.alpha == 0:
            return "ERM"
        words = f"k={self.k} alpha={self.alpha:g}" if self.k > 1 else f"mixup alpha={self.alpha:g}"
        return f"{words} at equal xi" if self.alpha_rule == "xi" else words

    @property
    def size(self) -> tuple[int, float]:
        """Sorts ERM before mixup before k-mixup, and smaller settings first."""
        return self.k, self.alpha


ERM = Setting(1, 0.0)


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
    title: str  # of the first round
    settings: tuple[Setting, ...]  # those that are tried first
    ks: tuple[int, ...]  # every k of the search
    alphas: tuple[float, ...]  # every alpha; TPE searches between the smallest and the largest
    seeds: int  # of every setting
    most: int = SAMPLED  # how many settings a search with TPE has

    @property
    def size(self) -> int:
        """How many settings a budget must allow one seed of, with ERM."""
        second = [k for k in self.ks if k > 1] if self.name == "two-step" else []
        return 1 + len(self.settings) + len(second)


def make_strategy(
    name: StrategyName,
    *,
    k: Sequence[int] | None = None,
    alpha: Sequence[float] | None = None,
    trials: int | None = None,
) -> Strategy:
    """Return a strategy by its name; the arguments are those of `kmixup.lab.tune`."""
    check_choice("strategy", name, STRATEGIES)
    ks = tuple(sorted({check_whole("k", size) for size in (() if k is None else k)})) or KS
    alphas = _alphas(() if alpha is None else alpha) or (SIMPLE if name == "simple" else ALPHAS)
    seeds = SEEDS if trials is None else check_whole("trials", trials)
    if name == "two-step":
        mixup = tuple(Setting(1, value) for value in alphas)
        return Strategy(name, "alpha of mixup", mixup, tuple(sorted({1, *ks})), alphas, seeds)
    if name == "tpe":
        if len(alphas) == 1:
            raise ValueError(
                "tpe searches between the smallest and the largest alpha, got one: give two, or "
                "use the strategy simple"
            )
        middle = min(alphas, key=lambda value: abs(math.log(value)))
        first = tuple(Setting(size, middle) for size in ks)
        return Strategy(name, f"k at alpha = {middle:g}", first, ks, alphas, seeds)
    settings = tuple(Setting(size, value) for size, value in product(ks, alphas))
    return Strategy(name, "every setting", settings, ks, alphas, seeds)


def _alphas(given: Sequence[float]) -> tuple[float, ...]:
    """Return every alpha once, in order."""
    for value in given:
        if Beta(float(value)).alpha == 0:  # raises on an invalid alpha
            raise ValueError("alpha must be above 0 in a search, got 0: ERM is always tried")
    return tuple(sorted(set(map(float, given))))


class AllFailedError(RuntimeError):
    """Raised by `tune` if no setting can win, because every setting had a failed trial."""


@dataclass(frozen=True)
class Tried:
    """A setting with its results."""

    setting: Setting
    errors: tuple[float, ...]  # validation score of each seed, NaN for a trial that failed

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
    tried: tuple[Tried, ...]


@dataclass(frozen=True)
class Searched:
    """Result of a search, returned by `tune`.

    Attributes:
        winner: the chosen setting, see `choose`.
        rounds: the trials, in the order in which they were run.
        seeds: of every setting.
    """

    winner: Setting
    rounds: tuple[Round, ...]
    seeds: int

    @property
    def trials(self) -> int:
        """How many trials were run."""
        return self.seeds * len(self.table)

    @property
    def table(self) -> tuple[Tried, ...]:
        """Every setting, in the order in which they were asked for.

        An entry has `setting`, the `errors` of its trials, their `mean` and `standard_error`.
        """
        return tuple(tried for part in self.rounds for tried in part.tried)

    @property
    def best(self) -> Tried:
        """The setting with the lowest mean error."""
        return lowest(self.table)


def lowest(table: Sequence[Tried]) -> Tried:
    """Return the setting with the lowest mean error, the smallest of equal ones.

    A setting with a failed trial cannot win.
    """
    whole = [tried for tried in table if not tried.failed]
    if not whole:
        raise AllFailedError("no setting can win: every one had a trial that failed")
    return min(whole, key=lambda tried: (round(tried.mean, DIGITS), tried.setting.size))


def choose(table: Sequence[Tried]) -> Setting:
    """Return the smallest setting that is within one standard error of the lowest mean.

    The standard error is that of the paired differences of the two settings' trials. ERM comes
    before mixup, mixup before k-mixup, and smaller k and alpha before larger.

    >>> best, worse = Tried(Setting(4, 1.0), (0.1, 0.3)), Tried(Setting(1, 1.0), (0.2, 0.35))
    >>> choose([best, worse]).label, choose([best, Tried(ERM, (0.05, 0.4))]).label
    ('k=4 alpha=1', 'ERM')
    """
    best = lowest(table)

    def is_close(tried: Tried) -> bool:
        pairs = zip(tried.errors, best.errors, strict=True)
        found = Measured.of([error - least for error, least in pairs])
        noise = found.error if len(tried.errors) > 1 else 0.0
        return round(found.value - noise, DIGITS) <= 0

    close = (tried for tried in table if not tried.failed and is_close(tried))
    return min((tried.setting for tried in close), key=lambda setting: setting.size)


# trains with each of many configs; returns their errors, NaN for a trial that failed
Train = Callable[[Sequence[Config]], Sequence[float]]


def search(
    strategy: Strategy,
    train: Train,
    *,
    budget: int | None = None,
    seed: int = 0,
    storage: Path | None = None,
) -> Searched:
    """Run a search.

    If it does not fit into the budget, a number of trials, it has fewer seeds; with TPE it also
    has fewer settings. ERM counts as a setting. `seed` is the first of the trials and that of the
    study. The study is written to `storage`, an SQLite file for `optuna-dashboard`.
    """
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise ImportError(
            f'kmixup.lab needs {error.name}, which is not installed: pip install "kmixup[lab]"'
        ) from error
    seeds, most = strategy.seeds, strategy.most
    if budget is not None:
        budget = check_whole("budget", budget)
        if budget < strategy.size:
            raise SettingError(
                "budget",
                f"must be at least {strategy.size} trials for one seed of each setting, got "
                f"{budget}: raise it, or name fewer k",
            )
        seeds = min(seeds, budget // strategy.size)
        most = min(most, budget // seeds - 1)
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        tpe = optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP, constant_liar=True)
        study = optuna.create_study(sampler=tpe)
        rounds = _Rounds(strategy, train, range(seed, seed + seeds), study)
        rounds.train("ERM", [ERM])
        rounds.run(strategy.title, strategy.settings)
        if strategy.name == "two-step":
            alpha = lowest(rounds.ended[-1].tried).setting.alpha
            if larger := [Setting(k, alpha, "xi") for k in strategy.ks if k > 1]:
                rounds.run("k at that xi", larger)
        elif strategy.name == "tpe":
            for tried in range(len(strategy.settings), most, BATCH):
                rounds.ask("proposed by TPE", min(BATCH, most - tried))
        if storage is not None:  # at once, for every access to the file takes long
            stored = optuna.create_study(storage=url_of(storage), study_name=STUDY_NAME)
            stored.add_trials(study.get_trials(deepcopy=False))
    finally:
        optuna.logging.set_verbosity(verbosity)
    ended = tuple(rounds.ended)
    return Searched(choose([tried for part in ended for tried in part.tried]), ended, seeds)


def url_of(storage: Path) -> str:
    """Return the address of a study's file, as Optuna takes it."""
    return f"sqlite:///{quote(str(storage))}"


@dataclass
class _Rounds:
    """The rounds of a search, whose settings are the trials of an Optuna study."""

    strategy: Strategy
    function: Train
    seeds: range
    study: optuna.Study
    ended: list[Round] = field(default_factory=list)

    def run(self, title: str, settings: Sequence[Setting]) -> None:
        """Train with settings."""
        for setting in settings:
            self.study.enqueue_trial({"k": setting.k, "alpha": setting.alpha})
        self.ask(title, len(settings))

    def ask(self, title: str, number: int) -> None:
        """Train with the settings that are enqueued, or that TPE proposes."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution
        from optuna.trial import TrialState

        low, high = min(self.strategy.alphas), max(self.strategy.alphas)
        space = {
            "k": CategoricalDistribution(self.strategy.ks),
            "alpha": FloatDistribution(low, high, log=True),
        }
        rule: AlphaRule = "xi" if self.strategy.name == "two-step" else "same"
        trials = [self.study.ask(space) for _ in range(number)]
        settings = [Setting(trial.params["k"], trial.params["alpha"], rule) for trial in trials]
        for trial, one in zip(trials, self.train(title, settings), strict=True):
            if one.failed:
                self.study.tell(trial, state=TrialState.FAIL)
            else:
                self.study.tell(trial, one.mean)

    def train(self, title: str, settings: Sequence[Setting]) -> tuple[Tried, ...]:
        """Train with settings that need not be in the study."""
        configs = [Config(**vars(one), seed=i) for i in self.seeds for one in settings]
        errors = self.function(configs)
        number = len(settings)
        tried = tuple(Tried(one, tuple(errors[i::number])) for i, one in enumerate(settings))
        self.ended.append(Round(title, tried))
        return tried


def tune(
    train: Callable[[Config], float],
    *,
    strategy: StrategyName = "two-step",
    k: Sequence[int] | None = None,
    alpha: Sequence[float] | None = None,
    trials: int | None = None,
    budget: int | None = None,
    seed: int = 0,
) -> Searched:
    """Search k and alpha for your own training function, in this process.

    Args:
        train: trains with a `Config` (`k`, `alpha`, `alpha_rule`, `seed`) and returns the
            error on a validation split, never on test data. A setting cannot win if `train`
            raises or returns anything but a finite number.
        strategy: "simple" (alpha = 0.2, and k), "two-step" (alpha of mixup, then k at that xi),
            "grid" (k and alpha) or "tpe" (k at alpha = 1, then what Optuna's TPE proposes).
        k: to choose from; by default the powers of two up to 32.
        alpha: to choose from; by default 0.05, 0.2, 1, 4 and 16, and 0.2 for "simple". "tpe"
            chooses between the smallest and the largest.
        trials: seeds of every setting, by default 5.
        budget: the most trials, e.g. 60.
        seed: the first seed.

    Returns:
        The winner, and a table of all settings with their errors. ERM, with alpha = 0, is always
        tried. The winner is the smallest setting within one standard error of the lowest mean.

    Raises:
        AllFailedError: if every setting had a failed trial.

    >>> from math import log2
    >>> search = tune(lambda config: 0.1 + abs(log2(config.k) - 3) / 100, strategy="simple")
    >>> search.winner
    Setting(k=8, alpha=0.2, alpha_rule='same')
    >>> [(tried.setting.label, round(tried.mean, 2)) for tried in search.table[:4]]
    [('ERM', 0.13), ('mixup alpha=0.2', 0.13), ('k=2 alpha=0.2', 0.12), ('k=4 alpha=0.2', 0.11)]
    """
    seed = check_whole("seed", seed, least=0)
    chosen = make_strategy(strategy, k=k, alpha=alpha, trials=trials)

    def error_of(config: Config) -> float:
        try:
            error = float(train(config))
            if not math.isfinite(error):
                raise ValueError(f"train must return a finite error, got {error}")
        except Exception as reason:
            warnings.warn(
                f"{config.label} failed with seed {config.seed} and cannot win: "
                f"{type(reason).__name__}: {reason}",
                stacklevel=6,
            )
            return math.nan
        return error

    return search(chosen, lambda configs: [*map(error_of, configs)], budget=budget, seed=seed)
