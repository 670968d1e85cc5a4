"""Stage 1: the partner of each sample."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from mmap import mmap
from typing import ClassVar, Literal, get_args

import numpy as np
import torch
from torch import Generator, Tensor

from kmixup._checks import check_choice, check_number, check_whole
from kmixup._compiling import eager, warn_user
from kmixup._randomness import Source
from kmixup.matching._assignment import (
    Floats,
    Indices,
    Points,
    is_small,
    match_blocks,
    solve,
    square_differences,
    take_columns,
)
from kmixup.matching._points import as_rows, check_points, raise_non_finite
from kmixup.matching.solver import Solver, validated

LARGEST = 1e300  # of the costs that the solver can add up
FEW = 64  # features that are multiplied in float64 at once, which costs little

LamPer = Literal["batch", "block", "sample"]
Metric = Literal["sqeuclidean", "euclidean", "cosine"]
Targets = tuple[Tensor | None, Tensor | None]  # of the samples, and of those that they face


@dataclass(frozen=True, eq=False)
class Blocks:
    """Which samples may become partners, drawn before the data are read.

    Within one batch, `order` is a random permutation: the samples at positions jk … jk+k-1 face
    those at the next k positions, wrapping around. Without an `order` two batches face each other
    in order, k rows at a time.
    """

    n: int  # samples on each side
    k: int  # samples in a block; the last block of a batch may be smaller
    order: Indices | None = None

    @property
    def count(self) -> int:
        """The number of blocks."""
        return -(-self.n // self.k)

    def pairs(self) -> list[tuple[Indices, Indices]]:
        """Return the samples of each block and those they face, `(blocks, size)` by block size."""
        rows = np.arange(self.n) if self.order is None else self.order
        facing = rows if self.order is None else np.concatenate([rows[self.k :], rows[: self.k]])
        full = self.n - self.n % self.k
        blocks = [(rows[:full].reshape(-1, self.k), facing[:full].reshape(-1, self.k))]
        if full < self.n:
            blocks.append((rows[None, full:], facing[None, full:]))
        return blocks

    def index(self) -> Indices:
        """Return the block number of every sample, `(n,)`."""
        number: Indices = np.arange(self.n) // self.k
        return number if self.order is None else number[self.order.argsort()]

    def lam_shape(self, per: LamPer) -> tuple[int, ...]:
        """Return the shape of lam: `()` for one per batch."""
        if per == "batch":
            return ()
        return (self.count if per == "block" else self.n,)

    def lam_index(self, per: LamPer) -> Tensor:
        """Return which entry of lam each sample has, `(n,)`."""
        if per == "block":
            return torch.from_numpy(self.index())
        return torch.from_numpy(np.arange(self.n) // (1 if per == "sample" else max(1, self.n)))


@dataclass(frozen=True)
class Pairing(ABC):
    """Base class of pairings: choose a partner for each sample inside blocks of `k`.

    Your own pairing is a subclass with one method, `choose`:

    >>> class Farthest(Pairing):
    ...     def choose(self, distances, differ=None):
    ...         return distances.argmax(2)
    >>> Farthest(k=2)(torch.tensor([[0.], [1.]]), torch.tensor([[9.], [2.]]))
    tensor([0, 0])

    Use it in a `Mixer`, or call it with one batch or two, as above.

    Attributes:
        k: the number of samples in a block.
        one_to_one: whether the choice is a minimum-cost matching that uses each sample once.
    """

    one_to_one: ClassVar[bool] = False

    k: int = 16

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_whole("k", self.k))

    @abstractmethod
    def choose(self, distances: Tensor, differ: Tensor | None = None) -> Tensor:
        """Return the partner of every sample as its column, `(blocks, k)`.

        Args:
            distances: squared Euclidean distances between the samples of a block (rows) and the
                samples they face (columns), `(blocks, k, k)`; on the CPU unless `on_device`.
            differ: how much the targets differ, `(blocks, k, k)`: 0 or 1 for classes, half the
                squared distance for floats. Only pairings with `by_targets` get it.
        """

    @property
    def by_targets(self) -> bool:
        """Whether the choice also depends on the targets."""
        return False

    @property
    def on_device(self) -> bool:
        """Whether `choose` takes distances on the samples' device; else they come to the CPU."""
        return False

    @property
    def least_cost(self) -> bool:
        """Whether `choose` minimizes a total of costs that grow with the distances.

        Then choices are proved to be optimal, which is faster than exact distances.
        """
        return False

    @property
    def precision(self) -> torch.dtype:
        """The dtype of the first attempt at the distances."""
        return torch.float64

    @eager
    def __call__(
        self,
        x1: Tensor,
        x2: Tensor | None = None,
        *,
        targets: Targets | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """Return the partner of every sample of `x1`: its row in `x2`, or in `x1` itself.

        Args:
            x1: samples `(n, ...)`.
            x2: a second batch like `x1`, matched with it block by block in order. Without it,
                blocks are drawn at random from `x1`.
            targets: of `x1` and `x2`, for pairings that depend on them.
            generator: source of randomness.

        Returns:
            Indices `(n,)`.
        """
        check_points(x1, x2)
        warn_short(len(x1), self.k, within=x2 is None)
        blocks = self.draw(len(x1), within=x2 is None, source=Source(generator))
        first = [as_rows(x1)]
        second = first if x2 is None else [as_rows(x2, x1)]
        return self.partners(first, second, blocks, targets)

    def draw(self, n: int, *, within: bool = True, source: Source | None = None) -> Blocks:
        """Return which samples may become partners.

        Within a batch there are no self-pairs, every sample is used once on each side, and each
        full block faces a uniformly random disjoint k-subset. Fewer than 2k samples reduce k to
        n // 2. `n`, `within` and `source` are those of `Mixing.draw`.
        """
        if not within:
            return Blocks(n, min(self.k, max(1, n)))
        order = (Source() if source is None else source).order(n)
        return Blocks(n, max(1, min(self.k, n // 2)), order)

    def partners(
        self, first: Points, second: Points, blocks: Blocks, targets: Targets | None = None
    ) -> Tensor:
        """Return the partner of every sample under the drawn `blocks`, `(n,)`.

        `first` and `second` are rows `(n, d)`, the same object within one batch; `targets` are
        those of both sides. Override this for pairings that need more than `choose`.
        """
        n, k, device = blocks.n, blocks.k, first[0].device
        if k > 1:
            _check_width(first)
        compared = self._comparable(targets, n) if self.by_targets and k > 1 else None
        # the second matching of two blocks is the inverse of the first
        inverse = second is first and n == 2 * k and self.one_to_one
        pairs = blocks.pairs()
        if inverse:
            pairs = [(own[:1], facing[:1]) for own, facing in pairs]
        if device.type != "cpu" and k > 1 and self.on_device:
            return self._partners_on_device(first, second, pairs, compared, n, inverse=inverse)
        partner = np.empty(n, np.int64)
        for own, facing in pairs:
            if k > 1:
                facing = self._chosen(first, second, own, facing, compared)
            partner[own] = facing
            if inverse:
                partner[facing] = own
        found = torch.from_numpy(partner)
        return found if device.type == "cpu" else found.to(device, non_blocking=True)

    def _partners_on_device(
        self,
        first: Points,
        second: Points,
        pairs: Sequence[tuple[Indices, Indices]],
        targets: tuple[Tensor, Tensor] | None,
        n: int,
        *,
        inverse: bool,
    ) -> Tensor:
        """Return partners without waiting for the device: distances come from differences."""
        device = first[0].device
        partner = torch.empty(n, dtype=torch.long, device=device)
        for own, facing in pairs:
            differ = None
            if targets is not None:
                differ = _differences(targets[0][own], targets[1][facing]).to(device)
            rows = torch.from_numpy(own).to(device, non_blocking=True)
            faced = torch.from_numpy(facing).to(device, non_blocking=True)
            with torch.autocast(device.type, enabled=False):
                columns = self.choose(square_differences(first, second, rows, faced), differ)
            chosen = faced.gather(1, columns).flatten()
            partner.scatter_(0, rows.flatten(), chosen)
            if inverse:
                partner.scatter_(0, chosen, rows.flatten())
        return partner

    def _chosen(
        self,
        first: Points,
        second: Points,
        own: Indices,
        facing: Indices,
        targets: tuple[Tensor, Tensor] | None,
    ) -> Indices:
        """Return the partners of the samples `own` among those in `facing`, `(blocks, k)`."""
        differ = None
        if targets is not None:
            differ = _differences(targets[0][own], targets[1][facing]).numpy()
        d = sum(map(Tensor.numel, first)) // len(first[0])
        # float32 products keep as few as 8 bits where the user has allowed faster ones
        exact32 = torch.get_float32_matmul_precision() == "highest"
        double = d <= FEW or not exact32 or is_small(first)
        dtype = torch.float64 if double else self.precision
        device = first[0].device.type
        autocast = torch.is_autocast_enabled(device)  # would keep as few as 8 bits, too
        try:
            with torch.autocast(device, enabled=False) if autocast else nullcontext():
                columns, _ = match_blocks(
                    first, second, own, facing, self.choose_arrays, differ,
                    dtype=dtype, least_cost=self.least_cost, distances=False,
                )  # fmt: skip
        except FloatingPointError:
            sides = [("x", first)] if second is first else [("x1", first), ("x2", second)]
            for name, side in sides:
                for part in side:
                    raise_non_finite(part, name)
            raise
        return take_columns(facing, columns)

    def choose_arrays(self, distances: Floats, differ: Floats | None = None) -> Indices:
        """Return what `choose` does, for NumPy arrays `distances` and `differ`."""
        more = None if differ is None else torch.from_numpy(differ)
        return np.asarray(self.choose(torch.from_numpy(distances), more))

    def _comparable(self, targets: Targets | None, n: int) -> tuple[Tensor, Tensor]:
        """Return targets on the CPU, or raise if they cannot be compared."""
        sides = [] if targets is None else [side for side in targets if isinstance(side, Tensor)]
        if len(sides) < 2:
            raise TypeError(
                f"{self} compares targets, so y must be one tensor, got "
                f"{'none' if targets is None else type(targets[0]).__name__}: pass "
                "targets=(y1, y2), y to the mixer, or labels=0"
            )
        own, facing = (side.detach().cpu() for side in sides)
        if len(own) != n or own.shape != facing.shape or own.dtype != facing.dtype:
            raise ValueError(
                "targets must be two tensors of the same dtype and shape with a row for each of "
                f"the {n} samples, got "
                f"{own.dtype} of shape {tuple(own.shape)} and {facing.dtype} of shape "
                f"{tuple(facing.shape)}"
            )
        if not own.is_floating_point() and own.dim() > 1:
            raise ValueError(
                "labels compares one class for each sample, got targets of the shape "
                f"{tuple(own.shape[1:])}: use floats, or labels=0"
            )
        for side in (own, facing):
            raise_non_finite(side, "targets")
        return own, facing


@dataclass(frozen=True)
class Optimal(Pairing):
    """Match two blocks of `k` one to one, at the least total cost.

    The matching is exact at every scale and offset of the data, except for directions ("cosine")
    that agree to more than ten digits.

    Attributes:
        k: the number of samples in a block. With `k=1` pairs are random, as in mixup.
        metric: the cost of a pair, "sqeuclidean" (optimal transport in W2, the default),
            "euclidean" (unsquared, W1), or "cosine" (1 - cos).
        farthest: whether to maximise the total cost instead.
        labels: the extra cost of pairing different classes, as a multiple of the mean cost in
            the block. 0 depends on inputs only, a large value pairs different classes only as often
            as their counts require, a negative value favours such pairs. For float targets, half
            the squared distance replaces "different": it is 1 between two one-hot classes.
        solver: a function from costs `(blocks, k, k)`, on the samples' device, to the columns of
            least total cost `(blocks, k)`. By default lapx solves on the CPU. A solver on the
            device leaves nothing for the host to wait for; `check_solver` tests one.
        debug: whether to validate costs and columns on a device too, which waits for them.

    >>> Optimal(k=2)(torch.tensor([[0.], [9.]]), torch.tensor([[8.], [1.]]))
    tensor([1, 0])
    """

    one_to_one: ClassVar[bool] = True

    metric: Metric = "sqeuclidean"
    farthest: bool = False
    labels: float = 0.0
    solver: Solver | None = None
    debug: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.solver is not None and not callable(self.solver):
            raise TypeError(
                "solver must be a function from costs (blocks, k, k) to columns (blocks, k), got "
                f"{self.solver!r}: leave it out to use lapx"
            )
        object.__setattr__(self, "labels", check_number("labels", self.labels))
        check_choice("metric", self.metric, get_args(Metric))

    def __repr__(self) -> str:
        more = ", farthest=True" if self.farthest else ""
        more += f", labels={self.labels:g}" if self.labels else ""
        if self.solver is not None:
            more += f", solver={getattr(self.solver, '__name__', self.solver)}"
        return f"Optimal(k={self.k}, metric={self.metric!r}{more})"

    @property
    def by_targets(self) -> bool:
        return self.labels != 0

    @property
    def on_device(self) -> bool:
        return self.solver is not None

    @cached_property
    def least_cost(self) -> bool:
        return not self.farthest and not self.labels

    @cached_property
    def precision(self) -> torch.dtype:
        squared = self.metric == "sqeuclidean" and self.least_cost
        return torch.float32 if squared else torch.float64

    def choose(self, distances: Tensor, differ: Tensor | None = None) -> Tensor:
        cost = distances
        if self.metric == "euclidean":
            cost = distances.clamp(min=0).sqrt_()
        if differ is not None:
            cost = cost + self.labels * cost.mean((1, 2), keepdim=True) * differ
            if cost.device.type == "cpu" and not cost.abs().max() < LARGEST:
                raise ValueError(
                    f"labels={self.labels:g} makes the cost of different targets overflow, which "
                    f"lie up to {float(differ.max()):.3g} apart: lower labels, or scale the targets"
                )
        if self.farthest:
            cost = -cost
        if self.solver is None:
            return torch.from_numpy(solve(cost.numpy()))
        return validated(self.solver(cost), cost, self.solver, debug=self.debug)

    def choose_arrays(self, distances: Floats, differ: Floats | None = None) -> Indices:
        if self.solver is None and self.precision == torch.float32:  # the distances are the costs
            return solve(distances)
        return super().choose_arrays(distances, differ)

    def partners(
        self, first: Points, second: Points, blocks: Blocks, targets: Targets | None = None
    ) -> Tensor:
        if self.metric == "cosine" and blocks.k > 1:
            own = _directions(first)
            first, second = own, own if second is first else _directions(second)
        return super().partners(first, second, blocks, targets)


@dataclass(frozen=True)
class Nearest(Pairing):
    """Pair every sample with its nearest in the other block; partners may repeat.

    The paper's nearest-neighbour baseline: few mixed points fall between clusters.

    Attributes:
        k: the number of samples in a block.

    >>> Nearest(k=2)(torch.tensor([[0.], [1.]]), torch.tensor([[9.], [2.]]))
    tensor([1, 1])
    """

    @property
    def least_cost(self) -> bool:
        return True

    def choose(self, distances: Tensor, differ: Tensor | None = None) -> Tensor:
        return distances.argmin(2)


def match(
    x1: Tensor,
    x2: Tensor | None = None,
    *,
    k: int = 16,
    metric: Metric = "sqeuclidean",
    generator: Generator | None = None,
) -> Tensor:
    """Return the optimal partner of every sample, inside blocks of `k`.

    Minimises Σ |x1[i] - x2[p(i)]|² over the permutations p of each block of k consecutive samples.
    The last block is smaller if k does not divide n. With one batch, blocks are drawn at random and
    there are no self-pairs. Samples of any shape are flattened.

    Args:
        x1: samples `(n, ...)`.
        x2: a second batch like `x1`; by default partners come from `x1`.
        k: the number of samples in a block.
        metric: the cost of a pair, see `Optimal`.
        generator: source of randomness, torch's global one by default.

    Returns:
        Indices `(n,)`.

    >>> match(torch.tensor([[0.], [9.]]), torch.tensor([[8.], [1.]]), k=2)
    tensor([1, 0])
    """
    return Optimal(k, metric)(x1, x2, generator=generator)


def _check_width(points: Points) -> None:
    if not sum(map(Tensor.numel, points)):
        raise ValueError(
            "x must have at least one feature to be matched, got none: pass features to match "
            "on, or use k=1"
        )


def _directions(points: Points) -> Sequence[Tensor]:
    """Return rows scaled to length 1 in float64, where |a - b|² = 2 (1 - cos); zeros stay."""
    rows = torch.cat([part.double() for part in points], 1)
    largest = rows.abs().amax(1, keepdim=True)
    rows = rows / torch.where((largest > 0) & largest.isfinite(), largest, 1.0)
    return [torch.nn.functional.normalize(rows, dim=1, eps=2.0**-1000)]


def _differences(own: Tensor, facing: Tensor) -> Tensor:
    """Return how much all targets `(blocks, k, ...)` of blocks differ, `(blocks, k, k)`."""
    if not own.is_floating_point():
        return own[:, :, None] != facing[:, None, :]
    a, b = (side.reshape(*side.shape[:2], -1).double() for side in (own, facing))
    mode = "donot_use_mm_for_euclid_dist"
    return torch.cdist(a, b, compute_mode=mode).square_() / 2


def warn_short(n: int, k: int, *, within: bool = True) -> None:
    """Warn if a batch is too short for blocks of `k`, once for each k."""
    needed, place = 2 * k if within else k, 2 * k % len(_warned) + within
    if needed > n > int(within) and not _warned[place]:
        _warned[place] = 1
        warn_user(
            f"a batch of {n} is too small for k={k}, which needs {needed} samples: using "
            f"k={n // 2 if within else n} for it. Avoid a short last batch with drop_last=True in "
            "the loader; if all batches are small, lower k, or wrap the mixer in "
            f"Memory(mixer, {8 * k})"
        )


# for each k and each value of within; loader workers that are forked in every epoch share it
_warned = mmap(-1, 1 << 16)
