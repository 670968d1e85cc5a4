"""Statistics of reports: intervals, tests, corrections, ranks, and the one verdict on a comparison.

Everything here takes plain numbers: errors by seed, differences, p-values. Errors are in points
(per cent for classification), and a difference is new − old, so below 0 is better.

A new statistic is one function here; reports call it where they show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, stdev
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import friedmanchisquare, rankdata, spearmanr, studentized_range
from scipy.stats import t as student

from kmixup.lab.formatting import number, signed, with_interval

LEVEL = 0.95  # of confidence
LEAST_PAIRS = 3  # two differences have an interval of 25 standard errors
LEAST_TRIALS = 4  # of a split choice: two to choose on and two to compare
ROUNDING = 1e-6  # of a test sample: differences that agree so far are equal
# Greatest correlation of the two halves' means in a split choice. With m equal candidates and
# normal errors it is e²/(m - 1), where e is the expected maximum of m standard normal draws:
# 0.32 for m = 2, 0.36 for 3, and less for more.
BETWEEN_HALVES = 0.36

Errors = Mapping[int, float]  # by seed
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Partition:
    """What the compared trials were tested on.

    Attributes:
        resolution: the points of error that one test sample is worth; 0 for errors that are not
            counts of samples.
        ratio: test samples per training sample if each trial splits the same samples anew; None
            if trials share one test set or draw new samples.
    """

    resolution: float = 0.0
    ratio: float | None = None


@dataclass(frozen=True)
class PairedDifference:
    """The mean difference of paired trials, with its 95 % confidence interval.

    Attributes:
        mean: the mean difference in points.
        low: lower end of the interval.
        high: upper end of the interval.
        trials: the number of pairs.
        p: the two-sided p-value of no difference.
        new_data: ends of the (wider) interval for other data of the same kind; None if trials
            don't split the same samples anew.
    """

    mean: float
    low: float
    high: float
    trials: int
    p: float = 1.0
    new_data: tuple[float, float] | None = None

    @property
    def side(self) -> int:
        """-1 if the whole interval is below 0, 1 if it is above, 0 if it contains 0."""
        return (self.low > 0) - (self.high < 0)

    @property
    def text(self) -> str:
        """The mean and the interval."""
        return with_interval(self.mean, self.low, self.high)

    @property
    def new_data_text(self) -> str | None:
        """The interval for other data of the same kind."""
        if self.new_data is None:
            return None
        low, high = self.new_data
        return f"[{signed(low)}, {signed(high)}]"

    def is_compatible_with(self, other: float, noise: float) -> bool:
        """Whether `other`, whose standard error is `noise`, may be the same difference."""
        quantile = float(student.ppf((1 + LEVEL) / 2, self.trials - 1))
        return abs(other - self.mean) <= math.hypot(self.high - self.mean, quantile * noise)


def interval(
    differences: Sequence[float],
    *,
    correlation: float = 0.0,
    partition: Partition = Partition(),  # noqa: B008, frozen
) -> PairedDifference:
    """Student's interval for a mean difference.

    It holds for the samples at hand. Trials that split the same samples anew share most of them,
    so the interval for new data adds `partition.ratio` times the variance of one trial (Nadeau
    and Bengio 2003, "Inference for the generalization error").

    Equal differences have no variance. Their interval and p-value are exact for trials of which
    an unknown share differs by one test sample: n trials miss it with probability
    (1 - share)^n. The p-value is never below that of a sign test on the test samples that differ,
    and if those are too few the interval contains 0.

    Args:
        differences: of paired trials.
        correlation: between the means of the two halves of the differences.
        partition: what the trials were tested on.

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
    """The largest share of trials, one-sided at 97.5 %, that n trials may all miss."""
    return float(1 - ((1 - LEVEL) / 2) ** (1 / n))


def paired(
    new: Errors,
    old: Errors,
    partition: Partition = Partition(),  # noqa: B008, frozen
) -> PairedDifference | None:
    """The difference of errors by seed, over the seeds that both have; None with fewer than three.

    >>> paired({0: 3.0, 1: 4.0, 2: 5.0, 3: 6.0}, {1: 5.0, 2: 6.0, 3: 7.0}).mean
    -1.0
    """
    seeds = sorted(new.keys() & old.keys())
    if len(seeds) < LEAST_PAIRS:
        return None
    return interval([new[seed] - old[seed] for seed in seeds], partition=partition)


