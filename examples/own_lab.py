"""Use your own data, network and mixing method on the command line.

Name each as package.module:name. From this folder:

    kmixup train own_lab:moons --method own_lab:FarMixup --model own_lab:small --k 4
    kmixup compare own_lab:moons --methods erm,mixup,own_lab:FarMixup --settings 2 --trials 4
"""

from typing import Any

import torch
from torch import Tensor, nn

import kmixup


def moons() -> tuple[Tensor, Tensor]:
    """Return inputs `(600, 2)` and classes `(600,)` of two interleaved half-circles."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(600) % 2
    angle = torch.pi * (torch.rand(600, generator=generator) + y)
    x = torch.stack([angle.cos() + y, angle.sin() + 0.5 * y], 1)
    return x + 0.1 * torch.randn(600, 2, generator=generator), y


def small(*, in_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Return a network for inputs of shape `in_shape`."""
    return nn.Sequential(nn.Linear(in_shape[0], 32), nn.ReLU(), nn.Linear(32, num_classes))


class Farthest(kmixup.Pairing):
    """Pair every sample with the farthest one in its block."""

    def choose(self, distances: Any, differ: Any = None) -> Any:
        return distances.argmax(2)


class FarMixup(kmixup.Mixer):
    """Mixup with the farthest of k samples, the opposite of k-mixup."""

    def __init__(self, k: int, alpha: float, num_classes: int | None) -> None:
        super().__init__(Farthest(k), kmixup.Beta(alpha), kmixup.Linear(), num_classes=num_classes)
