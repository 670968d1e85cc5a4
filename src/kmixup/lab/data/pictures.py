"""Image files, read with Pillow into one tensor of bytes."""

from __future__ import annotations

import math
import os
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kmixup.lab.data.safety import check_expansion, check_regular

if TYPE_CHECKING:
    from PIL import Image

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp"}
PIXELS = 1 << 26  # of one image: 200 MB in RGB
WIDE = ("I", "F")  # Pillow's modes of more than 8 bits a channel start so; it clips them to 8

Size = tuple[int, int]


def read_images(
    paths: Sequence[Path], *, size: Size | None = None, resize: Size | None = None
) -> Tensor:
    """Images as uint8 `(n, channels, height, width)`: grey if all of them are, else RGB.

    Args:
        paths: the files, in the order of the result.
        size: the width and height that all must have; by default the first image's.
        resize: the height and width that all are stretched to, whatever they have.
    """
    from PIL import Image  # on first use, with the formats it registers

    if resize is not None and min(resize) < 1:
        raise ValueError(f"resize must be a height and a width of 1 or more, got {resize}")
    arrays, grey, packed, declared = [], True, 0, 0
    wanted = size

    def check(path: Path, image: Image.Image) -> None:
        nonlocal wanted, packed, declared
        wanted = wanted or image.size
        if resize is None and image.size != wanted:
            raise _another_size(path, image.size, wanted, None if size else paths)
        packed += os.path.getsize(path)
        declared += 3 * math.prod(image.size if resize is None else resize)
        check_expansion(path.parent, packed=packed, declared=declared)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # PIXELS is stricter
        for path in paths:
            pixels, is_grey = _decode(path, check, resize)
            arrays.append(pixels)
            grey = grey and is_grey
    stack = torch.from_numpy(np.stack(arrays)).permute(0, 3, 1, 2)
    return (stack[:, :1] if grey else stack).contiguous()


def _decode(
    path: Path, check: Callable[[Path, Image.Image], None], resize: Size | None
) -> tuple[NDArray[np.uint8], bool]:
    """RGB pixels of an image, and whether it is grey; `check` sees its header first."""
    from PIL import Image

    check_regular(path)
    with path.open("rb") as stream:
        try:
            image = Image.open(stream)
        except Image.DecompressionBombError as error:
            raise _too_large(path, str(error)) from error
        except Exception as error:  # each format fails in its own ways on a damaged file
            raise _damaged(path, error) from error
        if math.prod(image.size) > PIXELS:
            raise _too_large(path, f"{image.size[0]}×{image.size[1]}")
        if image.mode.startswith(WIDE):
            raise ValueError(
                f"{path} must have 8 bits a channel, has Pillow's mode {image.mode}: scale it to "
                "8 bits first, or store the images as numbers in an .npz"
            )
        check(path, image)
        try:
            colours = image.convert("RGB")
            if resize is not None:
                colours = colours.resize(resize[::-1], Image.Resampling.BILINEAR)
            return np.asarray(colours), image.mode in ("L", "1")
        except Exception as error:
            raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path} must be a whole image, could not be read: {error}")


def _too_large(path: Path, size: str) -> ValueError:
    return ValueError(f"{path} must have at most {PIXELS:,} pixels, is larger ({size}): shrink it")


def _another_size(path: Path, size: Size, wanted: Size, paths: Sequence[Path] | None) -> ValueError:
    """The sizes of all `paths` and the remedy; without them, the one image that differs."""
    if paths is None:
        return ValueError(
            f"{path} must be {wanted[0]}×{wanted[1]} as the others, is {size[0]}×{size[1]}"
        )
    counts = Counter(filter(None, map(_size_of, paths))).most_common()
    sizes = ", ".join(f"{width}×{height} ({count:,})" for (width, height), count in counts[:5])
    more = f" and {len(counts) - 5:,} other sizes" if len(counts) > 5 else ""
    width, height = counts[0][0]
    return ValueError(
        f"{path} must be {wanted[0]}×{wanted[1]} as the others, is {size[0]}×{size[1]}; there are "
        f"images of {sizes}{more}: stretch all to one height and width with "
        f"resize, e.g. {height}x{width}"
    )


def _size_of(path: Path) -> Any:
    """Width and height by the header of an image; None where it cannot be read."""
    from PIL import Image

    try:
        with path.open("rb") as stream:
            return Image.open(stream).size
    except Exception:
        return None
