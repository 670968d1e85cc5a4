"""Exact minimum cuts on grids, for masks with the values 0, ½ and 1.

A cell z ∈ {0, ½, 1} is two bits: a = [z ≥ ½] and b = [z = 1], where b needs a. Costs of cells
are linear in these bits. With them

    4 (z - z')² = |a - a'| + |a - b'| + |b - a'| + |b - b'| + (b - a) + (b' - a'),

so that a non-negative weight of (z - z')² is an edge between each bit of a cell and each bit of
its neighbour. The least energy is then a minimum cut (Ishikawa 2003), and the cuts of a whole
batch are one flow in one graph.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kmixup.matching.assignment import Floats

# Capacities are whole numbers: multiples of this share of the largest cost of a problem.
RESOLUTION = 2.0**-26
UNCUTTABLE = np.iinfo(np.int32).max

Nodes = NDArray[np.int32]


def least_masks(unary: Floats, down: Floats, right: Floats) -> Floats:
    """Return the masks `(n, rows, columns)` that minimise Σ unary[z] + Σ weight · (z - z')².

    Exact but for rounding: every cost is rounded to 2⁻²⁶ of the largest one in its problem.

    Args:
        unary: the cost of 0, ½ and 1 in every cell, `(n, rows, columns, 3)`.
        down: weights of (z - z')² between vertical neighbours, `(n, rows - 1, columns)`, ≥ 0.
        right: the same between horizontal neighbours, `(n, rows, columns - 1)`.
    """
    n, rows, columns, _ = unary.shape
    cost = np.diff(unary, axis=-1)  # of a, and of b, the second half of the way
    cells = np.arange(n * rows * columns).reshape(n, rows, columns)
    neighbours = (down, cells[:, :-1], cells[:, 1:]), (right, cells[:, :, :-1], cells[:, :, 1:])
    tilt = np.zeros_like(unary[..., 0])
    for weight, first, second in neighbours:
        for side in (first, second):
            np.add.at(tilt.reshape(-1), side.ravel(), weight.ravel() / 4)
    cost = cost + np.stack([-tilt, tilt], -1)

    largest = np.abs(cost).max((1, 2, 3), initial=0.0)
    for weight in (down, right):
        largest = np.maximum(largest, weight.max((1, 2), initial=0.0))
    scale = 1 / (RESOLUTION * np.where(largest > 0, largest, 1.0))[:, None, None]

    bits = np.arange(2 * n * rows * columns, dtype=np.int32).reshape(n, rows, columns, 2)
    source, sink = 2 * n * rows * columns, 2 * n * rows * columns + 1
    whole = np.rint(cost * scale[..., None]).astype(np.int32)
    edges = [
        _edges(bits[whole > 0], sink, whole[whole > 0]),
        _edges(source, bits[whole < 0], -whole[whole < 0]),
        _edges(bits[..., 1].ravel(), bits[..., 0].ravel(), UNCUTTABLE),
        _edges(bits[..., 0].ravel(), bits[..., 1].ravel(), 0),
    ]
    for weight, first, second in neighbours:
        capacity = np.rint(weight * scale / 4).astype(np.int32).ravel()
        for i in (0, 1):
            for j in (0, 1):
                ends = bits.reshape(-1, 2)[first.ravel(), i], bits.reshape(-1, 2)[second.ravel(), j]
                edges += [_edges(*ends, capacity), _edges(*ends[::-1], capacity)]
    side = _source_side(edges, source, sink)[: bits.size].reshape(bits.shape)
    return np.asarray(side.sum(-1) / 2)


def _edges(tail: Nodes | int, head: Nodes | int, capacity: Nodes | int) -> tuple[Nodes, ...]:
    return tuple(np.broadcast_arrays(*(np.asarray(v, np.int32) for v in (tail, head, capacity))))


def _source_side(edges: list[tuple[Nodes, ...]], source: int, sink: int) -> NDArray[np.bool_]:
    """Which nodes lie on the side of the source in the minimum cut; the smallest such side."""
    from scipy.sparse import csr_array  # on first use: `import kmixup` stays fast
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    tail, head, capacity = (np.concatenate(column) for column in zip(*edges, strict=True))
    graph = csr_array((capacity, (tail, head)), shape=(sink + 1, sink + 1))
    residual = graph - maximum_flow(graph, source, sink).flow
    residual.data = (residual.data > 0).astype(np.int32)
    residual.eliminate_zeros()
    reached = np.zeros(sink + 1, dtype=bool)
    reached[breadth_first_order(residual, source, return_predecessors=False)] = True
    return reached
