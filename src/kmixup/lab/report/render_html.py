"""Write a document as one HTML page that needs nothing but itself."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import count, groupby
from statistics import quantiles

import matplotlib
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.colors import to_hex

from kmixup.lab.formatting import setting
from kmixup.lab.plotting import data_uri, inline
from kmixup.lab.report.document import Block, Document, Figure, HeatMap, Image


def html(document: Document) -> str:
    """The page. All text is escaped."""
    numbers = count(1)

    def svg(figure: Figure) -> Markup:
        return inline(figure.draw, f"f{next(numbers)}", ncols=figure.legend, size=figure.size)

    def source(image: Image) -> str:
        return data_uri(image.png())

    environment = Environment(
        loader=PackageLoader("kmixup.lab.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "across": across, "anchor": anchor, "colours": colours, "runs": runs,
        "setting": setting, "source": source, "svg": svg,
    }  # fmt: skip
    return environment.get_template("report.html").render(document=document).lstrip()


def across(drawn: int) -> int:
    """How many figures to put side by side, so that none is alone in the last row.

    >>> [across(n) for n in (1, 2, 3, 4, 5, 6, 7)]
    [1, 2, 3, 2, 3, 3, 2]
    """
    return min(drawn, 3 if drawn % 3 != 1 else 2)


def anchor(title: str) -> str:
    """
    >>> anchor("Iris, test error (ε = 8)")
    'iris-test-error-8'
    """
    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))


def runs(blocks: Sequence[Block]) -> list[tuple[bool, list[Block]]]:
    """Neighbouring heat maps, and neighbouring blocks of other kinds."""
    grouped = groupby(blocks, key=lambda block: block.kind == "heatmap")
    return [(is_map, list(run)) for is_map, run in grouped]


# Colours of heat maps: safe for colour-blind readers, with black or white text


def colours(block: HeatMap) -> list[list[str]]:
    """The colours of every box as CSS, "" for none."""
    if not block.scale:
        return [["" for _ in boxes] for _, boxes in block.rows]
    own = {"sequential": sequential, "diverging": diverging}[block.scale]
    rows = [boxes for _, boxes in block.rows]
    if block.by_column:
        tints = [own([boxes[i].value for boxes in rows]) for i in range(len(block.head))]
    else:
        values = [box.value for boxes in rows for box in boxes]
        tints = [own(values if block.values is None else block.values)] * len(block.head)
    return [[tint(box.value) for tint, box in zip(tints, boxes, strict=False)] for boxes in rows]


Tint = Callable[[float | None], str]  # colours as CSS, empty for no number


def sequential(values: Sequence[float | None]) -> Tint:
    """From the lowest value, dark, to the highest, light.

    The square root spreads the small errors, in which methods differ, over more of the scale.
    """
    known = [value for value in values if value is not None]
    low, high = (min(known), fence(known)) if known else (0.0, 0.0)

    def share(value: float) -> float:
        return math.sqrt(min(max(value - low, 0.0) / (high - low), 1.0)) if high > low else 0.0

    return _tint("viridis", share)


def diverging(values: Sequence[float | None]) -> Tint:
    """White at 0, violet below and orange above. Outliers have the colour of the end."""
    reach = fence([abs(value) for value in values if value is not None])

    def share(value: float) -> float:
        within = max(-1.0, min(value / reach, 1.0)) if reach else 0.0
        return 0.5 - 0.4 * within  # the ends are too dark for text

    return _tint("PuOr", share)


def fence(values: Sequence[float]) -> float:
    """The highest value, or Tukey's far fence if there are outliers beyond it.

    One cell that failed to learn would otherwise make all others look alike.

    >>> fence([1.0, 2.0, 3.0, 4.0]), fence([1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 90.0])
    (4.0, 8.0)
    """
    top = max(values, default=0.0)
    if len(values) < 5:
        return top
    lower, _, upper = quantiles(values, method="inclusive")
    far = upper + 3 * (upper - lower)
    return min(top, far) if far > min(values) else top


def _tint(name: str, share: Callable[[float], float]) -> Tint:
    scale = matplotlib.colormaps[name]

    def style(value: float | None) -> str:
        if value is None:
            return ""
        red, green, blue, _ = scale(share(value))
        return f"background:{to_hex((red, green, blue))};color:{_ink(red, green, blue)}"

    return style


def _ink(red: float, green: float, blue: float) -> str:
    """Black or white, by the contrast ratio of WCAG 2."""
    linear = [
        v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (red, green, blue)
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    on_black, on_white = (luminance + 0.05) / 0.05, 1.05 / (luminance + 0.05)
    return "#000" if on_black > on_white else "#fff"
