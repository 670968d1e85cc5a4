"""Image files that hold many images each: IDX, CIFAR's binary version, SVHN's `.mat`.

None of these formats can carry code, and nothing is unpickled: `scipy.io.loadmat` reads
MATLAB's numeric arrays, and is asked for X and y alone.
"""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kmixup.lab.data.safety import check_expansion

Images = tuple[Tensor, Tensor]  # uint8 (n, channels, height, width), int64 (n,)

CIFAR_SHAPE = (3, 32, 32)
SVHN_SHAPE = (32, 32, 3)


def read_idx(images: Path, labels: Path, *, classes: int = 10) -> Images:
    """A pair of gzipped IDX files, as MNIST and Fashion-MNIST come: `(n, 1, h, w)`."""
    x, y = _idx_array(images, dims=3), _idx_array(labels, dims=1)
    if len(x) != len(y):
        raise ValueError(
            f"{labels} must have a label for each of the {len(x)} images, has {len(y)}"
        )
    return torch.from_numpy(x).unsqueeze(1), _labels(y, classes, labels)


def read_cifar(path: Path, *, label_bytes: int, classes: int) -> Images:
    """A file of records: `label_bytes` labels, the last of which counts, and three planes.

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
    """SVHN's cropped digits: X `(32, 32, 3, n)`, y `(n, 1)` with 10 for the digit 0."""
    from scipy.io import loadmat, whosmat  # on first use: it loads slowly

    packed = path.stat().st_size  # a missing file is reported as such
    try:
        declared = sum(math.prod(shape) for _, shape, _ in whosmat(path))
    except Exception as error:  # its parser fails in many ways on a damaged file
        raise _not_matlab(path, error) from error
    check_expansion(path, packed=packed, declared=declared)
    try:
        arrays: dict[str, Any] = loadmat(path, variable_names=["X", "y"])
    except Exception as error:
        raise _not_matlab(path, error) from error
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


def _not_matlab(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path} must be a whole MATLAB 5 file, could not be read: {error}")


def _idx_array(path: Path, *, dims: int) -> NDArray[np.uint8]:
    """The array of a gzipped IDX file; no more is unpacked than its header declares."""
    header = 4 + 4 * dims
    magic = bytes([0, 0, 8, dims])  # 8: unsigned bytes
    try:
        with gzip.open(path) as stream:
            start = stream.read(header)
            if start[:4] != magic or len(start) < header:
                raise ValueError(
                    f"{path} must be an IDX file of bytes in {dims} dimensions "
                    f"(magic {magic.hex()}), starts with {start[:4].hex() or 'nothing'}"
                )
            shape = tuple(int(size) for size in np.frombuffer(start, ">u4", dims, offset=4))
            size = math.prod(shape)
            check_expansion(path, packed=path.stat().st_size, declared=size)
            body = stream.read(size)
            more = stream.read(1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} must be a whole gzip file, could not be read: {error}") from error
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
