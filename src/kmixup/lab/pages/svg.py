"""Figures as files and as parts of a page. The same figure always gives the same bytes."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from kmixup.lab.files import replace_content
from kmixup.lab.pages.style import INLINE, in_style

DPI = 130
SIZE = (4.2, 3.4)  # inches of an inline drawing, of 72 points
UNDATED = dict.fromkeys(("Date", "Creator"))


def svg(figure: Figure, about: Mapping[str, str]) -> bytes:
    """A figure as an SVG file; `about` has its title and description."""
    stream = io.BytesIO()
    with in_style():
        figure.savefig(stream, format="svg", dpi=DPI, metadata={**about, **UNDATED})
    return stream.getvalue()


def png(
    figure: Figure, about: Mapping[str, str] = {}, *, dpi: float = DPI, smooth: bool = False
) -> bytes:
    """A figure as a PNG file.

    Args:
        figure: what to write.
        about: texts to put into the file.
        dpi: pixels to an inch.
        smooth: keep gradients smooth; otherwise rare colours are kept true.
    """
    full, small, texts = io.BytesIO(), io.BytesIO(), PngInfo()
    with in_style():
        figure.savefig(full, format="png", dpi=dpi)
    for key, text in about.items():
        texts.add_itxt(key, text)
    image = Image.open(full).convert("RGB")
    # in a palette a picture takes a third of the room, and looks the same
    if smooth:
        image = image.quantize(96, Image.Quantize.MEDIANCUT)
    else:
        image = image.quantize(256, Image.Quantize.MAXCOVERAGE)
    image.save(small, format="png", optimize=True, pnginfo=texts)
    return small.getvalue()


def data_uri(picture: bytes) -> str:
    """A PNG file as the source of an image inside of a page."""
    return "data:image/png;base64," + base64.b64encode(picture).decode()


def inline(
    draw: Callable[[Axes], None],
    name: str,
    *,
    ncols: int = 0,
    size: tuple[float, float] = SIZE,
) -> Markup:
    """What `draw` draws, as SVG inside of a page, with a legend of `ncols` columns below.

    `name` must differ from those of other drawings on the page: it goes into all ids. Without
    columns there is no legend.
    """
    stream = io.StringIO()
    with in_style(**INLINE, **{"svg.hashsalt": name}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.subplots())
        if ncols:
            figure.legend(loc="outside lower center", ncols=ncols)
        nothing = {**UNDATED, "Format": None, "Type": None}
        figure.savefig(stream, format="svg", transparent=True, metadata=nothing)
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r' id="', f' id="{name}-', text)
    text = re.sub(r"(url\(|href=\")#", rf"\1#{name}-", text)
    return Markup(text.strip())


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as SVG and PNG, and its label as text, each whole or not at all."""
    caption = str(figure.get_label())
    about = {"Title": f"kmixup: {name}", "Description": caption}
    contents: dict[Path, str | bytes] = {
        folder / f"{name}.svg": svg(figure, about),
        folder / f"{name}.png": png(figure, about),
        folder / f"{name}.txt": f"{caption}\n",
    }
    for path, content in contents.items():
        replace_content(path, content)
    return list(contents)
