"""The alpha for k that perturbs the data as much as a given alpha does at k = 1.

Matched partners are nearer than random ones, so a larger k perturbs less at the same alpha. The
strength of a mixer is xi, the root mean square of min(lam, 1 - lam) · |x - partner|:

    xi² = E[min(lam, 1 - lam)²] · E[|x - partner|²].

Only the second factor at k > 1 has to be sampled; at k = 1 it is twice the total variance.
"""

from __future__ import annotations

import math
from collections.abc import Sized
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from kmixup._checks import SettingError, check_fraction, check_whole
from kmixup._compiling import warn_user
from kmixup._measured import Measured
from kmixup._subsets import matched_blocks
from kmixup.coefficient import Beta
from kmixup.matching import Metric

CHUNK = 1 << 22  # numbers of the data held in memory at a time
CAP = 1e3  # the largest alpha: lam is near 1/2, and more alpha changes little


@dataclass(frozen=True)
class Calibration:
    """The alpha to use at k, and what it was computed from. Returned by `calibrate`.

    Attributes:
        k: of the mixer that was calibrated.
        alpha: the alpha to use at k.
        xi: the strength that alpha reaches at k.
        target_xi: the strength of mixup (k = 1), which alpha should reach.
        square_distance_1: mean squared distance to the partner at k = 1.
        matched: mean squared distance to the partner at k, with its standard error.
        blocks: how many pairs of k-subsets were sampled for it.
        reachable: whether any alpha up to 1,000 reaches the target; if not, alpha is 1,000.
    """

    k: int
    alpha: float
    xi: float
    target_xi: float
    square_distance_1: float
    matched: Measured
    blocks: int
    reachable: bool

    @property
    def square_distance(self) -> float:
        """Mean squared distance to the partner at k."""
        return self.matched.value

    @property
    def standard_error(self) -> float:
        """Standard error of `square_distance`."""
        return self.matched.error

    def at(self, alpha: float) -> Calibration:
        """Return the calibration for another `alpha`, from the same distances."""
        _check_alpha(alpha)
        target = Beta(alpha).mean_square_step * self.square_distance_1
        own_alpha, reachable = alpha, True
        if self.k > 1:
            own_alpha, reachable = alpha_for(target, self.square_distance, alpha, CAP)
        xi = math.sqrt(Beta(own_alpha).mean_square_step * self.square_distance)
        if not reachable:
            warn_user(
                f"xi={math.sqrt(target):.4g} (alpha={alpha} at k=1) is out of reach at "
                f"k={self.k}: alpha={CAP:g}, the cap, gives xi={xi:.4g}; use a smaller k or alpha"
            )
        return replace(
            self, alpha=own_alpha, xi=xi, target_xi=math.sqrt(target), reachable=reachable
        )


def calibrate(
    x: Any,
    k: int = 16,
    alpha: float = 1.0,
    *,
    disjoint: bool = False,
    metric: Metric = "sqeuclidean",
    relative_error: float = 0.01,
    generator: Generator | None = None,
) -> Calibration:
    """Find the alpha at `k` that perturbs the data as much (xi) as `alpha` does at k = 1.

    Args:
        x: the data, a tensor or an array `(n, ...)`, or a data set whose items are
            samples or tuples that start with one. It is read in chunks.
        k: of the mixer to calibrate.
        alpha: parameter of the mixup (k = 1) whose strength to match.
        disjoint: sample partners as inside one batch, from two disjoint subsets. By
            default the two subsets are independent, as those of two loaders are.
        metric: the cost of a pair, "sqeuclidean" or "euclidean". xi has squared distances.
        relative_error: relative standard error to reach for the mean squared distance.
        generator: source of all draws.

    Returns:
        The alpha, the strength that it reaches, and the distances with their standard error.

    Raises:
        TypeError, ValueError: if an argument or the data do not allow it.

    >>> x = torch.randn(1000, 2, generator=torch.Generator().manual_seed(0))
    >>> calibration = calibrate(x, 16, alpha=0.1, generator=torch.Generator().manual_seed(0))
    >>> calibration.alpha > 0.1 and calibration.reachable
    True
    """
    data = _Samples(x)
    most = len(data) // (2 if disjoint else 1)
    k = check_whole("k", k)
    if k > most or len(data) < 2:
        raise SettingError(
            "k",
            f"must be a whole number from 1 to {most}, "
            f"for {len(data)} samples{' in disjoint subsets' if disjoint else ''}, got {k!r}",
        )
    if metric not in ("sqeuclidean", "euclidean"):
        raise ValueError(f'metric must be "sqeuclidean" or "euclidean" here, got {metric!r}')
    check_fraction("relative_error", relative_error)
    _check_alpha(alpha)
    square_distance_1 = _random_square_distance(data, disjoint)
    matched, blocks = Measured(square_distance_1, 0.0), 0
    if k > 1:
        # The draws of a generator depend on this number, and so do published alphas: keep it.
        most = CHUNK // (2 * k * data.width + k * k + (len(data) if k * k > len(data) else 0))
        parts = matched_blocks(
            data, k, most=max(1, most), metric=metric, relative_error=relative_error,
            disjoint=disjoint, generator=generator,
        )  # fmt: skip
        means = np.concatenate([part.square_distance for part in parts])
        matched, blocks = Measured.of(means), len(means)
    return Calibration(k, 0.0, 0.0, 0.0, square_distance_1, matched, blocks, True).at(alpha)


