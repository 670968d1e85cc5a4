"""One document model for all reports: what they say, without how it is written.

`sweep`, `tune`, `compare` and `inspect` build a `Document`; `render_text` and `render_html` write
it. The terminal leaves out details, figures, facts and fine print; Markdown leaves out figures and
facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Mood = Literal["", "good", "bad", "open"]  # a colour


@dataclass(frozen=True)
class Headline:
    """The verdict in one sentence, and what else to know at a glance."""

    text: str
    sentences: Sequence[str] = ()
    code: str = ""  # a line to copy
    mood: Mood = ""


@dataclass(frozen=True)
class Paragraph:
    text: str
    style: Literal["", "fine"] = ""  # "fine" is small print


@dataclass(frozen=True)
class Bullets:
    items: Sequence[str]


@dataclass(frozen=True)
class ReportTable:
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    moods: Sequence[Mood] = ()  # the colour of each row's verdict, which is in the second column
    numeric: bool = False  # all columns but the first are aligned to the right


@dataclass(frozen=True)
class Box:
    """One cell of a heat map: a number, with further lines in small print."""

    text: str
    small: Sequence[str] = ()
    side: int = 0  # shaded: -1 for significantly lower, 1 for significantly higher
    best: bool = False  # framed


@dataclass(frozen=True)
class HeatMap:
    """A table of numbers in which only significant differences are shaded.

    All maps have the same two colours, so that they can be compared. Neighbours are side by side.
    """

    title: str
    head: Sequence[tuple[str, str]]  # two lines above every column
    rows: Sequence[tuple[str, Sequence[Box]]]  # a single box spans all columns
    caption: str = ""


@dataclass(frozen=True)
class Figure:
    """A plot, drawn when a page is written. Neighbours are side by side."""

    title: str
    draw: Callable[[Axes], None]
    note: str = ""
    legend: int = 0  # columns of the legend, 0 for none
    size: tuple[float, float] = (4.2, 3.4)  # inches


@dataclass(frozen=True)
class Image:
    """A PNG file, made when a page is written."""

    title: str
    png: Callable[[], bytes]


@dataclass(frozen=True)
class Images:
    """Pictures side by side: thumbnails, or one of the full width."""

    images: Sequence[Image]
    style: Literal["pair", "wide"] = "pair"


@dataclass(frozen=True)
class Facts:
    """Settings and where they come from, as names and values."""

    values: Mapping[str, Any]
    title: str = ""


@dataclass(frozen=True)
class Code:
    text: str


@dataclass(frozen=True)
class Details:
    """Blocks that are folded away on a page."""

    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Section:
    title: str
    blocks: Sequence[Block]


Block = (
    Headline | Paragraph | Bullets | ReportTable | HeatMap | Figure | Images | Facts | Code
    | Details | Section
)  # fmt: skip


@dataclass(frozen=True)
class Document:
    """A report, the verdict first."""

    title: str
    blocks: Sequence[Block] = ()
