"""Blocks of k samples: the random part of a pairing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from kmixup.assignment import Indices


@dataclass(frozen=True, eq=False)
class Blocks:
    """The random part of a pairing: which samples may meet.

    Inside one batch, `order` is a random permutation, and the samples at positions
    jk … jk+k-1 face those at the k positions that follow, around the end. Without
    an `order` two batches face each other as they come, k by k.

    Several pairs of equally long `batches` can be matched at once, laid end to end:
    their blocks do not reach from one batch into the next.

    Partners that are drawn at random have their quantiles in `u`, `(n,)`.
    """

    n: int
    k: int
    order: Indices | None = None
    batches: int = 1
    u: Tensor | None = None

    def sides(self) -> tuple[Indices, Indices]:
        """Samples in the order of their blocks, and those that they face, `(n,)` each."""
        if self.order is None:
            return np.arange(self.n), np.arange(self.n)
        return self.order, np.roll(self.order, -self.k)

    def positions(self) -> list[Indices]:
        """Positions in `sides` of the samples of each block, `(blocks, size)` for every size."""
        full = self.length - self.length % self.k
        batches = np.arange(self.batches)[:, None, None] * self.length
        whole = batches + np.arange(full).reshape(1, -1, self.k)
        rest = batches + np.arange(full, self.length).reshape(1, 1, -1)
        both = (whole.reshape(-1, self.k), rest.reshape(self.batches, -1))
        return [blocks for blocks in both if blocks.size]

    def index(self) -> Indices:
        """Block number of every sample, `(n,)`."""
        batch, position = np.divmod(np.arange(self.n), self.length)
        number: Indices = batch * -(-self.length // self.k) + position // self.k
        if self.order is None:
            return number
        index = np.empty_like(number)
        index[self.order] = number
        return index

    @property
    def length(self) -> int:
        """Samples in each of the batches."""
        return self.n // self.batches

    @property
    def count(self) -> int:
        return self.batches * -(-self.length // self.k)
