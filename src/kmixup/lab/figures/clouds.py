"""Points in the plane, of any data set: each class has a marker and a colour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from kmixup.lab.data import Dataset
from kmixup.lab.plotting import COLOURS, FAINT, MARKERS, Array

TITLES = {"one-ring": "One Ring", "four-bars": "Four Bars", "swiss-roll": "Swiss Roll"}
SIZE = 512


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points that are matched and mixed in all their dimensions and shown in the plane."""

    title: str
    x: Array  # points, `(n, d)`
    y: NDArray[np.int64]  # indices into `classes`, `(n,)`
    classes: tuple[str, ...]
    show: Callable[[Array], Array]  # from points `(m, d)` to their places in the picture, `(m, 2)`
    note: str = ""  # what the picture leaves out, for the caption

    @classmethod
    def of(cls, title: str, x: ArrayLike, y: ArrayLike, *, note: str = "") -> Cloud:
        """Show points in up to two dimensions as they are, others by principal components."""
        points, labels = np.asarray(x, dtype=np.float64), np.asarray(y)
        if len(points) < 4:
            raise ValueError(f"data must have at least 4 samples to be drawn, got {len(points)}")
        names, index = np.unique(labels, return_inverse=True)
        given = (title, points, index.astype(np.int64), tuple(map(str, names)))
        d = points.shape[1]
        if d <= 2:
            return cls(*given, lambda x: x @ np.eye(d, 2), note)
        from sklearn.decomposition import PCA  # imported here because it loads slowly

        fit = PCA(2, svd_solver="full").fit(points)
        shown = (
            f"matched in all {d} dimensions and shown in the first two principal components, "
            f"{fit.explained_variance_ratio_.sum():.0%} of the variance"
        )
        note = f"{note}; {shown}" if note else shown
        return cls(*given, fit.transform, note)

    @property
    def plane(self) -> Array:
        return self.show(self.x)

    @property
    def shares(self) -> Array:
        """Classes as one-hot rows `(n, c)`."""
        return np.eye(len(self.classes))[self.y]

    def block(self, k: int) -> int:
        """Return k, or half of the points if they are too few for two blocks of k."""
        return max(1, min(k, len(self.x) // 2))


def cloud_of(data: Dataset, *, size: int = SIZE, seed: int = 0) -> Cloud:
    """Return at most `size` training points of a data set, normalised as for a network."""
    n = len(data.x_train)
    chosen, note = np.arange(n), ""
    if n > size:
        chosen = np.random.default_rng(seed).permutation(n)[:size]
        note = f"{size:,} of {n:,} training points of {data.title}, drawn at random"
    x = data.normalise(data.x_train[chosen]).flatten(1).double().numpy()
    y = np.array(data.classes)[data.y_train[chosen].numpy()]
    return Cloud.of(TITLES.get(data.name, data.name), x, y, note=note)


def notes_of(clouds: Sequence[Cloud]) -> str:
    """Return the clouds' notes as the end of a caption."""
    return "".join(f" {cloud.title}: {cloud.note}." for cloud in clouds if cloud.note)


def xy(points: Array) -> tuple[Array, Array]:
    """Return both coordinates of points `(n, 2)`."""
    return points[:, 0], points[:, 1]


def bare(axes: Axes) -> None:
    """Show a part of the plane: equal units, a frame and no numbers."""
    axes.set_aspect("equal")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color(FAINT)


def frame(axes: Axes, cloud: Cloud) -> None:
    """Show a square part of the plane, the same for all panels of a cloud."""
    low, high = cloud.plane.min(0), cloud.plane.max(0)
    (x, y), reach = (low + high) / 2, 0.55 * float((high - low).max())
    axes.set(xlim=(x - reach, x + reach), ylim=(y - reach, y + reach))
    bare(axes)


def dots(axes: Axes, points: Array, shares: Array, *, size: float = 14, edge: float = 0.3) -> None:
    """Draw points `(n, 2)`, each with its fractions of the classes, `(n, c)`.

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
    """Return a legend entry for each class: its marker and colour."""
    return [
        Line2D(
            [], [], ls="none", marker=MARKERS[i % len(MARKERS)], color=COLOURS[i % len(COLOURS)],
            markeredgecolor="black", markeredgewidth=0.5, label=name,
        )
        for i, name in enumerate(classes)
    ]  # fmt: skip
