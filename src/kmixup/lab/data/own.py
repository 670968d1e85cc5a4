"""Your own data: files by their kind, and arrays, tensors, data frames and torch data sets."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kmixup._checks import SettingError, check_choice, check_fraction
from kmixup.lab._files import check_ratio, check_regular, open_regular, parsing, replace_file
from kmixup.lab.data.dataset import Dataset, Samples
from kmixup.lab.data.folders import Size, read_label_folders
from kmixup.tables.targets import Task, decide

TABLES = (".csv", ".tsv", ".xlsx", ".parquet")
OF_TABLES = (
    "target", "drop", "task", "test", "test_size", "decimal", "thousands", "dayfirst", "missing",
    "schema",
)  # fmt: skip
NAMES = ("x", "y", "x_test", "y_test")  # arrays of an .npz
LARGEST = torch.finfo(torch.float32).max  # networks compute in float32

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class OwnOptions:
    """Options for your own data, as in `kmixup.lab.data.load`."""

    target: str | None = None
    drop: tuple[str, ...] = ()
    task: Task | None = None
    resize: Size | None = None
    test: str | None = None
    test_size: float | None = None
    decimal: str | None = None
    thousands: str | None = None
    dayfirst: bool | None = None
    missing: tuple[str, ...] = ()
    schema: str | None = None

    def __post_init__(self) -> None:
        if self.task is not None:
            check_choice("task", self.task, get_args(Task))
        if self.test is not None and not Path(self.test).expanduser().exists():
            raise SettingError("test", f"must be a file, there is no {self.test!r}")
        if self.test_size is not None:
            check_fraction("test_size", self.test_size)

    def only(self, what: str, *names: str) -> None:
        """Raise if an option other than `names`, which has no meaning for `what`, is given."""
        for field in fields(self):
            value = getattr(self, field.name)
            given = value is not None and not (isinstance(value, tuple) and not value)
            if given and field.name not in names:
                raise SettingError(field.name, f"must not be given for {what}, got {value}")


def read_own(path: Path, options: OwnOptions) -> Samples:
    """Read the data at `path`, by their kind."""
    if path.is_dir():
        options.only("a folder", "resize", "test_size")
        return read_label_folders(path, options.resize)
    check_regular(path)
    if options.test is not None and path.samefile(Path(options.test).expanduser()):
        raise SettingError(
            "test",
            f"must be another file than the training data, got {options.test!r}: leave it out to "
            "test on rows that are held out",
        )
    kind = path.suffix.lower()
    if kind == ".npz":
        options.only("an .npz", "task", "test_size")
        return samples_of(read_npz(path), str(path), task=options.task)
    if kind in TABLES:
        options.only(f"a {kind}", *OF_TABLES)
        others = (options.test, options.schema)
        paths = [path, *(Path(other).expanduser() for other in others if other is not None)]
        return _table_samples(path, options, tuple(map(_stamp, paths)))
    raise ValueError(
        f"{path} must be an .npz, a table ({', '.join(TABLES)}) or a folder of images, is a "
        f"{path.suffix or 'nameless'} file"
    )


@lru_cache(maxsize=1)
def _table_samples(path: Path, options: OwnOptions, stamps: tuple[tuple[int, int], ...]) -> Samples:
    """Read a table once for all splits, until one of its files changes."""
    from kmixup.lab.data import tables  # on first use: pandas loads slowly

    return tables.samples_of(tables.read_table(path), options)


def _stamp(path: Path) -> tuple[int, int]:
    """Return what tells a file from its earlier content: its size and its time of change."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def samples_in_memory(data: Any, y: Any, source: str, options: OwnOptions) -> Samples:
    """Return samples in memory: as in `from_memory`, or a dict of the arrays of an `.npz`."""
    data, y = plain(data, y)
    if is_frame(data):
        from kmixup.lab.data import tables
        from kmixup.tables.reading import table_of

        options.only("a data frame", *OF_TABLES)
        return tables.samples_of(table_of(data, source), options, y)
    options.only("arrays", "task", "test_size")
    return samples_of(data, source, task=options.task)


