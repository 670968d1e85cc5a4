"""What is measured at one k: how near partners are, and whose labels they bring.

Two disjoint sets of k samples are drawn many times and matched, as inside a batch. Disjoint
sets are as good as fresh draws from where the data come from, at any k, so that what is seen
does not depend on how many samples there happen to be. Errors are standard errors over the
draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Generator, Tensor

from kmixup.calibration import alpha_for
from kmixup.coefficient import Beta
from kmixup.inspection.halfway import Halfway, Measured, mean_of
from kmixup.theory.fraction import expected_fraction
from kmixup.theory.matching import Indices, matched_subsets, mean_square_distances
from kmixup.theory.rate import expected_rate, fitted_slope

MATCHES, LEAST_BLOCKS = 8192, 32  # of each k
CAP = 1e3  # an alpha at which lam is one half for all that matters
FIRST_IN_FIT = 4  # a smaller k shows no rate


@dataclass(frozen=True)
class Reading:
    """What mixing at one `k` does.

    `square_distance`: mean squared distance of partners; `ratio`: the same as a share of
    that of random pairs. `alpha`: the one that perturbs as much as the reference does at
    k = 1, if it is `reachable`, else the cap; `reach`: the greatest alpha of k = 1 whose
    strength is reachable. `crossing`: the share of partners of another class; `least`: what
    it is for classes far apart, which no matching can go below. Both are None without
    labels. `halfway`: where the points between partners lie; None where too few samples are
    left to see that.
    """

    k: int
    square_distance: Measured
    ratio: Measured
    alpha: float
    reachable: bool
    reach: float
    crossing: Measured | None
    least: float | None
    halfway: Halfway | None


@dataclass(frozen=True)
class Decay:
    """How the squared distance of partners falls with k, and in which dimensions it would.

    `slope`: of the logarithms, over k from 4 on. Dimensions from `low` to `high` fall within
    a tenth as fast. 2 and 3 can hardly be told apart so, clusters far apart fall like 4
    dimensions whatever they have themselves, and many dimensions read too low, since their
    rate needs a larger k: a cube of 50 falls like 25.
    """

    slope: Measured
    low: float
    high: float


def read(
    points: Tensor, labels: Indices | None, k: int, *, alpha: float, generator: Generator | None
) -> Reading:
    """Measure at one k, for centred float64 `points` `(n, d)` and `labels` that count from 0."""
    square_1 = float(2 * points.var(0).sum())  # exact, of distinct samples
    rows, firsts, seconds, squares = points.numpy(), [], [], []
    for first, second in matched_subsets(
        points, k, max(LEAST_BLOCKS, MATCHES // k), disjoint=True, generator=generator
    ):
        firsts.append(first)
        seconds.append(second)
        squares.append(mean_square_distances(rows, first, second))
    one, two = np.concatenate(firsts), np.concatenate(seconds)
    square = Measured(square_1, 0.0) if k == 1 else mean_of(np.concatenate(squares))
    least = None if labels is None else _least(labels, k)
    target = Beta(alpha).mean_square_step * square_1
    most = Beta(CAP).mean_square_step * square.value
    own_alpha, reachable = (alpha, True) if k == 1 else alpha_for(target, square.value, alpha, CAP)
    strongest, bounded = alpha_for(most, square_1, 1 / CAP, CAP)
    return Reading(
        k=k,
        square_distance=square,
        ratio=Measured(square.value / square_1, square.error / square_1),
        alpha=own_alpha,
        reachable=reachable,
        reach=strongest if bounded and k > 1 else math.inf,
        crossing=_crossing(labels, one, two, least),
        least=least,
        halfway=Halfway.of(points, labels, one, two),
    )


def decay_of(readings: Sequence[Reading]) -> Decay | None:
    """The decay, or None where there are fewer than three k to see it at."""
    fit = [one for one in readings if one.k >= FIRST_IN_FIT and one.square_distance.value > 0]
    if len(fit) < 3:
        return None
    ks = [one.k for one in fit]
    found = fitted_slope(
        ks,
        [one.square_distance.value for one in fit],
        [one.square_distance.error for one in fit],
    )
    fall = -found.value
    about = max(2 * found.error, 0.1 * abs(fall))
    known = {1.0: 1.0, 2.0: -fitted_slope(ks, expected_rate(ks, 2)).value}
    fitting = [d for d, rate in known.items() if abs(fall - rate) <= about]
    if fall - about <= 2 / 3:  # k^(-2/d), from three dimensions on
        fitting += [
            max(3.0, 2 / rate) if rate > 0 else math.inf for rate in (fall + about, fall - about)
        ]
    fitting = fitting or [min(known, key=lambda d: abs(fall - known[d]))]
    return Decay(Measured(found.value, found.error), min(fitting), max(fitting))


def _least(labels: Indices, k: int) -> float:
    """Share of partners of another class that the counts of the classes force."""
    return expected_fraction(np.bincount(labels), k, law="disjoint").fewest


def _crossing(
    labels: Indices | None, one: Indices, two: Indices, least: float | None
) -> Measured | None:
    if labels is None or least is None:
        return None
    # a set of one leaves nothing to match, so that this is known
    if one.shape[1] == 1:
        return Measured(least, 0.0)
    return mean_of((labels[one] != labels[two]).mean(1))
