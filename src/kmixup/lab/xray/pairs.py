"""Who is mixed with whom: some samples with a random partner and with a matched one."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from kmixup.lab.xray.examining import Xray
from kmixup.pairing import match

PICTURES, TABLES = 6, 4  # examples of each kind
FEATURES = 6  # rows of an example in numbers
PIXELS = 96  # of the longer side of a picture


@dataclass(frozen=True)
class Mate:
    """The partner of a sample at one k: its class, how far it is, and what to show of it.

    Either its `picture` and that of the point `halfway`, or its `values`.
    """

    k: int
    label: str
    distance: float
    picture: str = ""
    halfway: str = ""
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Example:
    """A sample and its partners; `features` are the names of their values."""

    label: str
    mates: tuple[Mate, ...]
    picture: str = ""
    features: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


def examples(xray: Xray) -> list[Example]:
    """The same samples with a partner at every k that is compared."""
    images = _images(xray)
    wanted = TABLES if images is None else PICTURES
    firsts, partners = _matched(xray, wanted)
    found = []
    for i, first in enumerate(firsts):
        mates = {k: those[i] for k, those in partners.items()}
        found.append(
            _in_numbers(xray, first, mates)
            if images is None
            else _in_pictures(xray, images, first, mates)
        )
    return found


def _matched(xray: Xray, wanted: int) -> tuple[list[int], dict[int, list[int]]]:
    """Some samples, and their partners in one and the same second set at every k."""
    n, largest = len(xray.points), max(xray.compared)
    half = min(n // 2, -(-wanted // largest) * largest)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(xray.seed))
    first, second = order[:half], order[half : 2 * half]
    partners = {
        k: second[match(xray.points[first], xray.points[second], k=k)][:wanted].tolist()
        for k in xray.compared
    }
    return first[:wanted].tolist(), partners


def _distance(xray: Xray, one: int, two: int) -> float:
    return float((xray.points[one] - xray.points[two]).double().norm())


def _in_numbers(xray: Xray, first: int, mates: dict[int, int]) -> Example:
    """The features in which the sample and its partners differ most, in raw units."""
    others = list(mates.values())
    gap = (xray.points[others] - xray.points[first]).abs().amax(0)
    most = [j for j in gap.argsort(descending=True, stable=True)[:FEATURES].tolist() if gap[j] > 0]
    most.sort()

    def values(i: int) -> tuple[str, ...]:
        raw = xray.data.x_train[xray.drawn[i]].flatten()
        return tuple(f"{float(raw[j]):.4g}" for j in most)

    names = xray.data.columns or [f"feature {j + 1}" for j in range(len(gap))]
    return Example(
        xray.class_name(first),
        tuple(
            Mate(k, xray.class_name(i), _distance(xray, first, i), values=values(i))
            for k, i in mates.items()
        ),
        features=tuple(names[j] for j in most),
        values=values(first),
    )


def _in_pictures(xray: Xray, images: Tensor, first: int, mates: dict[int, int]) -> Example:
    low, high = xray.data.pixel_range or (float(images.min()), float(images.max()))

    def picture(pixels: Tensor) -> str:
        return _data_uri(((pixels.double() - low) / (high - low) * 255).round().byte().numpy())

    one = images[xray.drawn[first]]
    shown = []
    for k, i in mates.items():
        two = images[xray.drawn[i]]
        halfway = (one.double() + two.double()) / 2
        shown.append(
            Mate(
                k, xray.class_name(i), _distance(xray, first, i),
                picture=picture(two), halfway=picture(halfway),
            )
        )  # fmt: skip
    return Example(xray.class_name(first), tuple(shown), picture=picture(one))


def _images(xray: Xray) -> Tensor | None:
    """Raw inputs that can be shown as they are, `(n, 1 or 3, height, width)`, else None."""
    x = xray.data.x_train
    if x.dim() == 4 and x.shape[1] in (1, 3):
        return x
    return None


def _data_uri(pixels: NDArray[np.uint8]) -> str:
    """A picture `(1 or 3, height, width)` as a PNG inside of the page."""
    grey = len(pixels) == 1
    image = Image.fromarray(pixels[0] if grey else pixels.transpose(1, 2, 0))
    image.thumbnail((PIXELS, PIXELS))
    stream = io.BytesIO()
    image.save(stream, format="png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()
