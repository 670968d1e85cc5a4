"""Tests under a shift of the inputs, each defined once: Gaussian noise, and an attack.

A level is a number of 255ths of the range of pixels. A trial lists shifts by their names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Unpack

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy

from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.scores import (
    Batches,
    Perturbation,
    Scores,
    Transform,
    check_logits,
    score,
)
from kmixup.modes import evaluating


def score_under(
    shift: str,
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    eps: float,
    normalise: Transform,
    generator: Generator | None = None,
    **batches: Unpack[Batches],
) -> Scores:
    """Scores under a shift, one of `SHIFTS`, at the level `eps`.

    `x` are pixels in [0, 1]. Noise needs a `generator`. The other arguments are those of
    `score`.
    """
    perturb = SHIFTS[shift].perturb(net, normalise, _scale(eps), generator)
    return score(net, x, y, normalise=normalise, perturb=perturb, **batches)


def score_test_under(
    shift: str, net: nn.Module, data: Dataset, *, eps: float, generator: Generator | None = None
) -> Scores:
    """Scores on the test part of a data set of images, under a shift as in `score_under`."""
    if data.pixel_range is None:
        data.pixel_step(1)  # says that there are no pixels
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
    net: nn.Module, normalise: Transform, scale: float, generator: Generator | None
) -> Perturbation:
    """x + scale · g with g standard normal in every pixel, not clipped.

    The noise depends on the generator's state alone: neither the batch size nor the scale
    changes g.
    """
    if generator is None:
        raise ValueError("noise needs a generator: use torch.Generator().manual_seed(0)")

    def noisy(x: Tensor, y: Tensor) -> Tensor:
        # sample by sample: a batch drawn at once would depend on its length
        noise = [
            torch.randn(x.shape[1:], generator=generator, dtype=x.dtype, device=generator.device)
            for _ in range(len(x))
        ]
        return x + scale * torch.stack(noise).to(x.device)

    return noisy


def _attack(
    net: nn.Module, normalise: Transform, scale: float, generator: Generator | None
) -> Perturbation:
    """Pixels attacked by `fgsm`, with full knowledge of the network."""

    def attacked(x: Tensor, y: Tensor) -> Tensor:
        if not (float(x.min()) >= 0 and float(x.max()) <= 1):
            raise ValueError(
                f"x must be pixels in [0, 1] for an attack that is clipped to that range, got "
                f"{float(x.min()):g} … {float(x.max()):g}: pass raw pixels, and the rest as "
                "normalise"
            )
        return _fgsm(net, x, y, scale, normalise)

    return attacked


def fgsm(net: nn.Module, x: Tensor, y: Tensor, *, eps: float, normalise: Transform) -> Tensor:
    """Pixels moved by eps/255 each, in the direction that raises the loss.

    The fast gradient sign method (Goodfellow et al. 2015, "Explaining and Harnessing
    Adversarial Examples"): x + eps/255 · sign ∇ₓ loss(net(normalise(x)), y), clipped
    to [0, 1]. One batch `(n, ...)`, with the network in eval mode.
    """
    scale = _scale(eps)
    with evaluating(net):
        return _fgsm(net, x, y, scale, normalise)


def _fgsm(net: nn.Module, x: Tensor, y: Tensor, scale: float, normalise: Transform) -> Tensor:
    with torch.enable_grad():
        pixels = x.detach().clone().requires_grad_()
        logits = net(normalise(pixels))
        check_logits(logits, y)
        # the sum: its gradient in a sample does not depend on the rest of the batch
        loss = cross_entropy(logits, y.long(), reduction="sum")
        (gradient,) = torch.autograd.grad(loss, pixels)  # of the pixels alone
    return (x.detach() + scale * gradient.sign()).clamp(0, 1)


def _scale(eps: float) -> float:
    if not 0 <= eps < math.inf:
        raise ValueError(
            f"eps must be a finite number, 0 or more, in units of 1/255 of the pixel range, "
            f"got {eps}"
        )
    return eps / 255


@dataclass(frozen=True)
class Shift:
    """A test under a shift.

    Attributes:
        title: what reports call it, as in "under Gaussian noise".
        summary: what it does at the level EPS, for the help of commands.
        perturb: makes the perturbation from the network, its `normalise`, the level as a
            share of the pixel range, and a generator.
    """

    title: str
    summary: str
    perturb: Callable[[nn.Module, Transform, float, Generator | None], Perturbation]


SHIFTS: Mapping[str, Shift] = MappingProxyType(
    {
        "noise": Shift("Gaussian noise", "Gaussian noise of EPS/255", _noise),
        "fgsm": Shift("FGSM", "an FGSM attack of EPS/255", _attack),
    }
)
