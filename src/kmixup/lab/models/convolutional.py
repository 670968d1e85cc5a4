"""Shared by the convolutional networks: the check of their input shape, and their first weights."""

from __future__ import annotations

from torch import nn


def image_shape(in_shape: tuple[int, ...], *, smallest: int = 1) -> tuple[int, int, int]:
    """`in_shape` as (channels, height, width), both sides at least `smallest`."""
    if len(in_shape) != 3 or min(in_shape[1:]) < smallest:
        size = f", both sides at least {smallest}" if smallest > 1 else ""
        raise ValueError(
            f"in_shape must be (channels, height, width) for a convolutional network{size}, "
            f"got {in_shape}"
        )
    channels, height, width = in_shape
    return channels, height, width


def initialise(net: nn.Module) -> None:
    """Draw the weights afresh, from torch's global generator.

    Convolutions: normal with variance 2 / fan-out (He et al. 2015, "Delving Deep into
    Rectifiers"). Batch norm: the identity. Linear: uniform within ± 1/√fan-in, no bias.
    """
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Linear):
            bound = module.in_features**-0.5
            nn.init.uniform_(module.weight, -bound, bound)
            nn.init.zeros_(module.bias)
