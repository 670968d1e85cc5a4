"""Some samples, each with a random partner and with a matched one."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from kmixup.lab.pages.svg import data_uri
from kmixup.lab.xray.examining import Xray
from kmixup.matching import match

PICTURES, TABLES = 6, 4  # examples of each kind
FEATURES = 6  # rows of an example in numbers
PIXELS = 96  # of the longer side of a picture


@dataclass(frozen=True)
class Mate:
    """The partner of a sample at one k, shown by pictures or by values.

    Attributes:
        k: at which it is the partner.
        label: its class.
        distance: from the sample to it.
        picture: the partner as a data URI, empty if it is no image.
        halfway: the point half-way between both, likewise.
        values: some of its features, empty if it is an image.
    """

    k: int
    label: str
    distance: float
    picture: str = ""
    halfway: str = ""
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Example:
    """A sample and its partners.

    Attributes:
        label: the class of the sample.
        mates: its partners.
        picture: the sample as a data URI, empty if it is no image.
        features: names of the features in `values`.
        values: some of its features, empty if it is an image.
    """

    label: str
    mates: tuple[Mate, ...]
    picture: str = ""
    features: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


def examples(xray: Xray) -> list[Example]:
    """Some samples, each with its partner at every k that is compared."""
    images = _images(xray)
    wanted = TABLES if images is None else PICTURES
    firsts, partners = _matched(xray, wanted)
    shown = []
    for i, first in enumerate(firsts):
        mates = {k: second[i] for k, second in partners.items()}
        shown.append(
            _in_numbers(xray, first, mates)
            if images is None
            else _in_pictures(xray, images, first, mates)
        )
    return shown


def _matched(xray: Xray, wanted: int) -> tuple[list[int], dict[int, list[int]]]:
    """Some samples, and their partners at every k, all from the same second set."""
    n, largest = len(xray.points), max(xray.compared)
    half = min(n // 2, -(-wanted // largest) * largest)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(xray.seed))
    first, second = order[:half], order[half : 2 * half]
    partners = {
        k: second[match(xray.points[first], xray.points[second], k=k)][:wanted].tolist()
        for k in xray.compared
    }
    return first[:wanted].tolist(), partners


def _distance(xray: Xray, first: int, second: int) -> float:
    return float((xray.points[first] - xray.points[second]).double().norm())


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
        return _source(((pixels.double() - low) / (high - low) * 255).round().byte().numpy())

    sample = images[xray.drawn[first]]
    partners = []
    for k, i in mates.items():
        partner = images[xray.drawn[i]]
        halfway = (sample.double() + partner.double()) / 2
        partners.append(
            Mate(
                k, xray.class_name(i), _distance(xray, first, i),
                picture=picture(partner), halfway=picture(halfway),
            )
        )  # fmt: skip
    return Example(xray.class_name(first), tuple(partners), picture=picture(sample))


def _images(xray: Xray) -> Tensor | None:
    """Raw inputs that can be shown as they are, `(n, 1 or 3, height, width)`, else None."""
    x = xray.data.x_train
    if x.dim() == 4 and x.shape[1] in (1, 3):
        return x
    return None


def _source(pixels: NDArray[np.uint8]) -> str:
    """A picture `(1 or 3, height, width)` as the source of an image."""
    grey = len(pixels) == 1
    image = Image.fromarray(pixels[0] if grey else pixels.transpose(1, 2, 0))
    image.thumbnail((PIXELS, PIXELS))
    stream = io.BytesIO()
    image.save(stream, format="png", optimize=True)
    return data_uri(stream.getvalue())