def lowest(candidates: Sequence[Errors], seeds: Sequence[int] | None = None) -> int:
    """The index of the lowest mean error, over `seeds` or all; the first of equal ones."""

    def mean(i: int) -> float:
        errors = candidates[i]
        return fmean(errors.values() if seeds is None else [errors[seed] for seed in seeds])

    return min(range(len(candidates)), key=mean)


def split_choice(
    families: Sequence[Sequence[Errors]],
    choose: Callable[[Sequence[int]], tuple[Errors, Errors]],
    partition: Partition = Partition(),  # noqa: B008, frozen
) -> PairedDifference | None:
    """Choose on every other trial, compare on the rest in pairs, then swap the halves.

    The best of 25 equal settings looks better than the best of 5 if both are chosen on the test
    error that is then reported. Here no trial takes part in the choice that it compares. Both
    halves may compare different settings: the interval is of the procedure "search both families
    on half of the trials and take the winners". A setting with low errors in one half wins for
    the other, which correlates the halves' means; without an allowance for that the interval
    would cover 91 to 93 % if all settings are equal.

    Args:
        families: all candidates of both sides.
        choose: returns the errors of both winners, given the seeds to choose on.
        partition: what the trials were tested on.

    Returns:
        The difference, or None if the candidates share fewer than four trials.
    """
    candidates = [errors for family in families for errors in family]
    seeds = shared_seeds(candidates)
    if len(seeds) < LEAST_TRIALS:
        return None
    differences = []
    for half, rest in ((seeds[::2], seeds[1::2]), (seeds[1::2], seeds[::2])):
        new, old = choose(half)
        differences += [new[seed] - old[seed] for seed in rest]
    correlation = BETWEEN_HALVES if len(candidates) > len(families) else 0.0
    return interval(differences, correlation=correlation, partition=partition)


def shared_seeds(candidates: Sequence[Errors]) -> list[int]:
    """The seeds that all candidates have, in order."""
    return sorted(set.intersection(*map(set, candidates)))


def holm(values: Sequence[float]) -> tuple[float, ...]:
    """p-values corrected for their number, in the same order (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    (0.03, 0.06, 0.06)
    """
    corrected, worst = [1.0] * len(values), 0.0
    for rank, i in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        worst = max(worst, min(1.0, (len(values) - rank) * values[i]))
        corrected[i] = worst
    return tuple(corrected)


def p_text(p: float) -> str:
    """
    >>> p_text(0.0004), p_text(0.25)
    ('< 0.001', '0.250')
    """
    return "< 0.001" if p < 0.001 else number(p, 3)


# Verdicts


