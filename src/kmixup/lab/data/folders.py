"""Folders of labelled files: one sub-folder per class, or lists that name the classes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kmixup.lab.data.dataset import Samples
from kmixup.lab.data.images import SUFFIXES, Size, read_images
from kmixup.lab.files import check_regular, read_lines

TINY_SIZE = (64, 64)

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
    (x, y), (x_test, y_test) = (
        _read(part, size=TINY_SIZE) for part in (in_turn(train)[:limit], test)
    )
    classes = tuple(words.get(wnid, wnid).split(",")[0] for wnid in ids)
    return Samples(_rgb(x), y, classes, _rgb(x_test), y_test)


def read_label_folders(folder: Path, resize: Size | None = None) -> Samples:
    """Read `label/*.png`, or `train/label/*.png` with or without `test/label/*.png`.

    `resize` is as in `read_images`.
    """
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
    """Endings, in lower case, of the files in the sub-folders of `folder`."""
    return {path.suffix.lower() for name in _labels(folder) for path in (folder / name).iterdir()}


def labelled(folder: Path, suffixes: Iterable[str] = SUFFIXES) -> tuple[Labelled, tuple[str, ...]]:
    """Files of each sub-folder with the index of its name, taken in turn, and the names."""
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
    """Files with one of the `suffixes`, in the order of their names: 2 before 10."""
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


def _labels(folder: Path) -> list[str]:
    """Names of the sub-folders, hidden ones left out."""
    return sorted(
        path.name for path in folder.iterdir() if path.is_dir() and path.name[0] not in "._"
    )


def in_turn(items: Labelled) -> Labelled:
    """The first file of every class, then the second of every class, and so on.

    So the first files are not all of one class.
    """
    turns, seen = [], Counter[int]()
    for path, label in items:
        turns.append((seen[label], label, path))
        seen[label] += 1
    turns.sort(key=lambda turn: turn[:2])
    return [(path, label) for _, label, path in turns]


def _read(items: Labelled, **sizes: Any) -> tuple[Tensor, Tensor]:
    images = read_images([path for path, _ in items], **sizes)
    return images, torch.tensor([index for _, index in items])


def _rgb(x: Tensor) -> Tensor:
    return x.expand(-1, 3, -1, -1).contiguous()


def _columns(path: Path, count: int) -> list[list[str]]:
    rows = [line.split("\t") for line in read_lines(path) if line]
    for number, row in enumerate(rows, 1):
        if len(row) != count:
            raise ValueError(
                f"{path} must have {count} columns between tabs, line {number} has {len(row)}"
            )
    return rows
