"""The matching distribution D_i: how often each point is the partner of point i.

D_i is the distribution of the partner of x_i when a random k-subset that contains i is matched with
a second random k-subset (section 4 of the paper). There are too many subsets to enumerate, so
matchings are drawn. The rest of `kmixup.theory` builds on the draws of this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Generator, Tensor

from kmixup._checks import check_whole
from kmixup._subsets import MatchedBlocks, matched_blocks, subsets
from kmixup.calibration import CHUNK
from kmixup.matching import Optimal, Pairing

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Data = ArrayLike | Tensor


@dataclass(frozen=True, eq=False)
class MatchingDistribution:
    """D_i of one point. Returned by `matching_distribution`.

    Attributes:
        points: the data, `(n, d)`.
        probability: of every point to be the partner, `(n,)`; 0 is below about 3 / `samples`.
        samples: number of matchings.
    """

    points: Array
    probability: Array
    samples: int

    @property
    def error(self) -> Array:
        """Standard error of each probability, `(n,)`."""
        return np.sqrt(self.probability * (1 - self.probability) / self.samples)

    def mean(self) -> Array:
        """Return the local mean, `(d,)`."""
        return self.probability @ self.points

    def covariance(self) -> Array:
        """Return the local covariance, `(d, d)`."""
        met = self.probability > 0
        gap = self.points[met] - self.mean()
        return np.asarray((self.probability[met, None] * gap).T @ gap)


@dataclass(frozen=True, eq=False)
class MatchingDistributions:
    """D_i of all points; `D[i]` is that of point i. Returned by `matching_distributions`.

    Attributes:
        points: the data, `(n, d)`.
        probability: sparse, `(n, n)`. Row i is D_i.
        samples: number of matchings that each point took part in, `(n,)`.
    """

    points: Array
    probability: csr_array[Any, tuple[int, int]]
    samples: Indices

    def __getitem__(self, i: int) -> MatchingDistribution:
        if not self.samples[i]:
            raise ValueError(f"point {i} took part in no matching: draw more samples")
        probability = self.probability[[i], :].toarray()[0]
        return MatchingDistribution(self.points, probability, int(self.samples[i]))


def matching_distribution(
    X: Data,
    i: int,
    k: int = 32,
    samples: int = 1000,
    *,
    pairing: type[Pairing] = Optimal,
    generator: Generator | None = None,
) -> MatchingDistribution:
    """Estimate D_i of point `i` of `X` from `samples` matchings of subsets that contain it.

    Args:
        X: points `(n, d)`.
        i: index of the point.
        k: size of a subset.
        samples: number of matchings.
        pairing: how subsets are matched, `Optimal` or `Nearest`.
        generator: source of all draws.

    Returns:
        The probability that each point is the partner.

    Raises:
        ValueError: if `i` is no index of a point, or `k` is too large.

    >>> X = np.array([[0.], [1.], [8.], [9.]])
    >>> D = matching_distribution(X, 0, k=2, samples=200)
    >>> bool(D.probability[:2].sum() > 0.6)
    True
    """
    points = as_points(X)
    n, most = len(points), _blocks_at_once(points, k, samples)
    if not 0 <= i < n:
        raise ValueError(f"i must be the index of a point, from 0 to {n - 1}, got {i}")
    count = np.zeros(n, dtype=np.int64)
    for start in range(0, samples, most):
        m = min(most, samples - start)
        others, second = subsets(n - 1, k - 1, m, generator), subsets(n, k, m, generator)
        first = torch.cat([torch.full((m, 1), i), others + (others >= i)], 1)
        partner = match_subsets(points, first, second, pairing)[:, 0]
        count += np.bincount(partner, minlength=n)
    return MatchingDistribution(as_array(points), count / samples, samples)


def matching_distributions(
    X: Data, k: int = 32, samples: int = 10_000, *, generator: Generator | None = None
) -> MatchingDistributions:
    """Estimate D_i of all points of `X` at once, from `samples` matchings.

    A point takes part in about `samples` · k / n matchings. Memory grows with the number of
    different pairs.

    Args:
        X: points `(n, d)`.
        k: size of a subset.
        samples: number of matchings.
        generator: source of all draws.

    Returns:
        The matching distributions, indexed by point.

    >>> X = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> D = matching_distributions(X, k=4, samples=10)    # all points: each is its own partner
    >>> D[0].probability
    array([1., 0., 0., 0.])
    """
    from scipy.sparse import csr_array  # on first use: it loads slowly

    points = as_points(X)
    count = csr_array((len(points), len(points)), dtype=np.float64)
    for first, second in matched_subsets(points, k, samples, generator=generator):
        places = first.ravel(), second.ravel()
        count = count + csr_array((np.ones(first.size), places), shape=count.shape)
    total = np.asarray(count.sum(axis=1)).astype(np.int64)
    count.data /= np.repeat(total, np.diff(count.indptr))
    return MatchingDistributions(as_array(points), count, total)


def matched_subsets(
    X: Data, k: int, samples: int, *, disjoint: bool = False, generator: Generator | None = None
) -> Iterator[tuple[Indices, Indices]]:
    """Draw `samples` pairs of k-subsets and match them optimally, some at a time.

    Args:
        X: points `(n, d)`.
        k: size of a subset.
        samples: number of pairs of subsets.
        disjoint: whether the two have no common point, as inside one batch; independent if False.
        generator: source of all draws.

    Returns:
        An iterator over two arrays `(m, k)` of indices into `X`, with partners in the same place.
        All m add up to `samples`.

    >>> X = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> for first, second in matched_subsets(X, k=4, samples=2):
    ...     print((first == second).all())    # all points: each is its own partner
    True
    """
    blocks = optimal_blocks(as_points(X), k, samples, disjoint=disjoint, generator=generator)
    return ((block.first, block.second) for block in blocks)


def optimal_blocks(
    points: Tensor,
    k: int,
    samples: int,
    *,
    disjoint: bool = False,
    generator: Generator | None = None,
) -> Iterator[MatchedBlocks]:
    """Return the draws of `matched_subsets` with the partners' mean squared distances."""
    most = _blocks_at_once(points, k, samples, disjoint=disjoint)
    rows = points.double().cpu()
    return matched_blocks(rows, k, samples, most=most, disjoint=disjoint, generator=generator)


