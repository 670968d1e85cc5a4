"""Verdicts: what an interval says of a claim of the paper."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from statistics import fmean, stdev

from scipy.stats import t as student

from kmixup.lab.formatting import signed, with_interval

LEVEL = 0.95  # of confidence
LEAST_PAIRS = 3  # of trials
ROUNDING = 1e-6  # of a test sample: differences that agree so far are equal


class Mood(StrEnum):
    """How verdicts are coloured: the name of a style on pages and terminals."""

    GOOD = "good"
    BAD = "bad"
    OPEN = "open"


class Verdict(Enum):
    """What a comparison says of the paper's claim.

    Attributes:
        label: in a few words. `{challenger}` is filled in with the name of a method.
        reason: what follows after a colon. `{side}` is filled in with "better" or "worse",
            `{why}` with the reason that there is no interval.
    """

    REPRODUCED = ("reproduced", "")
    NOT_REPRODUCED = ("not reproduced", "{challenger} is {side}")
    BETTER = ("{challenger} is better", "")
    WORSE = ("{challenger} is worse", "")
    UNDECIDED = ("undecided", "the interval contains 0")
    SIZE_EXCLUDED = (
        "sign undecided, size excluded",
        "the interval contains 0, and the paper's difference is too far from it for chance",
    )
    NONE = ("no verdict", "{why}")

    def __init__(self, label: str, reason: str) -> None:
        self.label, self.reason = label, reason


@dataclass(frozen=True)
class Partition:
    """What the trials that are compared were tested on.

    Attributes:
        resolution: the points of error that one test sample is worth; 0 where errors are no
            counts of samples.
        ratio: test samples for each training sample, where every trial splits the same samples
            anew; None where trials share one test part, or draw all their samples.
    """

    resolution: float = 0.0
    ratio: float | None = None


@dataclass(frozen=True)
class PairedDifference:
    """A mean difference of paired trials in points, with its interval of 95 % confidence.

    Attributes:
        mean: of the differences.
        low: the lower end of the interval.
        high: the upper end of the interval.
        trials: the number of pairs.
        p: the two-sided p-value of no difference.
        new_data: the ends of the interval for other data of the same kind, which is wider;
            None where trials do not split the same samples anew.
    """

    mean: float
    low: float
    high: float
    trials: int
    p: float = 1.0
    new_data: tuple[float, float] | None = None

    @property
    def side(self) -> int:
        """-1 if the whole interval is below 0, 1 if it is above, and 0 if it contains 0."""
        return (self.low > 0) - (self.high < 0)

    @property
    def text(self) -> str:
        """The mean and the interval."""
        return with_interval(self.mean, self.low, self.high)

    @property
    def new_data_text(self) -> str | None:
        """The interval for other data of the same kind, None where there is none."""
        if self.new_data is None:
            return None
        low, high = self.new_data
        return f"[{signed(low)}, {signed(high)}]"

    def is_compatible_with(self, other: float, noise: float) -> bool:
        """Whether chance explains the distance from `other`, with the standard error `noise`."""
        quantile = float(student.ppf((1 + LEVEL) / 2, self.trials - 1))
        return abs(other - self.mean) <= math.hypot(self.high - self.mean, quantile * noise)


def interval(
    differences: Sequence[float],
    *,
    correlation: float = 0.0,
    partition: Partition = Partition(),  # noqa: B008, it is frozen
) -> PairedDifference:
    """Student's interval for the mean of differences, of which two halves may be correlated.

    It holds for the samples at hand: trials that split the same samples anew share most of
    them, and the interval for new data adds the share `partition.ratio` of a trial's variance
    (Nadeau and Bengio 2003, "Inference for the generalization error").

    Differences that are all equal have no variance to go by. Then the interval is exact for
    trials of which a share differs by one test sample: n trials miss it with the probability
    (1 - share)^n; so is the p-value. It is no smaller than that of a sign test of the test
    samples that differ, and where these are too few to tell, the interval contains 0. For new
    data n is the number of trials that would tell as much if they shared no samples.

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
    beyond = None
    if partition.ratio is not None:
        wide = math.hypot(half, quantile * spread * math.sqrt(partition.ratio))
        if not spread:
            wide, _ = _of_equal(mean, 1 / (1 / n + partition.ratio), partition.resolution)
        beyond = (mean - wide, mean + wide)
    return PairedDifference(mean, mean - half, mean + half, n, p, beyond)


def _of_equal(mean: float, n: float, resolution: float) -> tuple[float, float]:
    """Half the interval of n differences that are all equal to `mean`, and the p-value."""
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
    """The largest share of trials, one-sided at 97.5 %, of which n trials may show none."""
    return float(1 - ((1 - LEVEL) / 2) ** (1 / n))


def paired(
    new: Mapping[int, float],
    old: Mapping[int, float],
    partition: Partition = Partition(),  # noqa: B008, it is frozen
) -> PairedDifference | None:
    """The difference of errors by seed, over the seeds that both have; None with too few.

    Two differences have an interval of 25 standard errors, which tells nothing.

    >>> paired({0: 3.0, 1: 4.0, 2: 5.0, 3: 6.0}, {1: 5.0, 2: 6.0, 3: 7.0}).mean
    -1.0
    """
    seeds = sorted(new.keys() & old.keys())
    if len(seeds) < LEAST_PAIRS:
        return None
    return interval([new[seed] - old[seed] for seed in seeds], partition=partition)


def judge(difference: PairedDifference, paper: float | None, noise: float = 0.0) -> Verdict:
    """Whether an interval lies on the side of 0 on which the paper's difference lies.

    Where it lies on neither side the size of the paper's difference, whose standard error is
    `noise`, may still be excluded.

    >>> judge(PairedDifference(-1.0, -1.5, -0.5, trials=20), paper=-0.7)
    <Verdict.REPRODUCED: ('reproduced', '')>
    >>> judge(PairedDifference(0.1, -0.5, 0.7, trials=20), paper=-0.7).label
    'sign undecided, size excluded'
    >>> judge(PairedDifference(0.1, -0.5, 0.7, trials=20), paper=-0.7, noise=0.4).label
    'undecided'
    """
    if difference.side == 0:
        excluded = paper is not None and not difference.is_compatible_with(paper, noise)
        return Verdict.SIZE_EXCLUDED if excluded else Verdict.UNDECIDED
    if not paper:
        return Verdict.BETTER if difference.side < 0 else Verdict.WORSE
    alike = (paper > 0) == (difference.side > 0)
    return Verdict.REPRODUCED if alike else Verdict.NOT_REPRODUCED


def mood_of(verdicts: Iterable[Verdict]) -> Mood:
    """How verdicts turned out together.

    >>> mood_of([Verdict.REPRODUCED, Verdict.UNDECIDED]).value
    'open'
    """
    different = set(verdicts)
    if Verdict.NOT_REPRODUCED in different:
        return Mood.BAD
    return Mood.GOOD if different == {Verdict.REPRODUCED} else Mood.OPEN
