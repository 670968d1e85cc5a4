"""Whole data sets of mixed points, from NumPy arrays to NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from kmixup._checks import check_whole
from kmixup._subsets import subset_pairs
from kmixup.coefficient import Beta
from kmixup.interpolation import Linear
from kmixup.matching import LamPer, Metric, Optimal
from kmixup.mixer import Mixer

Array = NDArray[Any]
FLOATS = (np.float16, np.float32, np.float64)  # others become float64


def vicinal_dataset(
    X: ArrayLike,
    y: ArrayLike,
    *,
    k: int = 16,
    alpha: float = 0.2,
    size: int | None = None,
    hard: bool = False,
    lam_per: LamPer = "block",
    metric: Metric = "sqeuclidean",
    seed: int | None = None,
) -> tuple[Array, ...]:
    """Draw a data set of k-mixed points, in blocks of two matched random k-subsets of the data.

    Args:
        X: samples `(n, ...)`, numbers.
        y: targets `(n,)`, or floats `(n, c)`. Anything but floats is a class.
        k: size of a block.
        alpha: lam is drawn from Beta(alpha, alpha).
        size: number of mixed points, by default as many as there are samples.
        hard: whether to return hard labels with weights instead of soft labels.
        lam_per: whether each "block" or each "sample" has its own lam.
        metric: cost of the match.
        seed: of all draws.

    Returns:
        The points and their soft labels, with one column for each of `np.unique(y)`; float targets
        are interpolated. With `hard=True` points, labels and weights (the `sample_weight` of
        scikit-learn), in which every point comes twice: in the first half with its own label and
        the weight lam, in the second half with its partner's and 1 - lam.

    >>> X, y = np.array([[0.], [1.], [8.], [9.]]), np.array(["a", "a", "b", "b"])
    >>> points, labels, weight = vicinal_dataset(X, y, k=2, size=6, hard=True, seed=0)
    >>> points.shape, labels.shape, weight.shape
    ((12, 1), (12,), (12,))
    """
    inputs, targets, classes = _checked(np.asarray(X), np.asarray(y))
    n = len(inputs)
    size = n if size is None else check_whole("size", size)
    if lam_per == "batch":
        raise ValueError('lam_per must be "block" or "sample": a data set has no batches')
    pairing = Optimal(k, metric)
    k = pairing.k
    if k > n:
        raise ValueError(f"k must be at most the number of samples, {n}, got {k}")

    generator = torch.Generator()
    if seed is None:
        generator.seed()
    else:
        generator.manual_seed(check_whole("seed", seed, least=None))
    mixer = Mixer(pairing, Beta(alpha), Linear(), lam_per=lam_per, generator=generator)
    first, second = (i.flatten() for i in subset_pairs(n, k, -(-size // k), generator=generator))

    floats = inputs if inputs.dtype in FLOATS else inputs.astype(np.float64)
    if not floats.flags.writeable or min(floats.strides) < 0:  # torch takes neither
        floats = floats.copy(order="K")
    points = torch.from_numpy(floats)
    # the mixer mixes positions; the targets, of any type, are looked up here
    mixed = mixer.mix(points[first], first, other=(points[second], second))
    own, partner = (index[:size].numpy() for index in mixed.targets)
    lam = mixed.lam[:size].double().numpy()
    x = mixed.x[:size].numpy()

    if hard:
        return (
            np.concatenate([x, x]),
            np.concatenate([targets[own], targets[partner]]),
            np.concatenate([lam, 1 - lam]),
        )
    if classes:
        targets = (targets[:, None] == np.unique(targets)).astype(np.float64)
    weight = lam.reshape(-1, *[1] * (targets.ndim - 1))
    return x, weight * targets[own] + (1 - weight) * targets[partner]


def _checked(inputs: Array, targets: Array) -> tuple[Array, Array, bool]:
    """Return inputs and targets that can be mixed, and whether the targets are classes."""
    if len(targets) != len(inputs):
        raise ValueError(f"X and y must have the same length, got {len(inputs)} and {len(targets)}")
    if inputs.dtype.kind not in "iuf":
        raise TypeError(f"X must be numeric, got {inputs.dtype}: encode its columns first")
    classes = not np.issubdtype(targets.dtype, np.floating)
    if classes and targets.ndim != 1:
        raise ValueError(
            f"y must have one class for each sample, got {targets.dtype} of shape {targets.shape}: "
            "one-hot labels are y.astype(float)"
        )
    return inputs, targets, classes
