"""Pages from templates: one environment, and the parts that several pages have.

A page's template lies beside the module that fills it. It extends `base.html` and may import
the macros of `parts.html`, both in this folder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kmixup.lab.formatting import setting


@dataclass(frozen=True)
class Drawing:
    """A drawing of a page.

    Attributes:
        title: stands above it.
        svg: the drawing itself.
        note: how to read it, if that needs words.
    """

    title: str
    svg: Markup
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """An image of a page.

    Attributes:
        title: what it shows.
        caption: what follows from it.
        source: the image as a data URI.
    """

    title: str
    caption: str
    source: str


@dataclass(frozen=True)
class Origin:
    """Where the rows of a page come from.

    Attributes:
        failures: a sentence for each trial that failed.
        sources: versions and machines, each under a heading.
        finished: when the first and the last trial ended, None without trials.
    """

    failures: tuple[str, ...]
    sources: tuple[tuple[str, dict[str, Any]], ...]
    finished: tuple[str, str] | None


def render(package: str, template: str, **values: Any) -> str:
    """The page that a template of `package` makes of `values`, all escaped."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("kmixup.lab.pages")]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["setting"] = setting
    environment.filters["columns"] = columns
    return with_contents(environment.get_template(template).render(**values))


def columns(drawn: int) -> int:
    """How many drawings to put side by side, so that none stands alone in the last row.

    >>> [columns(n) for n in (1, 2, 3, 4, 5, 6, 7)]
    [1, 2, 3, 2, 3, 3, 2]
    """
    return min(drawn, 3 if drawn % 3 != 1 else 2)


def with_contents(page: str) -> str:
    """The page with a list of its sections below the heading, if there are three or more."""
    sections = re.findall(r'<section id="([^"]+)"[^>]*>\s*<h2>(.*?)</h2>', page)
    if len(sections) < 3:
        return page
    links = " ".join(f'<a href="#{name}">{title}</a>' for name, title in sections)
    nav = f'<nav class="contents" aria-label="Contents">{links}</nav>'
    return page.replace("</header>", f"</header>\n{nav}", 1)
