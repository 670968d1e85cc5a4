"""`inspect`: measure how near partners are at each k, and which labels they have.

Two sets of k samples are drawn many times and matched: disjoint sets, as inside a batch, or
independent ones, as from two loaders. Disjoint sets behave like fresh draws of the distribution of
the data, at any k; independent ones may share samples. Errors are standard errors over the draws.

Points half-way between partners should be plausible samples. Far from all data they are not, and
among samples of a third class they teach a wrong label (manifold intrusion).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from kmixup.calibration import alpha_for
from kmixup.checks import SettingError
from kmixup.coefficient import Beta
from kmixup.matching import Optimal
from kmixup.measured import Measured, standard_error
from kmixup.sampling import MatchedBlocks, subset_pairs
from kmixup.theory.clusters import Law, expected_fraction
from kmixup.theory.manifold import expected_rate, fitted_slope
from kmixup.theory.matching import Array, Indices, optimal_blocks

NUMBERS = 1 << 25  # of the data held in memory, in float64
SIZE, LARGEST_K = 10_000, 256
MATCHES, LEAST_BLOCKS = 8192, 32  # of each k
WEIGHTS = (-1.0, -0.5, -0.2, 0.0, 0.2, 0.5, 1.0, 2.0)  # of labels in the match
LABEL_MATCHES, LEAST_LABEL_BLOCKS = 2048, 4  # of each weight
AT_ONCE = 1 << 22  # numbers in the samples that are matched at once
LABELS_K = 16  # the k of readings by labels, if there are enough samples
CAP = 1e3  # an alpha at which lam is practically one half
FIRST_IN_FIT = 4  # a smaller k shows no rate
PRODUCTS = 1e10  # multiplications that the search for nearest samples may take at one k
FEWEST, MOST = 256, 2048  # half-way points to look at
BLOCKS = 16  # least number of blocks that these points come from, if there are as many
CELLS = 1 << 23  # distances held in memory at a time


@dataclass(frozen=True)
class Halfway:
    """Points half-way between partners, compared with the partners. Returned by `inspect`.

    The nearest sample is always one outside of the two matched sets.

    Attributes:
        distance: mean distance from half-way points to their nearest sample, divided by that
            from partners to theirs.
        contradiction: share of half-way points whose nearest sample is of neither partner's
            class; None without labels.
        disagreement: share of partners whose nearest sample is not of their own class; None
            without labels.
    """

    distance: Measured
    contradiction: Measured | None
    disagreement: Measured | None

    @classmethod
    def of(
        cls, points: Tensor, labels: Indices | None, firsts: Indices, seconds: Indices
    ) -> Halfway | None:
        """Measure half-way points of the partners `firsts` and `seconds`, `(blocks, k)`.

        Returns None if fewer than 2k samples are outside of the sets, or if samples coincide.
        """
        k = firsts.shape[1]
        if len(points) < 4 * k:
            return None
        mixed, own, contradicted, disagreeing = [], [], [], []
        for first, second, taken in _blocks(points, firsts, seconds):
            far, nearest = _nearest(points, (points[first] + points[second]) / 2, taken)
            near, neighbour = _nearest(points, points[first], taken)
            mixed.append(far.mean(1).numpy())
            own.append(near.mean(1).numpy())
            if labels is not None:
                third = (labels[nearest] != labels[first]) & (labels[nearest] != labels[second])
                contradicted.append(third.mean(1))
                disagreeing.append((labels[neighbour] != labels[first]).mean(1))
        distance = _ratio(np.concatenate(mixed), np.concatenate(own))
        if distance is None:
            return None
        if labels is None:
            return cls(distance, None, None)
        return cls(distance, *(Measured.of(np.concatenate(s)) for s in (contradicted, disagreeing)))


def _blocks(
    points: Tensor, firsts: Indices, seconds: Indices
) -> Iterator[tuple[Indices, Indices, Tensor]]:
    """Yield partners of some blocks, `(m, few)` each, and all samples of the blocks, `(m, 2k)`."""
    n, d = points.shape
    wanted = int(min(max(PRODUCTS / (2 * n * d), FEWEST), MOST))
    few = min(firsts.shape[1], max(1, wanted // BLOCKS))
    blocks = min(len(firsts), math.ceil(wanted / few))
    step = max(1, CELLS // (few * n))
    for start in range(0, blocks, step):
        part = slice(start, min(start + step, blocks))
        taken = torch.from_numpy(np.concatenate([firsts[part], seconds[part]], 1))
        yield firsts[part, :few], seconds[part, :few], taken


def _nearest(points: Tensor, queries: Tensor, taken: Tensor) -> tuple[Tensor, Indices]:
    """Return distance and index of the nearest point not `taken` of `queries` `(m, few, d)`."""
    m, few, d = queries.shape
    norms = points.square().sum(1)[None, :]
    square = torch.addmm(norms, queries.view(-1, d), points.T, alpha=-2).view(m, few, -1)
    square.scatter_(2, taken[:, None, :].expand(m, few, -1), math.inf)
    nearest = square.argmin(2)
    return (queries - points[nearest]).square().sum(2).sqrt(), nearest.numpy()


def _ratio(over: Array, under: Array) -> Measured | None:
    """Return the ratio of two means over blocks; None if the second mean is 0."""
    if not under.mean() > 0:
        return None
    value = over.mean() / under.mean()
    # both are of the same blocks: what counts is the spread of their difference
    return Measured(float(value), float(standard_error(over - value * under) / under.mean()))


@dataclass(frozen=True)
class Reading:
    """What mixing at one k does. Returned by `inspect`.

    Attributes:
        k: size of the matched sets.
        square_distance: mean squared distance of partners.
        ratio: `square_distance` as a share of that of random pairs.
        alpha: the alpha that perturbs as much as the reference does at k = 1, or the cap.
        reachable: whether `alpha` does perturb as much.
        reach: the greatest alpha of k = 1 whose strength some alpha reaches at this k.
        crossing: share of partners of another class; None without labels.
        least: the least such share of any matching, as for classes far apart.
        halfway: where the points between partners lie; None if too few samples are left.
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
    """How the squared distance of partners falls with k. Returned by `inspect`.

    The dimension is a rough guide. 2 and 3 dimensions are hard to tell apart. Clusters far
    apart look like 4 dimensions, whatever their own is. High dimensions read too low, because
    their rate shows only at larger k: a cube of 50 dimensions reads as 25.

    Attributes:
        slope: of log distance against log k, over k from 4 on.
        low, high: least and greatest dimension in which distances fall as fast, within a tenth.
    """

    slope: Measured
    low: float
    high: float


