"""Folders of labelled files, one sub-folder per class, and the images in them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from kmixup.lab._files import check_ratio, open_regular, parsing, read_lines
from kmixup.lab.data.dataset import Samples

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP")
IMAGE = f"image in {', '.join(FORMATS)}"
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
WIDE = ("I", "F")  # Pillow's modes of more than 8 bits a channel start so; it clips them to 8
BILINEAR = 2  # of Pillow's `Resampling`

Size = tuple[int, int]
Labelled = list[tuple[Path, int]]


def read_tiny_imagenet(folder: Path, limit: int | None = None) -> Samples:
    """Read Tiny ImageNet; its validation images are the test set: its test images have no labels.

    The classes are those of `wnids.txt`, in its order, by their first name in `words.txt`.
    """
    with parsing(folder, "folder of Tiny ImageNet"):
        ids = [line for line in read_lines(folder / "wnids.txt") if line]
        words = dict(line.split("\t") for line in read_lines(folder / "words.txt") if line)
        train: Labelled = []
        for i, wnid in enumerate(ids):
            train += [(path, i) for path in files(folder / "train" / wnid / "images")]
        test: Labelled = []
        for line in read_lines(folder / "val" / "val_annotations.txt")[:limit]:
            name, wnid, *_ = line.split("\t")
            # only the last part of the name: no path leads out of the folder
            test.append((folder / "val" / "images" / Path(name).name, ids.index(wnid)))
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


def labelled(
    folder: Path, suffixes: Collection[str] = SUFFIXES
) -> tuple[Labelled, tuple[str, ...]]:
    """Return the files of each sub-folder with the index of its name, in turn, and the names."""
    by_label = {path.name: files(path, suffixes) for path in subfolders(folder)}
    empty = [name for name, paths in by_label.items() if not paths]
    if len(by_label) < 2 or empty:
        raise ValueError(
            f"{folder} must have a sub-folder of {'/'.join(suffixes)} files for each of two or "
            f"more classes, has {len(by_label)} sub-folders"
            + (f" and no such file in {empty[0]!r}" if empty else "")
        )
    items = [(path, i) for i, paths in enumerate(by_label.values()) for path in paths]
    return in_turn(items), tuple(by_label)


def subfolders(folder: Path) -> list[Path]:
    """Return the folders inside, but for hidden ones, such as .ipynb_checkpoints."""
    return sorted(p for p in folder.iterdir() if p.is_dir() and p.name[0] not in "._")


def files(folder: Path, suffixes: Collection[str] = SUFFIXES) -> list[Path]:
    """Return the files with one of the `suffixes`, in the order of their names: 2 before 10."""
    paths = [path for path in folder.iterdir() if path.suffix.lower() in suffixes]
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
    stack, all_grey = np.empty(0, np.uint8), True
    for i, path in enumerate(paths):
        with _opened(path) as image:
            size = size or image.size
            if resize is None and image.size != size:
                (width, height), (other_width, other_height) = size, image.size
                raise ValueError(
                    f"{path} must be {width}×{height} as the others, is "
                    f"{other_width}×{other_height}: resize it, or train with all stretched, "
                    f"e.g. --resize {height} {width}"
                )
            if not i:
                width, height = size if resize is None else resize[::-1]
                shape = (len(paths), height, width, 3)
                sizes = (each.stat().st_size for each in paths)
                check_ratio(path.parent, math.prod(shape), sum(sizes))
                stack = np.empty(shape, np.uint8)
            # decoded pixels take four bytes, and as many again in RGB
            check_ratio(path, 8 * math.prod(image.size), path.stat().st_size)
            with parsing(path, IMAGE):
                colours = image.convert("RGB")
                all_grey = all_grey and image.mode in ("L", "1")
                if resize is not None:
                    colours = colours.resize(resize[::-1], BILINEAR)
                stack[i] = np.asarray(colours)
    images = torch.from_numpy(stack).permute(0, 3, 1, 2)
    return (images[:, :1] if all_grey else images).contiguous()


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """Read the header of an image."""
    from PIL import Image  # on first use: `kmixup.lab.tune` works without the extra

    with ExitStack() as opened:
        with parsing(path, IMAGE):
            stream = opened.enter_context(open_regular(path))
            # other formats are not tried: that of EPS would start Ghostscript
            image = opened.enter_context(Image.open(stream, formats=FORMATS))
        if image.mode.startswith(WIDE):
            raise ValueError(
                f"{path} must have 8 bits a channel, has Pillow's mode {image.mode}: scale it to 8 "
                "bits first, or store the images as numbers in an .npz"
            )
        yield image


def _read(
    items: Labelled, size: Size | None = None, resize: Size | None = None
) -> tuple[Tensor, Tensor]:
    images = read_images([path for path, _ in items], size, resize=resize)
    return images, torch.tensor([index for _, index in items])