class Outcome(StrEnum):
    """How a comparison turned out, in the words that reports count."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    BETTER = "better"
    WORSE = "worse"
    NOT_SIGNIFICANT = "no significant difference"
    SIZE_RULED_OUT = "no significant difference, the paper's effect size is ruled out"
    UNKNOWN = "no verdict"


Mood = Literal["good", "bad", "open"]
MOODS: dict[Outcome, Mood] = {
    Outcome.REPRODUCED: "good",
    Outcome.BETTER: "good",
    Outcome.NOT_REPRODUCED: "bad",
    Outcome.WORSE: "bad",
}


@dataclass(frozen=True)
class Verdict:
    """What a comparison says.

    Attributes:
        outcome: in one of a few words.
        text: in one clause.
        side: -1 if the new method is significantly better, 1 if it is worse, else 0.
    """

    outcome: Outcome
    text: str
    side: int = 0

    @property
    def mood(self) -> Mood:
        """The colour of the verdict."""
        return MOODS.get(self.outcome, "open")


def verdict(
    difference: PairedDifference | None,
    new: str,
    old: str,
    *,
    p: float | None = None,
    paper: float | None = None,
    noise: float = 0.0,
    why: str = "it takes three paired trials",
) -> Verdict:
    """Judge a comparison; every report uses this function.

    Args:
        difference: new − old; None if it cannot be computed.
        new: the name of the first method.
        old: the name of the second method.
        p: the p-value after a correction for several tests; without it the interval decides.
        paper: the paper's difference, if it prints one.
        noise: the standard error of the paper's difference.
        why: the reason that there is no difference.

    >>> verdict(PairedDifference(-1.0, -1.5, -0.5, trials=20), "k-mixup", "mixup").text
    'k-mixup is better than mixup'
    >>> verdict(PairedDifference(0.4, -0.5, 1.3, trials=20), "k-mixup", "mixup").text
    'no significant difference'
    >>> verdict(PairedDifference(1.0, 0.5, 1.5, trials=9), "k-mixup", "mixup", paper=-0.7).text
    'not reproduced: k-mixup is worse than mixup'
    """
    if difference is None:
        return Verdict(Outcome.UNKNOWN, f"no verdict: {why}")
    side = difference.side if p is None else corrected_side(difference, p)
    if not side:
        if difference.side:
            return Verdict(Outcome.NOT_SIGNIFICANT, "not significant after Holm correction")
        ruled_out = paper is not None and not difference.is_compatible_with(paper, noise)
        outcome = Outcome.SIZE_RULED_OUT if ruled_out else Outcome.NOT_SIGNIFICANT
        return Verdict(outcome, outcome.value)
    text = f"{new} is {'worse' if side > 0 else 'better'} than {old}"
    if not paper:
        return Verdict(Outcome.WORSE if side > 0 else Outcome.BETTER, text, side)
    if (paper > 0) == (side > 0):
        return Verdict(Outcome.REPRODUCED, f"reproduced: {text}", side)
    return Verdict(Outcome.NOT_REPRODUCED, f"not reproduced: {text}", side)


def corrected_side(difference: PairedDifference, p: float) -> int:
    """-1 if a difference is significantly below 0 by a corrected p-value, 1 if above, else 0."""
    if p > 1 - LEVEL:
        return 0
    return 1 if difference.mean > 0 else -1


# Ranks over data sets (Demšar 2006, "Statistical comparisons of classifiers over multiple data
# sets")

RANK_DIGITS = 9  # errors that agree so far share a rank
LEAST_METHODS, LEAST_DATA = 3, 2  # of Friedman's test


@dataclass(frozen=True)
class Ranking:
    """Methods by their mean rank, the best first.

    Attributes:
        names: of the methods.
        ranks: their mean ranks; 1 is the lowest error on every data set.
        data_sets: their number.
        p: of Friedman's test that all methods are equal; None with too few methods or data sets.
        critical: Nemenyi's critical difference of two mean ranks; None likewise.
    """

    names: tuple[str, ...]
    ranks: tuple[float, ...]
    data_sets: int
    p: float | None
    critical: float | None

    @property
    def differ(self) -> bool:
        """Whether the ranks differ significantly."""
        return self.p is not None and self.p <= 1 - LEVEL

    @property
    def groups(self) -> tuple[tuple[int, int], ...]:
        """Maximal runs of methods without a significant difference: first and last index."""
        if self.critical is None:
            return ()
        runs: list[tuple[int, int]] = []
        for first, rank in enumerate(self.ranks):
            within = [i for i, other in enumerate(self.ranks) if other - rank < self.critical]
            last = max(within)
            if last > first and (not runs or last > runs[-1][1]):
                runs.append((first, last))
        return tuple(runs)


def rank(names: Sequence[str], errors: ArrayLike) -> Ranking:
    """Rank methods by their errors `(data sets, methods)`; equal errors share their ranks.

    >>> ranking = rank(["a", "b", "c"], [[3.0, 1.0, 2.0], [5.0, 4.0, 4.0]])
    >>> ranking.names, ranking.ranks
    (('b', 'c', 'a'), (1.25, 1.75, 3.0))
    """
    table = np.round(np.asarray(errors, dtype=np.float64), RANK_DIGITS)
    if table.shape != (len(table), len(names)) or not len(table):
        raise ValueError(
            f"errors must have a row for each data set and {len(names)} columns, one for each "
            f"method, got the shape {table.shape}"
        )
    data_sets, methods = table.shape
    means = rankdata(table, axis=1).mean(0)
    order = np.argsort(means, kind="stable")
    p = critical = None
    if methods >= LEAST_METHODS and data_sets >= LEAST_DATA:
        p, critical = friedman(table), nemenyi(methods, data_sets)
    return Ranking(
        tuple(names[i] for i in order), tuple(map(float, means[order])), data_sets, p, critical
    )


def friedman(errors: ArrayLike) -> float:
    """The p-value of Friedman's test on errors `(data sets, methods)`; 1 if all are equal."""
    table = np.asarray(errors, dtype=np.float64)
    if (table == table[:, :1]).all():
        return 1.0
    return float(friedmanchisquare(*table.T).pvalue)


def nemenyi(methods: int, data_sets: int, level: float = LEVEL) -> float:
    """Nemenyi's critical difference of two mean ranks.

    >>> round(nemenyi(4, 14), 2)  # Demšar 2006, section 3.2.4
    1.25
    """
    quantile = float(studentized_range.ppf(level, methods, math.inf)) / math.sqrt(2)
    return quantile * math.sqrt(methods * (methods + 1) / (6 * data_sets))


