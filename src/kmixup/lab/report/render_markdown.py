"""Write a document as Markdown, for repositories and documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kmixup.lab.formatting import TextTable, escaped
from kmixup.lab.report.document import (
    Block,
    Box,
    Bullets,
    Code,
    Details,
    Document,
    Headline,
    HeatMap,
    Paragraph,
    ReportTable,
    Section,
)

ARROWS = {-1: " ↓", 0: "", 1: " ↑"}


def markdown(document: Document) -> str:
    """The document, without figures and facts."""
    parts = [f"# {escaped(document.title)}", *_parts(document.blocks)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _parts(blocks: Sequence[Block]) -> Iterator[str]:
    for block in blocks:
        yield from _part(block)


def _part(block: Block) -> Iterator[str]:
    match block:
        case Headline():
            yield f"**{escaped(block.text)}**"
            yield from map(escaped, block.sentences)
            if block.code:
                yield _code(block.code)
        case Paragraph():
            yield escaped(block.text)
        case Bullets():
            yield "\n".join(f"- {escaped(item)}" for item in block.items)
        case ReportTable() if block.rows:
            yield f"**{escaped(block.title)}**" if block.title else ""
            yield TextTable(block.header, block.rows).markdown()
        case HeatMap():
            yield f"**{escaped(block.title)}**"
            yield heat_table(block, between=" ").markdown()
            yield escaped(block.caption)
        case Code():
            yield _code(block.text)
        case Details():
            inner = list(_parts(block.blocks))
            if inner:
                yield f"**{escaped(block.summary)}**"
                yield from inner
        case Section():
            inner = list(_parts(block.blocks))
            if inner:
                yield f"{'#' * block.level} {escaped(block.title)}"
                yield from inner


def _code(text: str) -> str:
    return f"```\n{text}\n```"


def heat_table(block: HeatMap, *, between: str) -> TextTable:
    """A heat map without colours: arrows are significant; `between` separates lines of a cell."""

    def text(box: Box) -> str:
        number = f"{'* ' if box.best else ''}{box.text}{ARROWS[box.side]}"
        return between.join(filter(None, [number, *box.small]))

    header = [between.join(filter(None, lines)) for lines in block.head]
    rows = [(label, *map(text, boxes)) for label, boxes in block.rows]
    return TextTable(["", *header], rows)
