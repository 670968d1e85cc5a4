"""How to search for k and alpha: the paper's recipes, as strategies.

A strategy asks for stages, is told the validation errors of each, and ends with a winner. It
trains nothing, reads nothing and draws nothing: told the same errors again it asks the same
and ends the same, which is all that resuming takes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from statistics import fmean
from typing import Literal, Protocol, get_args

from kmixup.coefficient import Beta
from kmixup.lab.protocol import AlphaRule, check_whole

StrategyName = Literal["simple", "two-step", "grid", "halving"]
STRATEGIES: tuple[StrategyName, ...] = get_args(StrategyName)
KS = (1, 2, 4, 8, 16, 32)
ALPHAS = (0.1, 0.25, 1.0, 4.0, 16.0)
TRIALS = {"simple": 5, "two-step": 5, "grid": 5, "halving": 2}  # the first rung's, of halving
DIGITS = 12  # of a mean error: beyond them two are a tie


class AllFailedError(RuntimeError):
    """No setting can win, for every one had a trial that failed."""


@dataclass(frozen=True)
class Setting:
    """What is searched for. At k = 1, which is mixup, the alpha rule leaves no choice."""

    k: int
    alpha: float
    alpha_rule: AlphaRule = "same"

    def __post_init__(self) -> None:
        if self.k == 1:
            object.__setattr__(self, "alpha_rule", "same")

    @property
    def label(self) -> str:
        """
        >>> Setting(1, 0.5, "xi").label, Setting(16, 1.0, "xi").label
        ('k=1 alpha=0.5', 'k=16 alpha=1 at equal xi')
        """
        return f"k={self.k} alpha={self.alpha:g}{' at equal xi' * (self.alpha_rule == 'xi')}"


@dataclass(frozen=True)
class Stage:
    """Settings to be tried with each of some seeds, one seed of all after the other.

    `after`: how many trials must remain affordable for what follows.
    """

    title: str
    settings: tuple[Setting, ...]
    seeds: range
    after: int = 0


Errors = Sequence[Sequence[float]]  # of every seed, of every setting; NaN where a trial failed
Search = Generator[Stage, Errors, Setting]


class Strategy(Protocol):
    """Whatever can be searched with: `settings` are as many as it will try, at the least."""

    @property
    def settings(self) -> tuple[Setting, ...]: ...

    def search(self) -> Search:
        """Asks for stages; may be given fewer seeds of them than it asks for."""
        ...

    def mixup(self) -> Strategy:
        """The same kind of search over the alpha of plain mixup, with as many trials."""
        ...


@dataclass(frozen=True)
class Grid:
    """Every setting with as many seeds."""

    settings: tuple[Setting, ...]
    trials: int

    def search(self) -> Search:
        board = Board()
        yield from board.ask(Stage("every setting", self.settings, range(self.trials)))
        return board.best(self.settings)

    def mixup(self) -> Strategy:
        return Grid(_mixups(_alphas_of(self.settings), len(self.settings)), self.trials)


@dataclass(frozen=True)
class Halving:
    """Successive halving: the better half goes on with twice the seeds, until one is left."""

    settings: tuple[Setting, ...]
    trials: int

    def search(self) -> Search:
        board, left = Board(), self.settings
        seeds = range(self.trials)
        while True:
            stage = Stage(f"the best {len(left)}" if board else "every setting", left, seeds)
            given = yield from board.ask(stage)
            if given < len(seeds) or len(left) < 3:
                # those that failed late must not take down those that were sent home whole
                return board.best([one for one in left if not board.failed(one)] or self.settings)
            left = board.ranked(left)[: -(-len(left) // 2)]
            seeds = range(seeds.stop, 2 * seeds.stop)

    def mixup(self) -> Strategy:
        return Halving(_mixups(_alphas_of(self.settings), len(self.settings)), self.trials)


@dataclass(frozen=True)
class TwoStep:
    """The best of `first`, then the best of that and of those that `then` makes of it."""

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
        found = board.best(self.first)
        second = self.then(found)
        yield from board.ask(Stage(self.title, second, seeds))
        return board.best((found, *second))

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
        alpha_rule: what alpha means at k > 1, "same" (the default) or "xi"; always the latter
            in two steps.
        trials: seeds of every setting, by default 5; of halving those it begins with, by
            default 2.
    """
    if name not in STRATEGIES:
        raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, got {name!r}")
    ks, alphas = _ks(k or KS), _alphas(alpha or ((1.0,) if name == "simple" else ALPHAS))
    trials = TRIALS[name] if trials is None else trials
    check_whole("trials", trials)
    if alpha_rule not in (None, *get_args(AlphaRule)):
        raise ValueError(f"alpha_rule must be same or xi, got {alpha_rule!r}")
    if name == "two-step":
        return _two_step(ks, alphas, alpha_rule, trials)
    if name == "simple" and len(alphas) > 1:
        raise ValueError(
            f"simple has one alpha, got {len(alphas)}: give one, or use the strategy two-step"
        )
    rule: AlphaRule = "xi" if alpha_rule == "xi" else "same"
    settings = tuple(Setting(*one, rule) for one in product(ks, alphas))
    return Halving(settings, trials) if name == "halving" else Grid(settings, trials)


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


