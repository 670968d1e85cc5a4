"""Write a document as one HTML page that needs nothing but itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count, groupby
from pathlib import Path
from typing import assert_never

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kmixup.lab._files import replace_content
from kmixup.lab.plotting import data_uri, inline
from kmixup.lab.report.document import Block, Document, Figure, Section
from kmixup.lab.report.render_text import markdown


def write(document: Document, page: Path, *, report: bool = False) -> Path:
    """Write a page, if asked with `report.md` next to it, and return where it is."""
    if report:
        replace_content(page.with_name("report.md"), markdown(document))
    replace_content(page, html(document))
    return page


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
        "anchor": anchor, "runs": runs, "svg": svg,
        "source": lambda image: data_uri(image.png()), "unknown": assert_never,
    }  # fmt: skip
    sections = [block for block in document.blocks if isinstance(block, Section)]
    template = environment.get_template("report.html")
    return template.render(document=document, sections=sections).lstrip()


def anchor(title: str) -> str:
    """
    >>> anchor("Iris, test error (ε = 8)")
    'iris-test-error-8'
    """
    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))


def runs(blocks: Sequence[Block]) -> list[tuple[str, list[Block]]]:
    """Neighbouring blocks of the same kind, and the kind."""
    return [(kind, list(run)) for kind, run in groupby(blocks, lambda b: type(b).__name__)]
