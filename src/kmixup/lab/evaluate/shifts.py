"""Tests under a shift of the inputs, each defined once: Gaussian noise, and an attack.

A level is a number of 255ths of the range of pixels. Samples are raw pixels in [0, 1], and the
data set's `normalise` is applied inside: perturbations are of pixels, and the attack's gradient
goes through the normalisation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy

from kmixup._networks import evaluating
from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.scores import Scores, score_logits

BATCH = 512

Transform = Callable[[Tensor], Tensor]
Perturbation = Callable[[Tensor, Tensor], Tensor]


def score_under(
    shift: str,
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    eps: float,
    normalise: Transform,
    generator: Generator,
) -> Scores:
    """Return the scores under a shift, at the level `eps`.

    The network is evaluated in eval mode. Afterwards, also after an error, every submodule is in
    its own mode again and no parameter has a new gradient.

    Args:
        shift: one of `SHIFTS`.
        net: gives logits `(n, classes)`.
        x: pixels `(n, ...)` in [0, 1], on the network's device.
        y: their classes, integers `(n,)`.
        eps: size of the shift in 255ths.
        normalise: what turns pixels into the network's inputs.
        generator: of the noise.
    """
    if not 0 <= eps < math.inf:
        raise ValueError(f"eps must be a finite number of 255ths, 0 or more, got {eps}")
    perturb = SHIFTS[shift].perturb(net, normalise, eps / 255, generator)
    logits = []
    with evaluating(net), torch.no_grad():
        for pixels, labels in zip(x.split(BATCH), y.split(BATCH), strict=True):
            logits.append(net(normalise(perturb(pixels, labels))))
    return score_logits(torch.cat(logits), y)


def score_test_under(
    shift: str, net: nn.Module, data: Dataset, *, eps: float, generator: Generator
) -> Scores:
    """Return the scores on a data set's test images, under a shift as in `score_under`."""
    low, high = data.pixel_range or (0.0, 1.0)
    return score_under(
        shift,
        net,
        (data.x_test.float() - low) / (high - low),
        data.y_test,
        eps=eps,
        normalise=lambda pixels: data.normalise(low + (high - low) * pixels),
        generator=generator,
    )


def _noise(
    net: nn.Module, normalise: Transform, scale: float, generator: Generator
) -> Perturbation:
    """x + scale · g with g standard normal in every pixel, not clipped."""

    def noisy(x: Tensor, y: Tensor) -> Tensor:
        # sample by sample: a batch drawn at once would depend on its length
        noise = [
            torch.randn(x.shape[1:], generator=generator, dtype=x.dtype, device=generator.device)
            for _ in range(len(x))
        ]
        return x + scale * torch.stack(noise).to(x.device)

    return noisy


def _attack(
    net: nn.Module, normalise: Transform, scale: float, generator: Generator
) -> Perturbation:
    """x + scale · sign ∇ₓ loss(net(normalise(x)), y), clipped to [0, 1].

    The fast gradient sign method (Goodfellow et al. 2015, "Explaining and Harnessing Adversarial
    Examples").
    """

    def attacked(x: Tensor, y: Tensor) -> Tensor:
        if not (float(x.min()) >= 0 and float(x.max()) <= 1):
            raise ValueError(
                "x must be pixels in [0, 1] for an attack that is clipped to that range, got "
                f"{float(x.min()):g} … {float(x.max()):g}: pass raw pixels, and the rest as "
                "normalise"
            )
        with torch.enable_grad():
            pixels = x.detach().clone().requires_grad_()
            # the sum: its gradient in a sample does not depend on the rest of the batch
            loss = cross_entropy(net(normalise(pixels)), y.long(), reduction="sum")
            (gradient,) = torch.autograd.grad(loss, pixels)  # of the pixels only
        return (x.detach() + scale * gradient.sign()).clamp(0, 1)

    return attacked


@dataclass(frozen=True)
class Shift:
    """A test under a shift."""

    title: str  # in reports, as in "under Gaussian noise"
    summary: str  # what it does at the level EPS, for the help of commands
    # from the network, its `normalise`, the level as a fraction of the pixel range, and a generator
    perturb: Callable[[nn.Module, Transform, float, Generator], Perturbation]


SHIFTS: Mapping[str, Shift] = MappingProxyType(
    {
        "noise": Shift("Gaussian noise", "Gaussian noise of EPS/255", _noise),
        "fgsm": Shift("FGSM", "an FGSM attack of EPS/255", _attack),
    }
)
