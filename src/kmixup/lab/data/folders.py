"""Folders of labelled files, one sub-folder per class, and the images in them."""

from __future__ import annotations

import math
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from kmixup.lab.checks import SettingError
from kmixup.lab.data.dataset import Samples
from kmixup.lab.files import check_expansion, check_regular, parsing, read_lines

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP")
IMAGE = f"image in {', '.join(FORMATS)}"
SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp"}
PIXELS = 1 << 26  # of one image: 200 MB in RGB
WIDE = ("I", "F")  # Pillow's modes of more than 8 bits a channel start so; it clips them to 8
BILINEAR = 2  # of Pillow's `Resampling`

Size = tuple[int, int]
Labelled = list[tuple[Path, int]]


def read_tiny_imagenet(folder: Path, limit: int | None = None) -> Samples:
    """Read Tiny ImageNet; its validation images are the test part: its test images have no labels.

    The classes are those of `wnids.txt`, in its order, by their first name in `words.txt`.
    """
    ids = [line for line in read_lines(folder / "wnids.txt") if line]
    words = {row[0]: row[1] for row in _columns(folder / "words.txt", 2)}
    train: Labelled = []
    for i, wnid in enumerate(ids):
        train += [(path, i) for path in files(folder / "train" / wnid / "images")]
    if missing := set(range(len(ids) or 1)) - {label for _, label in train}:
        wnid = ids[min(missing)] if ids else "a class in wnids.txt"
        raise ValueError(f"{folder} must have training images of {wnid}, has none")
    annotations = folder / "val" / "val_annotations.txt"
    test: Labelled = []
    for name, wnid, *_ in _columns(annotations, 6)[:limit]:
        path = folder / "val" / "images" / name
        if wnid not in ids:
            raise ValueError(
                f"{annotations} must name classes of wnids.txt, has {wnid!r} for {name}"
            )
        if Path(name).name != name or not path.is_file():
            raise ValueError(f"{annotations} names an image that is not there, {name}")
        test.append((path, ids.index(wnid)))
    classes = tuple(words.get(wnid, wnid).split(",")[0] for wnid in ids)
    (x, y), (x_test, y_test) = (_read(part, (64, 64)) for part in (in_turn(train)[:limit], test))
    x, x_test = (images.expand(-1, 3, -1, -1).contiguous() for images in (x, x_test))
    return Samples(x, y, classes, x_test, y_test)


def read_label_folders(folder: Path, resize: Size | None = None) -> Samples:
    """Read `label/*.png`, or `train/label/*.png` with or without `test/label/*.png`."""
    first = folder / "train" if (folder / "train").is_dir() else folder
    train, classes = labelled(first)
    test: Labelled = []
    if first != folder and (folder / "test").is_dir():
        test, test_classes = labelled(folder / "test")
        if new := sorted(set(test_classes) - set(classes)):
            raise ValueError(
                f"{folder / 'test'} must have the classes of {first}, {new[0]!r} is not one"
            )
        test = [(path, classes.index(test_classes[i])) for path, i in test]
    x, y = _read([*train, *test], resize=resize)
    n = len(train)
    return Samples(x[:n], y[:n], classes, x[n:], y[n:])


def suffixes_in(folder: Path) -> set[str]:
    """Return the endings, in lower case, of the files in the sub-folders of `folder`."""
    return {path.suffix.lower() for name in _labels(folder) for path in (folder / name).iterdir()}


def labelled(folder: Path, suffixes: Iterable[str] = SUFFIXES) -> tuple[Labelled, tuple[str, ...]]:
    """Return the files of each sub-folder with the index of its name, in turn, and the names."""
    names = _labels(folder)
    by_label = {name: files(folder / name, suffixes) for name in names}
    empty = [name for name in names if not by_label[name]]
    if len(names) < 2 or empty:
        raise ValueError(
            f"{folder} must have a sub-folder of {'/'.join(sorted(suffixes))} files for each of "
            f"two or more classes, has {len(names)} sub-folders"
            + (f" and no such file in {empty[0]!r}" if empty else "")
        )
    items = [(path, i) for i, paths in enumerate(by_label.values()) for path in paths]
    return in_turn(items), tuple(names)


def files(folder: Path, suffixes: Iterable[str] = SUFFIXES) -> list[Path]:
    """Return the files with one of the `suffixes`, in the order of their names: 2 before 10."""
    if not folder.is_dir():
        raise ValueError(f"{folder} must be a folder of files, is not there")
    wanted = set(suffixes)
    paths = []
    with os.scandir(folder) as entries:
        for entry in entries:
            path = folder / entry.name
            if path.suffix.lower() in wanted:
                if not entry.is_file():
                    check_regular(path)
                paths.append(path)
    return sorted(paths, key=lambda path: (len(path.name), path.name))


def in_turn(items: Labelled) -> Labelled:
    """Return the first file of every class, then the second of every class, and so on."""
    turns, seen = [], Counter[int]()
    for path, label in items:
        turns.append((seen[label], label, path))
        seen[label] += 1
    turns.sort(key=lambda turn: turn[:2])
    return [(path, label) for _, label, path in turns]


def read_images(
    paths: Sequence[Path], size: Size | None = None, *, resize: Size | None = None
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
        f"with, for example, --resize {height} {width}, resize=({height}, {width}) in Python"
    )


def _by(size: Size) -> str:
    return f"{size[0]}×{size[1]}"


def _read(
    items: Labelled, size: Size | None = None, resize: Size | None = None
) -> tuple[Tensor, Tensor]:
    images = read_images([path for path, _ in items], size, resize=resize)
    return images, torch.tensor([index for _, index in items])


def _labels(folder: Path) -> list[str]:
    """Return the names of the sub-folders, without hidden ones."""
    return sorted(
        path.name for path in folder.iterdir() if path.is_dir() and path.name[0] not in "._"
    )


def _columns(path: Path, count: int) -> list[list[str]]:
    rows = [line.split("\t") for line in read_lines(path) if line]
    for number, row in enumerate(rows, 1):
        if len(row) != count:
            raise ValueError(
                f"{path} must have {count} columns between tabs, line {number} has {len(row)}"
            )
    return rows
