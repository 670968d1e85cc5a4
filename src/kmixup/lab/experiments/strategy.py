"""Strategies: which values of k and alpha a search tries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Literal, get_args

from kmixup.coefficient import Beta
from kmixup.lab.checks import SettingError, check_whole

if TYPE_CHECKING:
    from kmixup.lab.train.config import AlphaRule

StrategyName = Literal["simple", "two-step", "grid", "halving", "tpe"]
STRATEGIES: tuple[StrategyName, ...] = get_args(StrategyName)
KS = (1, 2, 4, 8, 16, 32)
ALPHAS = (0.1, 0.25, 1.0, 4.0, 16.0)
SEEDS, FIRST_SEEDS = 5, 2  # of every setting; with halving, before the first half is dropped
SAMPLED = 30  # settings of a search with TPE, as many as the grid has


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
        """
        >>> Setting(1, 0.5, "xi").label, Setting(16, 1.0, "xi").label
        ('k=1 alpha=0.5', 'k=16 alpha=1 at equal xi')
        """
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
