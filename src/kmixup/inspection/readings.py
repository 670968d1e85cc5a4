"""What is measured at one k: how near partners are, and which labels they have.

Two sets of k samples are drawn many times and matched: disjoint sets, as inside a batch, or
independent ones, as from two loaders. Disjoint sets behave like fresh draws of the distribution of
the data, at any k; independent ones may share samples. Errors are standard errors over the draws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor

from kmixup.calibration import alpha_for
from kmixup.coefficient import Beta
from kmixup.inspection.halfway import Halfway
from kmixup.matching import Optimal
from kmixup.measured import Measured
from kmixup.sampling import MatchedBlocks, subset_pairs
from kmixup.theory.clusters import Law, expected_fraction
from kmixup.theory.manifold import expected_rate, fitted_slope
from kmixup.theory.matching import Indices, optimal_blocks

MATCHES, LEAST_BLOCKS = 8192, 32  # of each k
WEIGHTS = (-1.0, -0.5, -0.2, 0.0, 0.2, 0.5, 1.0, 2.0)  # of labels in the match
LABEL_MATCHES, LEAST_LABEL_BLOCKS = 2048, 4  # of each weight
NUMBERS = 1 << 22  # in the samples that are matched at once
LABELS_K = 16  # the k of readings by labels, if there are enough samples
CAP = 1e3  # an alpha at which lam is practically one half
FIRST_IN_FIT = 4  # a smaller k shows no rate


@dataclass(frozen=True)
class Reading:
    """What mixing at one k does.

    Attributes:
        k: size of the matched sets.
        square_distance: mean squared distance of partners.
        ratio: `square_distance` as a share of that of random pairs.
        alpha: the alpha that perturbs as much as the reference does at k = 1, or the cap if
            none does.
        reachable: whether `alpha` does perturb as much.
        reach: the greatest alpha of k = 1 whose strength some alpha reaches at this k.
        crossing: share of partners of another class; None without labels.
        least: the same share for classes far apart, which is the least of any matching; None
            without labels.
        halfway: where the points between partners lie; None if too few samples are left to
            compare with.

    A part of an `Inspection`. Returned by `inspect`.
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
class DistanceDecay:
    """How the squared distance of partners falls with k, and the dimensions this suggests.

    The dimension is a rough guide. 2 and 3 dimensions are hard to tell apart. Clusters far
    apart look like 4 dimensions, whatever their own is. High dimensions read too low, because
    their rate shows only at larger k: a cube of 50 dimensions reads as 25.

    Attributes:
        slope: of log distance against log k, over k from 4 on.
        low: least dimension in which distances fall as fast, within a tenth.
        high: greatest such dimension.

    A part of an `Inspection`. Returned by `inspect`.
    """

    slope: Measured
    low: float
    high: float


