"""The prediction of docs/league.md, which was written down before the runs, and its test.

k helps where matching makes partners share their label, and hurts where it only brings them
nearer: the error of k = 16 less that of mixup is below 0 where the share of partners of another
class falls below 0.8 of what it is at k = 1, and above 0 elsewhere; over the data sets it rises
with that ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scipy.stats import spearmanr

from kmixup.lab.formatting import NOTHING, count, number
from kmixup.lab.league.contests import Contest, Result
from kmixup.lab.league.entrants import MATCHED, MATCHED_K, MIXUP
from kmixup.lab.report.grids import partition_of
from kmixup.lab.report.verdict import Mood, PairedDifference, paired
from kmixup.lab.train.config import Method
from kmixup.lab.train.setup import load_data
from kmixup.lab.xray import examine
from kmixup.measured import Measured

THRESHOLD = 0.8  # of the ratio
LEAST_DATA = 3  # data sets for a verdict
CLAIM = (
    "k helps where matching makes partners share their label, and hurts where it only brings "
    "them nearer."
)


@dataclass(frozen=True)
class Foretold:
    """The prediction on one data set.

    Attributes:
        name: of the data set.
        ratio: the share of partners of another class at k = 16, divided by that at k = 1.
        difference: the error of k = 16 less that of mixup, paired by trial.
    """

    name: str
    ratio: Measured
    difference: PairedDifference

    @property
    def predicted(self) -> int:
        """The predicted side of the difference: -1 below 0, 1 above."""
        return -1 if self.ratio.value < THRESHOLD else 1

    @property
    def held(self) -> bool:
        """Whether the mean difference lies on the predicted side."""
        return self.predicted * self.difference.mean > 0

    @property
    def text(self) -> str:
        """What came of it, and whether chance may be behind it."""
        side = "as predicted" if self.held else "not as predicted"
        return side if self.difference.side else f"{side}, within chance"

    @property
    def mood(self) -> Mood:
        if not self.difference.side:
            return Mood.OPEN
        return Mood.GOOD if self.held else Mood.BAD


@dataclass(frozen=True)
class Prediction:
    """The prediction over all data sets.

    Attributes:
        cases: one for each data set that it was tested on.
    """

    cases: tuple[Foretold, ...]

    @property
    def correlation(self) -> float | None:
        """Spearman's, of ratio and difference; None with too few or equal figures."""
        ratios = [case.ratio.value for case in self.cases]
        differences = [case.difference.mean for case in self.cases]
        if len(self.cases) < LEAST_DATA or len(set(differences)) < 2 or len(set(ratios)) < 2:
            return None
        return float(spearmanr(ratios, differences).statistic)

    @property
    def holds(self) -> bool | None:
        """Whether all signs and the correlation are as predicted; None with too few data sets."""
        if len(self.cases) < LEAST_DATA:
            return None
        rising = self.correlation is not None and self.correlation > 0
        return rising and all(case.held for case in self.cases)

    @property
    def verdict(self) -> str:
        """What can be said so far, in a sentence or two."""
        n = len(self.cases)
        if self.holds is None:
            return f"Open after {count(n, 'data set')}: a verdict takes {LEAST_DATA}."
        right = sum(case.held for case in self.cases)
        sure = [case for case in self.cases if case.difference.side]
        beyond = "No difference is beyond chance at 95 %, so these signs prove little."
        if sure:
            beyond = (
                f"Beyond chance at 95 %, each by itself, are {len(sure)} of the differences, "
                f"{sum(case.held for case in sure)} of them as predicted."
            )
        rho = NOTHING if self.correlation is None else number(self.correlation)
        sides = {case.predicted for case in self.cases}
        missing = "above" if sides == {-1} else "below"
        half = f" No ratio is {missing} {THRESHOLD}: that half of the prediction is not tested."
        return (
            f"The prediction {'holds' if self.holds else 'does not hold'} on "
            f"{count(n, 'data set')}: the sign is as predicted on {right} of {n}, and the rank "
            f"correlation of ratio and difference is {rho}. {beyond}"
            f"{half if len(sides) == 1 else ''}"
        )

    @property
    def mood(self) -> Mood:
        return {None: Mood.OPEN, True: Mood.GOOD, False: Mood.BAD}[self.holds]


Ratio = Callable[[Contest], Measured | None]


def crossing_ratio(contest: Contest) -> Measured | None:
    """The share of partners of another class at k = 16 over that at k = 1, without training.

    Measured on the training samples of the first trial, scaled as a network is given them. None
    where there are no two classes, too few samples of them, or fewer samples than 2 k.
    """
    if contest.task != "classes":
        return None
    data = load_data(contest.test(Method("erm"), 0))
    size = contest.base.protocol.batch_size
    try:
        inspection = examine(data, batch_size=size, largest_k=MATCHED_K).inspection
    except ValueError:  # such data cannot be inspected, but the league has trained on them
        return None
    if all(reading.k != MATCHED_K for reading in inspection.readings):
        return None
    matched, single = inspection.at(MATCHED_K).crossing, inspection.at(1).crossing
    return None if matched is None or not single or not single.value else matched / single.value


def prediction_of(results: Sequence[Result], ratio: Ratio = crossing_ratio) -> Prediction:
    """The prediction on all data sets with classes on which k = 16 and mixup are complete."""
    cases = []
    for result in results:
        matched, mixup = result.score(MATCHED), result.score(MIXUP)
        if matched is None or mixup is None:
            continue
        difference = paired(matched.errors, mixup.errors, partition_of(result.tested))
        measured = None if difference is None else ratio(result.contest)
        if difference is not None and measured is not None:
            cases.append(Foretold(result.contest.name, measured, difference))
    return Prediction(tuple(cases))
