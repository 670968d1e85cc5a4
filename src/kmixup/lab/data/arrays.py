"""The user's own arrays, in an `.npz` or in memory: inputs and targets."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kmixup.lab.data.dataset import Parts, Samples
from kmixup.lab.data.safety import check_expansion
from kmixup.lab.data.targets import Task, decide

NAMES = ("x", "y", "x_test", "y_test")


def read_npz(path: Path, *, task: Task | None = None) -> Samples | Parts:
    """Arrays x `(n, ...)` and y `(n,)`, with x_test and y_test where the test part is fixed.

    uint8 inputs are images, `(n, channels, height, width)` or grey `(n, height, width)`;
    others become float32. Targets are classes (whole numbers or strings) or the numbers of a
    regression, as `decide` finds or as `task` says. The classes are those that occur in y.
    """
    return samples_of(_arrays(path), str(path), task=task)


def samples_of(
    arrays: Mapping[str, NDArray[Any]], path: str, *, task: Task | None = None
) -> Samples | Parts:
    """The arrays of `NAMES` as samples; `path` is what sentences call them."""
    if missing := {"x", "y"} - arrays.keys():
        raise ValueError(
            f"{path} must hold the arrays x and y, has no {' and '.join(sorted(missing))}"
        )
    x, y = _inputs(arrays["x"], "x", path), arrays["y"]
    _check_targets(x, y, "y", path)
    distinct = np.unique(y)
    numbers = None if y.dtype.kind == "U" else distinct.astype(np.float64)
    decision = decide(numbers, distinct=len(distinct), rows=len(y), task=task, name="y")
    notes = () if decision.note is None else (decision.note,)
    classes = () if decision.task == "regression" else tuple(map(_name, distinct.tolist()))
    targets = _targets(y, distinct, decision.task)
    if "x_test" not in arrays or "y_test" not in arrays:
        return Samples(x, targets, classes, notes=notes)
    x_test, y_test = _inputs(arrays["x_test"], "x_test", path), arrays["y_test"]
    _check_targets(x_test, y_test, "y_test", path)
    if x_test.shape[1:] != x.shape[1:] or x_test.dtype != x.dtype:
        raise ValueError(
            f"{path} must have x_test like x, {x.dtype} {tuple(x.shape[1:])}, "
            f"has {x_test.dtype} {tuple(x_test.shape[1:])}"
        )
    if decision.task == "classes" and len(new := np.setdiff1d(y_test, distinct)):
        raise ValueError(f"{path} must have in y_test only classes of y, has {new[0]}")
    targets_test = _targets(y_test, distinct, decision.task)
    return Parts(x, targets, x_test, targets_test, classes, notes=notes)


def read_inputs(path: Path) -> NDArray[Any]:
    """The array x of an `.npz`, for a network that is trained already."""
    arrays = _arrays(path)
    if "x" not in arrays:
        raise ValueError(f"{path} must hold the array x, has {', '.join(arrays) or 'none'}")
    return arrays["x"]


def tensor_of(values: Any, name: str) -> Tensor:
    """Numbers of an array, a tensor or a list, as a tensor on the CPU."""
    if isinstance(values, Tensor):
        return values.detach().cpu()
    array = np.asarray(values)
    if array.dtype.kind not in "buif":
        raise ValueError(f"{name} must hold numbers, got {array.dtype} of shape {array.shape}")
    return torch.from_numpy(np.ascontiguousarray(array))


def _targets(y: NDArray[Any], distinct: NDArray[Any], task: Task) -> Tensor:
    """Numbers, or places among the `distinct` values."""
    if task == "regression":
        return torch.from_numpy(y.astype(np.float32))
    return torch.from_numpy(np.searchsorted(distinct, y))


def _name(value: float | str) -> str:
    """
    >>> _name(3), _name(3.0), _name("cat")
    ('3', '3', 'cat')
    """
    return f"{value:g}" if isinstance(value, float) else str(value)


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of `NAMES`; others that may be there are not unpacked."""
    with path.open("rb") as stream:
        try:
            if not zipfile.is_zipfile(stream):
                raise ValueError("it is no zip archive")
            declared = _declared(stream)
        except Exception as error:  # a damaged archive fails in many ways
            raise _not_whole(path, error) from error
        check_expansion(path, packed=path.stat().st_size, declared=declared)
        stream.seek(0)
        try:
            stored = np.load(stream, allow_pickle=False)
            return {name: stored[name] for name in NAMES if name in stored.files}
        except Exception as error:
            raise _not_whole(path, error) from error


def _declared(stream: IO[bytes]) -> int:
    """How many bytes the headers of the arrays declare, in the archive and in the arrays."""
    total = 0
    with zipfile.ZipFile(stream) as archive:
        for name in NAMES:
            if f"{name}.npy" not in archive.namelist():
                continue
            with archive.open(f"{name}.npy") as member:
                read_header = {
                    (1, 0): np.lib.format.read_array_header_1_0,
                    (2, 0): np.lib.format.read_array_header_2_0,
                }[np.lib.format.read_magic(member)]
                shape, _, dtype = read_header(member)
            size = math.prod(shape) * dtype.itemsize
            total += max(size, archive.getinfo(f"{name}.npy").file_size)
    return total


def _not_whole(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path} must be a whole .npz of plain arrays, could not be read: {error}")


def _inputs(x: NDArray[Any], name: str, path: str) -> Tensor:
    if x.dtype == np.uint8 and x.ndim in (3, 4) and len(x):
        return torch.from_numpy(x).reshape(len(x), -1, *x.shape[-2:])
    if x.ndim < 2 or not len(x) or not (np.issubdtype(x.dtype, np.number) and np.isrealobj(x)):
        raise ValueError(
            f"{path} must hold {name} of shape (n, ...) and numbers, has {x.dtype} {x.shape}"
        )
    floats = x.astype(np.float32, copy=False)
    if not np.isfinite(floats).all():
        bad = np.argwhere(~np.isfinite(floats))[0, 0]
        raise ValueError(
            f"{path} must hold finite numbers in {name}, sample {bad} has NaN or an infinite one: "
            "fill it in or leave the sample out (blanks are filled in of a .csv alone)"
        )
    return torch.from_numpy(floats)


def _check_targets(x: Tensor, y: NDArray[Any], name: str, path: str) -> None:
    if y.shape != (len(x),) or y.dtype.kind not in "iufU":
        raise ValueError(
            f"{path} must hold {name} of shape ({len(x)},), numbers or strings, "
            f"has {y.dtype} {y.shape}"
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        bad = np.flatnonzero(~np.isfinite(y))[0]
        raise ValueError(f"{path} must hold finite numbers in {name}, sample {bad} has {y[bad]}")
