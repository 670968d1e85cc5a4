"""Statistics of reports: intervals, tests, corrections, ranks, and the one verdict on a comparison.

Everything here takes plain numbers. Errors are in points (per cent for classification), and a
difference is new − old, so below 0 is better.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, stdev

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import friedmanchisquare, rankdata, studentized_range
from scipy.stats import t as student

from kmixup.lab.formatting import number, signed, with_interval
from kmixup.lab.report.document import Mood

LEVEL = 0.95  # of confidence
LEAST_PAIRS = 3  # two differences have an interval of 25 standard errors
LEAST_TRIALS = 4  # of a split choice: two to choose on and two to compare
ROUNDING = 1e-6  # of a test sample: differences that agree so far are equal
# Greatest correlation of the two halves' means in a split choice. With m equal candidates and
# normal errors it is e²/(m - 1), where e is the expected maximum of m standard normal draws:
# 0.32 for m = 2, 0.36 for 3, and less for more.
BETWEEN_HALVES = 0.36

Errors = Mapping[int, float]  # by seed


@dataclass(frozen=True)
class Partition:
    """What the compared trials were tested on."""

    resolution: float = 0.0  # points of error per test sample; 0 if errors are no counts
    # test samples per training sample if each trial splits the same samples anew, else None
    ratio: float | None = None


SAME_TEST_SET = Partition()


@dataclass(frozen=True)
class PairedDifference:
    """The mean difference of paired trials in points, with its 95 % confidence interval."""

    mean: float
    low: float
    high: float
    trials: int
    p: float = 1.0  # two-sided
    # the wider interval for other data of the same kind; None unless trials split anew
    new_data: tuple[float, float] | None = None

    @property
    def side(self) -> int:
        """-1 if the interval is below 0, 1 if it is above, 0 if it contains 0."""
        return (self.low > 0) - (self.high < 0)

    @property
    def text(self) -> str:
        return with_interval(self.mean, self.low, self.high)

    @property
    def largest_gain_text(self) -> str:
        """The largest improvement that the interval does not exclude."""
        return with_interval(max(0.0, -self.low), self.low, self.high).partition(" ")[0].lstrip("+")

    @property
    def new_data_text(self) -> str | None:
        """The interval for other data of the same kind."""
        return self.new_data and "[{}, {}]".format(*map(signed, self.new_data))

    def is_compatible_with(self, other: float, noise: float) -> bool:
        """Whether `other`, whose standard error is `noise`, may be the same difference."""
        quantile = float(student.ppf((1 + LEVEL) / 2, self.trials - 1))
        return abs(other - self.mean) <= math.hypot(self.high - self.mean, quantile * noise)


def interval(
    differences: Sequence[float], *, correlation: float = 0.0, partition: Partition = SAME_TEST_SET
) -> PairedDifference:
    """Student's interval for a mean difference.

    It holds for the given samples. Trials that split the same samples anew share most of them,
    so the interval for new data adds `partition.ratio` times the variance of one trial (Nadeau
    and Bengio 2003, "Inference for the generalization error").

    Equal differences have no variance. Their interval and p-value are exact for trials of which
    an unknown share differs by one test sample: n trials miss it with probability
    (1 - share)^n. The p-value is never below that of a sign test on the test samples that differ,
    and if those are too few the interval contains 0.

    `correlation` is that between the means of the two halves of the differences.

    >>> interval([-1.0, -2.0, -3.0]).text
    '−2.00 [−4.48, +0.48]'
    >>> interval([0.0] * 20, partition=Partition(resolution=2.0)).text
    '0.00 [−0.34, +0.34]'
    >>> interval([2.0] * 3, partition=Partition(resolution=2.0)).text
    '+2.00 [−0.83, +4.83]'
    """
    n, mean, spread = len(differences), fmean(differences), stdev(differences)
    if spread < ROUNDING * partition.resolution:
        spread = 0.0
    quantile = float(student.ppf((1 + LEVEL) / 2, n - 1))
    error = spread * math.sqrt((1 + correlation) / n)
    if spread:
        half, p = quantile * error, float(2 * student.sf(abs(mean) / error, n - 1))
    else:
        half, p = _of_equal(mean, n, partition.resolution)
    new_data = None
    if partition.ratio is not None:
        wide = math.hypot(half, quantile * spread * math.sqrt(partition.ratio))
        if not spread:
            wide, _ = _of_equal(mean, 1 / (1 / n + partition.ratio), partition.resolution)
        new_data = (mean - wide, mean + wide)
    return PairedDifference(mean, mean - half, mean + half, n, p, new_data)


def _of_equal(mean: float, n: float, resolution: float) -> tuple[float, float]:
    """Half the interval of n differences that all equal `mean`, and the p-value."""
    if not resolution:
        return 0.0, 1.0
    half, size = _unseen(n) * resolution, abs(mean) / resolution
    p = min(1.0, 2 * (1 - min(1.0, size)) ** n)
    samples = n * max(1.0, size)  # that differ, all to one side
    p = max(p, min(1.0, 2 ** (1 - samples)))
    if p > 1 - LEVEL:
        half = max(half, 2 * abs(mean) * _unseen(samples))
    return half, p


def _unseen(n: float) -> float:
    """The largest fraction of trials, one-sided at 97.5 %, that n trials may all miss."""
    return float(1 - ((1 - LEVEL) / 2) ** (1 / n))


def paired(
    new: Errors, old: Errors, partition: Partition = SAME_TEST_SET
) -> PairedDifference | None:
    """The difference of errors by seed, over the seeds that both have; None with fewer than three.

    >>> paired({0: 3.0, 1: 4.0, 2: 5.0, 3: 6.0}, {1: 5.0, 2: 6.0, 3: 7.0}).mean
    -1.0
    """
    seeds = sorted(new.keys() & old.keys())
    if len(seeds) < LEAST_PAIRS:
        return None
    return interval([new[seed] - old[seed] for seed in seeds], partition=partition)


def split_choice(
    candidates: Sequence[Errors],
    choose: Callable[[Sequence[int]], tuple[Errors, Errors]],
    partition: Partition = SAME_TEST_SET,
) -> PairedDifference | None:
    """Choose on every other trial, compare on the rest in pairs, then swap the halves.

    The best of 25 equal settings looks better than the best of 5 if both are chosen on the test
    error that is then reported. Here no trial takes part in the choice that it compares. Both
    halves may compare different settings: the interval is of the procedure "search both families
    on half of the trials and take the winners". A setting with low errors in one half wins for
    the other, which correlates the halves' means; without an allowance for that the interval
    would cover 91 to 93 % if all settings are equal.

    `candidates` are those of both sides, and `choose` returns the errors of both winners, given the
    seeds to choose on. None if the candidates share fewer than four trials.
    """
    seeds = shared_seeds(candidates)
    if len(seeds) < LEAST_TRIALS:
        return None
    differences = []
    for half, rest in ((seeds[::2], seeds[1::2]), (seeds[1::2], seeds[::2])):
        new, old = choose(half)
        differences += [new[seed] - old[seed] for seed in rest]
    correlation = BETWEEN_HALVES if len(candidates) > 2 else 0.0
    return interval(differences, correlation=correlation, partition=partition)


def shared_seeds(candidates: Sequence[Errors]) -> list[int]:
    """The seeds that all candidates have, in order."""
    return sorted(set.intersection(*map(set, candidates)))


def holm(values: Sequence[float]) -> tuple[float, ...]:
    """p-values corrected for their number, in the same order (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    (0.03, 0.06, 0.06)
    """
    order = np.argsort(values)
    corrected = np.empty(len(values))
    corrected[order] = np.maximum.accumulate(np.sort(values) * range(len(values), 0, -1))
    return tuple(corrected.clip(max=1.0).tolist())


def p_text(p: float) -> str:
    return "< 0.001" if p < 0.001 else number(p, 3)


# Verdicts


class Outcome(StrEnum):
    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    BETTER = "better"
    WORSE = "worse"
    NOT_SIGNIFICANT = "no significant difference"
    SIZE_RULED_OUT = "no significant difference, the paper's effect size is ruled out"
    NOTHING_LEARNED = "nothing was learned"
    TOO_FEW = "too few trials"


GOOD = (Outcome.REPRODUCED, Outcome.BETTER)
BAD = (Outcome.NOT_REPRODUCED, Outcome.WORSE, Outcome.NOTHING_LEARNED)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A new method against an old one, and the verdict on them that every report shows.

    >>> better = PairedDifference(-1.0, -1.5, -0.5, trials=20)
    >>> Comparison(new="k-mixup", old="mixup", difference=better, paper=0.7).verdict
    'not reproduced: k-mixup is better than mixup'
    """

    new: str
    old: str
    difference: PairedDifference | None  # new − old; None with too few trials
    p: float | None = None  # corrected for several tests; without it the interval decides
    paper: float | None = None  # the paper's difference, if it prints one
    noise: float | None = None  # the standard error of the paper's difference
    constant: bool = False  # whether every compared network predicts a constant

    @property
    def side(self) -> int:
        """-1 if the new method is significantly better, 1 if it is worse, else 0."""
        if self.difference is None or self.constant:
            return 0
        return self.difference.side if self.p is None else corrected_side(self.difference, self.p)

    @property
    def outcome(self) -> Outcome:
        if self.constant:
            return Outcome.NOTHING_LEARNED
        if self.difference is None:
            return Outcome.TOO_FEW
        # a difference within the paper's own standard error has no sign to reproduce
        if self.side and self.paper and abs(self.paper) > (self.noise or 0.0):
            same = (self.paper > 0) == (self.side > 0)
            return Outcome.REPRODUCED if same else Outcome.NOT_REPRODUCED
        if self.side:
            return Outcome.WORSE if self.side > 0 else Outcome.BETTER
        if self.paper is None or self.difference.is_compatible_with(self.paper, self.noise or 0.0):
            return Outcome.NOT_SIGNIFICANT
        return Outcome.SIZE_RULED_OUT

    @property
    def largest_gain_text(self) -> str:
        """The largest improvement that the interval does not exclude; empty without one."""
        return "" if self.difference is None else self.difference.largest_gain_text

    @property
    def verdict(self) -> str:
        if not self.side:
            return self.outcome.value
        text = f"{self.new} is {'worse' if self.side > 0 else 'better'} than {self.old}"
        judged = self.outcome in (Outcome.REPRODUCED, Outcome.NOT_REPRODUCED)
        return f"{self.outcome}: {text}" if judged else text


def corrected_side(difference: PairedDifference, p: float) -> int:
    """-1 if a difference is significantly below 0 by a corrected p-value, 1 if above, else 0."""
    side = 1 if difference.mean > 0 else -1
    return side if p <= 1 - LEVEL else 0


def corrected(differences: Iterable[PairedDifference | None]) -> tuple[float, ...]:
    """p-values of one family of tests after Holm correction; 1 where there is no difference."""
    return holm([1.0 if difference is None else difference.p for difference in differences])


def mood_of(compared: Iterable[Comparison]) -> Mood:
    """The colour of comparisons: "open" unless all are good or all are bad."""
    outcomes = {comparison.outcome for comparison in compared}
    if outcomes and outcomes.issubset(GOOD):
        return "good"
    return "bad" if outcomes and outcomes.issubset(BAD) else "open"


def tally(compared: Sequence[Comparison]) -> str:
    times = Counter(comparison.outcome for comparison in compared)
    ruled_out = times.pop(Outcome.SIZE_RULED_OUT, 0)
    times[Outcome.NOT_SIGNIFICANT] += ruled_out
    texts = {outcome: f"{outcome} in {times[outcome]}" for outcome in Outcome if times[outcome]}
    if ruled_out:
        texts[Outcome.NOT_SIGNIFICANT] += f" (the paper's effect size is ruled out in {ruled_out})"
    return "; ".join(texts.values())


# Ranks over data sets (Demšar 2006, "Statistical comparisons of classifiers over multiple data
# sets")

RANK_DIGITS = 9  # errors that agree so far share a rank
LEAST_METHODS, LEAST_DATA = 3, 2  # of Friedman's test


@dataclass(frozen=True)
class Ranking:
    """Methods by their mean rank, the best first; 1 is the lowest error on every data set."""

    names: tuple[str, ...]
    ranks: tuple[float, ...]
    data_sets: int
    p: float | None  # of Friedman's test; None with too few methods or data sets
    critical: float | None  # Nemenyi's critical difference of two mean ranks; None likewise

    @property
    def differ(self) -> bool:
        return self.p is not None and self.p <= 1 - LEVEL


def rank(names: Sequence[str], errors: ArrayLike) -> Ranking:
    """Rank methods by their errors `(data sets, methods)`; equal errors share their ranks.

    >>> ranking = rank(["a", "b", "c"], [[3.0, 1.0, 2.0], [5.0, 4.0, 4.0]])
    >>> ranking.names, ranking.ranks
    (('b', 'c', 'a'), (1.25, 1.75, 3.0))
    """
    table = np.round(np.asarray(errors, dtype=np.float64), RANK_DIGITS)
    data_sets, methods = table.shape
    means = rankdata(table, axis=1).mean(0)
    order = np.argsort(means, kind="stable")
    p = critical = None
    if methods >= LEAST_METHODS and data_sets >= LEAST_DATA:
        p, critical = friedman(table), nemenyi(methods, data_sets)
    ordered = tuple(names[i] for i in order)
    return Ranking(ordered, tuple(means[order].tolist()), data_sets, p, critical)


def friedman(errors: ArrayLike) -> float:
    """The p-value of Friedman's test on errors `(data sets, methods)`; 1 if all are equal."""
    table = np.asarray(errors, dtype=np.float64)
    if (table == table[:, :1]).all():
        return 1.0
    return float(friedmanchisquare(*table.T).pvalue)


def nemenyi(methods: int, data_sets: int) -> float:
    """Nemenyi's critical difference of two mean ranks.

    >>> round(nemenyi(4, 14), 2)  # Demšar 2006, section 3.2.4
    1.25
    """
    quantile = float(studentized_range.ppf(LEVEL, methods, math.inf)) / math.sqrt(2)
    return quantile * math.sqrt(methods * (methods + 1) / (6 * data_sets))
