"""The alpha for k that perturbs the data as much as a given alpha does at k = 1.

Matched partners are nearer than random ones, so at equal alpha a larger k perturbs
less. The strength is xi, the root mean square of min(lam, 1 - lam) · |x - partner|;
its square is E[min(lam, 1 - lam)²] · E[|x - partner|²]. The first factor has a closed
form, and so has the second at k = 1, where it is twice the total variance. What is
left to sample is the mean squared distance of matched partners.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sized
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from kmixup.assignment import Floats, assign
from kmixup.coefficient import Beta
from kmixup.sampling import subset_pairs

CHUNK = 1 << 22  # numbers of the data held in memory at a time


@dataclass(frozen=True)
class Calibration:
    """What `calibrate` found.

    `alpha`: the alpha to use at k. `xi`: the strength it reaches, `target_xi` the one
    asked for. `square_distance_1` and `square_distance`: mean squared distance to
    the partner at 1 and at k, the latter with its `standard_error` and the number of
    sampled `blocks`. `reachable`: whether any alpha up to the cap reaches the target.
    """

    k: int
    alpha: float
    xi: float
    target_xi: float
    square_distance_1: float
    square_distance: float
    standard_error: float
    blocks: int
    reachable: bool

    def at(self, alpha: float, *, cap: float = 1e3) -> Calibration:
        """The answer for another `alpha`, from the same distances."""
        if not alpha <= cap < math.inf:
            raise ValueError(f"cap must be finite and at least alpha={alpha}, got {cap}")
        target = Beta(alpha).mean_square_step * self.square_distance_1
        found, reachable = alpha, True
        if self.k > 1:
            found, reachable = alpha_for(target, self.square_distance, alpha, cap)
        xi = math.sqrt(Beta(found).mean_square_step * self.square_distance)
        if not reachable:
            warnings.warn(
                f"xi={math.sqrt(target):.4g} (alpha={alpha} at k=1) is out of reach at "
                f"k={self.k}: alpha={cap:g}, the cap, gives xi={xi:.4g}; use a smaller k or alpha",
                stacklevel=3,
            )
        return replace(self, alpha=found, xi=xi, target_xi=math.sqrt(target), reachable=reachable)


def calibrate(
    x: Any,
    k: int = 16,
    alpha: float = 1.0,
    *,
    disjoint: bool = False,
    relative_error: float = 0.01,
    cap: float = 1e3,
    generator: Generator | None = None,
) -> Calibration:
    """Find the alpha at `k` with the strength xi that `alpha` has at k = 1.

    Args:
        x: the data, a tensor or an array `(n, ...)`, or a data set whose items are
            samples or tuples that start with one. It is read in chunks.
        k, alpha: of the mixer to be calibrated, and of the plain mixup it is to equal.
        disjoint: sample as partners inside one batch are drawn, from disjoint subsets;
            by default the two subsets are independent, as those of two loaders are.
        relative_error: standard error to reach for the mean squared distance, as a
            share of it; as many blocks are sampled as that takes.
        cap: the largest alpha to answer with, where no alpha reaches the target.

    >>> x = torch.randn(1000, 2, generator=torch.Generator().manual_seed(0))
    >>> found = calibrate(x, k=16, alpha=0.1, generator=torch.Generator().manual_seed(0))
    >>> found.alpha > 0.1 and found.reachable
    True
    """
    data = _Samples(x)
    least = 2 * k if disjoint else k
    if not isinstance(k, (int, np.integer)) or k < 1 or len(data) < max(least, 2):
        raise ValueError(
            f"k must be a whole number from 1 to {len(data) // (2 if disjoint else 1)}, "
            f"for {len(data)} samples{' in disjoint subsets' if disjoint else ''}, got {k!r}"
        )
    if not 0 < relative_error < 1:
        raise ValueError(f"relative_error must lie between 0 and 1, got {relative_error}")
    if not alpha <= cap < math.inf:
        raise ValueError(f"cap must be finite and at least alpha={alpha}, got {cap}")

    square_distance_1 = _random_square_distance(data, disjoint)
    if k == 1:
        mean, error, blocks = square_distance_1, 0.0, 0
    else:
        mean, error, blocks = _matched_square_distance(data, k, disjoint, relative_error, generator)
    unmixed = Calibration(
        k=int(k),
        alpha=0.0,
        xi=0.0,
        target_xi=0.0,
        square_distance_1=square_distance_1,
        square_distance=mean,
        standard_error=error,
        blocks=blocks,
        reachable=True,
    )
    return unmixed.at(alpha, cap=cap)


def alpha_for(target: float, square_distance: float, low: float, cap: float) -> tuple[float, bool]:
    """Root of E[step²] · square_distance = target between `low` and `cap`."""

    def excess(log_alpha: float) -> float:
        return Beta(math.exp(log_alpha)).mean_square_step * square_distance - target

    if low == 0 or excess(math.log(low)) >= 0:
        return low, True  # a match is never longer than a random pair, but for sampling error
    if excess(math.log(cap)) < 0:
        return cap, False
    from scipy.optimize import brentq  # on first use: it loads slowly

    return math.exp(brentq(excess, math.log(low), math.log(cap), xtol=1e-12)), True


def _random_square_distance(data: _Samples, disjoint: bool) -> float:
    """Exact mean squared distance of two random samples, distinct if `disjoint`."""
    n = len(data)
    centre = data[torch.tensor([0])]  # so that data far from the origin keep their digits
    total, square = torch.zeros_like(centre), 0.0
    for rows in data.chunks():
        gap = rows - centre
        total += gap.sum(0)
        square += float(gap.square().sum())
    scatter = max(square - float(total.square().sum()) / n, 0.0)
    return 2 * scatter / (n - 1 if disjoint else n)


def _matched_square_distance(
    data: _Samples, k: int, disjoint: bool, relative_error: float, generator: Generator | None
) -> tuple[float, float, int]:
    """Mean, standard error and number of blocks of the squared distance of a match."""
    means: list[Floats] = []
    count, wanted = 0, 64
    most = max(1, CHUNK // (2 * k * data.width + k * k + (len(data) if k * k > len(data) else 0)))
    while count < wanted:
        size = min(wanted - count, most)
        first, second = subset_pairs(len(data), k, size, disjoint=disjoint, generator=generator)
        a, b = (data[index.flatten()].view(size, k, -1) for index in (first, second))
        _, distance = assign(a, b, a.square().sum(2).numpy(), b.square().sum(2).numpy())
        means.append(distance.mean(1))
        count += size
        if count == wanted:
            every = np.concatenate(means)
            mean, error = float(every.mean()), float(every.std(ddof=1)) / math.sqrt(count)
            if error > relative_error * mean:
                # what the spread seen so far asks for, at most four times as many at once
                needed = count * (error / (relative_error * mean)) ** 2
                wanted = math.ceil(min(1.1 * needed, 4 * count))
    return mean, error, count


class _Samples:
    """Samples of a tensor, an array or a data set as float64 rows `(n, d)`."""

    def __init__(self, x: Any) -> None:
        if not isinstance(x, Tensor) and hasattr(x, "__array__"):
            x = np.asarray(x)
        if not isinstance(x, Sized) or not hasattr(x, "__getitem__"):
            raise TypeError(
                "x must be a tensor, an array or a data set with a length and an index, "
                f"got {type(x).__name__}"
            )
        self.x = x
        self.width = self[torch.tensor([0])].shape[1] if len(x) else 0

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: Tensor) -> Tensor:
        if isinstance(self.x, Tensor):
            rows = self.x.detach()[index.to(self.x.device)].cpu()
        elif isinstance(self.x, np.ndarray):
            rows = torch.from_numpy(self.x[index.numpy()])
        else:
            many = getattr(self.x, "__getitems__", None)  # torch's protocol for whole batches
            items = many(index.tolist()) if many else [self.x[i] for i in index.tolist()]
            if not isinstance(items, Tensor):
                items = torch.stack([_sample(item) for item in items])
            rows = items
        rows = rows.reshape(len(rows), -1).double()
        if not rows.isfinite().all():
            bad = index[~rows.isfinite().all(1)].min()
            raise ValueError(f"x must be finite, sample {int(bad)} has a NaN or an infinity")
        return rows

    def chunks(self) -> Iterator[Tensor]:
        step = max(1, CHUNK // max(1, self.width))
        for start in range(0, len(self), step):
            yield self[torch.arange(start, min(start + step, len(self)))]


def _sample(item: Any) -> Tensor:
    """Input of a data set's item: the item itself, or the first of a tuple."""
    x = item[0] if isinstance(item, (tuple, list)) else item
    if not isinstance(x, (Tensor, np.ndarray)):
        raise TypeError(
            "items of the data set must be tensors or arrays, or tuples that start with one, "
            f"got {type(x).__name__}: convert them in its transform"
        )
    return torch.as_tensor(x)
