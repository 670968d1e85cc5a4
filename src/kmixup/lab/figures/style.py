"""One look for all figures, and files that are the same for the same figure.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; where two
things are compared they differ in lightness, marker or dashes as well, for print in grey.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import IO, Any, ParamSpec

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from kmixup.lab.checkpoint import replace_file

Array = NDArray[np.float64]
P = ParamSpec("P")

ORANGE, BLUE, GREEN, PURPLE, SKY, RED, YELLOW, BLACK = (
    "#e69f00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#000000",
)  # fmt: skip
COLOURS = (ORANGE, BLUE, GREEN, PURPLE, SKY, RED, YELLOW, BLACK)
MARKERS = "o^sDvP*"  # one fewer than colours, so that 56 classes look different
DASHES = ("solid", "dashed", "dashdot", "dotted", (0, (6, 1, 1, 1, 1, 1)))
SCALE = "cividis_r"  # light for 0, dark for 1, as are the first two classes
FAINT = "#bbbbbb"
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.markersize": 4.5,
    "svg.hashsalt": "kmixup",  # ids that are not random
}
DPI = 130


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Let a function draw in this style, whatever the caller's settings are."""

    @wraps(draw)
    def call(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with in_style():
            return draw(*args, **kwargs)

    return call


@contextmanager
def in_style() -> Iterator[None]:
    """Matplotlib's own defaults with `STYLE` on top."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def panels(
    rows: int, columns: int, *, size: tuple[float, float] = (2.3, 2.3), **options: Any
) -> tuple[Figure, NDArray[Any]]:
    """A figure with a grid of axes `(rows, columns)`, each `size` inches."""
    figure = Figure(figsize=(columns * size[0], rows * size[1]), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def bare(axes: Axes) -> None:
    """Show a part of the plane: equal units, a frame and no numbers."""
    axes.set_aspect("equal")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color(FAINT)


def xy(points: Array) -> tuple[Array, Array]:
    """Both coordinates of points `(n, 2)`."""
    return points[:, 0], points[:, 1]


def dots(axes: Axes, points: Array, shares: Array, *, size: float = 14, edge: float = 0.3) -> None:
    """Points `(n, 2)`: the marker of their main class, and colours mixed by `shares` `(n, c)`."""
    palette = np.array([to_rgb(COLOURS[i % len(COLOURS)]) for i in range(shares.shape[1])])
    main = shares.argmax(1)
    for one in np.unique(main):
        mine = main == one
        axes.scatter(
            *xy(points[mine]), s=size, marker=MARKERS[one % len(MARKERS)],
            c=np.clip(shares[mine] @ palette, 0, 1), edgecolors="black", linewidths=edge,
            zorder=3,
        )  # fmt: skip


def class_handles(classes: Sequence[str]) -> list[Line2D]:
    """What a legend shows for each class: its marker and colour."""
    return [
        Line2D(
            [], [], ls="none", marker=MARKERS[i % len(MARKERS)], color=COLOURS[i % len(COLOURS)],
            markeredgecolor="black", markeredgewidth=0.5, label=name,
        )
        for i, name in enumerate(classes)
    ]  # fmt: skip


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as SVG and PNG, and its caption as text, each whole or not at all."""
    caption = str(figure.get_label())
    about = {"Title": f"kmixup: {name}", "Description": caption}
    writers: dict[str, Callable[[IO[bytes]], object]] = {
        "svg": partial(_svg, figure, about | {"Date": None, "Creator": None}),
        "png": partial(png, figure, about),
        "txt": lambda stream: stream.write(f"{caption}\n".encode()),
    }
    paths = {folder / f"{name}.{kind}": writer for kind, writer in writers.items()}
    for path, writer in paths.items():
        replace_file(path, writer)
    return list(paths)


def _svg(figure: Figure, metadata: dict[str, str | None], stream: IO[bytes]) -> None:
    with in_style():
        figure.savefig(stream, format="svg", dpi=DPI, metadata=metadata)


def png(figure: Figure, metadata: dict[str, str], stream: IO[bytes]) -> None:
    """Write a figure as a PNG with these texts in it."""
    with in_style():
        full = io.BytesIO()
        figure.savefig(full, format="png", dpi=DPI)
    about = PngInfo()
    for key, text in metadata.items():
        about.add_itxt(key, text)
    # in a palette a picture takes a third of the room; this method keeps rare colours true
    small = Image.open(full).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE)
    small.save(stream, format="png", optimize=True, pnginfo=about)