def partners(
    points: Tensor, k: int, *, disjoint: bool, generator: Generator | None
) -> MatchedBlocks:
    """Draw pairs of k-subsets of `points` `(n, d)` and match them."""
    blocks = max(LEAST_BLOCKS, MATCHES // k)
    parts = optimal_blocks(points, k, blocks, disjoint=disjoint, generator=generator)
    return MatchedBlocks(*map(np.concatenate, zip(*parts, strict=True)))


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
    crossing, least = None, None
    if labels is not None:
        law: Law = "disjoint" if disjoint else "independent"
        least = expected_fraction(np.bincount(labels), k, law=law).fewest
        # sets of one sample leave nothing to match: the share is known
        crossing = Measured(least, 0.0)
        if k > 1:
            crossing = Measured.of((labels[firsts] != labels[seconds]).mean(1))
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
        crossing=crossing,
        least=least,
        halfway=Halfway.of(points, labels, firsts, seconds),
    )


def decay_of(distances: Mapping[int, Measured]) -> DistanceDecay | None:
    """Return the decay of squared distances by k; None if there are fewer than three to fit."""
    squares = {k: square for k, square in distances.items() if k >= FIRST_IN_FIT and square.value}
    if len(squares) < 3:
        return None
    ks = list(squares)
    measured = squares.values()
    slope = fitted_slope(ks, [one.value for one in measured], [one.error for one in measured])
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


@dataclass(frozen=True)
class LabelReading:
    """What matching with one weight of labels does, `Optimal(k, labels=c)`. Returned by `inspect`.

    Attributes:
        k: size of the matched sets.
        labels: the cost c of a pair of different classes, in mean distances of a block.
        crossing: share of partners of another class.
        ratio: mean squared distance of partners, as a share of that of random pairs.
    """

    k: int
    labels: float
    crossing: Measured
    ratio: Measured


