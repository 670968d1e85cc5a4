"""Exact labellings of small grids: a label for each cell, at the least cost.

Cells are visited row by row. What is still to come depends on the labels of the last `columns`
cells alone, the *front*, so that dynamic programming over all fronts finds the optimum, whatever
neighbours cost. It takes labels^columns numbers: few labels, and grids that are narrow.
"""

from __future__ import annotations

import numpy as np

from kmixup.matching.assignment import Floats, Indices


def least_labels(unary: Floats, apart: Floats) -> Indices:
    """Return the labels `(n, rows, columns)` of least total cost in cells and between neighbours.

    Args:
        unary: the cost of every label in every cell, `(n, rows, columns, labels)`.
        apart: the cost of two labels in neighbouring cells, `(n, labels, labels)`, symmetric.

    >>> unary = np.array([[[[0.0, 1.0], [0.6, 0.0]]]])
    >>> least_labels(unary, np.array([[[0.0, 0.5], [0.5, 0.0]]])).tolist()
    [[[0, 1]]]
    >>> least_labels(unary, np.array([[[0.0, 0.7], [0.7, 0.0]]])).tolist()
    [[[0, 0]]]
    """
    n, rows, columns, labels = unary.shape
    alike = bool((apart == apart.max() * (1 - np.eye(labels))).all())
    least: Floats = np.zeros((n, 1))  # cost so far, by the labels of the front, oldest first
    fronts = []
    for row, column in np.ndindex(rows, columns):
        fronts.append(least)
        # below the first row the oldest label is that above, and leaves the front
        least = _next(least.reshape(n, labels, -1), apart, alike) if row else least[:, :, None]
        least = least + unary[:, row, column, None]
        if column:
            least = least.reshape(n, -1, labels, labels) + apart[:, None]
        least = least.reshape(n, -1)

    chosen = np.empty((n, rows, columns), dtype=np.int64)
    number, front = np.arange(n), least.argmin(1)
    for row, column in reversed(list(np.ndindex(rows, columns))):
        front, chosen[:, row, column] = np.divmod(front, labels)
        if row:
            before = fronts.pop().reshape(n, labels, -1)[number, :, front]
            above = (before + apart[number, :, chosen[:, row, column]]).argmin(1)
            front = front + above * labels ** (columns - 1)
    return chosen


def _next(least: Floats, apart: Floats, alike: bool) -> Floats:
    """The least cost by the other labels and the label below, `(n, others, labels)`.

    `least` is the cost so far, by the label above and the others `(n, labels, others)`. Where all
    different labels cost `alike`, the label above is that below, or the best of all.
    """
    if not alike:
        return np.asarray((least[..., None] + apart[:, :, None]).min(1))
    best = least.min(1)[..., None] + apart.max()
    return np.asarray(np.minimum(least.swapaxes(1, 2), best))


def promising(unary: Floats, apart: float, most: int) -> Indices:
    """Labels that can be in a labelling of least cost, `(n, labels)`; `most` of them at most.

    Neighbours with different labels cost at most `apart`. A label whose cost exceeds the least
    one of a cell by more than `apart` for each neighbour is never best there, as the cell could
    change. Labels that are never best anywhere are left out. Rows may hold more than their own,
    to be equally long.
    """
    rows, columns = unary.shape[1:3]
    row, column = np.arange(rows)[:, None], np.arange(columns)
    borders = (row == 0).astype(int) + (row == rows - 1) + (column == 0) + (column == columns - 1)
    gap = unary - unary.min(-1, keepdims=True)
    excess = (gap - apart * (4 - borders)[..., None]).min((1, 2))
    count = int((excess <= 0).sum(1).max())
    return np.asarray(np.argsort(excess, 1, kind="stable")[:, : min(count, most)])
