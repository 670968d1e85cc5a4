"""What the advice of an X-ray would have been worth, on networks that are trained already.

The training part of every trial is inspected. The nearest setting that was run stands for the
advice: the nearest k, then the nearest alpha that was trained with at that k. The test error
of its network is compared with other networks of the same trial: with fixed settings, and with
mixup at the alpha that is best over the *other* trials of the data set. No test error enters
the advice.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean

from kmixup.inspection import Advice
from kmixup.lab.sweep.rows import Row, done_of
from kmixup.lab.train.config import Trial
from kmixup.lab.train.setup import load_data
from kmixup.lab.xray import examine
from kmixup.measured import Measured

RIVALS = ("ERM", "k = 16, α = 1", "tuned mixup")

Setting = tuple[int, float]  # k, and the alpha that was trained with; (1, 0.0) is ERM


@dataclass(frozen=True)
class Difference:
    """Error of the advised networks less that of a rival.

    Attributes:
        values: the difference in each trial, in points of per cent.
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def error(self) -> float:
        """Standard error of the mean, 0 for a single trial."""
        return Measured.of(self.values).error if len(self.values) > 1 else 0.0

    @property
    def better(self) -> int:
        return sum(value < 0 for value in self.values)

    @property
    def worse(self) -> int:
        return sum(value > 0 for value in self.values)


@dataclass(frozen=True)
class Hindsight:
    """The advice for one data set, and the test errors that it would have led to.

    Attributes:
        data: name of the data set.
        trials: number of trials.
        advised: how often each setting was advised.
        taken: how often each setting that was run stood for the advice.
        error: mean test error of the settings taken, in per cent.
        best: the setting with the least mean test error, and that error. It is chosen by its
            test error, so it flatters itself.
        against: the difference to each rival that was run in every trial.
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
    return examine(load_data(trial), batch_size=size, seed=trial.seed).inspection.advice


def look_back(rows: Iterable[Row], *, advising: Advising = advice_for) -> Iterator[Hindsight]:
    """Hindsight for every data set of a sweep's rows, over the trials that have all settings."""
    by_data: dict[str, dict[int, dict[Setting, float]]] = defaultdict(lambda: defaultdict(dict))
    trial_of: dict[tuple[str, int], Trial] = {}
    for row in done_of(rows):
        trial = row.trial
        if not trial.method.has_xi:
            continue
        by_data[trial.data][trial.seed][trial.method.k, row.alpha] = 100 * row.error
        trial_of[trial.data, trial.seed] = trial
    for data, by_seed in by_data.items():
        most = max(map(len, by_seed.values()))
        whole = {seed: errors for seed, errors in by_seed.items() if len(errors) == most}
        advice = {seed: advising(trial_of[data, seed]) for seed in whole}
        yield _look(data, whole, {seed: (said.k, said.alpha) for seed, said in advice.items()})


def nearest(wanted: Setting, settings: Iterable[Setting]) -> Setting:
    """The setting with the nearest k, and among these with the nearest alpha, both by ratio.

    >>> nearest((64, 3.0), [(1, 1.0), (16, 0.25), (16, 1.0), (16, 4.0)])
    (16, 4.0)
    >>> nearest((1, 0.0), [(1, 0.0), (1, 0.05), (16, 1.0)])
    (1, 0.0)
    """
    k, alpha = wanted
    if alpha == 0:
        return (1, 0.0)
    mixed = [setting for setting in settings if setting[1] > 0]
    closest = min(
        {setting[0] for setting in mixed}, key=lambda size: (abs(math.log(size / k)), size)
    )
    return min(
        (setting for setting in mixed if setting[0] == closest),
        key=lambda setting: (abs(math.log(setting[1] / alpha)), setting[1]),
    )


def _look(
    data: str, errors: Mapping[int, Mapping[Setting, float]], advised: Mapping[int, Setting]
) -> Hindsight:
    taken = {seed: nearest(advised[seed], results) for seed, results in errors.items()}
    reached = {seed: results[taken[seed]] for seed, results in errors.items()}
    rivals = {name: _rival(name, errors) for name in RIVALS}
    against = {
        name: Difference(tuple(reached[seed] - theirs[seed] for seed in errors))
        for name, theirs in rivals.items()
        if theirs is not None
    }
    shared = set.intersection(*(set(results) for results in errors.values()))
    means = {
        setting: fmean(results[setting] for results in errors.values())
        for setting in sorted(shared)
    }
    best = min(means, key=lambda setting: means[setting])
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
    if not all(setting in results for results in errors.values()):
        return None
    return {seed: results[setting] for seed, results in errors.items()}


def _tuned(errors: Mapping[int, Mapping[Setting, float]]) -> dict[int, float] | None:
    """Mixup in each trial at the alpha that is best over the others."""
    plain = [
        setting for setting in next(iter(errors.values())) if setting[0] == 1 and setting[1] > 0
    ]
    plain = [setting for setting in plain if all(setting in results for results in errors.values())]
    if not plain or len(errors) < 2:
        return None
    chosen = {
        seed: min(plain, key=lambda setting: (_others(errors, setting, seed), setting[1]))
        for seed in errors
    }
    return {seed: errors[seed][chosen[seed]] for seed in errors}


def _others(errors: Mapping[int, Mapping[Setting, float]], setting: Setting, but: int) -> float:
    return fmean(results[setting] for seed, results in errors.items() if seed != but)
