"""Read images as tensors of bytes: IDX, CIFAR's binary version, SVHN's `.mat`, and image files.

None of these formats can carry code, and nothing is unpickled: `scipy.io.loadmat` reads
MATLAB's numeric arrays, and is asked for X and y only.
"""

from __future__ import annotations

import gzip
import math
import os
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kmixup.lab.checks import SettingError
from kmixup.lab.files import check_expansion, check_regular, parsing

if TYPE_CHECKING:
    from PIL import Image

Images = tuple[Tensor, Tensor]  # uint8 (n, channels, height, width), int64 (n,)

Size = tuple[int, int]

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP")
IMAGE = f"image in {', '.join(FORMATS)}"
SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp"}
PIXELS = 1 << 26  # of one image: 200 MB in RGB
WIDE = ("I", "F")  # Pillow's modes of more than 8 bits a channel start so; it clips them to 8
BILINEAR = 2  # of Pillow's `Resampling`
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
    """The array of a gzipped IDX file; no more is unpacked than its header declares."""
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


def read_images(
    paths: Sequence[Path], *, size: Size | None = None, resize: Size | None = None
) -> Tensor:
    """Read images as uint8 `(n, channels, height, width)`: grey if all of them are, else RGB.

    All must have the width and height `size`, by default the first image's, or are stretched to
    the height and width `resize`.
    """
    if resize is not None and min(resize) < 1:
        raise SettingError("resize", f"must be a height and a width of 1 or more, got {resize}")
    arrays, grey, packed, declared = [], True, 0, 0
    wanted = size
    for path in paths:
        with _opened(path) as image:
            wanted = wanted or image.size
            if resize is None and image.size != wanted:
                problem = f"{path} must be {_by(wanted)} as the others, is {_by(image.size)}"
                raise ValueError(problem + ("" if size else _remedy(paths)))
            packed += os.path.getsize(path)
            declared += 3 * math.prod(resize or image.size)
            check_expansion(path.parent, packed=packed, declared=declared)
            grey = grey and image.mode in ("L", "1")
            with parsing(path, IMAGE):
                colours = image.convert("RGB")
            if resize is not None:
                colours = colours.resize(resize[::-1], BILINEAR)
            arrays.append(np.asarray(colours))
    stack = torch.from_numpy(np.stack(arrays)).permute(0, 3, 1, 2)
    return (stack[:, :1] if grey else stack).contiguous()


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """Open an image by its header, and check its size and mode."""
    from PIL import Image  # on first use: `kmixup.lab.tune` works without the extra

    check_regular(path)
    with path.open("rb") as stream, warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # PIXELS is stricter
        try:
            # other formats are not tried: that of EPS would start Ghostscript
            with parsing(path, IMAGE):
                image = Image.open(stream, formats=FORMATS)
            size = _by(image.size) if math.prod(image.size) > PIXELS else ""
        except ValueError as error:
            if not isinstance(error.__cause__, Image.DecompressionBombError):
                raise
            size = str(error.__cause__)
        if size:
            raise ValueError(
                f"{path} must have at most {PIXELS:,} pixels, is larger ({size}): shrink it"
            )
        if image.mode.startswith(WIDE):
            raise ValueError(
                f"{path} must have 8 bits a channel, has Pillow's mode {image.mode}: scale it to "
                "8 bits first, or store the images as numbers in an .npz"
            )
        yield image


def _by(size: Size) -> str:
    return f"{size[0]}×{size[1]}"


def _remedy(paths: Sequence[Path]) -> str:
    """Count the sizes of all images, and say how to make them one."""
    counts: Counter[Size] = Counter()
    for path in paths:
        with suppress(ValueError), _opened(path) as image:
            counts[image.size] += 1
    sizes = ", ".join(f"{_by(size)} ({count:,})" for size, count in counts.most_common(5))
    more = f" and {len(counts) - 5:,} other sizes" if len(counts) > 5 else ""
    width, height = counts.most_common(1)[0][0]
    return (
        f"; there are images of {sizes}{more}: stretch all to one height and width "
        f"with, for example, --resize {height}x{width}, resize=({height}, {width}) in Python"
    )