def _check_alpha(alpha: float) -> None:
    if Beta(alpha).alpha > CAP:
        raise SettingError("alpha", f"must be at most {CAP:g}, the cap, got {alpha:g}")


def alpha_for(target: float, square_distance: float, low: float, cap: float) -> tuple[float, bool]:
    """Solve E[step²] · `square_distance` = `target` for an alpha from `low` to `cap`.

    Returns the alpha and whether it reaches the target: if none does, `cap` and False.
    """

    def excess(log_alpha: float) -> float:
        return Beta(math.exp(log_alpha)).mean_square_step * square_distance - target

    if low == 0 or excess(math.log(low)) >= 0:
        return low, True  # only sampling error makes a match longer than a random pair
    if excess(math.log(cap)) < 0:
        return cap, False
    from scipy.optimize import brentq  # on first use: it loads slowly

    return math.exp(brentq(excess, math.log(low), math.log(cap), xtol=1e-12)), True


def _random_square_distance(data: _Samples, disjoint: bool) -> float:
    """Return the exact mean squared distance of two random samples, distinct if `disjoint`."""
    n = len(data)
    # centred, so that data far from the origin keep their digits
    centre = data[torch.tensor([0], device="cpu")]
    total, square = torch.zeros_like(centre), 0.0
    step = max(1, CHUNK // max(1, data.width))
    for start in range(0, n, step):
        gap = data[torch.arange(start, min(start + step, n), device="cpu")] - centre
        total += gap.sum(0)
        square += float(gap.square().sum())
    scatter = max(square - float(total.square().sum()) / n, 0.0)
    return 2 * scatter / (n - 1 if disjoint else n)


class _Samples:
    """Reads a tensor, an array or a data set as float64 rows `(n, d)`."""

    def __init__(self, x: Any) -> None:
        if not isinstance(x, Tensor) and hasattr(x, "__array__"):
            x = np.asarray(x)
        if not isinstance(x, Sized) or not hasattr(x, "__getitem__"):
            raise TypeError(
                "x must be a tensor, an array or a data set with a length and an index, "
                f"got {type(x).__name__}"
            )
        self.x = x
        self.width = self[torch.tensor([0], device="cpu")].shape[1] if len(x) else 0
        if len(x) and not self.width:
            raise ValueError("x must have at least one feature, its samples have none")

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: Tensor) -> Tensor:
        if isinstance(self.x, Tensor):
            rows = self.x[index.to(self.x.device)]
        elif isinstance(self.x, np.ndarray):
            rows = torch.from_numpy(self.x[index.numpy()])
        else:
            many = getattr(self.x, "__getitems__", None)  # torch's protocol for whole batches
            items = many(index.tolist()) if many else [self.x[i] for i in index.tolist()]
            if not isinstance(items, Tensor):
                items = torch.stack([_sample(item) for item in items])
            rows = items
        rows = rows.detach().cpu().reshape(len(rows), -1).double()
        if not rows.isfinite().all():
            bad = index[~rows.isfinite().all(1)].min()
            raise ValueError(f"x must be finite, sample {int(bad)} has a NaN or an infinity")
        return rows


def _sample(item: Any) -> Tensor:
    """Return the input in an item of a data set: the item itself, or a tuple's first entry."""
    x = item[0] if isinstance(item, (tuple, list)) else item
    if not isinstance(x, (Tensor, np.ndarray)):
        raise TypeError(
            "items of the data set must be tensors or arrays, or tuples that start with one, "
            f"got {type(x).__name__}: convert them in its transform"
        )
    return torch.as_tensor(x)
