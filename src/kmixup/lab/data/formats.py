"""Read published data sets in their original formats.

None of these formats can carry code, and nothing is unpickled: `scipy.io.loadmat` reads
MATLAB's numeric arrays, and is asked for X and y only. Whole files have a checksum, so readers
check only that a file has the form it should have.
"""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kmixup.lab._files import parsing, read_bytes, read_gzip
from kmixup.lab.data.dataset import Samples

CIFAR_SHAPE = (3, 32, 32)
# The paper's xi imply a mean squared distance of 1.96: with the sexes as 0, 1, 2, only
# this order and its reverse, males in the middle, give that; the others 2.05 and 2.06.
SEXES = ("F", "M", "I")

Images = tuple[Tensor, Tensor]  # uint8 (n, channels, height, width), int64 (n,)


# images


def read_idx(images: Path, labels: Path) -> Images:
    """Read a pair of gzipped IDX files, as MNIST and Fashion-MNIST come: `(n, 1, h, w)`."""
    x, y = _idx_array(images, dims=3), _idx_array(labels, dims=1)
    return torch.from_numpy(x).unsqueeze(1), _labels(y, 10, labels)


def read_cifar(path: Path, *, label_bytes: int, classes: int) -> Images:
    """Read records of labels, of which the last counts, and three planes.

    CIFAR-10 has one label, CIFAR-100 a coarse and a fine one.
    """
    record = label_bytes + math.prod(CIFAR_SHAPE)
    with parsing(path, f"file of records of {record} bytes, CIFAR's binary version"):
        rows = np.frombuffer(read_bytes(path), np.uint8).reshape(-1, record)
    x = rows[:, label_bytes:].reshape(-1, *CIFAR_SHAPE).copy()
    return torch.from_numpy(x), _labels(rows[:, label_bytes - 1], classes, path)


def read_svhn(path: Path) -> Images:
    """Read SVHN's cropped digits: X `(32, 32, 3, n)`, y `(n, 1)` with 10 for the digit 0."""
    from scipy.io import loadmat  # on first use: it loads slowly

    with parsing(path, "MATLAB 5 file with arrays X (32, 32, 3, n) and y"):
        arrays: dict[str, Any] = loadmat(path, variable_names=["X", "y"])
        x, digits = arrays["X"], arrays["y"].ravel().astype(np.int64)
        if x.dtype != np.uint8 or x.shape != (32, 32, 3, len(digits)):
            raise ValueError(f"X is {x.dtype} {x.shape}, for {len(digits)} labels")
    digits[digits == 10] = 0
    return torch.from_numpy(x.transpose(3, 2, 0, 1).copy()), _labels(digits, 10, path)


def _idx_array(path: Path, *, dims: int) -> NDArray[np.uint8]:
    """Return the array of a gzipped IDX file: magic number, shape, bytes."""
    magic = bytes([0, 0, 8, dims])  # 8: unsigned bytes
    with parsing(path, f"gzipped IDX file of bytes in {dims} dimensions"):
        content = read_gzip(path)
        if not content.startswith(magic):
            raise ValueError(f"it starts with {content[:4].hex()}, not {magic.hex()}")
        shape = np.frombuffer(content, ">u4", dims, offset=4)
        return np.frombuffer(content, np.uint8, offset=4 + 4 * dims).reshape(shape).copy()


def _labels(y: NDArray[Any], classes: int, path: Path) -> Tensor:
    outside = np.flatnonzero(y >= classes)
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
    with parsing(path, "Abalone file of 9 columns"):
        cells = _cells(path, 9)
        sex = np.array([SEXES.index(cell) for cell in cells[:, 0]])
        columns = sex[:, None] if ordinal else np.eye(3)[sex]
        return _samples(np.hstack([columns, cells[:, 1:-1]]), cells[:, -1])


def read_arrhythmia(path: Path) -> Samples:
    """Read Arrhythmia: 279 features; a missing value, `?`, is NaN until `impute`."""
    with parsing(path, "Arrhythmia file of 280 columns"):
        cells = _cells(path, 280)
        return _samples(cells[:, :-1], cells[:, -1])


def read_phishing(path: Path) -> Samples:
    """Read Phishing Websites, an ARFF file of nominal attributes whose values are -1, 0 and 1."""
    from scipy.io import arff  # on first use: it loads slowly

    with parsing(path, "ARFF file of 31 nominal attributes"):
        cells = np.array(arff.loadarff(io.StringIO(read_bytes(path).decode()))[0].tolist())
        return _samples(cells[:, :30], cells[:, 30])


def read_keel(path: Path) -> Samples:
    """Read a table of the KEEL repository: numbers and words, the last column is the class."""
    import pandas as pd  # on first use: it loads slowly

    from kmixup.lab.data.own import OwnOptions
    from kmixup.lab.data.tables import samples_of
    from kmixup.tables.reading import table_of

    with parsing(path, "KEEL table, without a header, of at least two columns"):
        content = io.BytesIO(read_bytes(path))
        frame = pd.read_csv(content, header=None, skipinitialspace=True)
        frame.columns = [*(f"x{i}" for i in range(1, frame.shape[1])), "class"]
        return samples_of(table_of(frame, str(path)), OwnOptions(target="class", task="classes"))


def _cells(path: Path, columns: int) -> NDArray[Any]:
    import pandas as pd  # on first use: it loads slowly

    cells = pd.read_csv(io.BytesIO(read_bytes(path)), header=None, na_values="?").to_numpy(object)
    if cells.shape[1] != columns:
        raise ValueError(f"it has {cells.shape[1]} columns")
    return cells


def _samples(x: NDArray[Any], labels: NDArray[Any]) -> Samples:
    """Return samples whose classes are the labels that occur, in their order."""
    names, y = np.unique(labels.astype(np.int64), return_inverse=True)
    inputs = torch.from_numpy(x.astype(np.float32))
    return Samples(inputs, torch.from_numpy(y), tuple(map(str, names.tolist())))
