"""Points to draw: the toys, or any data set, in the plane that shows most of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kmixup.lab.data import Dataset, load
from kmixup.lab.data.toy import DRAW
from kmixup.lab.pages.style import Array

TITLES = {"one-ring": "One Ring", "four-bars": "Four Bars", "swiss-roll": "Swiss Roll"}
SIZE = 512


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points to match and mix in all their dimensions, and to show in the plane.

    Attributes:
        title: stands above a panel of them.
        x: the points, `(n, d)`.
        y: indices into `classes`, `(n,)`.
        classes: names of the classes.
        centre: the middle of the picture, `(d,)`.
        axes: points are shown at (x - centre) @ axes, `(d, 2)`.
        note: what the picture leaves out, for the caption.
    """

    title: str
    x: Array
    y: NDArray[np.int64]
    classes: tuple[str, ...]
    centre: Array
    axes: Array
    note: str = ""

    @classmethod
    def of(cls, title: str, x: ArrayLike, y: ArrayLike, *, note: str = "") -> Cloud:
        """Points in a plane: as they are in up to two dimensions, else by principal components."""
        points, labels = np.asarray(x, dtype=np.float64), np.asarray(y)
        if points.ndim != 2 or labels.shape != points.shape[:1] or len(points) < 4:
            raise ValueError(
                "x must have the shape (n, d) with n at least 4, and y the shape (n,), "
                f"got {points.shape} and {labels.shape}"
            )
        names, index = np.unique(labels, return_inverse=True)
        given = (title, points, index.astype(np.int64), tuple(map(str, names)))
        d = points.shape[1]
        if d <= 2:
            return cls(*given, np.zeros(d), np.eye(d, 2), note)
        from sklearn.decomposition import PCA  # on first use: it loads slowly

        fit = PCA(2, svd_solver="full").fit(points)
        shown = (
            f"matched in all {d} dimensions and shown in the first two principal components, "
            f"{fit.explained_variance_ratio_.sum():.0%} of the variance"
        )
        note = f"{note}; {shown}" if note else shown
        return cls(*given, fit.mean_, fit.components_.T, note)

    def show(self, points: Array) -> Array:
        """Where points `(m, d)` are in the picture, `(m, 2)`."""
        return np.asarray((points - self.centre) @ self.axes)

    @property
    def plane(self) -> Array:
        return self.show(self.x)

    @property
    def shares(self) -> Array:
        """Classes as one-hot rows `(n, c)`."""
        return np.eye(len(self.classes))[self.y]

    def block(self, k: int) -> int:
        """k, or half of the points where they are too few for two blocks of k."""
        return max(1, min(k, len(self.x) // 2))


def toys(*, size: int = SIZE, seed: int = 0) -> list[Cloud]:
    """The three toys, `size` points each."""
    return [cloud_of(load(name, size=size, seed=seed), size=size, seed=seed) for name in DRAW]


def cloud_of(data: Dataset, *, size: int = SIZE, seed: int = 0) -> Cloud:
    """At most `size` training points of a data set, as a network is given them."""
    n = len(data.x_train)
    chosen = np.arange(n)
    note = ""
    if n > size:
        chosen = np.random.default_rng(seed).permutation(n)[:size]
        note = f"{size:,} of {n:,} training points of {data.title}, drawn at random"
    x = data.normalise(data.x_train[chosen]).flatten(1).double().numpy()
    y = np.array(data.classes)[data.y_train[chosen].numpy()]
    return Cloud.of(TITLES.get(data.name, data.name), x, y, note=note)
