"""Blocks of k samples: the random part of a pairing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kmixup.matching.assignment import Indices


@dataclass(frozen=True, eq=False)
class Blocks:
    """Which samples may become partners, drawn before the data are read.

    Within one batch, `order` is a random permutation: the samples at positions jk … jk+k-1 face
    those at the next k positions, wrapping around. Without an `order` two batches face each other
    in order, k rows at a time.

    Attributes:
        n: the number of samples on each side.
        k: the number of samples in a block; the last block of a batch may be smaller.
        order: a permutation of the samples, `(n,)`; None across two batches.
        batches: the number of equally long batches that are laid end to end. Blocks do not cross
            from one batch into the next.
    """

    n: int
    k: int
    order: Indices | None = None
    batches: int = 1

    @property
    def length(self) -> int:
        """The number of samples in each batch."""
        return self.n // self.batches

    @property
    def count(self) -> int:
        """The number of blocks."""
        return self.batches * -(-self.length // self.k)

    def sides(self) -> tuple[Indices, Indices]:
        """Return the samples in block order, and the samples they face, `(n,)` each."""
        if self.order is None:
            rows = np.arange(self.n)
            return rows, rows
        return self.order, np.concatenate([self.order[self.k :], self.order[: self.k]])

    def positions(self) -> list[Indices]:
        """Return the positions in `sides` of each block, `(blocks, size)` for every block size."""
        rows = np.arange(self.n).reshape(self.batches, -1)
        full = rows.shape[1] - rows.shape[1] % self.k
        if full == rows.shape[1]:
            return [rows.reshape(-1, self.k)]
        last = rows[:, full:]
        return [rows[:, :full].reshape(-1, self.k), last] if full else [last]

    def index(self) -> Indices:
        """Return the block number of every sample, `(n,)`."""
        batch, position = np.divmod(np.arange(self.n), self.length)
        number: Indices = batch * -(-self.length // self.k) + position // self.k
        if self.order is None:
            return number
        index = np.empty_like(number)
        index[self.order] = number
        return index
