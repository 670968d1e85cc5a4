"""Proofs that rounding did not change a choice of least cost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Indices = NDArray[np.int64]

ROUNDS = 3  # of exact distances for contested pairs


def rounding(d: int, dtype: torch.dtype) -> float:
    """Return a bound on the error of |a - b|², computed from products of `d` features at a time.

    The bound is a fraction of |a|² + |b|². Constant images come close to it: all roundings of their
    sums have the same sign, so that errors grow with d. On photographs they are at most 6 eps.
    """
    return (12 + d / 24) * torch.finfo(dtype).eps


def prove(
    squares: Floats,
    error: Floats,
    columns: Indices,
    choose: Callable[[Floats], Indices],
    exact: Callable[[Indices, Indices, Indices], Floats],
) -> tuple[Indices, NDArray[np.bool_]]:
    """Prove that choices have least cost, or correct them.

    A choice is proved if it stays the same when the squared distances of the chosen pairs rise and
    all others fall by their `error`. If it changes, the pairs in which the two choices differ are
    computed exactly, and the choice is made again.

    Args:
        squares: squared distances `(blocks, k, k)`.
        error: bounds on their errors, `(blocks, k, k)`; changed in place.
        columns: the choices, `(blocks, k)`.
        choose: returns the columns of least cost for squared distances.
        exact: returns exact squared distances, given blocks, rows and columns `(pairs,)`.

    Returns:
        The columns, and which blocks are proved; the others have too many contested pairs.
    """
    squares, proved = squares.astype(np.float64), np.ones(len(columns), bool)
    rival = _rival(squares, error, columns, choose)
    if (rival == columns).all():
        return columns, proved
    columns, todo, k = columns.copy(), np.arange(len(columns)), columns.shape[1]
    for turn in range(ROUNDS):
        own = columns[todo]
        changed = rival != own
        few = changed.sum(1) <= max(4, k // 2)
        proved[todo[~few]] = False
        changed &= few[:, None]
        place, row = changed.nonzero()
        block, row = np.tile(todo[place], 2), np.tile(row, 2)
        column = np.concatenate([own[changed], rival[changed]])
        unknown = error[block, row, column] > 0  # what else differs is a tie
        pairs = block[unknown], row[unknown], column[unknown]
        todo = np.unique(pairs[0])
        if turn == ROUNDS - 1 or not len(todo):
            break
        squares[pairs], error[pairs] = exact(*pairs), 0
        columns[todo] = choose(squares[todo])
        rival = _rival(squares[todo], error[todo], columns[todo], choose)
    proved[todo] = False
    return columns, proved


def _rival(
    squares: Floats, error: Floats, columns: Indices, choose: Callable[[Floats], Indices]
) -> Indices:
    """Return the choice if the chosen squared distances rise and all others fall by the error."""
    chosen = np.arange(len(columns))[:, None], np.arange(columns.shape[1]), columns
    shifted = squares - error
    shifted[chosen] += 2 * error[chosen]
    return choose(np.maximum(shifted, 0, out=shifted))