def _at_xi(found: Setting, *, ks: tuple[int, ...]) -> tuple[Setting, ...]:
    return tuple(Setting(k, found.alpha, "xi") for k in ks)


def _around(found: Setting, *, alphas: tuple[float, ...], size: int) -> tuple[Setting, ...]:
    """As many new alphas of mixup, between the neighbours of the one that was found."""
    known = spread(alphas, 2)
    i = known.index(found.alpha)
    near = known[max(i - 1, 0) : i + 2]
    new = [alpha for alpha in spread(near, len(near) + size) if alpha not in near]
    return tuple(Setting(1, alpha) for alpha in new)


def spread(alphas: Sequence[float], size: int) -> tuple[float, ...]:
    """At least these alphas, and more between them until there are `size`.

    The widest gap on a logarithmic scale is halved again and again. One alpha alone is first
    joined by the ends of the usual list.

    >>> spread([1.0], 4)
    (0.1, 1.0, 4.0, 16.0)
    >>> spread([0.1, 10.0], 3)
    (0.1, 1.0, 10.0)
    """
    found = sorted(set(alphas))
    if len(found) == 1:
        ends = [end for end in (ALPHAS[-1], ALPHAS[0]) if end != found[0]]
        found = sorted([*found, *ends[: size - 1]])
    while len(found) < size:
        gaps = [high / low for low, high in pairwise(found)]
        i = gaps.index(max(gaps))
        middle = math.sqrt(found[i] * found[i + 1])
        short = float(f"{middle:.3g}")
        found.insert(i + 1, short if found[i] < short < found[i + 1] else middle)
    return tuple(found)


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
    """The errors of a search so far, and who leads.

    Settings are compared on the seeds that all of them have. Of equal ones the smaller k
    comes first, then the smaller alpha; one with a failed trial comes last and cannot win.
    """

    def __init__(self) -> None:
        self._errors: dict[Setting, dict[int, float]] = defaultdict(dict)

    def __bool__(self) -> bool:
        return bool(self._errors)

    def ask(self, stage: Stage) -> Generator[Stage, Errors, int]:
        """Have a stage tried; how many of its seeds there was the budget for."""
        given = yield stage
        for seed, errors in zip(stage.seeds, given, strict=False):
            for setting, error in zip(stage.settings, errors, strict=True):
                self._errors[setting][seed] = error
        return len(given)

    def ranked(self, settings: Iterable[Setting]) -> tuple[Setting, ...]:
        """The settings that were tried, best first."""
        tried = [setting for setting in settings if self._errors.get(setting)]
        seeds = sorted(set.intersection(*(set(self._errors[one]) for one in tried)))

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
