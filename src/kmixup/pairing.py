"""Stage 1: who is mixed with whom.

A pairing splits the samples into blocks of k, lets every block face a second one,
and answers with indices only: row i of the result is the partner of sample i.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal, SupportsFloat, get_args

import numpy as np
import torch
from torch import Generator, Tensor

from kmixup.assignment import (
    Floats,
    Indices,
    Which,
    assign,
    choose,
    rescaled,
    solve,
    true_distances,
)
from kmixup.blocks import Blocks
from kmixup.compiling import eager, warn_user
from kmixup.points import check_points, rows_and_norms, squared_norms
from kmixup.randomness import device_of

LARGEST = 1e300  # of the costs that the solver can add up

Metric = Literal["sqeuclidean", "euclidean", "cosine"]
Targets = tuple[Tensor, Tensor]  # of the samples, and of those that they face


@dataclass(frozen=True)
class Pairing(ABC):
    """Pairs inside blocks of `k`. Subclasses choose the partners of a block in its counterpart.

    Attributes:
        k: the number of samples in a block.

    All pairings are called alike, with one batch or with two:

    >>> isinstance(Optimal(k=4), Pairing)
    True
    >>> partner = Optimal(k=4)(torch.randn(16, 3))
    >>> sorted(partner.tolist()) == list(range(16))    # one to one
    True
    """

    k: int = 16

    @property
    def by_targets(self) -> bool:
        """Whether the choice of partners looks at the targets as well."""
        return False

    @property
    def one_to_one(self) -> bool:
        """Whether partners in a block are chosen as a match of least cost, each sample once."""
        return False

    def __post_init__(self) -> None:
        whole = isinstance(self.k, (int, np.integer)) and not isinstance(self.k, bool)
        if not whole or self.k < 1:
            raise ValueError(f"k must be a whole number, at least 1, got {self.k!r}")

    @eager
    def __call__(
        self,
        x1: Tensor,
        x2: Tensor | None = None,
        *,
        targets: Targets | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """Partner of every sample of `x1`: its row in `x2`, or in `x1` itself.

        `targets` are those of `x1` and of `x2`, for pairings that look at them.
        """
        blocks = self.draw(len(x1), within=x2 is None, generator=generator)
        return self.partners(x1, x2, blocks, targets)

    def draw(self, n: int, *, within: bool, generator: Generator | None = None) -> Blocks:
        """Draw who may meet whom among `n` samples, `within` one batch or across two.

        Within a batch no sample can meet itself, every sample is used once on each
        side, and each full block faces a uniformly random disjoint k-subset. At
        n = 2k there are only two blocks, so that the second optimal matching is the
        inverse of the first. Fewer than 2k samples cut k to n // 2.
        """
        if not within:
            if self.k > n > 0:
                _warn_short(n, self.k, needed=self.k, used=n)
            return Blocks(n, self.k, u=self.sample(n, generator))
        if 2 * self.k > n > 1:
            _warn_short(n, self.k, needed=2 * self.k, used=n // 2)
        order = torch.randperm(n, generator=generator, device=device_of(generator))
        return self.blocks_in(order.cpu().numpy(), self.sample(n, generator))

    def sample(self, n: int, generator: Generator | None = None) -> Tensor | None:
        """Draw the quantiles of partners that are chosen at random; nothing by default."""
        return None

    def blocks_in(self, order: Indices, u: Tensor | None = None) -> Blocks:
        """Blocks within a batch whose samples are taken in the given random `order`."""
        n = len(order)
        return Blocks(n, max(1, min(self.k, n // 2)), order, u=u)

    def partners(
        self, x1: Tensor, x2: Tensor | None, blocks: Blocks, targets: Targets | None = None
    ) -> Tensor:
        """Partner of every sample under the drawn `blocks`, `(n,)` on the device of `x1`."""
        check_points(x1, x2)
        n, k, order = blocks.n, blocks.k, blocks.order
        if order is None:
            if x2 is None:
                raise ValueError("blocks drawn across two batches need x2")
            if blocks.batches > 1 and blocks.length % k:
                return self._partners_by_batch(x1, x2, blocks)
            partner = np.arange(n)
            if k > 1:
                partner = self._positions(*self._points(x1, "x1"), *self._points(x2, "x2"), k)
        else:
            # k positions more than n: both sides of all blocks are views of one gather
            around = np.concatenate([order, order[:k]])
            partner = np.empty_like(order)
            if n < 2 or k == 1:  # nothing to choose
                partner[order] = around[k:]
            else:
                rows, square = self._points(x1, "x")
                rows = rows.index_select(0, torch.from_numpy(around).to(x1.device))
                square = square[around]
                # of two blocks the second match is the inverse of the first: solved once
                m = k if n == 2 * k and self.one_to_one else n
                position = self._positions(
                    rows[:m], square[:m], rows[k : k + m], square[k : k + m], k
                )
                partner[order[:m]] = around[k + position]
                if m == k:
                    partner[around[k + position]] = order[:k]
        return torch.from_numpy(partner).to(x1.device)

    def _partners_by_batch(self, x1: Tensor, x2: Tensor, blocks: Blocks) -> Tensor:
        """Partners in several batches with a smaller last block each: all of one size at once."""
        m, length, k = blocks.batches, blocks.length, blocks.k
        first = torch.arange(blocks.n, device=x1.device).view(m, length)
        partner = torch.empty_like(first)
        for start, stop, size in (
            (0, length - length % k, k),
            (length - length % k, length, length % k),
        ):
            if start < stop:
                rows = first[:, start:stop].flatten()
                position = self.partners(x1[rows], x2[rows], Blocks(len(rows), size))
                partner[:, start:stop] = rows[position].view(m, -1)
        return partner.flatten()

    def _positions(
        self, a: Tensor, a_square: Floats, b: Tensor, b_square: Floats, k: int
    ) -> Indices:
        """Row in `b` of the partner of every row of `a`, `(n,)`; the last block may be smaller."""
        n, d = a.shape
        full = n - n % k
        if 0 < full < n:
            head, rest = (
                self._positions(a[part], a_square[part], b[part], b_square[part], k)
                for part in (slice(full), slice(full, n))
            )
            return np.concatenate([head, full + rest])
        if n == 0:
            return np.arange(n)
        k = min(k, n)
        # a product under autocast could keep as few as 8 bits
        autocast = torch.is_autocast_enabled(a.device.type)
        with torch.autocast(a.device.type, enabled=False) if autocast else nullcontext():
            columns = self._columns(
                a.view(-1, k, d), b.view(-1, k, d), a_square.reshape(-1, k), b_square.reshape(-1, k)
            )
        return (np.arange(0, n, k)[:, None] + columns).ravel()

    def _points(self, x: Tensor, name: str) -> tuple[Tensor, Floats]:
        """Samples as rows `(n, d)` in the precision of the match, and their squared norms."""
        return rows_and_norms(x, name)

    @abstractmethod
    def _columns(self, a: Tensor, b: Tensor, a_square: Floats, b_square: Floats) -> Indices:
        """Partner row in `b[m]` of every row of `a[m]`: `(blocks, k, d)` to `(blocks, k)`."""


@dataclass(frozen=True)
class Optimal(Pairing):
    """The one-to-one match of least total cost between two blocks of `k`.

    The match is exact at every scale and offset of the data. With "cosine", directions
    that agree to more than ten digits are told apart less well.

    Attributes:
        k: the number of samples in a block. With `k=1` pairs are random, as in plain mixup.
        metric: the cost of a pair, "sqeuclidean" (optimal transport in W2, the default),
            "euclidean" (unsquared, W1), or "cosine" (1 - cos).
        farthest: whether the total cost is the greatest in place of the least: partners as
            far apart as one-to-one pairs can be.
        labels: how much it costs to pair different classes, as a multiple of the mean cost in
            the block. 0 looks at inputs alone, a large one crosses classes only as often as
            their counts force it, a negative one asks for crossings. Of targets that are
            floats, half the squared distance takes the place of "different": it is 1 between
            two one-hot classes.

    >>> Optimal(k=2)(torch.tensor([[0.], [9.]]), torch.tensor([[8.], [1.]]))
    tensor([1, 0])
    """

    metric: Metric = "sqeuclidean"
    farthest: bool = False
    labels: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.labels, SupportsFloat) or not math.isfinite(self.labels):
            raise ValueError(f"labels must be a finite number, got {self.labels!r}")
        if self.metric not in get_args(Metric):
            raise ValueError(f"metric must be one of {get_args(Metric)}, got {self.metric!r}")

    def __repr__(self) -> str:
        more = ", farthest=True" if self.farthest else ""
        more += f", labels={self.labels:g}" if self.labels else ""
        return f"Optimal(k={self.k}, metric={self.metric!r}{more})"

    @property
    def by_targets(self) -> bool:
        return self.labels != 0

    @property
    def one_to_one(self) -> bool:
        return True

    def partners(
        self, x1: Tensor, x2: Tensor | None, blocks: Blocks, targets: Targets | None = None
    ) -> Tensor:
        if not self.by_targets or blocks.k == 1 or blocks.n < 2:
            return super().partners(x1, x2, blocks)
        if targets is None:
            raise ValueError(
                f"labels={self.labels:g} compares targets, got none: pass targets=(y1, y2), or y "
                "to the mixer"
            )
        check_points(x1, x2)
        _check_compared(targets, blocks.n)
        a, _ = self._points(x1, "x1" if x2 is not None else "x")
        b = a if x2 is None else self._points(x2, "x2")[0]
        y1, y2 = (side.to(x1.device) for side in targets)
        first, second = (torch.from_numpy(side).to(x1.device) for side in blocks.sides())
        partner = torch.empty_like(first)
        for positions in blocks.positions():
            index = torch.from_numpy(positions).to(x1.device)
            own, facing = first[index], second[index]
            differ = _differences(y1[own], y2[facing])
            columns = choose(a[own], b[facing], partial(self._labelled, differ))[0]
            chosen = torch.from_numpy(columns).to(x1.device)
            partner[own] = facing.gather(1, chosen)
        return partner

    def _labelled(self, differ: Tensor, distances: Tensor, which: Which) -> Indices:
        """The match where different targets cost more, or less."""
        cost = distances.sqrt() if self.metric == "euclidean" else distances
        scale = self.labels * cost.mean((1, 2), keepdim=True)
        cost = cost + scale * differ[which].to(cost)
        if not cost.abs().max() < LARGEST:
            raise ValueError(
                f"labels={self.labels:g} makes the cost of different targets overflow, which lie "
                f"up to {float(differ.max()):.3g} apart: lower labels, or scale the targets"
            )
        return solve((-cost if self.farthest else cost).cpu().numpy())

    def _points(self, x: Tensor, name: str) -> tuple[Tensor, Floats]:
        rows, square = super()._points(x, name)
        if self.metric == "cosine":
            # on the unit sphere |a - b|² = 2 (1 - cos); a zero vector is equally far from all
            (rows,), _ = rescaled(rows.double()[:, None])
            rows = torch.nn.functional.normalize(rows[:, 0], dim=1, eps=sys.float_info.min)
            square = squared_norms(rows)
        return rows, square

    def _columns(self, a: Tensor, b: Tensor, a_square: Floats, b_square: Floats) -> Indices:
        if self.metric != "euclidean" and not self.farthest:
            return assign(a, b, a_square, b_square)[0]

        def choice(distances: Tensor, which: Which) -> Indices:
            cost = distances.sqrt() if self.metric == "euclidean" else distances
            return solve((-cost if self.farthest else cost).cpu().numpy())

        return choose(a, b, choice)[0]


@dataclass(frozen=True)
class Nearest(Pairing):
    """Every sample is paired with its nearest in the other block; many may share a partner.

    This is the counter-example of the k-mixup paper: partners hardly ever lie in another
    cluster, so few mixed points fall between the classes, where smoothing matters.

    Attributes:
        k: the number of samples in a block.

    >>> Nearest(k=2)(torch.tensor([[0.], [1.]]), torch.tensor([[9.], [2.]]))
    tensor([1, 1])
    """

    def _columns(self, a: Tensor, b: Tensor, a_square: Floats, b_square: Floats) -> Indices:
        return choose(a, b, lambda distances, _: distances.argmin(2).cpu().numpy())[0]


def match(
    x1: Tensor,
    x2: Tensor | None = None,
    *,
    k: int = 16,
    metric: Metric = "sqeuclidean",
    generator: Generator | None = None,
) -> Tensor:
    """Optimal partner of every sample, inside blocks of `k`, as indices `(n,)`.

    Minimises Σ |x1[i] - x2[p(i)]|² over the permutations p of each block of k
    consecutive samples. The last block is smaller if k does not divide n.
    With one batch the blocks are drawn at random, and no sample meets itself.
    Samples of any shape are flattened. The cost is one `(blocks, k, k)` matrix
    product, and O(k²) per sample to solve.

    >>> match(torch.tensor([[0.], [9.]]), torch.tensor([[8.], [1.]]), k=2)
    tensor([1, 0])
    """
    return Optimal(k, metric)(x1, x2, generator=generator)


def _check_compared(targets: Targets, n: int) -> None:
    """Refuse targets that are not alike, one row for each of `n` samples, or not finite."""
    kinds = [(tuple(side.shape), side.dtype) for side in targets]
    if kinds[0] != kinds[1] or any(shape[:1] != (n,) for shape, _ in kinds):
        raise ValueError(
            f"targets must be two tensors alike with a row for each of the {n} samples, got "
            f"{' and '.join(f'{dtype} of shape {shape}' for shape, dtype in kinds)}"
        )
    for side in targets:
        bad = (~side.reshape(n, -1).isfinite().all(1)).nonzero()
        if len(bad):
            raise ValueError(
                "targets must be finite to be compared, that of sample "
                f"{int(bad[0])} has a NaN or an infinity: clean or drop it, or use labels=0"
            )


def _differences(own: Tensor, facing: Tensor) -> Tensor:
    """How much all targets of blocks differ, `(blocks, k, k)`, from targets `(blocks, k, ...)`."""
    if not own.is_floating_point():
        if own.dim() > 2:
            raise ValueError(
                "labels compares one class for each sample, got targets of the shape "
                f"{tuple(own.shape[2:])}: use floats, or labels=0"
            )
        return own[:, :, None] != facing[:, None, :]
    rows = (side.reshape(*side.shape[:2], -1).double() for side in (own, facing))
    return true_distances(*rows) / 2


@cache  # once for each size: the last batch of every epoch is as short
def _warn_short(n: int, k: int, *, needed: int, used: int) -> None:
    warn_user(
        f"a batch of {n} is too small for k={k}, which needs {needed} samples: using k={used} "
        "for it (drop_last=True in the loader avoids short batches)"
    )
