"""Write a document to a terminal, in brief: the verdict comes last, where it stays in view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.box import SIMPLE
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from kmixup.lab.report import document as doc
from kmixup.lab.report.render_markdown import heat_table

STYLES = {"": "", "good": "green", "bad": "red", "open": "yellow"}
PLAIN: dict[str, Any] = {"highlight": False, "markup": False}


def show(document: doc.Document, console: Console) -> None:
    """Print a document without details, figures, facts and fine print."""
    for item in _shown(block for block in document.blocks if not isinstance(block, doc.Headline)):
        if isinstance(item, Text):
            console.print(item, **PLAIN)
        else:
            console.print(item)
    for block in document.blocks:
        if isinstance(block, doc.Headline):
            console.print()
            for sentence in (block.text, *block.sentences):
                console.print(sentence, style="bold", **PLAIN)
            if block.code:
                console.print(f"\n  {block.code}\n", style="bold green", soft_wrap=True, **PLAIN)


def _shown(blocks: Iterator[doc.Block] | Sequence[doc.Block]) -> Iterator[RenderableType]:
    for block in blocks:
        match block:
            case doc.Paragraph() if not block.style:
                yield Text(block.text)
            case doc.Bullets():
                yield from (Text(item) for item in block.items)
            case doc.ReportTable() if block.rows:
                if block.title:
                    yield Text(f"\n{block.title}")
                yield _table(block)
            case doc.HeatMap():
                yield Text(f"\n{block.title}")
                yield _heat(block)
                if block.caption:
                    yield Text(block.caption, style="dim")
            case doc.Section():
                inner = list(_shown(block.blocks))
                if inner:
                    yield Text(f"\n{block.title}", style="bold")
                    yield from inner


def _table(block: doc.ReportTable) -> RichTable:
    """Rows and columns without a frame, so that it fits 80 characters."""
    justify: Any = "right" if block.numeric else "left"
    table = _frameless()
    for i, text in enumerate(block.header):
        heading = text.replace(" ", "\n") if block.numeric else text
        table.add_column(escape(heading), justify=justify if i else "left")
    for i, row in enumerate(block.rows):
        style = STYLES[block.moods[i]] if block.moods else ""
        table.add_row(*map(escape, row), style=style)
    return table


def _heat(block: doc.HeatMap) -> RichTable:
    text = heat_table(block, between="\n")
    table = _frameless()
    for i, name in enumerate(text.header):
        table.add_column(escape(name), justify="right" if i else "left")
    for row in text.rows:
        table.add_row(*map(escape, row))
    return table


def _frameless() -> RichTable:
    return RichTable(box=SIMPLE, pad_edge=False, show_edge=False, collapse_padding=True)
