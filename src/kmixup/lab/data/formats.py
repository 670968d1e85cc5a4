"""Read published data sets in their original formats.

None of these formats can carry code, and nothing is unpickled: `scipy.io.loadmat` reads
MATLAB's numeric arrays, and is asked for X and y only.
"""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kmixup.lab.data.dataset import Samples
from kmixup.lab.files import check_expansion, check_regular, parsing, read_lines

CIFAR_SHAPE = (3, 32, 32)
SVHN_SHAPE = (32, 32, 3)
# The paper's xi imply a mean squared distance of 1.96: with the sexes as 0, 1, 2, only
# this order and its reverse, males in the middle, give that; the others 2.05 and 2.06.
SEXES = ("F", "M", "I")

Images = tuple[Tensor, Tensor]  # uint8 (n, channels, height, width), int64 (n,)
Cells = NDArray[np.str_]  # (rows, columns)


# images


def read_idx(images: Path, labels: Path) -> Images:
    """Read a pair of gzipped IDX files, as MNIST and Fashion-MNIST come: `(n, 1, h, w)`."""
    x, y = _idx_array(images, dims=3), _idx_array(labels, dims=1)
    if len(x) != len(y):
        raise ValueError(
            f"{labels} must have a label for each of the {len(x)} images, has {len(y)}"
        )
    return torch.from_numpy(x).unsqueeze(1), _labels(y, 10, labels)


def read_cifar(path: Path, *, label_bytes: int, classes: int) -> Images:
    """Read records of labels, of which the last counts, and three planes.

    CIFAR-10 has one label, CIFAR-100 a coarse and a fine one.
    """
    record = label_bytes + math.prod(CIFAR_SHAPE)
    raw = np.fromfile(path, dtype=np.uint8)
    if len(raw) == 0 or len(raw) % record:
        raise ValueError(
            f"{path} must hold records of {record} bytes, has {len(raw)} bytes "
            f"({len(raw) % record} too many): it is truncated or not in CIFAR's binary version"
        )
    rows = raw.reshape(-1, record)
    x = rows[:, label_bytes:].reshape(-1, *CIFAR_SHAPE).copy()
    return torch.from_numpy(x), _labels(rows[:, label_bytes - 1], classes, path)


def read_svhn(path: Path) -> Images:
    """Read SVHN's cropped digits: X `(32, 32, 3, n)`, y `(n, 1)` with 10 for the digit 0."""
    from scipy.io import loadmat, whosmat  # on first use: it loads slowly

    packed = path.stat().st_size  # a missing file is reported as such
    with parsing(path, "MATLAB 5 file"):
        declared = sum(math.prod(shape) for _, shape, _ in whosmat(path))
    check_expansion(path, packed=packed, declared=declared)
    with parsing(path, "MATLAB 5 file"):
        arrays: dict[str, Any] = loadmat(path, variable_names=["X", "y"])
    if missing := {"X", "y"} - arrays.keys():
        raise ValueError(
            f"{path} must hold the arrays X and y, has no {' and '.join(sorted(missing))}"
        )
    x, y = arrays["X"], arrays["y"]
    if x.dtype != np.uint8 or x.ndim != 4 or x.shape[:3] != SVHN_SHAPE or y.size != x.shape[3]:
        raise ValueError(
            f"{path} must hold X of shape (32, 32, 3, n), uint8, and n labels y, "
            f"has {x.dtype} {x.shape} and {y.size} labels"
        )
    digits = y.ravel().astype(np.int64)
    digits[digits == 10] = 0
    return torch.from_numpy(x.transpose(3, 2, 0, 1).copy()), _labels(digits, 10, path)


def _idx_array(path: Path, *, dims: int) -> NDArray[np.uint8]:
    """Return the array of a gzipped IDX file; no more is unpacked than its header declares."""
    header = 4 + 4 * dims
    magic = bytes([0, 0, 8, dims])  # 8: unsigned bytes
    with gzip.open(path) as stream:
        with parsing(path, "gzip file"):
            start = stream.read(header)
        if start[:4] != magic or len(start) < header:
            raise ValueError(
                f"{path} must be an IDX file of bytes in {dims} dimensions "
                f"(magic {magic.hex()}), starts with {start[:4].hex() or 'nothing'}"
            )
        shape = tuple(int(size) for size in np.frombuffer(start, ">u4", dims, offset=4))
        size = math.prod(shape)
        check_expansion(path, packed=path.stat().st_size, declared=size)
        with parsing(path, "gzip file"):
            body, more = stream.read(size), stream.read(1)
    if len(body) != size or more:
        raise ValueError(
            f"{path} must hold {size} bytes after its header, for the shape {shape}, "
            f"has {'more' if more else len(body)}"
        )
    return np.frombuffer(body, np.uint8).reshape(shape).copy()


