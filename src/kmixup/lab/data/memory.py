"""Data that a program holds: arrays, tensors, data sets of torch or of the lab."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from kmixup.lab.data.arrays import samples_of
from kmixup.lab.data.dataset import Dataset, Parts, Samples, split
from kmixup.lab.data.finishing import Scale, finish
from kmixup.lab.data.scaling import SCALINGS
from kmixup.lab.data.targets import Task
from kmixup.lab.files import replace_file

SOURCE = "the data"  # what sentences call data without a name


def from_memory(
    data: Any,
    y: Any = None,
    *,
    task: Task | None = None,
    scaling: str = "standard",
    seed: int = 0,
    name: str = "arrays",
) -> Dataset:
    """A data set of samples in memory; a third of them are for testing, drawn by the seed.

    Args:
        data: inputs `(n, ...)` as an array or a tensor, with their targets `y` `(n,)`; or a
            data set of torch whose items are pairs of both. Inputs of uint8 are images.
        y: classes (whole numbers or texts) or numbers to learn.
        task: "classes" or "regression"; by default decided by the values of the targets.
        scaling: as in `kmixup.lab.data.load`.
        seed: of the split.
        name: what records and sentences call the data.

    >>> x = np.random.default_rng(0).normal(size=(90, 4))
    >>> from_memory(x, x[:, 0] > 0).classes
    ('0', '1')
    """
    if scaling not in SCALINGS or scaling == "paper":
        known = ", ".join(word for word in SCALINGS if word != "paper")
        raise ValueError(f"scaling must be one of {known}, got {scaling!r}")
    samples = samples_of(arrays_of(data, y), SOURCE, task=task)
    parts = split(samples, seed=seed) if isinstance(samples, Samples) else samples
    scale = Scale(scaling, scaling)
    return finish(name, parts, limit=None, scale=scale, holdout=None)


def returned_samples(returned: Any, name: str, *, task: Task | None = None) -> Samples | Parts:
    """Read what a function of the user's returns: `(x, y)`, a data set, or arrays by name."""
    if isinstance(returned, Mapping):
        arrays = {key: _array(value) for key, value in returned.items()}
    elif isinstance(returned, tuple) and len(returned) == 2:
        arrays = arrays_of(*returned)
    else:
        arrays = arrays_of(returned)
    return samples_of(arrays, name, task=task)


def arrays_of(data: Any, y: Any = None) -> dict[str, NDArray[Any]]:
    """Samples in memory as the arrays of an `.npz`; those of a `Dataset` keep their test part."""
    if isinstance(data, Dataset):
        return {
            "x": data.x_train.numpy(),
            "y": _own_targets(data, data.y_train),
            "x_test": data.x_test.numpy(),
            "y_test": _own_targets(data, data.y_test),
        }
    if y is None:
        data, y = _pairs(data)
    x, targets = _array(data), _array(y)
    if x.ndim < 1 or targets.ndim != 1 or len(x) != len(targets):
        raise ValueError(
            f"y must have one target for each of the {len(x) if x.ndim else 0} samples, got the "
            f"shape {targets.shape}"
        )
    if targets.dtype.kind in "OS":
        targets = targets.astype(str)
    if targets.dtype.kind == "b":
        targets = targets.astype(np.int64)
    return {"x": x, "y": targets}


def write_npz(arrays: dict[str, NDArray[Any]], path: Path) -> Path:
    """Arrays as an `.npz` that `kmixup.lab.data.load` reads, whole or not at all."""
    replace_file(path, lambda stream: np.savez(stream, **arrays))  # type: ignore[arg-type]
    return path


def _own_targets(data: Dataset, y: Tensor) -> NDArray[Any]:
    own: NDArray[Any] = (
        data.unscale(y.double()).numpy()
        if data.task == "regression"
        else np.array(data.classes)[y.numpy()]
    )
    return own


def _array(values: Any) -> NDArray[Any]:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


def _pairs(data: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Inputs and targets of a data set whose items are pairs."""
    if isinstance(data, np.ndarray | Tensor) or not hasattr(data, "__getitem__"):
        raise ValueError(
            "y must be given with arrays and tensors, got None: data sets of torch, whose items "
            "are pairs, need none"
        )
    try:
        items = [data[i] for i in range(len(data))]
        return np.stack([_array(x) for x, _ in items]), np.stack([_array(y) for _, y in items])
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the items of a data set must be pairs of an input and a target, all of one shape: "
            f"{error}"
        ) from error
