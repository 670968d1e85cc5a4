"""Stage 1: who is mixed with whom.

A pairing splits the samples into blocks of k, lets every block face a second one,
and answers with indices only: row i of the result is the partner of sample i.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from typing import Literal, ParamSpec, TypeVar, get_args

import numpy as np
import torch
from torch import Generator, Tensor

from kmixup.assignment import Floats, Indices, assign, solve, squared_distances
from kmixup.sampling import device_of

Metric = Literal["sqeuclidean", "euclidean", "cosine"]
P = ParamSpec("P")
R = TypeVar("R")


def eager(function: Callable[P, R]) -> Callable[P, R]:
    """Break the graph of a compiled caller: the solver cannot be traced."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if torch.compiler.is_compiling():
            # not a decorator, which would load the compiler with every `import kmixup`
            return torch.compiler.disable(function)(*args, **kwargs)  # type: ignore[no-any-return]
        return function(*args, **kwargs)

    return call


@dataclass(frozen=True, eq=False)
class Blocks:
    """The random part of a pairing: which samples may meet.

    Inside one batch, `order` is a random permutation, and the samples at positions
    jk … jk+k-1 face those at the k positions that follow, around the end. Without
    an `order` two batches face each other as they come, k by k.
    """

    n: int
    k: int
    order: Indices | None = None

    def index(self) -> Indices:
        """Block number of every sample, `(n,)`."""
        number = np.arange(self.n) // self.k
        if self.order is None:
            return number
        index = np.empty_like(number)
        index[self.order] = number
        return index

    @property
    def count(self) -> int:
        return -(-self.n // self.k)


@dataclass(frozen=True)
class Pairing(ABC):
    """Pairs inside blocks of `k`; subclasses say how a block meets its counterpart."""

    k: int = 16

    def __post_init__(self) -> None:
        if not isinstance(self.k, (int, np.integer)) or self.k < 1:
            raise ValueError(f"k must be a whole number, at least 1, got {self.k!r}")

    @eager
    def __call__(
        self, x1: Tensor, x2: Tensor | None = None, *, generator: Generator | None = None
    ) -> Tensor:
        """Partner of every sample of `x1`: its row in `x2`, or in `x1` itself."""
        blocks = self.draw(len(x1), within=x2 is None, generator=generator)
        return self.partners(x1, x2, blocks)

    def draw(self, n: int, *, within: bool, generator: Generator | None = None) -> Blocks:
        """Draw who may meet whom among `n` samples, `within` one batch or across two.

        Within a batch no sample can meet itself, every sample is used once on each
        side, and each full block faces a uniformly random disjoint k-subset. At
        n = 2k there are only two blocks, so that the second optimal matching is the
        inverse of the first. Fewer than 2k samples cut k to n // 2.
        """
        if not within:
            return Blocks(n, self.k)
        k = self.k
        if 2 * k > n > 1:
            k = n // 2
            _warn_short(n, self.k)
        order = torch.randperm(n, generator=generator, device=device_of(generator))
        return Blocks(n, k, order.cpu().numpy())

    @torch.no_grad()
    def partners(self, x1: Tensor, x2: Tensor | None, blocks: Blocks) -> Tensor:
        """Partner of every sample under the drawn `blocks`, `(n,)` on the device of `x1`."""
        _check_points(x1, x2)
        n, k, order = blocks.n, blocks.k, blocks.order
        if order is None:
            if x2 is None:
                raise ValueError("blocks drawn across two batches need x2")
            partner = np.arange(n)
            if k > 1:
                partner = self._positions(*self._points(x1, "x1"), *self._points(x2, "x2"), k)
        else:
            # k positions more than n: both sides of all blocks are views of one gather
            around = np.concatenate([order, order[:k]])
            partner = np.empty_like(order)
            if n < 2 or k == 1:  # nothing to choose
                partner[order] = np.roll(order, -1)
            else:
                rows, square = self._points(x1, "x")
                rows = rows.index_select(0, torch.from_numpy(around).to(x1.device))
                square = square[around]
                position = self._positions(rows[:n], square[:n], rows[k:], square[k:], k)
                partner[order] = around[k + position]
        return torch.from_numpy(partner).to(x1.device)

    def _positions(
        self, a: Tensor, a_square: Floats, b: Tensor, b_square: Floats, k: int
    ) -> Indices:
        """Row in `b` of the partner of every row of `a`, `(n,)`; the last block may be smaller."""
        n, d = a.shape
        full = n - n % k
        position = np.arange(n)
        with torch.autocast(a.device.type, enabled=False):
            for start, stop, size in ((0, full, k), (full, n, n - full)):
                if start == stop:
                    continue
                columns = self._columns(
                    a[start:stop].view(-1, size, d),
                    b[start:stop].view(-1, size, d),
                    a_square[start:stop].reshape(-1, size),
                    b_square[start:stop].reshape(-1, size),
                )
                first = np.arange(start, stop, size)
                position[start:stop] = (first[:, None] + columns).ravel()
        return position

    def _points(self, x: Tensor, name: str) -> tuple[Tensor, Floats]:
        """Samples as rows `(n, d)` in the precision of the match, and their squared norms."""
        rows = x.flatten(1) if x.dim() > 1 else x[:, None]
        # where faster float32 products were asked for, they may keep as few as 8 bits
        exact32 = torch.get_float32_matmul_precision() == "highest"
        rows = rows.to(torch.float32 if exact32 and x.dtype != torch.float64 else torch.float64)
        square = _squared_norms(rows)
        if not np.isfinite(square.sum()):
            bad = (~rows.isfinite().all(1)).nonzero()
            if len(bad):
                raise ValueError(
                    f"{name} must be finite to be matched, "
                    f"sample {int(bad[0])} has a NaN or an infinity: clean or drop it"
                )
            rows = rows.double()  # only the squares overflow
            square = _squared_norms(rows)
        return rows, square

    @abstractmethod
    def _columns(self, a: Tensor, b: Tensor, a_square: Floats, b_square: Floats) -> Indices:
        """Partner row in `b[m]` of every row of `a[m]`: `(blocks, k, d)` to `(blocks, k)`."""


@dataclass(frozen=True)
class Optimal(Pairing):
    """The one-to-one match of least total cost between two blocks of `k`.

    `metric` is the cost: "sqeuclidean" (optimal transport in W2, the default),
    "euclidean" (unsquared, W1), or "cosine" (1 - cos). `k=1` leaves nothing to
    choose and is a random pair, as in plain mixup.

    >>> Optimal(k=2)(torch.tensor([[0.], [9.]]), torch.tensor([[8.], [1.]]))
    tensor([1, 0])
    """

    metric: Metric = "sqeuclidean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metric not in get_args(Metric):
            raise ValueError(f"metric must be one of {get_args(Metric)}, got {self.metric!r}")

    def _points(self, x: Tensor, name: str) -> tuple[Tensor, Floats]:
        rows, square = super()._points(x, name)
        if self.metric == "cosine":
            # on the unit sphere |a - b|² = 2 (1 - cos); a zero vector is as far from all others
            rows = torch.nn.functional.normalize(rows.double(), dim=1)
            square = _squared_norms(rows)
        return rows, square

    def _columns(self, a: Tensor, b: Tensor, a_square: Floats, b_square: Floats) -> Indices:
        if self.metric == "euclidean":
            return solve(squared_distances(a, b).sqrt_().cpu().numpy())
        return assign(a, b, a_square, b_square)[0]


@dataclass(frozen=True)
class Nearest(Pairing):
    """Every sample with its nearest in the other block: many may share a partner.

    The counter-example of the k-mixup paper: clusters are hardly ever left, so that
    the gaps between classes, where smoothing matters, get few mixed points.
    """

    def _columns(self, a: Tensor, b: Tensor, a_square: Floats, b_square: Floats) -> Indices:
        return squared_distances(a, b).argmin(2).cpu().numpy()


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
    consecutive samples, the last block being smaller where k does not divide n.
    With one batch the blocks are drawn at random, and no sample meets itself.
    Samples of any shape are flattened. One `(blocks, k, k)` matrix product, and
    O(k²) per sample to solve.

    >>> match(torch.tensor([[0.], [9.]]), torch.tensor([[8.], [1.]]), k=2)
    tensor([1, 0])
    """
    return Optimal(k, metric)(x1, x2, generator=generator)


def _squared_norms(rows: Tensor) -> Floats:
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return norms.cpu().numpy().astype(np.float64) ** 2


def _check_points(x1: Tensor, x2: Tensor | None) -> None:
    for x in (x1,) if x2 is None else (x1, x2):
        if not x.is_floating_point():
            raise TypeError(
                f"samples to match must be floating point, got {x.dtype}: use x.float()"
            )
    if x2 is not None:
        check_alike(x1, x2, "x1", "x2")


def check_alike(x1: Tensor, x2: Tensor, name1: str, name2: str) -> None:
    """Refuse two batches that cannot be paired row by row, naming both."""
    for what, one, two in (
        ("length", len(x1), len(x2)),
        ("sample shape", tuple(x1.shape[1:]), tuple(x2.shape[1:])),
        ("device", x1.device, x2.device),
        ("dtype", x1.dtype, x2.dtype),
    ):
        if one != two:
            raise ValueError(f"{name1} and {name2} must have the same {what}, got {one} and {two}")


@cache  # once for each size: the last batch of every epoch is as short
def _warn_short(n: int, k: int) -> None:
    warnings.warn(
        f"a batch of {n} is too small for k={k}, which needs {2 * k} samples: using k={n // 2} "
        "for it (drop_last=True in the loader avoids short batches)",
        stacklevel=2,
    )
