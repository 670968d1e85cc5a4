"""`inspect`: measure what k-mixup would do to a data set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from kmixup.checks import SettingError
from kmixup.coefficient import Beta
from kmixup.inspection.readings import (
    FIRST_IN_FIT,
    LABELS_K,
    DistanceDecay,
    LabelReading,
    Reading,
    decay_of,
    partners,
    read,
    read_labels,
)
from kmixup.measured import Measured
from kmixup.theory.matching import Indices

NUMBERS = 1 << 25  # of the data held in memory, in float64
SIZE, LARGEST_K = 10_000, 256


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
