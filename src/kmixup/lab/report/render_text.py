"""Write a document as Markdown, or in brief to a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, assert_never

from rich.box import SIMPLE
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from kmixup.lab.formatting import TextTable, escaped
from kmixup.lab.report import document as doc

ARROWS = {-1: " ↓", 0: "", 1: " ↑"}
STYLES = {"": "", "good": "green", "bad": "red", "open": "yellow"}
PLAIN: dict[str, Any] = {"highlight": False, "markup": False}


def heat_table(block: doc.HeatMap, *, between: str) -> TextTable:
    """A heat map without colours: arrows are significant; `between` separates lines of a cell."""

    def text(box: doc.Box) -> str:
        number = f"{'* ' if box.best else ''}{box.text}{ARROWS[box.side]}"
        return between.join(filter(None, [number, *box.small]))

    header = [between.join(filter(None, lines)) for lines in block.head]
    rows = [(label, *map(text, boxes)) for label, boxes in block.rows]
    return TextTable(["", *header], rows)


def markdown(document: doc.Document) -> str:
    """The document, without figures and facts."""
    parts = [f"# {escaped(document.title)}", *_parts(document.blocks)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _parts(blocks: Iterable[doc.Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case doc.Headline():
                yield f"**{escaped(block.text)}**"
                yield from map(escaped, block.sentences)
                yield f"```\n{block.code}\n```" if block.code else ""
            case doc.Paragraph():
                yield escaped(block.text)
            case doc.Bullets():
                yield "\n".join(f"- {escaped(item)}" for item in block.items)
            case doc.ReportTable():
                if block.rows:
                    yield f"**{escaped(block.title)}**" if block.title else ""
                    yield TextTable(block.header, block.rows).markdown()
            case doc.HeatMap():
                yield f"**{escaped(block.title)}**"
                yield heat_table(block, between=" ").markdown()
                yield escaped(block.caption)
            case doc.Code():
                yield f"```\n{block.text}\n```"
            case doc.Details():
                yield from _titled(f"**{escaped(block.summary)}**", block.blocks)
            case doc.Section():
                yield from _titled(f"## {escaped(block.title)}", block.blocks)
            case doc.Figure() | doc.Images() | doc.Facts():
                pass  # on pages only
            case _:
                assert_never(block)


def _titled(title: str, blocks: Iterable[doc.Block]) -> Iterator[str]:
    """Blocks below their title; nothing if all are on pages only."""
    if inner := list(_parts(blocks)):
        yield title
        yield from inner


def show(document: doc.Document, console: Console) -> None:
    """Print a document in brief: the verdict comes last, where it stays in view."""
    for item in _shown(document.blocks):
        console.print(item, **(PLAIN if isinstance(item, Text) else {}))
    for block in document.blocks:
        if isinstance(block, doc.Headline):
            console.print()
            for sentence in (block.text, *block.sentences):
                console.print(sentence, style="bold", **PLAIN)
            if block.code:
                console.print(f"\n  {block.code}\n", style="bold green", soft_wrap=True, **PLAIN)


def _shown(blocks: Iterable[doc.Block]) -> Iterator[RenderableType]:
    for block in blocks:
        match block:
            case doc.Paragraph():
                if not block.style:
                    yield Text(block.text)
            case doc.Bullets():
                yield from map(Text, block.items)
            case doc.ReportTable():
                yield from _stacked(block)
            case doc.HeatMap():
                yield Text(f"\n{block.title}")
                yield _table(heat_table(block, between="\n"), [""] * len(block.rows), numeric=True)
                if block.caption:
                    yield Text(block.caption, style="dim")
            case doc.Section():
                if inner := list(_shown(block.blocks)):
                    yield Text(f"\n{block.title}", style="bold")
                    yield from inner
            case doc.Headline() | doc.Code() | doc.Details() | doc.Figure() | doc.Images():
                pass  # the headline comes last, the others are on the page
            case doc.Facts():
                pass
            case _:
                assert_never(block)


def _stacked(block: doc.ReportTable) -> Iterator[RenderableType]:
    if not block.rows:
        return
    if block.title:
        yield Text(f"\n{block.title}")
    header = block.header
    if block.numeric:
        header = [text.replace(" ", "\n") for text in header]
    styles = [STYLES[mood] for mood in block.moods or [""] * len(block.rows)]
    yield _table(TextTable(header, block.rows), styles, numeric=block.numeric)


def _table(text: TextTable, styles: Iterable[str], *, numeric: bool) -> RichTable:
    """Rows and columns without a frame, so that it fits 80 characters."""
    table = RichTable(box=SIMPLE, pad_edge=False, show_edge=False, collapse_padding=True)
    justify: Literal["left", "right"] = "right" if numeric else "left"
    for i, name in enumerate(text.header):
        table.add_column(escape(name), justify=justify if i else "left")
    for row, style in zip(text.rows, styles, strict=True):
        table.add_row(*map(escape, row), style=style)
    return table