def read_labels(
    points: Tensor, labels: Indices, k: int, *, disjoint: bool = True, generator: Generator | None
) -> tuple[LabelReading, ...]:
    """Return a reading for each of `WEIGHTS`, on the same sets of `k` samples."""
    blocks = max(LEAST_LABEL_BLOCKS, min(LABEL_MATCHES, AT_ONCE // points.shape[1]) // k)
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
        readings.append(LabelReading(k, weight, Measured.of(crossing), Measured.of(square)))
    return tuple(readings)


@dataclass(frozen=True)
class Inspection:
    """What k-mixup would do to a data set, for several k. Returned by `inspect`.

    Attributes:
        samples: number of samples in the data set.
        used: number of samples that were drawn from them and looked at.
        features: numbers in a sample.
        classes: counts of the classes by name, among the samples used; empty without labels.
        alpha: of the plain mixup that strengths are compared with.
        readings: one for each k.
        decay: how fast partners come nearer as k grows; None if there are too few k to see it.
        by_labels: one for each weight of labels in the match, at k = 16 or the largest k below;
            empty without labels.
    """

    samples: int
    used: int
    features: int
    classes: dict[str, int]
    alpha: float
    readings: tuple[Reading, ...]
    decay: DistanceDecay | None
    by_labels: tuple[LabelReading, ...] = ()

    def at(self, k: int) -> Reading:
        """Return the reading at one `k`."""
        for reading in self.readings:
            if reading.k == k:
                return reading
        known = ", ".join(str(reading.k) for reading in self.readings)
        raise ValueError(f"k must be one of {known}, got {k}")


def inspect(
    x: Any,
    y: Any = None,
    *,
    alpha: float = 1.0,
    largest_k: int = LARGEST_K,
    size: int = SIZE,
    disjoint: bool = True,
    generator: Generator | None = None,
    watch: Callable[[int], object] = lambda k: None,
) -> Inspection:
    """Measure what k-mixup would do to a data set, without training.

    Args:
        x: inputs as the network gets them, or embeddings, `(n, ...)`; a tensor or an array.
        y: their classes `(n,)`, whole numbers or strings. Without them only distances are
            looked at.
        alpha: of the plain mixup that strengths are compared with.
        largest_k: readings are at powers of two up to this, and up to half of the samples.
        size: number of samples to draw if there are more; fewer if the samples are large.
        disjoint: draw partners as inside one batch, from two disjoint subsets. Otherwise the two
            subsets are independent, as those of two loaders are.
        generator: source of all draws.
        watch: called with every k before it is measured.

    Returns:
        The readings for every k.

    >>> x = torch.randn(400, 2, generator=torch.Generator().manual_seed(0))
    >>> xray = inspect(x, (x[:, 0] > 0).long(), generator=torch.Generator().manual_seed(0))
    >>> xray.at(16).ratio.value < xray.at(4).ratio.value < 1
    True
    """
    _check(x, alpha, largest_k, size)
    width = int(np.prod(tuple(x.shape[1:])))
    some = draw(len(x), width, size=size, generator=generator)
    points = _points(x if some is None else x[some])
    labels, classes = _labels(y, len(x), some)
    used, readings = len(points), []
    for k in (1 << power for power in range(min(largest_k, used // 2).bit_length())):
        watch(k)
        readings.append(
            read(points, labels, k, alpha=alpha, disjoint=disjoint, generator=generator)
        )
    k = min(LABELS_K, readings[-1].k)
    by_labels: tuple[LabelReading, ...] = ()
    if labels is not None and k > 1:
        by_labels = read_labels(points, labels, k, disjoint=disjoint, generator=generator)
    squares = {reading.k: reading.square_distance for reading in readings}
    if not disjoint:  # samples that both subsets share would look like a lower dimension
        for k in [k for k in squares if k >= FIRST_IN_FIT]:
            matched = partners(points, k, disjoint=True, generator=generator)
            squares[k] = Measured.of(matched.square_distance)
    return Inspection(
        samples=len(x),
        used=used,
        features=width,
        classes=classes,
        alpha=alpha,
        readings=tuple(readings),
        decay=decay_of(squares),
        by_labels=by_labels,
    )


def draw(n: int, width: int, *, size: int, generator: Generator | None) -> Tensor | None:
    """Draw which of `n` samples of `width` numbers to use, in their order; None for all."""
    used = min(n, size, max(64, NUMBERS // width))
    return torch.randperm(n, generator=generator)[:used].sort().values if used < n else None


def _points(x: Any) -> Tensor:
    """Return samples as centred rows `(n, d)` in float64."""
    points = torch.as_tensor(x).detach().cpu().flatten(1).double()
    if not points.isfinite().all():
        raise ValueError("x must be finite, it has a NaN or an infinity: fill or drop it")
    points = points - points.mean(0)
    if not points.any():
        raise ValueError("x must have samples that differ, they are all the same")
    return points


def _labels(y: Any, n: int, some: Tensor | None) -> tuple[Indices | None, dict[str, int]]:
    """Return the class of each sample used, None if there is only one, and all class counts."""
    if y is None:
        return None, {}
    labels = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
    if labels.shape != (n,) or labels.dtype.kind not in "biuU":
        raise ValueError(
            f"y must have the shape ({n},) and hold classes, whole numbers or strings, "
            f"got {labels.dtype} {labels.shape}: leave it out for other targets"
        )
    used = labels if some is None else labels[some.numpy()]
    names, index, counts = np.unique(used, return_inverse=True, return_counts=True)
    classes = dict(zip(map(str, names.tolist()), counts.tolist(), strict=True))
    return (index.astype(np.int64) if len(names) > 1 else None), classes


def _check(x: Any, alpha: float, largest_k: int, size: int) -> None:
    if not isinstance(x, (Tensor, np.ndarray)) or x.ndim < 2 or 0 in x.shape:
        shape = tuple(x.shape) if hasattr(x, "shape") else type(x).__name__
        raise ValueError(f"x must be a tensor or an array of shape (n, ...), got {shape}")
    if len(x) < 4:
        raise ValueError(f"x must have at least 4 samples, got {len(x)}")
    if not Beta(alpha).alpha > 0:
        raise SettingError("alpha", "must be above 0, to compare strengths with, got 0")
    for name, value, least in (("largest_k", largest_k, 1), ("size", size, 4)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise SettingError(name, f"must be a whole number, at least {least}, got {value!r}")
