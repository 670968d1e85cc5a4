"""The user's own data: an `.npz`, a `.csv`, or a folder of images or of wav clips."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kmixup.lab.data.dataset import Parts, Samples
from kmixup.lab.data.folders import read_label_folders
from kmixup.lab.data.speech import read_clips

ROWS = 1000  # of a table that are held as text at a time


def read_own(path: Path, *, target: str | None, cache: Path) -> Samples | Parts:
    """Data at `path`, by its kind; `target` is the column of a `.csv` with the classes."""
    if path.is_dir():
        return read_label_folders(path) if (path / "train").is_dir() else read_clips(path, cache)
    if path.suffix == ".npz":
        return read_npz(path)
    if path.suffix == ".csv":
        return read_csv(path, target="target" if target is None else target)
    raise ValueError(
        f"{path} must be an .npz or a .csv file, or a folder of train/label/*.png "
        f"or of label/*.wav, is a {path.suffix or 'nameless'} file"
    )


def read_npz(path: Path) -> Samples | Parts:
    """Arrays x `(n, ...)` and y `(n,)`, with x_test and y_test where the test part is fixed.

    uint8 inputs are images, `(n, channels, height, width)` or grey `(n, height, width)`;
    others become float32.
    Labels are whole numbers or strings; those that occur in y are the classes.
    """
    arrays = _arrays(path)
    if missing := {"x", "y"} - arrays.keys():
        raise ValueError(
            f"{path} must hold the arrays x and y, has no {' and '.join(sorted(missing))}"
        )
    x, y = _inputs(arrays["x"], "x", path), arrays["y"]
    _check_labels(x, y, "y", path)
    names, index = np.unique(y, return_inverse=True)
    classes = tuple(map(str, names.tolist()))
    labels = torch.from_numpy(index.astype(np.int64))
    if "x_test" not in arrays or "y_test" not in arrays:
        return Samples(x, labels, classes)
    x_test, y_test = _inputs(arrays["x_test"], "x_test", path), arrays["y_test"]
    _check_labels(x_test, y_test, "y_test", path)
    if x_test.shape[1:] != x.shape[1:] or x_test.dtype != x.dtype:
        raise ValueError(
            f"{path} must have x_test like x, {x.dtype} {tuple(x.shape[1:])}, "
            f"has {x_test.dtype} {tuple(x_test.shape[1:])}"
        )
    if len(new := np.setdiff1d(y_test, names)):
        raise ValueError(f"{path} must have in y_test only classes of y, has {new[0]}")
    return Parts(x, labels, x_test, torch.from_numpy(np.searchsorted(names, y_test)), classes)


def read_csv(path: Path, *, target: str = "target") -> Samples:
    """A table with a header: the column `target` is the class, all others are numbers.

    Rows become numbers `ROWS` at a time: as text a table takes ten times the room.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            rows = (row for row in csv.reader(stream) if row)
            header = next(rows, [])
            first = next(rows, None)
            if target not in header or len(header) < 2 or first is None:
                count = 0 if first is None else 1 + sum(1 for _ in rows)
                raise ValueError(
                    f"{path} must have a column {target!r}, another one and a row, has the "
                    f"columns {', '.join(header) or 'none'} and {count} rows: name the target's "
                    "column"
                )
            column = header.index(target)
            x, labels, known = _read_rows(chain([first], rows), header, column, path)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} must be a table of text, could not be read: {error}") from error
    classes = sorted(known)
    rank = np.empty(len(known), dtype=np.int64)
    rank[[known[name] for name in classes]] = np.arange(len(known))
    columns = tuple(header[:column] + header[column + 1 :])
    return Samples(torch.from_numpy(x), torch.from_numpy(rank[labels]), tuple(classes), columns)


def _read_rows(
    rows: Iterator[list[str]], header: list[str], column: int, path: Path
) -> tuple[NDArray[np.float32], NDArray[np.int64], dict[str, int]]:
    """The numbers of all rows `(n, d)`, their classes `(n,)`, and these in the order they came."""
    numbers, labels, done = [], [], 0
    known: dict[str, int] = {}
    while some := list(islice(rows, ROWS)):
        for i, row in enumerate(some, done + 1):
            if len(row) != len(header):
                raise ValueError(
                    f"{path} must have {len(header)} values in a row, row {i} has {len(row)}"
                )
        labels += [known.setdefault(row.pop(column), len(known)) for row in some]
        found = _numbers(some)
        if found is None:
            _refuse_cell(some, header[:column] + header[column + 1 :], done + 1, path)
        numbers.append(found)
        done += len(some)
    return np.concatenate(numbers), np.array(labels), known


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    with path.open("rb") as stream:
        try:
            if not zipfile.is_zipfile(stream):
                raise ValueError("it is no zip archive")
            stream.seek(0)
            stored = np.load(stream, allow_pickle=False)
            return {key: stored[key] for key in stored.files}
        except Exception as error:  # a damaged archive fails in many ways
            raise ValueError(
                f"{path} must be a whole .npz of plain arrays, could not be read: {error}"
            ) from error


def _inputs(x: NDArray[Any], name: str, path: Path) -> Tensor:
    if x.dtype == np.uint8 and x.ndim in (3, 4) and len(x):
        return torch.from_numpy(x).reshape(len(x), -1, *x.shape[-2:])
    if x.ndim < 2 or not len(x) or not (np.issubdtype(x.dtype, np.number) and np.isrealobj(x)):
        raise ValueError(
            f"{path} must hold {name} of shape (n, ...) and numbers, has {x.dtype} {x.shape}"
        )
    floats = x.astype(np.float32, copy=False)
    if not np.isfinite(floats).all():
        bad = np.argwhere(~np.isfinite(floats))[0, 0]
        raise ValueError(f"{path} must hold finite numbers in {name}, sample {bad} has others")
    return torch.from_numpy(floats)


def _check_labels(x: Tensor, y: NDArray[Any], name: str, path: Path) -> None:
    if y.shape != (len(x),) or y.dtype.kind not in "iuU":
        raise ValueError(
            f"{path} must hold {name} of shape ({len(x)},), whole numbers or strings, "
            f"has {y.dtype} {y.shape}"
        )


def _numbers(rows: list[list[str]]) -> NDArray[np.float32] | None:
    """Cells as numbers, or None where one of them is no finite number."""
    try:
        with np.errstate(over="ignore"):
            found = np.array(rows, dtype=np.float32)
    except ValueError:
        return None
    return found if np.isfinite(found).all() else None


def _refuse_cell(rows: list[list[str]], header: list[str], first: int, path: Path) -> NoReturn:
    """Name the first cell that is no finite number; the rows count from `first`."""
    row, cell, column = next(
        (number, cell, column)
        for number, row in enumerate(rows, first)
        for cell, column in zip(row, header, strict=True)
        if _numbers([[cell]]) is None
    )
    raise ValueError(
        f"{path} must hold finite numbers beside its target, row {row} has {cell!r} "
        f"in the column {column!r}: encode or drop it"
    )
