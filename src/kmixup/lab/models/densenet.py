"""DenseNet-BC: every layer sees the maps of all layers before it.

Huang et al. 2017, "Densely Connected Convolutional Networks", in the form for small
images, with three dense blocks. B: a 1×1 convolution to four times the growth precedes each
3×3. C: a transition between blocks keeps half of the maps. `convolutional.initialise` draws
the first weights.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from kmixup.lab.models.convolutional import image_shape, initialise
from kmixup.lab.models.network import Network


class DenseLayer(nn.Module):
    """Appends `growth` new maps to its input."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.new = nn.Sequential(
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, 4 * growth, 1, bias=False),
            nn.BatchNorm2d(4 * growth),
            nn.ReLU(inplace=True),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.new(x)], dim=1)


class DenseNetBC(nn.Sequential):
    """A convolution, three dense blocks with transitions between, an average, a linear layer.

    Args:
        channels: of the image.
        depth: number of layers with weights, 6n + 4 for n layers in each dense block.
        growth: maps added by each layer.
        num_classes: length of the vector of logits.
    """

    def __init__(self, *, channels: int, depth: int, growth: int, num_classes: int) -> None:
        if depth < 10 or (depth - 4) % 6:
            raise ValueError(
                f"depth must be 6n + 4 with n layers in each of three blocks, got {depth}: "
                f"try {6 * max(round((depth - 4) / 6), 1) + 4}"
            )
        layers = (depth - 4) // 6
        width = 2 * growth
        parts: list[nn.Module] = [nn.Conv2d(channels, width, 3, padding=1, bias=False)]
        for block in range(3):
            if block > 0:
                parts.append(_transition(width))
                width //= 2
            parts += [DenseLayer(width + i * growth, growth) for i in range(layers)]
            width += layers * growth
        super().__init__(
            *parts,
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(width, num_classes),
        )
        initialise(self)


def densenet_bc_190(*, in_shape: tuple[int, ...], num_classes: int) -> DenseNetBC:
    """DenseNet-BC-190 with growth 40; 25,624,430 parameters on RGB with 10 classes."""
    channels, _, _ = image_shape(in_shape, smallest=4)
    return DenseNetBC(channels=channels, depth=190, growth=40, num_classes=num_classes)


def _transition(channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.BatchNorm2d(channels),
        nn.ReLU(inplace=True),
        nn.Conv2d(channels, channels // 2, 1, bias=False),
        nn.AvgPool2d(2),
    )


# a block ends with the last layer of each dense block
NETWORKS = {"densenet-bc-190": Network(densenet_bc_190, blocks=("31", "63", "95"))}
