"""What the advice of an X-ray would have been worth, on networks that are trained already.

The training part of every trial is inspected and the advice taken to the nearest setting that
was run: the nearest k, then the nearest alpha among those trained with at that k. The test
error of that network is compared, in the same trial, with fixed settings and with mixup at
the alpha that is best over the *other* trials of the data set. No test error enters the
advice.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean, stdev

from kmixup.inspection import Advice
from kmixup.lab.prepare import load_data
from kmixup.lab.protocol import Trial
from kmixup.lab.store import Row
from kmixup.lab.xray import examine

RIVALS = ("ERM", "k = 16, α = 1", "tuned mixup")

Setting = tuple[int, float]  # k, and the alpha that was trained with; (1, 0.0) is ERM


@dataclass(frozen=True)
class Difference:
    """Error of the advised networks less a rival's, trial by trial, in points of per cent."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def error(self) -> float:
        """Standard error of the mean, 0 for a single trial."""
        return stdev(self.values) / math.sqrt(len(self.values)) if len(self.values) > 1 else 0.0

    @property
    def better(self) -> int:
        return sum(value < 0 for value in self.values)

    @property
    def worse(self) -> int:
        return sum(value > 0 for value in self.values)


@dataclass(frozen=True)
class Hindsight:
    """What the advice was for one data set, and how it fared.

    `advised` and `taken` count over trials what was advised and what was nearest to it;
    `error` is the mean test error of the latter in per cent, `best` that of the setting with
    the least of all, chosen by just that. `against` has a difference for each rival that was
    run in every trial.
    """

    data: str
    trials: int
    advised: Counter[Setting]
    taken: Counter[Setting]
    error: float
    best: tuple[Setting, float]
    against: Mapping[str, Difference]


Advising = Callable[[Trial], Advice]


def advice_for(trial: Trial) -> Advice:
    """The advice for a trial, from its training part alone."""
    size = trial.protocol.batch_size
    return examine(load_data(trial), batch_size=size, seed=trial.seed).found.advice


def look_back(rows: Iterable[Row], *, advising: Advising = advice_for) -> Iterator[Hindsight]:
    """Hindsight for every data set of a sweep's rows, over the trials with all settings."""
    by_data: dict[str, dict[int, dict[Setting, float]]] = defaultdict(lambda: defaultdict(dict))
    one_of: dict[tuple[str, int], Trial] = {}
    for row in rows:
        trial = Trial.from_dict(row["trial"])
        if row["status"] != "done" or not trial.method.has_xi:
            continue
        by_data[trial.data][trial.seed][trial.method.k, row["alpha"]] = 100 * row["result"]["error"]
        one_of[trial.data, trial.seed] = trial
    for data, found in by_data.items():
        most = max(map(len, found.values()))
        whole = {seed: errors for seed, errors in found.items() if len(errors) == most}
        advice = {seed: advising(one_of[data, seed]) for seed in whole}
        yield _look(data, whole, {seed: (one.k, one.alpha) for seed, one in advice.items()})


def nearest(wanted: Setting, settings: Iterable[Setting]) -> Setting:
    """The setting with the nearest k, and of those the nearest alpha, both by their ratio.

    >>> nearest((64, 3.0), [(1, 1.0), (16, 0.25), (16, 1.0), (16, 4.0)])
    (16, 4.0)
    >>> nearest((1, 0.0), [(1, 0.0), (1, 0.05), (16, 1.0)])
    (1, 0.0)
    """
    k, alpha = wanted
    if alpha == 0:
        return (1, 0.0)
    mixed = [one for one in settings if one[1] > 0]
    closest = min({one[0] for one in mixed}, key=lambda own: (abs(math.log(own / k)), own))
    return min(
        (one for one in mixed if one[0] == closest),
        key=lambda one: (abs(math.log(one[1] / alpha)), one[1]),
    )


def _look(
    data: str, errors: Mapping[int, Mapping[Setting, float]], advised: Mapping[int, Setting]
) -> Hindsight:
    taken = {seed: nearest(advised[seed], own) for seed, own in errors.items()}
    reached = {seed: own[taken[seed]] for seed, own in errors.items()}
    rivals = {name: _rival(name, errors) for name in RIVALS}
    against = {
        name: Difference(tuple(reached[seed] - theirs[seed] for seed in errors))
        for name, theirs in rivals.items()
        if theirs is not None
    }
    shared = set.intersection(*(set(own) for own in errors.values()))
    means = {one: fmean(own[one] for own in errors.values()) for one in sorted(shared)}
    best = min(means, key=lambda one: means[one])
    return Hindsight(
        data,
        len(errors),
        Counter(advised.values()),
        Counter(taken.values()),
        fmean(reached.values()),
        (best, means[best]),
        against,
    )


def _rival(name: str, errors: Mapping[int, Mapping[Setting, float]]) -> dict[int, float] | None:
    """Errors of a rival by trial, None where it was not run in each."""
    if name == "tuned mixup":
        return _tuned(errors)
    setting = (1, 0.0) if name == "ERM" else (16, 1.0)
    if not all(setting in own for own in errors.values()):
        return None
    return {seed: own[setting] for seed, own in errors.items()}


def _tuned(errors: Mapping[int, Mapping[Setting, float]]) -> dict[int, float] | None:
    """Mixup in each trial at the alpha that is best over the others."""
    plain = [one for one in next(iter(errors.values())) if one[0] == 1 and one[1] > 0]
    plain = [one for one in plain if all(one in own for own in errors.values())]
    if not plain or len(errors) < 2:
        return None
    chosen = {
        seed: min(plain, key=lambda one: (_others(errors, one, seed), one[1])) for seed in errors
    }
    return {seed: errors[seed][chosen[seed]] for seed in errors}


def _others(errors: Mapping[int, Mapping[Setting, float]], one: Setting, but: int) -> float:
    return fmean(own[one] for seed, own in errors.items() if seed != but)