def partners(
    points: Tensor, k: int, *, disjoint: bool, generator: Generator | None
) -> MatchedBlocks:
    """Draw pairs of k-subsets of `points` `(n, d)` and match them."""
    blocks = max(LEAST_BLOCKS, MATCHES // k)
    parts = list(optimal_blocks(points, k, blocks, disjoint=disjoint, generator=generator))
    return MatchedBlocks(
        np.concatenate([part.first for part in parts]),
        np.concatenate([part.second for part in parts]),
        np.concatenate([part.square_distance for part in parts]),
    )


def random_square_distance(points: Tensor, *, disjoint: bool) -> float:
    """Return the exact mean squared distance of random samples, distinct ones if `disjoint`."""
    return float(2 * points.var(0, correction=int(disjoint)).sum())


def read(
    points: Tensor,
    labels: Indices | None,
    k: int,
    *,
    alpha: float,
    disjoint: bool = True,
    generator: Generator | None,
) -> Reading:
    """Measure at one k, for centred float64 `points` `(n, d)` and `labels` that count from 0."""
    square_1 = random_square_distance(points, disjoint=disjoint)
    matched = partners(points, k, disjoint=disjoint, generator=generator)
    firsts, seconds = matched.first, matched.second
    square = Measured.of(matched.square_distance) if k > 1 else Measured(square_1, 0.0)
    # the least share that the class counts allow
    least = None
    if labels is not None:
        law: Law = "disjoint" if disjoint else "independent"
        least = expected_fraction(np.bincount(labels), k, law=law).fewest
    target = Beta(alpha).mean_square_step * square_1
    most = Beta(CAP).mean_square_step * square.value
    own_alpha, reachable = (alpha, True) if k == 1 else alpha_for(target, square.value, alpha, CAP)
    strongest, bounded = alpha_for(most, square_1, 1 / CAP, CAP)
    return Reading(
        k=k,
        square_distance=square,
        ratio=square / square_1,
        alpha=own_alpha,
        reachable=reachable,
        reach=strongest if bounded and k > 1 else math.inf,
        crossing=_crossing(labels, firsts, seconds, least),
        least=least,
        halfway=Halfway.of(points, labels, firsts, seconds),
    )


def decay_of(distances: Mapping[int, Measured]) -> DistanceDecay | None:
    """Return the decay of squared distances by k; None if there are fewer than three to fit."""
    squares = {k: square for k, square in distances.items() if k >= FIRST_IN_FIT and square.value}
    if len(squares) < 3:
        return None
    ks = list(squares)
    slope = fitted_slope(
        ks,
        [square.value for square in squares.values()],
        [square.error for square in squares.values()],
    )
    fall = -slope.value
    about = max(2 * slope.error, 0.1 * abs(fall))
    known = {1.0: 1.0, 2.0: -fitted_slope(ks, expected_rate(ks, 2)).value}
    fitting = [d for d, rate in known.items() if abs(fall - rate) <= about]
    if fall - about <= 2 / 3:  # k^(-2/d), from three dimensions on
        fitting += [
            max(3.0, 2 / rate) if rate > 0 else math.inf for rate in (fall + about, fall - about)
        ]
    fitting = fitting or [min(known, key=lambda d: abs(fall - known[d]))]
    return DistanceDecay(slope, min(fitting), max(fitting))


def _crossing(
    labels: Indices | None, firsts: Indices, seconds: Indices, least: float | None
) -> Measured | None:
    if labels is None or least is None:
        return None
    # sets of one sample leave nothing to match: the share is known
    if firsts.shape[1] == 1:
        return Measured(least, 0.0)
    return Measured.of((labels[firsts] != labels[seconds]).mean(1))


@dataclass(frozen=True)
class LabelReading:
    """What matching with one weight of labels does, as in `Optimal(k, labels=c)`.

    Attributes:
        k: size of the matched sets.
        labels: the cost c of a pair of different classes, in mean distances of a block.
        crossing: share of partners of another class.
        ratio: mean squared distance of partners, as a share of that of random pairs.

    A part of an `Inspection`. Returned by `inspect`.
    """

    k: int
    labels: float
    crossing: Measured
    ratio: Measured


def read_labels(
    points: Tensor, labels: Indices, k: int, *, disjoint: bool = True, generator: Generator | None
) -> tuple[LabelReading, ...]:
    """A reading for each of `WEIGHTS`, on the same sets of `k` samples."""
    blocks = max(LEAST_LABEL_BLOCKS, min(LABEL_MATCHES, NUMBERS // points.shape[1]) // k)
    first, second = subset_pairs(len(points), k, blocks, disjoint=disjoint, generator=generator)
    a, b = points[first.flatten()], points[second.flatten()]
    classes = torch.from_numpy(labels)
    y1, y2 = classes[first.flatten()], classes[second.flatten()]
    random = random_square_distance(points, disjoint=disjoint)
    readings = []
    for weight in WEIGHTS:
        partner = Optimal(k, labels=weight)(a, b, targets=(y1, y2))
        crossing = (y1 != y2[partner]).double().view(blocks, k).mean(1)
        square = (a - b[partner]).square().sum(1).view(blocks, k).mean(1) / random
        readings.append(
            LabelReading(k, weight, Measured.of(crossing.tolist()), Measured.of(square.tolist()))
        )
    return tuple(readings)
