"""Strategies: how to search for k and alpha, after the paper's recipes.

A strategy asks for stages, is told the validation errors of each, and ends with a winner. It
trains nothing, reads nothing and draws nothing. With the same errors it asks for the same
stages and ends with the same winner, so that a search can be resumed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from statistics import fmean
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from kmixup.coefficient import Beta
from kmixup.lab.checks import check_whole

if TYPE_CHECKING:
    from kmixup.lab.train.config import AlphaRule

StrategyName = Literal["simple", "two-step", "grid", "halving"]
STRATEGIES: tuple[StrategyName, ...] = get_args(StrategyName)
KS = (1, 2, 4, 8, 16, 32)
ALPHAS = (0.1, 0.25, 1.0, 4.0, 16.0)
TRIALS = {"simple": 5, "two-step": 5, "grid": 5, "halving": 2}  # halving: in the first round
DIGITS = 12  # mean errors that agree in as many decimals are a tie


class AllFailedError(RuntimeError):
    """No setting can win, because every setting had a trial that failed.

    Raised by `tune`.
    """


@dataclass(frozen=True)
class Setting:
    """What is searched for.

    Attributes:
        k: the size of a block; 1 is mixup.
        alpha: of the Beta distribution.
        alpha_rule: what alpha means at k > 1. "same" trains with alpha as it is, "xi" with the
            alpha that perturbs at k as much as this one does at k = 1. Always "same" at k = 1.

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
        """The setting in a few words.

        >>> Setting(1, 0.5, "xi").label, Setting(16, 1.0, "xi").label
        ('k=1 alpha=0.5', 'k=16 alpha=1 at equal xi')
        """
        return f"k={self.k} alpha={self.alpha:g}{' at equal xi' * (self.alpha_rule == 'xi')}"


@dataclass(frozen=True)
class Stage:
    """Settings to be tried with some seeds: all settings with the first seed, and so on.

    Attributes:
        title: what is tried, in words.
        settings: the settings to try.
        seeds: the seeds to try them with.
        after: how many trials the budget must leave for the stages that follow.
    """

    title: str
    settings: tuple[Setting, ...]
    seeds: range
    after: int = 0


Errors = Sequence[Sequence[float]]  # of every seed, of every setting; NaN where a trial failed
Search = Generator[Stage, Errors, Setting]


class Strategy(Protocol):
    """How to search."""

    @property
    def settings(self) -> tuple[Setting, ...]:
        """At least as many settings as the search will try."""
        ...

    def search(self) -> Search:
        """Yields stages, and is sent the errors of as many seeds as the budget allowed."""
        ...

    def mixup(self) -> Strategy:
        """The same kind of search over the alpha of plain mixup, with as many trials."""
        ...


@dataclass(frozen=True)
class GridSearch:
    """Every setting with the same number of seeds.

    Attributes:
        settings: the settings to try.
        trials: the number of seeds.
    """

    settings: tuple[Setting, ...]
    trials: int

    def search(self) -> Search:
        board = Board()
        yield from board.ask(Stage("every setting", self.settings, range(self.trials)))
        return board.best(self.settings)

    def mixup(self) -> Strategy:
        return GridSearch(_mixups(_alphas_of(self.settings), len(self.settings)), self.trials)


