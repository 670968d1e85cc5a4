"""k-mixup as a regulariser: the expansion of its loss around the data (Theorem 4.1).

`docs/evidence/theory.md` has the formulas of R1, R2 and R3. They need only two derivatives of
t → f(x_i + t (r - x_i)), never a Hessian.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Generator, Tensor
from torch.func import grad
from torch.nn.functional import softplus

from kmixup._measured import Measured
from kmixup.coefficient import Beta
from kmixup.theory.matching import Array, Data, MatchingDistributions, as_points, matched_subsets

Function = Callable[[Tensor], Tensor]
PAIRS = 1 << 12  # pairs of points that go through the network at a time
NODES = 24  # of the quadrature over lam


@dataclass(frozen=True)
class Expansion:
    """Taylor coefficients of the loss in a = 1 - lam. Returned by `expand`.

    They are the loss without mixing, `standard`, and `r1` = R1 / E[a], `r2` = R2 / E[a²] and
    `r3` = R3 / E[a²].
    """

    standard: float
    r1: float
    r2: float
    r3: float

    def at(self, a: ArrayLike) -> Array:
        """Return the expanded loss at a fixed `a`."""
        step = np.asarray(a, dtype=np.float64)
        return np.asarray(self.standard + step * self.r1 + step**2 * (self.r2 + self.r3))

    def terms(self, alpha: float) -> tuple[float, float, float]:
        """Return R1, R2 and R3 for this `alpha`."""
        beta = Beta(alpha)
        square = beta.tilted_mean_square_step
        return beta.tilted_mean_step * self.r1, square * self.r2, square * self.r3


def expand(
    f: Function, X: Data, y: Data, D: MatchingDistributions, *, h: Function = softplus
) -> Expansion:
    """Expand the k-mixup loss of `f` on `(X, y)` to second order.

    Args:
        f: maps a batch `(m, ...)` to `(m,)` or `(m, 1)`, each sample on its own (batch norm in
            eval mode). Twice differentiable.
        X: samples `(n, ...)`, floating point.
        y: labels `(n,)`.
        D: `matching_distributions(X, k, ...)`.
        h: twice differentiable. The default is that of the logistic loss, for labels 0 and 1.

    Returns:
        The standard loss and the terms of the expansion.

    >>> from kmixup.theory import matching_distributions
    >>> X, y = torch.linspace(-1, 1, 8).double()[:, None], torch.arange(8) % 2
    >>> f = lambda x: x[:, 0] ** 2
    >>> expansion = expand(f, X, y, matching_distributions(X, k=2, samples=50))
    >>> bool(expansion.at(0) == expansion.standard)    # nothing is mixed
    True
    """
    standard = r1 = r2 = r3 = 0.0
    with torch.no_grad():
        for x, partner, label, weight in _pairs(X, y, D):
            value, slope, bend = _along(f, x, partner - x)
            loss, pull, curve = _along(h, value, torch.ones_like(value))
            pull = pull - label
            standard += float(weight @ (loss - label * value))
            r1 += float(weight @ (pull * slope))
            r2 += float(weight @ (curve * slope.square())) / 2
            r3 += float(weight @ (pull * bend)) / 2
    return Expansion(standard, r1, r2, r3)


def interpolated_loss(
    f: Function, X: Data, y: Data, D: MatchingDistributions, a: ArrayLike, *, h: Function = softplus
) -> Array:
    """Return the mean loss at (1 - a) x_i + a r with label y_i and r from D_i, for every `a`.

    Args:
        f, X, y, D, h: those of `expand`.
        a: how far samples move towards their partners, any shape.

    Returns:
        The loss for every `a`.

    >>> from kmixup.theory import matching_distributions
    >>> X, y = torch.arange(8.0)[:, None], torch.arange(8) % 2
    >>> interpolated_loss(lambda x: 0 * x, X, y, matching_distributions(X, k=2), [0.1, 0.9]).shape
    (2,)
    """
    steps = np.atleast_1d(np.asarray(a, dtype=np.float64))
    total = np.zeros_like(steps)
    with torch.no_grad():
        for x, partner, label, weight in _pairs(X, y, D):
            for s, step in enumerate(steps):
                mixed = torch.lerp(x, partner, float(step))
                total[s] += float(weight @ _losses(f, h, mixed, label))
    return total.reshape(np.shape(a))


def remainder(
    f: Function, X: Data, y: Data, D: MatchingDistributions, a: ArrayLike, *, h: Function = softplus
) -> Array:
    """Return the loss at each fixed `a` minus its expansion. Use float64 throughout.

    Args:
        f, X, y, D, a, h: those of `interpolated_loss`.

    Returns:
        The difference for every `a`.

    >>> from kmixup.theory import matching_distributions
    >>> X, y = torch.arange(8.0)[:, None], torch.arange(8) % 2
    >>> float(remainder(lambda x: 0 * x, X, y, matching_distributions(X, k=2), 0.5))
    0.0
    """
    return interpolated_loss(f, X, y, D, a, h=h) - expand(f, X, y, D, h=h).at(a)


def relative_remainder(
    f: Function, X: Data, y: Data, D: MatchingDistributions, alpha: float, *, h: Function = softplus
) -> float:
    """Return the mean remainder over lam from Beta(alpha + 1, alpha), divided by E[(1 - lam)²].

    Args:
        f, X, y, D, h: those of `expand`.
        alpha: of k-mixup; at 0 the result is the limit, 2 ∫ remainder(a) / a da.

    Returns:
        The ratio.

    >>> from kmixup.theory import matching_distributions
    >>> X, y = torch.arange(8.0)[:, None], torch.arange(8) % 2
    >>> relative_remainder(lambda x: 0 * x, X, y, matching_distributions(X, k=2), 1.0)
    0.0
    """
    from scipy.special import roots_jacobi  # on first use: scipy.special loads slowly

    # a² turns Beta(alpha, alpha + 1), the distribution of a, into Beta(alpha + 2, alpha + 1)
    nodes, weight = roots_jacobi(NODES, alpha, alpha + 1)
    a = (1 + nodes) / 2
    return float(weight @ (remainder(f, X, y, D, a, h=h) / a**2) / weight.sum())


def kmixup_loss(
    f: Function,
    X: Data,
    y: Data,
    k: int,
    alpha: float,
    samples: int = 1000,
    *,
    h: Function = softplus,
    generator: Generator | None = None,
) -> Measured:
    """Measure the k-mixup loss by definition, over `samples` matched pairs of k-subsets.

    Args:
        f, X, y, h: those of `expand`.
        k: of k-mixup.
        alpha: of k-mixup. Inputs and labels are mixed with one lam for each pair of subsets.
        samples: number of pairs of subsets.
        generator: source of all draws.

    Returns:
        The mean loss with its standard error.

    >>> X, y = torch.arange(8.0)[:, None], torch.arange(8) % 2
    >>> round(kmixup_loss(lambda x: 0 * x, X, y, k=2, alpha=1.0).value, 4)    # log 2
    0.6931
    """
    inputs, labels = _data(X, y)
    batches = []
    with torch.no_grad():
        for first, second in matched_subsets(as_points(inputs), k, samples, generator=generator):
            lam = Beta(alpha).draw((len(first), 1), generator).to(inputs)
            i, j = (torch.from_numpy(index).to(inputs.device) for index in (first, second))
            weight = lam.expand(i.shape).reshape(-1, *[1] * (inputs.dim() - 1))
            mixed = torch.lerp(inputs[j.flatten()], inputs[i.flatten()], weight)
            target = lam * labels[i] + (1 - lam) * labels[j]
            loss = _losses(f, h, mixed, target.flatten()).view_as(i)
            batches.append(loss.double().mean(1).cpu().numpy())
    return Measured.of(np.concatenate(batches))


def _losses(f: Function, h: Function, x: Tensor, label: Tensor) -> Tensor:
    value = torch.cat([_scalar(f, part) for part in x.split(PAIRS)])
    return h(value) - label * value


def _along(g: Function, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return value, first and second derivative of t → g(x + t v) at t = 0, for every sample."""

    # g treats each sample on its own: the gradient of the sum holds all their derivatives
    def values(t: Tensor) -> tuple[Tensor, Tensor]:
        value = _scalar(g, x + t.view(-1, *[1] * (x.dim() - 1)) * v)
        return value.sum(), value

    def slopes(t: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        slope, value = grad(values, has_aux=True)(t)
        return slope.sum(), (value, slope)

    bend, (value, slope) = grad(slopes, has_aux=True)(x.new_zeros(len(x)))
    return value, slope, bend


def _scalar(g: Function, x: Tensor) -> Tensor:
    """Return `g(x)` as one number for each sample."""
    value = g(x)
    if value.numel() != len(x):
        raise ValueError(
            f"f must give one number for each sample, got {tuple(value.shape)} for {len(x)}"
        )
    return value.reshape(len(x))


def _pairs(X: Data, y: Data, D: MatchingDistributions) -> Iterator[tuple[Tensor, ...]]:
    """Yield the matched x_i, their partners, labels y_i and weights P_ij / n, some at a time."""
    x, labels = _data(X, y)
    n = len(x)
    if len(D.points) != n:
        raise ValueError(f"D must be that of the {n} samples of X, got one of {len(D.points)}")
    if not D.samples.all():
        missing = int((D.samples == 0).sum())
        raise ValueError(f"D must cover every point, {missing} were never matched: draw more")
    met = D.probability.tocoo()
    for start in range(0, met.nnz, PAIRS):
        part = slice(start, start + PAIRS)
        i, j = (torch.as_tensor(index[part], device=x.device).long() for index in met.coords)
        yield x[i], x[j], labels[i], torch.as_tensor(met.data[part] / n).to(x)


def _data(X: Data, y: Data) -> tuple[Tensor, Tensor]:
    samples = torch.as_tensor(X).detach()
    if not samples.is_floating_point():
        raise TypeError(f"X must be floating point, got {samples.dtype}: use X.double()")
    labels = torch.as_tensor(y).detach().to(samples)
    if labels.shape != samples.shape[:1]:
        raise ValueError(
            f"y must be one number for each of the {len(samples)} samples, "
            f"got the shape {tuple(labels.shape)}"
        )
    return samples, labels
