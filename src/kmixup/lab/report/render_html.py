"""Write a document as one HTML page that needs nothing but itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count, groupby

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kmixup.lab.formatting import setting
from kmixup.lab.plotting import data_uri, inline
from kmixup.lab.report.document import Block, Document, Figure, HeatMap


def html(document: Document) -> str:
    """The page. All text is escaped."""
    numbers = count(1)

    def svg(figure: Figure) -> Markup:
        return inline(figure.draw, f"f{next(numbers)}", ncols=figure.legend, size=figure.size)

    environment = Environment(
        loader=PackageLoader("kmixup.lab.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "across": across, "anchor": anchor, "runs": runs, "setting": setting, "svg": svg,
        "kind": lambda block: type(block).__name__,
        "source": lambda image: data_uri(image.png()),
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
    grouped = groupby(blocks, key=lambda block: isinstance(block, HeatMap))
    return [(is_map, list(run)) for is_map, run in grouped]