def plain(data: Any, y: Any = None) -> tuple[Any, Any]:
    """Return a data frame and its targets, if any, or the arrays of an `.npz` and None."""
    if isinstance(data, tuple) and len(data) == 2 and y is None:
        data, y = data
    return (data, y) if is_frame(data) else (arrays_of(data, y), None)


def raw_digest(data: Any, y: Any) -> str:
    """Return a SHA-256 of what `plain` returns, before anything is computed from it."""
    digest = sha256()
    if is_frame(data):
        digest.update(data.to_csv(index=False).encode())
        data = {} if y is None else {"y": array(y)}
    for name, values in sorted(data.items()):
        values = values.astype(str) if values.dtype.kind == "O" else values
        values = values.astype(values.dtype.newbyteorder("<"))
        digest.update(f"{name} {values.dtype.str} {values.shape}\0".encode() + values.tobytes())
    return digest.hexdigest()


def is_frame(data: Any) -> bool:
    """Return whether data are a data frame, without importing pandas."""
    return hasattr(data, "columns") and hasattr(data, "iloc")


def samples_of(arrays: Arrays, source: str, *, task: Task | None = None) -> Samples:
    """Return arrays x `(n, ...)` and y `(n,)` as samples; x_test and y_test are a test set.

    uint8 inputs are images, `(n, channels, height, width)` or grey `(n, height, width)`. Targets
    are classes (whole numbers or strings) or numbers, as `decide` infers or as `task` says. The
    classes are those that occur in y.
    """
    x, y = _part(arrays, "x", "y", source)
    notes: list[str] = []
    distinct = np.unique(y)
    task = decide(distinct, rows=len(y), task=task, name="y", notes=notes)
    classes = () if task == "regression" else tuple(map(class_name, distinct))

    def encoded(targets: NDArray[Any]) -> Tensor:
        if not classes:
            return torch.from_numpy(targets.astype(np.float64))
        if len(new := np.setdiff1d(targets, distinct)):
            raise ValueError(f"{source} must have in y_test only classes of y, has {new[0]}")
        return torch.from_numpy(np.searchsorted(distinct, targets))

    samples = Samples(x, encoded(y), classes, notes=tuple(notes))
    if "x_test" not in arrays and "y_test" not in arrays:
        return samples
    x_test, y_test = _part(arrays, "x_test", "y_test", source)
    if x.is_floating_point() and x_test.is_floating_point():
        x_test = x_test.to(x.dtype)
    if x_test.shape[1:] != x.shape[1:] or x_test.dtype != x.dtype:
        raise ValueError(
            f"{source} must have x_test like x, {x.dtype} {tuple(x.shape[1:])}, "
            f"has {x_test.dtype} {tuple(x_test.shape[1:])}"
        )
    return replace(samples, x_test=x_test, y_test=encoded(y_test))


def arrays_of(data: Any, y: Any = None) -> dict[str, NDArray[Any]]:
    """Return samples as the arrays of an `.npz`: as in `from_memory`, a `Dataset`, or a dict."""
    if isinstance(data, Mapping):
        return {name: array(values) for name, values in data.items()}
    if isinstance(data, Dataset):
        arrays = {"x": data.x_train.numpy(), "x_test": data.x_test.numpy()}
        for name, part in (("y", data.y_train), ("y_test", data.y_test)):
            if data.classes:
                arrays[name] = np.array(data.classes)[part.numpy()]
            else:
                arrays[name] = data.unscale(part.double()).numpy()
        return arrays
    if y is None:
        data, y = _pairs(data)
    targets = array(y)
    if targets.dtype.kind in "OS":
        targets = targets.astype(str)
    if targets.dtype.kind == "b":
        targets = targets.astype(np.int64)
    return {"x": array(data), "y": targets}


