"""The plan of a search on a data set of the lab: on validation samples to its end, then one test.

The training and the test part are divided once, by the seed of the whole search. Trials of
the search differ in which training samples are held out for validation, in their first
weights and their order; none sees the test part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kmixup.lab.checks import check_whole, known_settings
from kmixup.lab.data import ENTRIES, Holdout, at_hand, load
from kmixup.lab.evaluate.tasks import ClassWeights
from kmixup.lab.models import check_model
from kmixup.lab.train.config import Method, Protocol, Trial
from kmixup.lab.train.defaults import defaults_for
from kmixup.lab.tuning.search import Config
from kmixup.lab.tuning.strategies import KS, Setting, Strategy, make_strategy

TESTED = 10_000  # the first seed of the final test, beyond those of any search


@dataclass(frozen=True)
class Plan:
    """What is searched, and how.

    Attributes:
        name: of the strategy.
        base: the trial whose method, seed and validation are replaced.
        strategy: which settings are tried.
        validation: the share of the training samples that is held out in every trial.
        tests: the number of seeds of the final test.
    """

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

    def plain_trials(self, seeds: int) -> list[Trial]:
        """ERM on the validation samples of the first seeds of a search."""
        first = self.base.seed
        return [
            replace(self.base, seed=seed, validation=self.validation)
            for seed in range(first, first + seeds)
        ]

    def first_trials(self) -> list[Trial]:
        """One seed of what the strategy asks for first."""
        settings = next(self.strategy.search()).settings
        seed = self.base.seed
        return [
            self.trial(Config(setting.k, setting.alpha, setting.alpha_rule, seed))
            for setting in settings
        ]


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
    drop: Sequence[str] | None = None,
    task: str | None = None,
    resize: tuple[int, int] | None = None,
    class_weights: ClassWeights | None = None,
    protocol: Mapping[str, Any] | None = None,
) -> Plan:
    """A plan; network and protocol are by default the paper's for the data set.

    Args:
        data, limit, scaling, size, target, drop, task, resize: as `kmixup.lab.data.load`
            takes them.
        strategy, alpha, alpha_rule, trials: as in `make_strategy`.
        class_weights: as in `Trial`.
        model: by default the paper's for the data set.
        k: by default the powers of two up to 32 that batches and training samples allow.
        validation: the share of the training samples that is held out in every trial.
        tests: seeds of the final test.
        seed: of the split into training and test part, and the first seed of the trials.
        protocol: settings to replace in the paper's protocol for the data set.
    """
    holdout = Holdout(validation, seed)
    loaded = None
    if data in ENTRIES and not at_hand(data, limit=limit):  # they may be at hand on a cluster
        left = holdout.left(min(ENTRIES[data].train, limit or ENTRIES[data].train))
    else:
        loaded = load(
            data,
            limit=limit,
            scaling=scaling,  # type: ignore[arg-type]
            size=size,
            target=target,
            drop=drop or (),
            task=task,  # type: ignore[arg-type]
            resize=resize,
            seed=seed,
            holdout=holdout,
        )
        left = len(loaded.x_train)
    usual = defaults_for(data, loaded)
    settings = known_settings(Protocol, protocol or {}, "protocol.")
    how = replace(usual.protocol, **settings)
    base = Trial(
        data,
        model or usual.model,
        Method("erm"),
        how,
        seed,
        limit=limit,
        scaling=scaling,  # type: ignore[arg-type]
        size=size,
        target=target,
        split=seed,
        drop=None if drop is None else tuple(drop),
        task=task,
        resize=resize,
        class_weights=class_weights,
    )
    check_model(base.model)
    for given_k in k or ():
        if given_k > left:
            raise ValueError(
                f"k must be at most {left}, the training samples that validation leaves of {data}, "
                f"got {given_k}: lower it"
            )
    usual_ks = [usual_k for usual_k in KS if usual_k <= min(left, how.batch_size)]
    chosen = make_strategy(
        strategy, k=k or usual_ks, alpha=alpha, alpha_rule=alpha_rule, trials=trials
    )
    return Plan(strategy, base, chosen, validation, tests)
