"""Your own arrays: an `.npz` file, or arrays, tensors and data sets of torch in memory."""

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

from kmixup.lab.data.dataset import Dataset, Parts, Samples
from kmixup.lab.data.targets import Task, decide
from kmixup.lab.files import check_expansion, replace_file

NAMES = ("x", "y", "x_test", "y_test")
LARGEST = torch.finfo(torch.float32).max  # networks compute in float32


def read_npz(path: Path, *, task: Task | None = None) -> Samples | Parts:
    """Read arrays x `(n, ...)` and y `(n,)`, with x_test and y_test where the test part is fixed.

    uint8 inputs are images, `(n, channels, height, width)` or grey `(n, height, width)`.
    Targets are classes (whole numbers or strings) or the numbers of a regression, as `decide`
    finds or as `task` says. The classes are those that occur in y.
    """
    return samples_of(_arrays(path), str(path), task=task)


def samples_of(
    arrays: Mapping[str, NDArray[Any]], source: str, *, task: Task | None = None
) -> Samples | Parts:
    """Return the arrays of `NAMES` as samples; error messages call them `source`."""
    if missing := {"x", "y"} - arrays.keys():
        raise ValueError(
            f"{source} must hold the arrays x and y, has no {' and '.join(sorted(missing))}"
        )
    x, y = _inputs(arrays["x"], "x", source), arrays["y"]
    _check_targets(x, y, "y", source)
    distinct = np.unique(y)
    numbers = None if y.dtype.kind == "U" else distinct.astype(np.float64)
    decision = decide(numbers, distinct=len(distinct), rows=len(y), task=task, name="y")
    notes = () if decision.note is None else (decision.note,)
    classes = () if decision.task == "regression" else tuple(map(_name, distinct.tolist()))
    targets = _targets(y, distinct, decision.task, "y", source)
    if "x_test" not in arrays or "y_test" not in arrays:
        return Samples(x, targets, classes, notes=notes)
    x_test, y_test = _inputs(arrays["x_test"], "x_test", source), arrays["y_test"]
    _check_targets(x_test, y_test, "y_test", source)
    if x.is_floating_point() and x_test.is_floating_point():
        x_test = x_test.to(x.dtype)
    if x_test.shape[1:] != x.shape[1:] or x_test.dtype != x.dtype:
        raise ValueError(
            f"{source} must have x_test like x, {x.dtype} {tuple(x.shape[1:])}, "
            f"has {x_test.dtype} {tuple(x_test.shape[1:])}"
        )
    if decision.task == "classes" and len(new := np.setdiff1d(y_test, distinct)):
        raise ValueError(f"{source} must have in y_test only classes of y, has {new[0]}")
    targets_test = _targets(y_test, distinct, decision.task, "y_test", source)
    return Parts(x, targets, x_test, targets_test, classes, notes=notes)


def arrays_of(data: Any, y: Any = None) -> dict[str, NDArray[Any]]:
    """Return samples in memory as the arrays of an `.npz`; a `Dataset` keeps its test part.

    Args:
        data: inputs `(n, ...)` as an array or a tensor, with their targets `y` `(n,)`; or a
            data set of torch whose items are pairs of both; a `Dataset`; or a dict of arrays.
        y: classes (whole numbers or texts) or numbers to learn.
    """
    if isinstance(data, Mapping):
        return {name: _array(values) for name, values in data.items()}
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
    """Write arrays as an `.npz` that `kmixup.lab.data.load` reads, whole or not at all."""
    replace_file(path, lambda stream: np.savez(stream, **arrays))  # type: ignore[arg-type]
    return path


def read_inputs(path: Path) -> NDArray[Any]:
    """Read the array x of an `.npz`, for a trained network."""
    arrays = _arrays(path)
    if "x" not in arrays:
        raise ValueError(f"{path} must hold the array x, has {', '.join(arrays) or 'none'}")
    return arrays["x"]


def tensor_of(values: Any, name: str) -> Tensor:
    """Return the numbers of an array, a tensor or a list, as a tensor on the CPU."""
    if isinstance(values, Tensor):
        return values.detach().cpu()
    array = np.asarray(values)
    if array.dtype.kind not in "buif":
        raise ValueError(f"{name} must hold numbers, got {array.dtype} of shape {array.shape}")
    return torch.from_numpy(np.ascontiguousarray(array))


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of `NAMES`; others that may be there are not unpacked."""
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
    """Return how many bytes the headers of the arrays declare."""
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


def _inputs(x: NDArray[Any], name: str, source: str) -> Tensor:
    """Return inputs as bytes or float32, or as float64 where columns will be scaled."""
    if x.dtype == np.uint8 and x.ndim in (3, 4) and len(x):
        return torch.from_numpy(x).reshape(len(x), -1, *x.shape[-2:])
    if x.ndim < 2 or not len(x) or not (np.issubdtype(x.dtype, np.number) and np.isrealobj(x)):
        raise ValueError(
            f"{source} must hold {name} of shape (n, ...) and numbers, has {x.dtype} {x.shape}"
        )
    wide = x.ndim == 2 and x.dtype not in (np.float16, np.float32)
    floats = x.astype(np.float64 if wide else np.float32, copy=False)
    if not (np.abs(floats) <= LARGEST).all():
        bad = np.argwhere(~(np.abs(floats) <= LARGEST))[0, 0]
        raise ValueError(
            f"{source} must hold finite numbers in {name}, sample {bad} has NaN or one beyond "
            f"{LARGEST:.1e}: fill it in or leave the sample out (only tables may have blanks)"
        )
    return torch.from_numpy(floats)


def _check_targets(x: Tensor, y: NDArray[Any], name: str, source: str) -> None:
    if y.shape != (len(x),) or y.dtype.kind not in "iufU":
        raise ValueError(
            f"{source} must hold {name} of shape ({len(x)},), numbers or strings, "
            f"has {y.dtype} {y.shape}"
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        bad = np.flatnonzero(~np.isfinite(y))[0]
        raise ValueError(f"{source} must hold finite numbers in {name}, sample {bad} has {y[bad]}")


def _targets(y: NDArray[Any], distinct: NDArray[Any], task: Task, name: str, source: str) -> Tensor:
    """Return numbers, or positions among the `distinct` values."""
    if task == "classes":
        return torch.from_numpy(np.searchsorted(distinct, y))
    numbers = y.astype(np.float64)
    for bad in np.flatnonzero(np.abs(numbers) > LARGEST)[:1]:
        raise ValueError(
            f"{source} must hold numbers up to {LARGEST:.1e} in {name}, sample {bad} has "
            f"{y[bad]}: change the unit"
        )
    return torch.from_numpy(numbers)


def _name(value: float | str) -> str:
    """
    >>> _name(3), _name(3.0), _name("cat")
    ('3', '3', 'cat')
    """
    return f"{value:g}" if isinstance(value, float) else str(value)


def _own_targets(data: Dataset, y: Tensor) -> NDArray[Any]:
    if data.task == "regression":
        return np.asarray(data.unscale(y.double()).numpy())
    return np.asarray(np.array(data.classes)[y.numpy()])


def _array(values: Any) -> NDArray[Any]:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


def _pairs(data: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return inputs and targets of a data set whose items are pairs."""
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
