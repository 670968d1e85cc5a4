"""Does the claim hold? Best cells compared, the paper's way and on trials that did not choose.

The paper chooses its best cells on the test error that it then reports, over as many cells
as the grid has: the best of 25 equal cells looks better than the best of 5. So beside that
figure stands an honest one, of cells chosen on one half of the trials and compared on the
other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy.stats import t as student

from kmixup.lab.paper.claims import Comparison as Claim
from kmixup.lab.protocol import AlphaRule
from kmixup.lab.report.grids import Cell, Grid, Outcome

HEURISTIC = 16  # the k that the paper recommends without a search
LEAST_TRIALS = 4  # two to choose on and two to compare
LEVEL = 0.95
# Correlation of the means of two turns that choose on each other's trials, at most. With m
# equal cells and normal errors it is e²/(m - 1), where e is the expected greatest of m standard
# normal draws: 0.32 for m = 2, 0.36 for 3, and less for more.
BETWEEN_TURNS = 0.36


@dataclass(frozen=True)
class Estimate:
    """A mean paired difference in points, with its interval of 95 % confidence."""

    difference: float
    low: float
    high: float
    trials: int

    @property
    def side(self) -> int:
        """-1 or 1 where the interval is on one side of 0 altogether, else 0."""
        return (self.low > 0) - (self.high < 0)


@dataclass(frozen=True)
class Comparison:
    """A challenger against a baseline, each the best of some cells.

    Differences are the challenger's error less the baseline's, so that below 0 is better.
    `k` is the only one that the challenger has, None where it has its choice of them.
    `paper` is the difference between its printed cells. `chosen` are the best cells on the
    test error over all trials, as the paper chooses them; `honest` comes from cells chosen
    on other trials than they are compared on, None where that cannot be had, and `why` says
    the reason.
    """

    challenger: str
    baseline: str
    rule: AlphaRule | None
    k: int | None
    eps: float | None
    paper: float | None
    chosen: tuple[Cell, Cell] | None
    honest: Estimate | None
    why: str = ""

    @property
    def difference(self) -> float | None:
        """Between the cells chosen on the test error."""
        if self.chosen is None:
            return None
        new, old = (cell.mean for cell in self.chosen)
        return None if new is None or old is None else new - old

    @property
    def verdict(self) -> str:
        """In words: reproduced, not reproduced, or undecided."""
        if self.honest is None:
            return f"no verdict: {self.why}"
        return words(self.honest, self.paper, self.challenger)


def words(estimate: Estimate, paper: float | None, challenger: str) -> str:
    """Whether an interval bears out the side that the paper's difference is on.

    >>> words(Estimate(-1.0, -1.5, -0.5, trials=20), -0.7, "k-mixup")
    'reproduced'
    >>> words(Estimate(0.1, -0.5, 0.7, trials=20), -0.7, "k-mixup")
    'undecided: the interval contains 0'
    """
    if estimate.side == 0:
        return "undecided: the interval contains 0"
    found = f"{challenger} is {'better' if estimate.side < 0 else 'worse'}"
    if not paper:
        return found
    return "reproduced" if (paper > 0) == (estimate.side > 0) else f"not reproduced: {found}"


def comparisons(outcome: Outcome) -> tuple[Comparison, ...]:
    """k-mixup, mixup and ERM against one another, for each eps and each alpha rule."""
    return tuple(
        one
        for erm in outcome.erm
        for one in _at_level(outcome, erm)
        if one.chosen is not None or one.paper is not None
    )


def _at_level(outcome: Outcome, erm: Cell) -> list[Comparison]:
    """The comparisons among the cells with the eps of `erm`."""
    name = _name(outcome)
    grids = {g.rule: [cell for cell in g if cell.eps == erm.eps] for g in outcome.grids}
    mixup = [cell for cell in next(iter(grids.values())) if cell.k == 1]
    found = []
    for rule, cells in grids.items():
        several = [cell for cell in cells if cell.k > 1]
        heuristic = [cell for cell in cells if cell.k == HEURISTIC]
        found.append(compare(name, several, outcome.baseline, mixup, rule=rule))
        found.append(compare(name, heuristic, outcome.baseline, mixup, rule=rule, k=HEURISTIC))
        found.append(compare(name, several, "ERM", [erm], rule=rule))
    return [*found, compare(outcome.baseline, mixup, "ERM", [erm])]


def claimed(outcome: Outcome, grid: Grid, claim: Claim) -> tuple[Comparison, ...]:
    """What a claim of the paper says of a grid: one comparison, or one for each column or eps."""
    groups: dict[object, list[Cell]] = {}
    for cell in grid:
        column = (cell.eps, cell.alpha) if claim.each == "column" else cell.eps
        groups.setdefault(column, []).append(cell)
    return tuple(
        compare(
            _name(outcome),
            [cell for cell in cells if cell.k > 1 and claim.k in (None, cell.k)],
            outcome.baseline,
            [cell for cell in cells if cell.k == 1],
            rule=grid.rule,
            k=claim.k,
        )
        for cells in groups.values()
    )


def _name(outcome: Outcome) -> str:
    """The method with k > 1, as the paper calls it."""
    return "k-mixup" if outcome.table.method == "kmixup" else outcome.table.method


def compare(
    challenger: str,
    new: Sequence[Cell],
    baseline: str,
    old: Sequence[Cell],
    *,
    rule: AlphaRule | None = None,
    k: int | None = None,
) -> Comparison:
    """The best of the cells `new`, all with `k` if that is given, against the best of `old`.

    Cells with a failed trial cannot be chosen: the mean over those that ended would flatter
    a setting that sometimes breaks.
    """
    candidates = [
        [cell for cell in cells if cell.errors and not cell.failed] for cells in (new, old)
    ]
    eps = next((cell.eps for cell in (*new, *old)), None)
    chosen, honest, why = None, None, ""
    if all(candidates):
        chosen = (_best(candidates[0]), _best(candidates[1]))
        honest, why = _honest(*candidates)
    else:
        lacking = challenger if not candidates[0] else baseline
        why = f"no cell of {lacking} has trials that all ended well"
    return Comparison(challenger, baseline, rule, k, eps, _printed(new, old), chosen, honest, why)


def by_column(grid: Grid, *, k: int) -> tuple[tuple[Cell, Cell, Estimate | None], ...]:
    """The cells of `k` and of k = 1 under the same alpha, and their difference in pairs.

    Nothing is chosen here, so all trials count. The estimate is None with fewer than two.
    """
    new, old = ([cell for cell in grid if cell.k == one] for one in (k, 1))
    return tuple((*pair, _paired(*pair)) for pair in zip(new, old, strict=True))


def _paired(new: Cell, old: Cell) -> Estimate | None:
    seeds = sorted(new.errors.keys() & old.errors.keys())
    if len(seeds) < 2:
        return None
    return interval([new.errors[seed] - old.errors[seed] for seed in seeds])


def interval(differences: Sequence[float], *, correlation: float = 0.0) -> Estimate:
    """Student's interval for the mean of differences, of which two halves may be correlated.

    >>> found = interval([-1.0, -2.0, -3.0])
    >>> found.difference, round(found.low, 2), round(found.high, 2)
    (-2.0, -4.48, 0.48)
    """
    n, mean = len(differences), fmean(differences)
    error = stdev(differences) * math.sqrt((1 + correlation) / n)
    half = float(student.ppf((1 + LEVEL) / 2, n - 1)) * error
    return Estimate(mean, mean - half, mean + half, n)


def _honest(new: Sequence[Cell], old: Sequence[Cell]) -> tuple[Estimate | None, str]:
    """Choose on every other trial, compare on the rest in pairs, and the other way round.

    The differences of both turns go into one interval. The turns may compare different
    cells: what is estimated is the procedure (search both families on half of the trials,
    take the winners), not one pair of cells. No difference had a part in its own choice, so
    none is flattered. But what is low in one turn wins in the other, which makes the two
    means alike: without an allowance for that the interval would cover 91 to 93 % where
    cells are equal.
    """
    seeds = sorted(set.intersection(*(set(cell.errors) for cell in (*new, *old))))
    if len(seeds) < LEAST_TRIALS:
        return None, (
            f"an honest comparison needs {LEAST_TRIALS} trials that all cells have, "
            f"there {'is' if len(seeds) == 1 else 'are'} {len(seeds)}"
        )
    differences = []
    for half, rest in ((seeds[::2], seeds[1::2]), (seeds[1::2], seeds[::2])):
        winner, rival = _best(new, half), _best(old, half)
        differences += [winner.errors[seed] - rival.errors[seed] for seed in rest]
    choice = len(new) > 1 or len(old) > 1
    return interval(differences, correlation=BETWEEN_TURNS if choice else 0.0), ""


def _best(cells: Sequence[Cell], seeds: Sequence[int] | None = None) -> Cell:
    """The cell with the least mean error; of equal ones the first in the grid."""

    def mean(cell: Cell) -> float:
        errors: Mapping[int, float] = cell.errors
        return fmean(errors.values() if seeds is None else [errors[seed] for seed in seeds])

    return min(cells, key=mean)


def _printed(new: Sequence[Cell], old: Sequence[Cell]) -> float | None:
    """The difference of the best printed cells."""
    best = [[cell.paper for cell in cells if cell.paper is not None] for cells in (new, old)]
    return min(best[0]) - min(best[1]) if all(best) else None