def match_subsets(
    points: Tensor, first: Tensor, second: Tensor, pairing: type[Pairing] = Optimal
) -> Indices:
    """Return the partner in `second[m]` of every entry of `first[m]`, `(m, k)`."""
    a, b = (points[index.flatten().to(points.device)] for index in (first, second))
    rows = pairing(first.shape[1])(a, b).cpu()
    return second.flatten()[rows].view_as(first).numpy()


def as_points(X: Data) -> Tensor:
    """Return NumPy or torch samples as floating-point rows `(n, d)`."""
    points = torch.as_tensor(X).detach()
    if points.dim() == 0 or not len(points):
        raise ValueError(f"X must hold at least one sample, got shape {tuple(points.shape)}")
    points = points.reshape(len(points), -1)
    return points if points.is_floating_point() else points.double()


def as_array(X: Data) -> Array:
    """Return samples as rows `(n, d)` of a NumPy array in float64."""
    return as_points(X).double().cpu().numpy()


def check_length(length: int, values: Sized, name: str = "labels") -> None:
    """Raise unless there is one value for each point of X."""
    if (got := len(values)) != length:
        raise ValueError(f"X and {name} must have the same length, got {length} and {got}")


def _blocks_at_once(points: Tensor, k: int, samples: int, *, disjoint: bool = False) -> int:
    """Return how many pairs of k-subsets to hold in memory; raise if they cannot be drawn."""
    n, d = points.shape
    most = n // 2 if disjoint else n
    if not 1 <= k <= most:
        where = " in disjoint subsets" if disjoint else ""
        raise ValueError(f"k must be from 1 to {most} for {n} samples{where}, got {k}")
    check_whole("samples", samples)
    return max(1, CHUNK // (2 * k * d + k * k + n))
