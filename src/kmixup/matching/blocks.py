"""Blocks of k samples: the random part of a pairing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from torch import Tensor, from_numpy

from kmixup.matching.assignment import Indices

LamPer = Literal["batch", "block", "sample"]


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

    def pairs(self) -> list[tuple[Indices, Indices]]:
        """Return the samples of each block and those they face, `(blocks, size)` by block size."""
        rows = np.arange(self.n) if self.order is None else self.order
        facing = rows if self.order is None else np.concatenate([rows[self.k :], rows[: self.k]])
        length = self.n // self.batches
        full = length - length % self.k
        if full == length:
            return [(rows.reshape(-1, self.k), facing.reshape(-1, self.k))]
        sides = [side.reshape(self.batches, -1) for side in (rows, facing)]
        last = sides[0][:, full:], sides[1][:, full:]
        own, faced = (side[:, :full].reshape(-1, self.k) for side in sides)
        return [(own, faced), last] if full else [last]

    def index(self) -> Indices:
        """Return the block number of every sample, `(n,)`."""
        batch, position = np.divmod(np.arange(self.n), self.length)
        number: Indices = batch * -(-self.length // self.k) + position // self.k
        if self.order is None:
            return number
        index = np.empty_like(number)
        index[self.order] = number
        return index

    def lam_shape(self, per: LamPer) -> tuple[int, ...]:
        """Return the shape of lam: `()` for one per batch, unless there are several batches."""
        if per == "batch":
            return () if self.batches == 1 else (self.batches,)
        return (self.count if per == "block" else self.n,)

    def lam_index(self, per: LamPer) -> Tensor:
        """Return which entry of lam each sample has, `(n,)`."""
        if per == "block":
            return from_numpy(self.index())
        return from_numpy(np.arange(self.n) // (1 if per == "sample" else self.length))