# Agreement of a grid with the paper's

DECIDED = 2.0  # standard errors


@dataclass(frozen=True)
class Fit:
    """How close the cells of one alpha rule are to the paper's.

    Attributes:
        rule: the alpha rule.
        distance: the root mean square difference in points.
        rank: Spearman's rank correlation; None if all cells are equal.
        shape: the root mean square difference after subtracting the mean of each k, which
            compares how the error changes with alpha; None if every k has one cell.
    """

    rule: str
    distance: float
    rank: float | None
    shape: float | None


@dataclass(frozen=True)
class Agreement:
    """The fits of the alpha rules, over the same cells.

    Attributes:
        fits: one for each alpha rule.
        cells: the number of cells.
        gap: the mean square difference of the first rule − that of the second, in standard
            errors; None with one rule or too few trials.
        shape_gap: the same for shapes.
    """

    fits: tuple[Fit, ...]
    cells: int
    gap: float | None = None
    shape_gap: float | None = None

    @property
    def nearer(self) -> Fit:
        return min(self.fits, key=lambda fit: fit.distance)

    @property
    def decided(self) -> bool:
        return self.gap is not None and abs(self.gap) >= DECIDED

    @property
    def nearer_shape(self) -> Fit | None:
        shaped = [fit for fit in self.fits if fit.shape is not None]
        return min(shaped, key=lambda fit: fit.shape or 0.0, default=None)

    @property
    def shape_decided(self) -> bool:
        return self.shape_gap is not None and abs(self.shape_gap) >= DECIDED


def agreement(
    measured: Mapping[str, Sequence[Errors]],
    paper: Sequence[float],
    ks: Sequence[int],
    confidence: float | None,
) -> Agreement:
    """Compare the cells of every alpha rule with the paper's.

    Args:
        measured: the errors of every cell, for each rule.
        paper: the printed error of every cell.
        ks: the k of every cell.
        confidence: the standard error that the paper states for its cells.
    """
    printed = np.array(paper, dtype=float)
    same = np.equal.outer(ks, ks).astype(float)
    centre = np.asarray(np.eye(len(ks)) - same / same.sum(1, keepdims=True))
    fits = []
    for rule, cells in measured.items():
        means = np.array([fmean(errors.values()) for errors in cells])
        shape = _rms(centre @ (means - printed)) if centre.any() else None
        fits.append(Fit(rule, _rms(means - printed), _rank_correlation(means, printed), shape))
    if len(fits) != 2:
        return Agreement(tuple(fits), len(paper))
    first, second = measured.values()
    gaps = (_gap(first, second, printed, confidence, view) for view in (np.eye(len(ks)), centre))
    return Agreement(tuple(fits), len(paper), *gaps)


def _rms(difference: Array) -> float:
    return float(np.sqrt(np.mean(difference**2)))


def _rank_correlation(ours: Array, paper: Array) -> float | None:
    if len(ours) < 3 or np.ptp(ours) == 0 or np.ptp(paper) == 0:
        return None
    return float(spearmanr(ours, paper).statistic)


def _gap(
    first: Sequence[Errors],
    second: Sequence[Errors],
    paper: Array,
    confidence: float | None,
    view: Array,
) -> float | None:
    """The difference of the two mean squares over its standard error, seen through `view`.

    The jackknife over trials gives the noise of ours. The paper's own noise enters through
    (a - p)² - (b - p)² = (a - b)(a + b - 2p), which is linear in p.
    """
    seeds = shared_seeds([*first, *second])
    if len(seeds) < 2:
        return None
    a, b = (
        np.array([[errors[seed] for errors in cells] for seed in seeds]) @ view.T
        for cells in (first, second)
    )
    paper = view @ paper

    def gap(a: Array, b: Array) -> float:
        return float(np.mean((a - paper) ** 2 - (b - paper) ** 2))

    n = len(seeds)
    rest = [gap(np.delete(a, i, 0).mean(0), np.delete(b, i, 0).mean(0)) for i in range(n)]
    a, b = a.mean(0), b.mean(0)
    noise = math.sqrt((n - 1) * float(np.var(rest)))
    printed = 2 * (confidence or 0.0) * float(np.linalg.norm(a - b)) / len(paper)
    both = math.hypot(noise, printed)
    return gap(a, b) / both if both else None