@dataclass(frozen=True)
class Halving:
    """Successive halving: the better half goes on with twice the seeds, until one is left.

    Attributes:
        settings: the settings of the first round.
        trials: the seeds of the first round.
    """

    settings: tuple[Setting, ...]
    trials: int

    def search(self) -> Search:
        board, left = Board(), self.settings
        seeds = range(self.trials)
        while True:
            stage = Stage(f"the best {len(left)}" if board else "every setting", left, seeds)
            given = yield from board.ask(stage)
            if given < len(seeds) or len(left) < 3:
                # if all that are left have failed, a setting of an earlier round may win
                whole = [setting for setting in left if not board.failed(setting)]
                return board.best(whole or self.settings)
            left = board.ranked(left)[: -(-len(left) // 2)]
            seeds = range(seeds.stop, 2 * seeds.stop)

    def mixup(self) -> Strategy:
        return Halving(_mixups(_alphas_of(self.settings), len(self.settings)), self.trials)


@dataclass(frozen=True)
class TwoStep:
    """The best of `first`, then the best of that setting and of `then(that setting)`.

    Attributes:
        first: the settings of the first step.
        then: the settings of the second step, from the winner of the first.
        trials: the seeds of every setting.
        title: of the second step.
    """

    first: tuple[Setting, ...]
    then: Callable[[Setting], tuple[Setting, ...]]
    trials: int
    title: str

    @property
    def settings(self) -> tuple[Setting, ...]:
        return (*self.first, *self.then(self.first[0]))

    def search(self) -> Search:
        board, seeds = Board(), range(self.trials)
        after = len(self.settings) - len(self.first)
        yield from board.ask(Stage("alpha of mixup", self.first, seeds, after))
        winner = board.best(self.first)
        second = self.then(winner)
        yield from board.ask(Stage(self.title, second, seeds))
        return board.best((winner, *second))

    def mixup(self) -> Strategy:
        size = len(self.settings) - len(self.first)
        closer = partial(_around, alphas=_alphas_of(self.first), size=size)
        return TwoStep(self.first, closer, self.trials, "alpha of mixup, closer")


def make_strategy(
    name: str,
    *,
    k: Sequence[int] | None = None,
    alpha: Sequence[float] | None = None,
    alpha_rule: str | None = None,
    trials: int | None = None,
) -> Strategy:
    """A strategy by its name.

    Args:
        name: "simple" (alpha = 1, and k), "two-step" (alpha of mixup, then k at that xi),
            "grid" (k and alpha) or "halving" (the same, with more seeds for the better half).
        k: by default the powers of two up to 32.
        alpha: by default 0.1, 0.25, 1, 4 and 16; of simple, 1.
        alpha_rule: what alpha means at k > 1, "same" (the default) or "xi"; two-step always
            uses "xi".
        trials: seeds of every setting, by default 5; for halving the seeds of the first round,
            by default 2.
    """
    if name not in STRATEGIES:
        raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, got {name!r}")
    ks, alphas = _ks(k or KS), _alphas(alpha or ((1.0,) if name == "simple" else ALPHAS))
    trials = TRIALS[name] if trials is None else trials
    check_whole("trials", trials)
    if alpha_rule not in (None, "same", "xi", "root"):
        raise ValueError(f"alpha_rule must be same or xi, got {alpha_rule!r}")
    if name == "two-step":
        return _two_step(ks, alphas, alpha_rule, trials)
    if name == "simple" and len(alphas) > 1:
        raise ValueError(
            f"simple has one alpha, got {len(alphas)}: give one, or use the strategy two-step"
        )
    rule: AlphaRule = "xi" if alpha_rule == "xi" else "same"
    settings = tuple(Setting(size, mixing, rule) for size, mixing in product(ks, alphas))
    return Halving(settings, trials) if name == "halving" else GridSearch(settings, trials)


def _two_step(
    ks: tuple[int, ...], alphas: tuple[float, ...], alpha_rule: str | None, trials: int
) -> TwoStep:
    if alpha_rule == "same":
        raise ValueError(
            'alpha_rule must be "xi" in two steps, got "same": for that use the strategy grid'
        )
    larger = tuple(k for k in ks if k > 1)
    if not larger:
        raise ValueError("two-step needs a k above 1 for its second step, got 1 alone")
    mixups = tuple(Setting(1, alpha) for alpha in alphas)
    return TwoStep(mixups, partial(_at_xi, ks=larger), trials, "k at that xi")


def _at_xi(winner: Setting, *, ks: tuple[int, ...]) -> tuple[Setting, ...]:
    return tuple(Setting(k, winner.alpha, "xi") for k in ks)


def _around(winner: Setting, *, alphas: tuple[float, ...], size: int) -> tuple[Setting, ...]:
    """`size` new alphas of mixup, between the neighbours of the winner's alpha."""
    known = spread(alphas, 2)
    i = known.index(winner.alpha)
    near = known[max(i - 1, 0) : i + 2]
    new = [alpha for alpha in spread(near, len(near) + size) if alpha not in near]
    return tuple(Setting(1, alpha) for alpha in new)


def spread(alphas: Sequence[float], size: int) -> tuple[float, ...]:
    """At least these alphas, and more between them until there are `size`.

    The widest gap on a logarithmic scale is halved again and again. To a single alpha the
    ends of the usual list are added first.

    >>> spread([1.0], 4)
    (0.1, 1.0, 4.0, 16.0)
    >>> spread([0.1, 10.0], 3)
    (0.1, 1.0, 10.0)
    """
    known = sorted(set(alphas))
    if len(known) == 1:
        ends = [end for end in (ALPHAS[-1], ALPHAS[0]) if end != known[0]]
        known = sorted([*known, *ends[: size - 1]])
    while len(known) < size:
        gaps = [high / low for low, high in pairwise(known)]
        i = gaps.index(max(gaps))
        middle = math.sqrt(known[i] * known[i + 1])
        short = float(f"{middle:.3g}")
        known.insert(i + 1, short if known[i] < short < known[i + 1] else middle)
    return tuple(known)


def _mixups(alphas: tuple[float, ...], size: int) -> tuple[Setting, ...]:
    return tuple(Setting(1, alpha) for alpha in spread(alphas, size))


def _alphas_of(settings: Iterable[Setting]) -> tuple[float, ...]:
    return tuple(sorted({setting.alpha for setting in settings}))


def _ks(values: Sequence[int]) -> tuple[int, ...]:
    for k in values:
        check_whole("k", k)
    return tuple(sorted(set(values)))


def _alphas(values: Sequence[float]) -> tuple[float, ...]:
    for alpha in values:
        Beta(alpha)  # refuses what is no alpha
        if alpha == 0:
            raise ValueError("alpha must be above 0 in a search, got 0: that is ERM")
    return tuple(sorted({float(alpha) for alpha in values}))


class Board:
    """The errors of a search so far, and the ranking of its settings.

    Settings are compared on the seeds that all of them have. Of equal settings the smaller k
    comes first, then the smaller alpha. A setting with a failed trial comes last and cannot
    win.
    """

    def __init__(self) -> None:
        self._errors: dict[Setting, dict[int, float]] = defaultdict(dict)

    def __bool__(self) -> bool:
        return bool(self._errors)

    def ask(self, stage: Stage) -> Generator[Stage, Errors, int]:
        """Ask for a stage, and return how many of its seeds the budget allowed."""
        given = yield stage
        for seed, errors in zip(stage.seeds, given, strict=False):
            for setting, error in zip(stage.settings, errors, strict=True):
                self._errors[setting][seed] = error
        return len(given)

    def ranked(self, settings: Iterable[Setting]) -> tuple[Setting, ...]:
        """The settings that were tried, best first."""
        tried = [setting for setting in settings if self._errors.get(setting)]
        seeds = sorted(set.intersection(*(set(self._errors[setting]) for setting in tried)))

        def rank(setting: Setting) -> tuple[float, int, float]:
            return self._mean(setting, seeds), setting.k, setting.alpha

        return tuple(sorted(tried, key=rank))

    def failed(self, setting: Setting) -> bool:
        return not all(map(math.isfinite, self._errors[setting].values()))

    def best(self, settings: Iterable[Setting]) -> Setting:
        first, *_ = self.ranked(settings)
        if self.failed(first):
            raise AllFailedError("no setting can win: every one had a trial that failed")
        return first

    def _mean(self, setting: Setting, seeds: Sequence[int]) -> float:
        if self.failed(setting):
            return math.inf
        return round(fmean(self._errors[setting][seed] for seed in seeds), DIGITS)
