"""Folders of labelled files: one sub-folder per class, or lists that name the classes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from kmixup.lab.data.dataset import Parts, Samples
from kmixup.lab.data.images import SUFFIXES, Size, read_images
from kmixup.lab.files import check_regular, read_lines

TINY_SIZE = (64, 64)

T = TypeVar("T")
Labelled = list[tuple[Path, int]]


def read_tiny_imagenet(folder: Path, limit: int | None = None) -> Parts:
    """Read Tiny ImageNet; its validation images are the test part: its test images have no labels.

    The classes are those of `wnids.txt`, in its order, by their first name in `words.txt`. Images
    are taken in turn from every class, so that the first ones are not all of one class.
    """
    ids = [line for line in read_lines(folder / "wnids.txt") if line]
    index = {wnid: i for i, wnid in enumerate(ids)}
    words = {row[0]: row[1] for row in _columns(folder / "words.txt", 2)}
    lists = [files(folder / "train" / wnid / "images") for wnid in ids]
    if not lists or not all(lists):
        wnid = ids[lists.index([])] if lists else "a class in wnids.txt"
        raise ValueError(f"{folder} must have training images of {wnid}, has none")
    train = in_turn([(path, i) for path in some] for i, some in enumerate(lists))[:limit]
    annotations = folder / "val" / "val_annotations.txt"
    test: Labelled = []
    for name, wnid, *_ in _columns(annotations, 6)[:limit]:
        path = folder / "val" / "images" / name
        if wnid not in index:
            raise ValueError(
                f"{annotations} must name classes of wnids.txt, has {wnid!r} for {name}"
            )
        if Path(name).name != name or not path.is_file():
            raise ValueError(f"{annotations} names an image that is not there, {name}")
        test.append((path, index[wnid]))
    (x_train, y_train), (x_test, y_test) = (_read(part, size=TINY_SIZE) for part in (train, test))
    classes = tuple(words.get(wnid, wnid).split(",")[0] for wnid in ids)
    return Parts(_rgb(x_train), y_train, _rgb(x_test), y_test, classes)


def read_label_folders(folder: Path, resize: Size | None = None) -> Samples | Parts:
    """Read `label/*.png`, or `train/label/*.png` with or without `test/label/*.png`.

    `resize` is as in `read_images`.
    """
    first = folder / "train" if (folder / "train").is_dir() else folder
    train, classes = labelled(first)
    if first == folder or not (folder / "test").is_dir():
        return Samples(*_read(train, resize=resize), classes)
    test, test_classes = labelled(folder / "test")
    if new := sorted(set(test_classes) - set(classes)):
        raise ValueError(
            f"{folder / 'test'} must have the classes of {folder / 'train'}, {new[0]!r} is not one"
        )
    test = [(path, classes.index(test_classes[i])) for path, i in test]
    x, y = _read([*train, *test], resize=resize)
    n = len(train)
    return Parts(x[:n], y[:n], x[n:], y[n:], classes)


def suffixes_in(folder: Path) -> set[str]:
    """Endings, in lower case, of the files in the sub-folders of `folder`."""
    return {path.suffix.lower() for name in _labels(folder) for path in (folder / name).iterdir()}


def labelled(folder: Path, suffixes: Iterable[str] = SUFFIXES) -> tuple[Labelled, tuple[str, ...]]:
    """Files of each sub-folder with the index of its name, taken in turn, and the names."""
    names = _labels(folder)
    by_label = [files(folder / name, suffixes) for name in names]
    if len(names) < 2 or not all(by_label):
        empty = next((name for name, some in zip(names, by_label, strict=True) if not some), None)
        raise ValueError(
            f"{folder} must have a sub-folder of {'/'.join(sorted(suffixes))} files for each of "
            f"two or more classes, has {len(names)} sub-folders"
            + (f" and no such file in {empty!r}" if empty else "")
        )
    return in_turn([(path, i) for path in some] for i, some in enumerate(by_label)), tuple(names)


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


def in_turn(lists: Iterable[Sequence[T]]) -> list[T]:
    """The first of every list, then the second of every list, and so on.

    >>> in_turn([[1, 2, 3], [4]])
    [1, 4, 2, 3]
    """
    gap = object()
    rounds = zip_longest(*lists, fillvalue=gap)
    return [item for items in rounds for item in items if item is not gap]  # type: ignore[misc]


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
