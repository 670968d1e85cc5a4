"""Write a document as Markdown, for repositories and documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kmixup.lab.formatting import TextTable, escaped
from kmixup.lab.report import document as doc

ARROWS = {-1: " ↓", 0: "", 1: " ↑"}


def markdown(document: doc.Document) -> str:
    """The document, without figures and facts."""
    parts = [f"# {escaped(document.title)}", *_parts(document.blocks)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _parts(blocks: Sequence[doc.Block]) -> Iterator[str]:
    for block in blocks:
        yield from _part(block)


def _part(block: doc.Block) -> Iterator[str]:
    match block:
        case doc.Headline():
            yield f"**{escaped(block.text)}**"
            yield from map(escaped, block.sentences)
            if block.code:
                yield _code(block.code)
        case doc.Paragraph():
            yield escaped(block.text)
        case doc.Bullets():
            yield "\n".join(f"- {escaped(item)}" for item in block.items)
        case doc.ReportTable() if block.rows:
            yield f"**{escaped(block.title)}**" if block.title else ""
            yield TextTable(block.header, block.rows).markdown()
        case doc.HeatMap():
            yield f"**{escaped(block.title)}**"
            yield heat_table(block, between=" ").markdown()
            yield escaped(block.caption)
        case doc.Code():
            yield _code(block.text)
        case doc.Details():
            inner = list(_parts(block.blocks))
            if inner:
                yield f"**{escaped(block.summary)}**"
                yield from inner
        case doc.Section():
            inner = list(_parts(block.blocks))
            if inner:
                yield f"{'#' * block.level} {escaped(block.title)}"
                yield from inner


def _code(text: str) -> str:
    return f"```\n{text}\n```"


def heat_table(block: doc.HeatMap, *, between: str) -> TextTable:
    """A heat map without colours: arrows are significant; `between` separates lines of a cell."""

    def text(box: doc.Box) -> str:
        number = f"{'* ' if box.best else ''}{box.text}{ARROWS[box.side]}"
        return between.join(filter(None, [number, *box.small]))

    header = [between.join(filter(None, lines)) for lines in block.head]
    rows = [(label, *map(text, boxes)) for label, boxes in block.rows]
    return TextTable(["", *header], rows)
