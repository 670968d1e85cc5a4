"""Points in the plane: each class has a marker and a colour, and mixed points mix the colours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D

from kmixup.lab.pages.style import COLOURS, FAINT, MARKERS, Array


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
    """Draw points `(n, 2)`, each with its shares of the classes, `(n, c)`.

    The marker is that of the class with the largest share, the colour a mixture by shares.
    """
    palette = np.array([to_rgb(COLOURS[i % len(COLOURS)]) for i in range(shares.shape[1])])
    main = shares.argmax(1)
    for label in np.unique(main):
        members = main == label
        axes.scatter(
            *xy(points[members]), s=size, marker=MARKERS[label % len(MARKERS)],
            c=np.clip(shares[members] @ palette, 0, 1), edgecolors="black", linewidths=edge,
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
