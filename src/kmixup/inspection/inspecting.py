"""The X-ray itself: samples and labels in, readings and advice out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from kmixup.coefficient import Beta
from kmixup.inspection.advice import Advice, advise
from kmixup.inspection.readings import Decay, Reading, decay_of, read
from kmixup.theory.matching import Indices

NUMBERS = 1 << 25  # of the data held in memory, in float64
SIZE, LARGEST_K = 10_000, 256


@dataclass(frozen=True)
class Inspection:
    """What `inspect` found.

    `samples`: how many there are, `used`: how many were drawn of them and looked at.
    `features`: numbers in a sample. `classes`: their names with the numbers of samples used,
    empty without labels. `readings`: one for each k. `decay`: how fast partners come
    nearer. `alpha`: the strength at k = 1 that the readings refer to. `batch_size`: what
    the advice was limited by.
    """

    samples: int
    used: int
    features: int
    classes: dict[str, int]
    alpha: float
    batch_size: int
    readings: tuple[Reading, ...]
    decay: Decay | None
    advice: Advice

    def at(self, k: int) -> Reading:
        """The reading at one k."""
        for one in self.readings:
            if one.k == k:
                return one
        known = ", ".join(str(one.k) for one in self.readings)
        raise ValueError(f"k must be one of {known}, got {k}")


def inspect(
    x: Any,
    y: Any = None,
    *,
    alpha: float = 1.0,
    largest_k: int = LARGEST_K,
    batch_size: int = 128,
    size: int = SIZE,
    generator: Generator | None = None,
    watch: Callable[[int], object] = lambda k: None,
) -> Inspection:
    """Measure what k-mixup would do to a data set, without training.

    Args:
        x: inputs as the network gets them, or embeddings, `(n, ...)`; a tensor or an array.
        y: their classes `(n,)`, whole numbers or strings; without them only distances are
            looked at.
        alpha: of plain mixup, to compare strengths with.
        largest_k: readings are at powers of two up to this, and up to half of the samples.
        batch_size: of the training to come; the advice has two sets of k fit into it.
        size: number of samples to look at, drawn at random where there are more, and fewer
            where they are large.
        watch: called with every k before it is measured.

    >>> x = torch.randn(400, 2, generator=torch.Generator().manual_seed(0))
    >>> found = inspect(x, (x[:, 0] > 0).long(), generator=torch.Generator().manual_seed(0))
    >>> found.at(16).ratio.value < found.at(4).ratio.value < 1
    True
    """
    _check(x, alpha, largest_k, batch_size, size)
    width = int(np.prod(tuple(x.shape[1:])))
    some = draw(len(x), width, size=size, generator=generator)
    points = _points(x if some is None else x[some])
    labels, classes = _labels(y, len(x), some)
    used, readings = len(points), []
    for k in _powers(min(largest_k, used // 2)):
        watch(k)
        readings.append(read(points, labels, k, alpha=alpha, generator=generator))
    return Inspection(
        samples=len(x),
        used=used,
        features=width,
        classes=classes,
        alpha=alpha,
        batch_size=batch_size,
        readings=tuple(readings),
        decay=decay_of(readings),
        advice=advise(readings, samples=used, alpha=alpha, batch_size=batch_size),
    )


def draw(n: int, width: int, *, size: int, generator: Generator | None) -> Tensor | None:
    """Which of `n` samples of so many numbers to look at, in their order; None for all."""
    used = min(n, size, max(64, NUMBERS // width))
    return torch.randperm(n, generator=generator)[:used].sort().values if used < n else None


def _points(x: Any) -> Tensor:
    """Samples as centred rows `(n, d)` in float64."""
    points = torch.as_tensor(x).detach().cpu().flatten(1).double()
    if not points.isfinite().all():
        raise ValueError("x must be finite, it has a NaN or an infinity: fill or drop it")
    points = points - points.mean(0)
    if not points.any():
        raise ValueError("x must have samples that differ, they are all the same")
    return points


def _labels(y: Any, n: int, some: Tensor | None) -> tuple[Indices | None, dict[str, int]]:
    """Indices of classes, and the classes with the numbers of their samples.

    One class is as good as none: there is nothing that a label could change to.
    """
    if y is None:
        return None, {}
    labels = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
    if labels.shape != (n,) or labels.dtype.kind not in "biuU":
        raise ValueError(
            f"y must have the shape ({n},) and hold classes, whole numbers or strings, "
            f"got {labels.dtype} {labels.shape}: leave it out for other targets"
        )
    names, index, counts = np.unique(
        labels if some is None else labels[some.numpy()],
        return_inverse=True,
        return_counts=True,
    )
    classes = dict(zip(map(str, names.tolist()), counts.tolist(), strict=True))
    return (index.astype(np.int64) if len(names) > 1 else None), classes


def _powers(most: int) -> list[int]:
    """
    >>> _powers(20)
    [1, 2, 4, 8, 16]
    """
    return [1 << i for i in range(most.bit_length())]


def _check(x: Any, alpha: float, largest_k: int, batch_size: int, size: int) -> None:
    if not isinstance(x, (Tensor, np.ndarray)) or x.ndim < 2 or 0 in x.shape:
        shape = tuple(x.shape) if hasattr(x, "shape") else type(x).__name__
        raise ValueError(f"x must be a tensor or an array of shape (n, ...), got {shape}")
    if len(x) < 4:
        raise ValueError(f"x must have at least 4 samples, got {len(x)}")
    if not Beta(alpha).alpha > 0:
        raise ValueError("alpha must be above 0, to compare strengths with, got 0")
    for name, value, least in (
        ("largest_k", largest_k, 1), ("batch_size", batch_size, 2), ("size", size, 4),
    ):  # fmt: skip
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name} must be a whole number, at least {least}, got {value!r}")
