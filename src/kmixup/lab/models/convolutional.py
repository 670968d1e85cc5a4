"""LeNet-5 and DenseNet-BC, and what all convolutional networks share.

LeNet-5: LeCun et al. 1998, "Gradient-Based Learning Applied to Document Recognition", in today's
usual form: ReLU instead of tanh, max pooling instead of trained subsampling, all maps of one
layer connected to all of the next, and a linear last layer instead of radial basis functions.
Weights and biases keep torch's default, uniform within ± 1/√fan-in. The third layer is a
convolution, as in LeCun's paper. On 32×32 it sees all of its 5×5 input and is a fully connected
layer of 120 units; smaller images are centred in 32×32 of zeros, as LeCun's digits were. On the
160×101 log-spectrograms of the speech experiments it slides, and 120 maps of 33×18 meet the layer
of 84. The k-mixup paper follows Zhang et al. 2018 ("mixup") there and says only "a simple LeNet";
this is our reading of its public code, where that layer has the same 71,280 inputs.

DenseNet-BC: Huang et al. 2017, "Densely Connected Convolutional Networks", in the form for small
images, with three dense blocks, in which every layer sees the maps of all layers before it. B: a
1×1 convolution to four times the growth precedes each 3×3. C: a transition between blocks keeps
half of the maps. `initialise` draws its weights.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

FIELD = 32  # side of LeNet's smallest input


def image_shape(in_shape: tuple[int, ...], *, smallest: int = 1) -> tuple[int, int, int]:
    """Check that `in_shape` is (channels, height, width), both sides at least `smallest`."""
    if len(in_shape) != 3 or min(in_shape[1:]) < smallest:
        size = f", both sides at least {smallest}" if smallest > 1 else ""
        raise ValueError(
            f"in_shape must be (channels, height, width) for a convolutional network{size}, "
            f"got {in_shape}"
        )
    channels, height, width = in_shape
    return channels, height, width


def initialise(net: nn.Module) -> None:
    """Draw all weights from torch's global generator.

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


def lenet(*, in_shape: tuple[int, ...], num_classes: int) -> nn.Sequential:
    """Build LeNet-5 for images of any size."""
    channels, height, width = image_shape(in_shape)
    rows, columns = max(height, FIELD), max(width, FIELD)
    top, left = (rows - height) // 2, (columns - width) // 2
    maps = _after_convolutions(rows) * _after_convolutions(columns)
    return nn.Sequential(
        nn.ZeroPad2d((left, columns - width - left, top, rows - height - top)),
        nn.Conv2d(channels, 6, kernel_size=5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, kernel_size=5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 120, kernel_size=5),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(120 * maps, 84),
        nn.ReLU(),
        nn.Linear(84, num_classes),
    )


def _after_convolutions(side: int) -> int:
    return ((side - 4) // 2 - 4) // 2 - 4


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
        in_shape: of an image with sides of at least 4.
        num_classes: length of the vector of logits.
        depth: number of layers with weights, 6n + 4 for n layers in each dense block.
        growth: maps added by each layer.
    """

    def __init__(
        self, *, in_shape: tuple[int, ...], num_classes: int, depth: int, growth: int
    ) -> None:
        channels, _, _ = image_shape(in_shape, smallest=4)
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


def _transition(channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.BatchNorm2d(channels),
        nn.ReLU(inplace=True),
        nn.Conv2d(channels, channels // 2, 1, bias=False),
        nn.AvgPool2d(2),
    )
