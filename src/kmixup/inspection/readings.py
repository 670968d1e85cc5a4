"""`inspect`: measure how near partners are at each k, and which labels they have.

Two sets of k samples are drawn many times and matched. Midpoints between partners should be
plausible samples: far from all data they are not, and among samples of a third class they teach a
wrong label (manifold intrusion).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from kmixup._checks import SettingError, check_whole
from kmixup._measured import Measured, standard_error
from kmixup._subsets import MatchedBlocks, subset_pairs
from kmixup.calibration import alpha_for
from kmixup.coefficient import Beta
from kmixup.matching import Optimal
from kmixup.theory.clusters import count_clusters, lemma_count
from kmixup.theory.manifold import expected_rate, fitted_slope
from kmixup.theory.matching import Indices, optimal_blocks

NUMBERS = 1 << 25  # of the data held in memory, in float64
SIZE, LARGEST_K = 10_000, 256
MATCHES, LEAST_BLOCKS = 8192, 32  # of each k
WEIGHTS = (-1.0, -0.5, -0.2, 0.0, 0.2, 0.5, 1.0, 2.0)  # of labels in the match
LABEL_MATCHES, AT_ONCE = 2048, 1 << 22  # of each weight: matches, and numbers in their samples
LABELS_K = 16  # the k of readings by labels, if there are enough samples
CAP = 1e3  # an alpha at which lam is practically one half
FIRST_IN_FIT = 4  # a smaller k shows no rate
HALFWAY, FROM_BLOCK = 512, 32  # midpoints to look at, and at most so many of one block
CELLS = 1 << 23  # distances held in memory at a time


@dataclass(frozen=True)
class Halfway:
    """Midpoints between partners, compared with the partners. Returned by `inspect`.

    The nearest sample is always one outside of the two matched sets.

    Attributes:
        distance: mean distance from midpoints to their nearest sample, divided by that
            from partners to theirs.
        contradiction: fraction of midpoints whose nearest sample is of neither partner's
            class; None without labels.
        disagreement: fraction of partners whose nearest sample is not of their own class; None
            without labels.
    """

    distance: Measured
    contradiction: Measured | None
    disagreement: Measured | None

    @classmethod
    def of(
        cls, points: Tensor, labels: Indices | None, firsts: Indices, seconds: Indices
    ) -> Halfway | None:
        """Measure midpoints of the partners `firsts` and `seconds`, `(blocks, k)`.

        Returns None if fewer than 2k samples are outside of the sets, or if samples coincide.
        """
        n, k = len(points), firsts.shape[1]
        if n < 4 * k:
            return None
        few = min(k, FROM_BLOCK)
        blocks = min(len(firsts), HALFWAY // few)
        rows = []  # of each block: distances of midpoints and samples, other classes next to
        for part in np.array_split(np.arange(blocks), math.ceil(blocks * few * n / CELLS)):
            first, second = firsts[part, :few], seconds[part, :few]
            taken = torch.from_numpy(np.concatenate([firsts[part], seconds[part]], 1))
            far, nearest = _nearest(points, (points[first] + points[second]) / 2, taken)
            near, neighbour = _nearest(points, points[first], taken)
            measured = [far.numpy(), near.numpy()]
            if labels is not None:
                a, b, third = labels[first], labels[second], labels[nearest]
                measured += [(third != a) & (third != b), labels[neighbour] != a]
            rows.append(np.stack([values.mean(1) for values in measured]))
        mixed, own, *shares = np.concatenate(rows, 1)
        if not own.any():
            return None
        value = mixed.mean() / own.mean()
        # both are of the same blocks: what counts is the spread of their difference
        error = standard_error(mixed - value * own) / own.mean()
        contradiction, disagreement = map(Measured.of, shares) if shares else (None, None)
        return cls(Measured(float(value), float(error)), contradiction, disagreement)


def _nearest(points: Tensor, queries: Tensor, taken: Tensor) -> tuple[Tensor, Indices]:
    """Return distance and index of the nearest point not `taken` of `queries` `(m, few, d)`."""
    m, few, d = queries.shape
    norms = points.square().sum(1)[None, :]
    square = torch.addmm(norms, queries.view(-1, d), points.T, alpha=-2).view(m, few, -1)
    square.scatter_(2, taken[:, None, :].expand(m, few, -1), math.inf)
    nearest = square.argmin(2)
    return (queries - points[nearest]).square().sum(2).sqrt(), nearest.numpy()


@dataclass(frozen=True)
class Reading:
    """What mixing at one k does. Returned by `inspect`.

    Attributes:
        k: size of the matched sets.
        square_distance: mean squared distance of partners.
        ratio: `square_distance` as a fraction of that of random pairs.
        alpha: the alpha that perturbs as much as the reference does at k = 1, or the cap.
        reachable: whether `alpha` does perturb as much.
        crossing: fraction of partners of another class; None without labels.
        least: lower bound on that fraction, given the class counts of the two sets.
        halfway: where the points between partners lie; None if too few samples are left.
    """

    k: int
    square_distance: Measured
    ratio: Measured
    alpha: float
    reachable: bool
    crossing: Measured | None
    least: float | None
    halfway: Halfway | None


@dataclass(frozen=True)
class DistanceDecay:
    """How the squared distance of partners falls with k. Returned by `inspect`.

    The dimension is a rough guide: 2 and 3 are hard to tell apart, clusters far apart look like 4,
    and high dimensions read too low (a cube of 50 reads as 25).

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
        classes = labels.max() + 1
        counts = (count_clusters(labels[indices], classes) for indices in (firsts, seconds))
        least = float(lemma_count(*counts).mean()) / k
        crossing = Measured.of((labels[firsts] != labels[seconds]).mean(1))
    target = Beta(alpha).mean_square_step * square_1
    own_alpha, reachable = (alpha, True) if k == 1 else alpha_for(target, square.value, alpha, CAP)
    return Reading(
        k=k,
        square_distance=square,
        ratio=square / square_1,
        alpha=own_alpha,
        reachable=reachable,
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
    errors = [one.error for one in measured]
    slope = fitted_slope(ks, [one.value for one in measured], errors if all(errors) else None)
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
    """Effect of one label weight on the matching, `Optimal(k, labels=c)`. Returned by `inspect`.

    Attributes:
        k: size of the matched sets.
        labels: the cost c of a pair of different classes, in mean distances of a block.
        crossing: fraction of partners of another class.
        ratio: mean squared distance of partners, divided by that of random pairs.
    """

    k: int
    labels: float
    crossing: Measured
    ratio: Measured


def read_labels(
    points: Tensor, labels: Indices, k: int, *, disjoint: bool = True, generator: Generator | None
) -> tuple[LabelReading, ...]:
    """Return a reading for each of `WEIGHTS`, on the same sets of `k` samples."""
    blocks = max(4, min(LABEL_MATCHES, AT_ONCE // points.shape[1]) // k)
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
        used: number of samples that were measured.
        features: numbers in a sample.
        classes: counts of the classes by name, among the samples used; empty without labels.
        alpha: that of the mixup (k = 1) to compare strengths with.
        readings: one for each k.
        decay: how fast distances fall as k grows; None if there are too few k to fit it.
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
            measured.
        alpha: that of the mixup (k = 1) to compare strengths with.
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
    largest_k, size = _checked(x, alpha, largest_k, size)
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
        raise ValueError("x must have samples that differ, all are identical: nothing to match")
    return points


def _labels(y: Any, n: int, some: Tensor | None) -> tuple[Indices | None, dict[str, int]]:
    """Return the class of each sample used, None if there is only one, and all class counts."""
    if y is None:
        return None, {}
    labels = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
    if labels.dtype == object and all(isinstance(name, str) for name in labels.ravel()):
        labels = labels.astype(str)  # a column of text in pandas
    if labels.shape != (n,) or labels.dtype.kind not in "biuU":
        raise ValueError(
            f"y must have the shape ({n},) and hold classes, whole numbers or strings, "
            f"got {labels.dtype} {labels.shape}: leave it out for other targets"
        )
    used = labels if some is None else labels[some.numpy()]
    names, index, counts = np.unique(used, return_inverse=True, return_counts=True)
    classes = dict(zip(map(str, names.tolist()), counts.tolist(), strict=True))
    return (index.astype(np.int64) if len(names) > 1 else None), classes


def _checked(x: Any, alpha: float, largest_k: int, size: int) -> tuple[int, int]:
    if not isinstance(x, (Tensor, np.ndarray)) or x.ndim < 2 or 0 in x.shape:
        shape = tuple(x.shape) if hasattr(x, "shape") else type(x).__name__
        raise ValueError(f"x must be a tensor or an array of shape (n, ...), got {shape}")
    if len(x) < 4:
        raise ValueError(f"x must have at least 4 samples, got {len(x)}")
    if not Beta(alpha).alpha > 0:
        raise SettingError("alpha", "must be above 0, to compare strengths with, got 0")
    return check_whole("largest_k", largest_k), check_whole("size", size, least=4)
