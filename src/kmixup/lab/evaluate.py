"""How good a trained network is: on the data, under noise, and under attack.

Every function takes raw samples, pixels in [0, 1] for images, and the data set's
`normalise`, which is applied inside: perturbations are of pixels, and the attack's
gradient goes through the normalisation. Networks are evaluated in eval mode and come back
as they were, every submodule in its own mode and no parameter with a new gradient, also
when they raise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy

Transform = Callable[[Tensor], Tensor]
Perturbation = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Scores:
    """What a network scores on a data set.

    `error`: the fraction of samples put in a wrong class, in [0, 1]; `nll`: the mean
    negative log-likelihood of the true class, in nats; `ece`: the expected calibration
    error, in [0, 1].
    """

    error: float
    nll: float
    ece: float


def score(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    normalise: Transform,
    batch_size: int = 512,
    bins: int = 15,
) -> Scores:
    """Scores on the samples as they are.

    Args:
        net: gives logits `(n, classes)`.
        x: floating-point samples `(n, ...)`, before normalisation.
        y: their classes, integers `(n,)`.
        normalise: what turns samples into the network's inputs.
        batch_size: how many samples go through the network at once.
        bins: of the expected calibration error.

    >>> x, y = torch.tensor([[0.2, 0.1], [0.3, 0.4]]), torch.tensor([0, 0])
    >>> score(nn.Identity(), x, y, normalise=lambda x: 10 * x).error
    0.5
    """
    return _score(net, x, y, lambda x, y: x, normalise, batch_size, bins)


def score_under_noise(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    eps: float,
    generator: Generator,
    normalise: Transform,
    batch_size: int = 512,
    bins: int = 15,
) -> Scores:
    """Scores on x + eps/255 · g with g standard normal in every pixel, not clipped.

    The noise depends on the generator's state alone: neither the batch size nor eps
    changes g. The other arguments are those of `score`.
    """
    scale = _scale(eps)

    def noisy(x: Tensor, y: Tensor) -> Tensor:
        # sample by sample: a batch drawn at once would depend on its length
        noise = [
            torch.randn(x.shape[1:], generator=generator, dtype=x.dtype, device=generator.device)
            for _ in range(len(x))
        ]
        return x + scale * torch.stack(noise).to(x.device)

    return _score(net, x, y, noisy, normalise, batch_size, bins)


def score_under_fgsm(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    eps: float,
    normalise: Transform,
    batch_size: int = 512,
    bins: int = 15,
) -> Scores:
    """Scores on pixels attacked by `fgsm`, with full knowledge of the network.

    The arguments are those of `score`, but `x` must lie in [0, 1].
    """
    scale = _scale(eps)
    if x.numel() and not (float(x.min()) >= 0 and float(x.max()) <= 1):
        raise ValueError(
            f"x must be pixels in [0, 1] for an attack that is clipped to that range, got "
            f"{float(x.min()):g} … {float(x.max()):g}: pass raw pixels, and the rest as normalise"
        )
    return _score(
        net, x, y, lambda x, y: _fgsm(net, x, y, scale, normalise), normalise, batch_size, bins
    )


def fgsm(net: nn.Module, x: Tensor, y: Tensor, *, eps: float, normalise: Transform) -> Tensor:
    """Pixels moved by eps/255 each, in the direction that raises the loss.

    The fast gradient sign method (Goodfellow et al. 2015, "Explaining and Harnessing
    Adversarial Examples"): x + eps/255 · sign ∇ₓ loss(net(normalise(x)), y), clipped
    to [0, 1]. One batch `(n, ...)`, with the network in eval mode.
    """
    scale = _scale(eps)
    with _evaluating(net):
        return _fgsm(net, x, y, scale, normalise)


def score_logits(logits: Tensor, y: Tensor, *, bins: int = 15) -> Scores:
    """Scores of logits `(n, classes)` against the classes `y` `(n,)`."""
    _check_logits(logits, y)
    logits = logits.double()
    confidence, chosen = logits.softmax(1).max(1)
    correct = chosen == y
    return Scores(
        error=int((~correct).sum()) / len(y),
        nll=float(cross_entropy(logits, y.long())),
        ece=calibration_error(confidence, correct, bins=bins),
    )


def calibration_error(confidence: Tensor, correct: Tensor, *, bins: int = 15) -> float:
    """Expected calibration error: the mean of |accuracy - confidence| over bins.

    Samples are binned by confidence into `bins` intervals (a, b] of equal width, and bins
    weighted by their share of the samples (Guo et al. 2017, "On Calibration of Modern
    Neural Networks").

    Args:
        confidence: the probability given to the chosen class, `(n,)`.
        correct: whether that was the true one, `(n,)`.
        bins: their number.

    >>> calibration_error(torch.tensor([0.75] * 4), torch.tensor([True, True, True, False]))
    0.0
    """
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
    inner_edges = torch.linspace(0, 1, bins + 1, dtype=torch.float64)[1:-1]
    bin_of = torch.bucketize(confidence.double(), inner_edges.to(confidence.device))
    # share · |accuracy - confidence| of a bin is |sum of the differences| / n
    gaps = torch.zeros(bins, dtype=torch.float64, device=confidence.device)
    gaps.scatter_add_(0, bin_of, correct.double() - confidence.double())
    return float(gaps.abs().sum() / len(confidence))


def _score(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    perturb: Perturbation,
    normalise: Transform,
    batch_size: int,
    bins: int,
) -> Scores:
    _check(x, y, batch_size)
    device = next((p.device for p in net.parameters()), x.device)
    logits = []
    with _evaluating(net), torch.no_grad():
        for start in range(0, len(x), batch_size):
            batch = slice(start, start + batch_size)
            perturbed = perturb(x[batch].to(device), y[batch].to(device))
            logits.append(net(normalise(perturbed)))
    return score_logits(torch.cat(logits), y.to(device), bins=bins)


def _fgsm(net: nn.Module, x: Tensor, y: Tensor, scale: float, normalise: Transform) -> Tensor:
    with torch.enable_grad():
        pixels = x.detach().clone().requires_grad_()
        logits = net(normalise(pixels))
        _check_logits(logits, y)
        # the sum: its gradient in a sample does not depend on the rest of the batch
        loss = cross_entropy(logits, y.long(), reduction="sum")
        (gradient,) = torch.autograd.grad(loss, pixels)  # of the pixels alone
    return (x.detach() + scale * gradient.sign()).clamp(0, 1)


@contextmanager
def _evaluating(net: nn.Module) -> Iterator[None]:
    """Eval mode inside, and every submodule back in its own mode outside."""
    modes = [(module, module.training) for module in net.modules()]
    net.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _scale(eps: float) -> float:
    if not 0 <= eps < math.inf:
        raise ValueError(
            f"eps must be a finite number, 0 or more, in units of 1/255 of the pixel range, "
            f"got {eps}"
        )
    return eps / 255


def _check(x: Tensor, y: Tensor, batch_size: int) -> None:
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    if not x.is_floating_point():
        raise TypeError(f"x must be floating point, got {x.dtype}: images as x.float() / 255")
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise TypeError(f"y must hold integer classes, got {y.dtype}")
    if x.dim() == 0 or len(x) == 0:
        raise ValueError(f"x must hold at least one sample, got the shape {tuple(x.shape)}")
    if y.shape != x.shape[:1]:
        raise ValueError(
            f"y must have one class for each of the {len(x)} samples of x, "
            f"got the shape {tuple(y.shape)}"
        )


def _check_logits(logits: Tensor, y: Tensor) -> None:
    if logits.dim() != 2 or len(logits) != len(y):
        raise ValueError(
            f"logits must have the shape (n, classes) with n = {len(y)}, got {tuple(logits.shape)}"
        )
    if (high := int(y.max())) >= logits.shape[1] or int(y.min()) < 0:
        raise ValueError(
            f"y must hold classes in 0 … {logits.shape[1] - 1}, one for each logit, "
            f"got {int(y.min())} … {high}"
        )
    if logits.isnan().any():
        raise ValueError(
            f"logits must be numbers, got NaN for {int(logits.isnan().any(1).sum())} of the "
            f"{len(y)} samples: the network has diverged, or its inputs hold NaN"
        )