def _labels(y: NDArray[Any], classes: int, path: Path) -> Tensor:
    outside = np.flatnonzero((y < 0) | (y >= classes))
    if len(outside):
        raise ValueError(
            f"{path} must hold labels from 0 to {classes - 1}, "
            f"sample {outside[0]} has {y[outside[0]]}"
        )
    return torch.from_numpy(y.astype(np.int64))


# tables: rows of numbers, one class each, and no official split


def read_bundled(name: str) -> Samples:
    """Read Iris or Breast Cancer Wisconsin (diagnostic), as scikit-learn ships them."""
    from sklearn.datasets import load_breast_cancer, load_iris

    bunch = {"iris": load_iris, "cancer": load_breast_cancer}[name]()
    classes, columns = (
        tuple(map(str, names)) for names in (bunch.target_names, bunch.feature_names)
    )
    x, y = torch.from_numpy(bunch.data).float(), torch.from_numpy(bunch.target).long()
    return Samples(x, y, classes, columns=columns)


def read_abalone(path: Path, *, ordinal: bool) -> Samples:
    """Read Abalone with its number of rings as the class: 28 numbers occur.

    The sex is one column of 0, 1, 2 if `ordinal`, as the paper seems to have it (8
    features), and else three columns of 0 and 1 (10 features).
    """
    cells = _cells(path, 9)
    sex = (cells[:, :1] == SEXES).astype(np.float32)
    if (unknown := np.flatnonzero(~sex.any(1))).size:
        raise ValueError(
            f"{path} must have one of {', '.join(SEXES)}, row {unknown[0] + 1} has "
            f"{str(cells[unknown[0], 0])!r}"
        )
    columns = sex.argmax(1, keepdims=True).astype(np.float32) if ordinal else sex
    return _samples(np.hstack([columns, _numbers(cells[:, 1:-1], path)]), cells[:, -1], path)


def read_arrhythmia(path: Path) -> Samples:
    """Read Arrhythmia: 279 features; a missing value, `?`, is NaN until `impute`."""
    cells = _cells(path, 280)
    return _samples(_numbers(cells[:, :-1], path, missing="?"), cells[:, -1], path)


def read_phishing(path: Path) -> Samples:
    """Read Phishing Websites, an ARFF file of nominal attributes whose values are -1, 0 and 1."""
    from scipy.io import arff  # on first use: it loads slowly

    check_regular(path)
    with parsing(path, "ARFF file of nominal attributes"):
        rows, attributes = arff.loadarff(path)
        cells = np.array(rows.tolist()).astype(str)
    if len(attributes.names()) != 31:
        raise ValueError(f"{path} must have 31 attributes, has {len(attributes.names())}")
    return _samples(_numbers(cells[:, :-1], path), cells[:, -1], path)


def _cells(path: Path, columns: int) -> Cells:
    rows = [[cell.strip() for cell in line.split(",")] for line in read_lines(path) if line]
    for number, row in enumerate(rows or [[]], 1):
        if len(row) != columns:
            raise ValueError(
                f"{path} must have {columns} values in a row, row {number} has {len(row)}"
            )
    return np.array(rows)


def _numbers(cells: Cells, path: Path, *, missing: str = "") -> NDArray[np.float32]:
    """Return finite numbers, and NaN for cells that are the mark `missing`."""
    import pandas as pd  # on first use: it loads slowly

    flat = pd.to_numeric(cells.ravel(), errors="coerce")
    with np.errstate(over="ignore"):
        numbers = flat.reshape(cells.shape).astype(np.float32)
    for row, column in np.argwhere(~np.isfinite(numbers) & (cells != missing))[:1]:
        raise ValueError(
            f"{path} must hold finite numbers, row {row + 1} has {str(cells[row, column])!r}"
        )
    return numbers


def _samples(x: NDArray[np.float32], labels: Cells, path: Path) -> Samples:
    """Return samples whose classes are the labels that occur, in their order."""
    for row, label in enumerate(labels, 1):
        if not label.lstrip("-").isdecimal():
            raise ValueError(
                f"{path} must end a row in a whole number, row {row} has {str(label)!r}"
            )
    names, y = np.unique(labels.astype(np.int64), return_inverse=True)
    return Samples(torch.from_numpy(x), torch.from_numpy(y), tuple(map(str, names.tolist())))
