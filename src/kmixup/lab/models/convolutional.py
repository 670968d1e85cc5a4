"""Convolutional networks: LeNet-5, DenseNet-BC and residual networks.

- LeNet-5 (LeCun et al. 1998, "Gradient-Based Learning Applied to Document Recognition") in today's
  usual form: ReLU, max pooling, full connections and a linear last layer. Images smaller than 32×32
  are centred in 32×32 of zeros, as LeCun's digits were. On the 160×101 log-spectrograms of speech
  its third convolution leaves 71,280 outputs, as in the k-mixup paper's public code.
- DenseNet-BC (Huang et al. 2017, "Densely Connected Convolutional Networks") for small images.
- Pre-activation networks (He et al. 2016, "Identity Mappings in Deep Residual Networks"). The
  public code of mixup differs slightly: one more batch norm after the first convolution, none after
  the last block, and every shortcut activated.
- "Wide Residual Networks" (Zagoruyko & Komodakis 2016) of two kinds: WRN-28-10 for small images,
  here without dropout, and wide bottlenecks for ImageNet. We read the k-mixup paper's
  "WideResNet-101" on CIFAR-10 as the second kind, torchvision's `wide_resnet101_2`: no network for
  small images has 101 layers (depths are 6n + 4), and 11.6 % is far from the 4 % of WRN-28-10.
"""

from __future__ import annotations

from collections.abc import Sequence

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


def _conv(in_channels: int, out_channels: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    """Return a convolution without bias that keeps the image's size, divided by the stride."""
    padding = kernel // 2
    return nn.Conv2d(in_channels, out_channels, kernel, stride, padding=padding, bias=False)


def _norm_relu(channels: int) -> tuple[nn.BatchNorm2d, nn.ReLU]:
    return nn.BatchNorm2d(channels), nn.ReLU(inplace=True)


def lenet(*, in_shape: tuple[int, ...], num_classes: int) -> nn.Sequential:
    """Build LeNet-5 for images of any size, with torch's default initial weights."""
    channels, height, width = image_shape(in_shape)
    rows, columns = max(height, FIELD), max(width, FIELD)
    top, left = (rows - height) // 2, (columns - width) // 2
    sides = [((side - 4) // 2 - 4) // 2 - 4 for side in (rows, columns)]
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
        nn.Linear(120 * sides[0] * sides[1], 84),
        nn.ReLU(),
        nn.Linear(84, num_classes),
    )


class DenseLayer(nn.Module):
    """Appends `growth` new maps to its input."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.new = nn.Sequential(
            *_norm_relu(channels),
            _conv(channels, 4 * growth, 1),
            *_norm_relu(4 * growth),
            _conv(4 * growth, growth, 3),
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.new(x)], dim=1)


class DenseNetBC(nn.Sequential):
    """Three dense blocks with transitions between, for images with sides of at least 4.

    `depth` is 6n + 4 for n layers in each dense block, each of which adds `growth` maps.
    """

    def __init__(
        self, *, in_shape: tuple[int, ...], num_classes: int, depth: int, growth: int
    ) -> None:
        channels, _, _ = image_shape(in_shape, smallest=4)
        layers = (depth - 4) // 6
        width = 2 * growth
        parts: list[nn.Module] = [_conv(channels, width, 3)]
        for block in range(3):
            if block > 0:
                halved = _conv(width, width // 2, 1)
                parts.append(nn.Sequential(*_norm_relu(width), halved, nn.AvgPool2d(2)))
                width //= 2
            parts += [DenseLayer(width + i * growth, growth) for i in range(layers)]
            width += layers * growth
        head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, num_classes))
        super().__init__(*parts, *_norm_relu(width), *head)
        initialise(self)


class PreActBlock(nn.Module):
    """x + conv(act(conv(act(x)))), where act is batch norm and ReLU.

    `first`: the shortcut starts after the first activation instead of before it.
    """

    def __init__(
        self, in_channels: int, channels: int, *, stride: int = 1, first: bool = False
    ) -> None:
        super().__init__()
        self.act1 = nn.Sequential(*_norm_relu(in_channels))
        self.conv1 = _conv(in_channels, channels, 3, stride)
        self.act2 = nn.Sequential(*_norm_relu(channels))
        self.conv2 = _conv(channels, channels, 3)
        self.first = first
        self.projection: nn.Module | None = None
        if stride != 1 or in_channels != channels:
            self.projection = _conv(in_channels, channels, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        active = self.act1(x)
        if self.projection is not None:
            shortcut = self.projection(active)
        else:
            shortcut = active if self.first else x
        out: Tensor = self.conv2(self.act2(self.conv1(active))) + shortcut
        return out


class PreActResNet(nn.Sequential):
    """A pre-activation network for images of any size: stages `layer1`, `layer2`, … of blocks.

    The first convolution has `stem` channels and the given `stride`, a stage `widths` channels
    and a number of `blocks`. Every stage but the first halves the image.
    """

    def __init__(
        self,
        *,
        in_shape: tuple[int, ...],
        num_classes: int,
        stem: int,
        widths: Sequence[int],
        blocks: int,
        stride: int = 1,
    ) -> None:
        super().__init__()
        channels, _, _ = image_shape(in_shape)
        self.stem = _conv(channels, stem, 3, stride)
        before = stem
        for stage, width in enumerate(widths, 1):
            head = PreActBlock(before, width, stride=1 if stage == 1 else 2, first=stage == 1)
            rest = [PreActBlock(width, width) for _ in range(blocks - 1)]
            self.add_module(f"layer{stage}", nn.Sequential(head, *rest))
            before = width
        self.act = nn.Sequential(*_norm_relu(before))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.linear = nn.Linear(before, num_classes)
        initialise(self)


class WideBottleneck(nn.Module):
    """1×1, 3×3 and 1×1 convolutions next to a shortcut, ReLU after their sum.

    The inner width is half the outer one, twice that of a plain bottleneck.
    """

    def __init__(self, in_channels: int, channels: int, *, stride: int = 1) -> None:
        super().__init__()
        inner = channels // 2
        self.residual = nn.Sequential(
            _conv(in_channels, inner, 1),
            *_norm_relu(inner),
            _conv(inner, inner, 3, stride),
            *_norm_relu(inner),
            _conv(inner, channels, 1),
            nn.BatchNorm2d(channels),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or in_channels != channels:
            projection = _conv(in_channels, channels, 1, stride)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(channels))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.residual(x) + self.shortcut(x))


class WideBottleneckResNet(nn.Sequential):
    """The ImageNet network, for images of any size: a stem that divides the sides by 4, stages.

    A stage has a number of `blocks`. The first has `width` channels, each of the others twice as
    many as the one before.
    """

    def __init__(
        self,
        *,
        in_shape: tuple[int, ...],
        num_classes: int,
        blocks: Sequence[int],
        width: int = 256,
    ) -> None:
        channels, _, _ = image_shape(in_shape)
        before = width // 4
        super().__init__()
        self.stem = nn.Sequential(
            _conv(channels, before, 7, stride=2),
            *_norm_relu(before),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        for stage, count in enumerate(blocks):
            out = width * 2**stage
            head = WideBottleneck(before, out, stride=1 if stage == 0 else 2)
            rest = [WideBottleneck(out, out) for _ in range(count - 1)]
            self.add_module(f"layer{stage + 1}", nn.Sequential(head, *rest))
            before = out
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.linear = nn.Linear(before, num_classes)
        initialise(self)
