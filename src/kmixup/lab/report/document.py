"""One document model for all reports: what they say, without how it is written.

Builders (`sweep`, `tune`, `league`, `inspect`) return a `Document`. `render_terminal`,
`render_markdown` and `render_html` write it. The terminal leaves out details, figures, facts and
fine print; Markdown leaves out figures, facts and maps that only repeat numbers in colour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Mood = Literal["", "good", "bad", "open"]


@dataclass(frozen=True)
class Headline:
    """The verdict of the report.

    Attributes:
        text: one sentence.
        sentences: what else to know at a glance.
        code: a line to copy.
        mood: its colour.
    """

    kind: ClassVar = "headline"
    text: str
    sentences: Sequence[str] = ()
    code: str = ""
    mood: Mood = ""


@dataclass(frozen=True)
class Paragraph:
    """Running text.

    Attributes:
        text: one or more sentences.
        style: "fine" for fine print, "claim" for the paper's claim.
        mood: its colour.
    """

    kind: ClassVar = "paragraph"
    text: str
    style: Literal["", "fine", "claim"] = ""
    mood: Mood = ""


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    kind: ClassVar = "bullets"
    items: Sequence[str]


@dataclass(frozen=True)
class ReportTable:
    """A table of text.

    Attributes:
        header: the heading of each column.
        rows: cells from left to right.
        title: above the table.
        moods: the colour of each row's `verdict` cell.
        verdict: the index of the column with verdicts.
        sentences: whether a row reads as a sentence where there is no room: one paragraph on the
            terminal, one block of lines on a phone.
        numeric: whether all columns but the first are aligned to the right.
    """

    kind: ClassVar = "table"
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    moods: Sequence[Mood] = ()
    verdict: int | None = None
    sentences: bool = False
    numeric: bool = False


@dataclass(frozen=True)
class Box:
    """One cell of a heat map.

    Attributes:
        text: the number.
        small: further lines in small print.
        value: where the number lies on the colour scale, None for no colour.
        best: whether to frame it.
    """

    text: str
    small: Sequence[str] = ()
    value: float | None = None
    best: bool = False


@dataclass(frozen=True)
class HeatMap:
    """A table of numbers on coloured ground.

    Attributes:
        title: above the map.
        head: a first and a second line above every column.
        rows: a label and its boxes; a single box spans all columns.
        caption: below the map.
        scale: "sequential" for magnitudes, "diverging" for differences, "" for no colours.
        values: what the colour scale covers, by default the values of the boxes.
        by_column: whether every column has a scale of its own.
        repeats: whether the numbers are in another table as well.
    """

    kind: ClassVar = "heatmap"
    title: str
    head: Sequence[tuple[str, str]]
    rows: Sequence[tuple[str, Sequence[Box]]]
    caption: str = ""
    scale: Literal["", "sequential", "diverging"] = ""
    values: Sequence[float | None] | None = None
    by_column: bool = False
    repeats: bool = False


@dataclass(frozen=True)
class Figure:
    """A plot, drawn when a page is written.

    Attributes:
        title: above the plot.
        draw: draws it into axes.
        note: how to read it.
        legend: columns of the legend, 0 for none.
        size: in inches.
    """

    title: str
    draw: Callable[[Axes], None]
    note: str = ""
    legend: int = 0
    size: tuple[float, float] = (4.2, 3.4)


@dataclass(frozen=True)
class Image:
    """A picture.

    Attributes:
        title: what it shows.
        png: returns the file.
        caption: what follows from it.
    """

    title: str
    png: Callable[[], bytes]
    caption: str = ""


@dataclass(frozen=True)
class Figures:
    """Plots side by side."""

    kind: ClassVar = "figures"
    figures: Sequence[Figure]


@dataclass(frozen=True)
class Images:
    """Pictures side by side.

    Attributes:
        images: the pictures.
        style: "surface" for squares, "wide" for the full width, "pair" for thumbnails.
    """

    kind: ClassVar = "images"
    images: Sequence[Image]
    style: Literal["surface", "wide", "pair"] = "surface"


@dataclass(frozen=True)
class Facts:
    """Settings and where they come from, as names and values."""

    kind: ClassVar = "facts"
    values: Mapping[str, Any]
    title: str = ""


@dataclass(frozen=True)
class Code:
    """Something to copy."""

    kind: ClassVar = "code"
    text: str


@dataclass(frozen=True)
class Details:
    """Blocks that are folded away.

    Attributes:
        summary: what they are.
        blocks: the blocks.
        open: whether a page shows them unfolded.
    """

    kind: ClassVar = "details"
    summary: str
    blocks: Sequence[Block]
    open: bool = False


@dataclass(frozen=True)
class Section:
    """Blocks under a heading."""

    kind: ClassVar = "section"
    title: str
    blocks: Sequence[Block]
    level: int = 2


Block = (
    Headline | Paragraph | Bullets | ReportTable | HeatMap | Figures | Images | Facts | Code
    | Details | Section
)  # fmt: skip


@dataclass(frozen=True)
class Document:
    """A report.

    Attributes:
        title: its heading.
        blocks: what it says, the verdict first.
    """

    title: str
    blocks: Sequence[Block] = field(default_factory=tuple)