def write_npz(arrays: Arrays, path: Path) -> Path:
    """Write arrays as an `.npz` that `kmixup.lab.data.load` reads, whole or not at all."""
    replace_file(path, lambda stream: np.savez(stream, **arrays))  # type: ignore[arg-type]
    return path


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of `NAMES`; others are not unpacked."""
    with (
        parsing(path, ".npz of plain arrays"),
        open_regular(path) as stream,
        zipfile.ZipFile(stream) as archive,
    ):
        members = {name: f"{name}.npy" for name in NAMES if f"{name}.npy" in archive.namelist()}
        memory = 0  # of the arrays, and of their numbers as floats
        for member in members.values():
            with archive.open(member) as packed:
                shape, dtype = _npy_header(packed)
                memory += math.prod(shape) * (dtype.itemsize + 8)
        check_ratio(path, memory, os.fstat(stream.fileno()).st_size)
        arrays = {}
        for name, member in members.items():
            with archive.open(member) as packed:
                arrays[name] = np.lib.format.read_array(packed, allow_pickle=False)
        return arrays


def _npy_header(packed: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(packed)
    old = version == (1, 0)
    read = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(packed)
    return shape, dtype


def array_in(arrays: Arrays, name: str, source: object) -> NDArray[Any]:
    """Return one of the arrays, or raise with what there is."""
    if name not in arrays:
        raise ValueError(f"{source} must hold the array {name}, has {', '.join(arrays) or 'none'}")
    return arrays[name]


def _part(arrays: Arrays, x: str, y: str, source: str) -> tuple[Tensor, NDArray[Any]]:
    inputs = _inputs(array_in(arrays, x, source), x, source)
    return inputs, targets_in(arrays, y, len(inputs), source)


def targets_in(arrays: Arrays, name: str, n: int, source: object) -> NDArray[Any]:
    """Return the targets of `n` samples from one of the arrays, or raise."""
    targets = array_in(arrays, name, source)
    if targets.shape != (n,) or targets.dtype.kind not in "iufU":
        raise ValueError(
            f"{source} must hold {name} of shape ({n},), numbers or strings, "
            f"has {targets.dtype} {targets.shape}"
        )
    if targets.dtype.kind == "f":
        _check_finite(targets, name, source)
    return targets


def _inputs(x: NDArray[Any], name: str, source: str) -> Tensor:
    """Return inputs as bytes or float32, or as float64 where columns will be scaled."""
    if x.dtype == np.uint8 and x.ndim in (3, 4) and x.size:
        return torch.from_numpy(x).reshape(len(x), -1, *x.shape[-2:])
    if x.ndim < 2 or not x.size or not (np.issubdtype(x.dtype, np.number) and np.isrealobj(x)):
        raise ValueError(
            f"{source} must hold {name} of shape (n, ...) and numbers, has {x.dtype} {x.shape}"
        )
    wide = x.ndim == 2 and x.dtype not in (np.float16, np.float32)
    floats = x.astype(np.float64 if wide else np.float32, copy=False)
    _check_finite(floats, name, source)
    return torch.from_numpy(floats)


def _check_finite(values: NDArray[Any], name: str, source: object) -> None:
    beyond = ~(np.abs(values) <= LARGEST)
    if beyond.any():
        raise ValueError(
            f"{source} must hold finite numbers up to {LARGEST:.1e} in {name}, sample "
            f"{np.argwhere(beyond)[0, 0]} has {values[beyond][0]}: fill it in, change the unit, or "
            "leave the sample out (only tables may have blanks)"
        )


def class_name(value: Any) -> str:
    """Return the name of a class, an entry of an array: "3" for 3 and 3.0."""
    if isinstance(value, np.floating):
        return np.format_float_positional(value, trim="-")
    return str(value)


def array(values: Any) -> NDArray[Any]:
    """Return an array, a tensor or a list as an array."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


def _pairs(data: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return inputs and targets of a data set whose items are pairs."""
    try:
        if isinstance(data, np.ndarray | Tensor):
            raise TypeError("an array has none")
        items = [data[i] for i in range(len(data))]
        return np.stack([array(x) for x, _ in items]), np.stack([array(y) for _, y in items])
    except (TypeError, ValueError) as error:
        raise ValueError(
            "y must be given, or the items of the data must be pairs of an input and a target, "
            f"all of one shape: {error}"
        ) from error
