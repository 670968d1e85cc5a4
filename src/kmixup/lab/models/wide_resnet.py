"""Wide residual networks: more channels instead of more layers.

Zagoruyko & Komodakis 2016, "Wide Residual Networks". Two kinds of network have this name.
The one for small images, WRN-28-10, is a pre-activation network whose three stages of 16, 32
and 64 channels are ten times as wide; it has no dropout, as in the paper's main results. The
one for ImageNet makes the bottlenecks of ResNet-50 (He et al. 2016, "Deep Residual Learning
for Image Recognition") twice as wide.

The k-mixup paper trains a "WideResNet-101" on CIFAR-10. No network for small images has
101 layers (their depth is 6n + 4), and an error of 11.6 % is far from the 4 % of
WRN-28-10. So we take it for the second kind with 101 layers, which torchvision calls
`wide_resnet101_2`, applied to 32×32 unchanged: its 7×7 stem with stride 2 and its pooling
leave 8×8 to the first stage and a single pixel to the last.

`convolutional.initialise` draws the first weights of both.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from kmixup.lab.models.convolutional import image_shape, initialise
from kmixup.lab.models.network import Network, stages
from kmixup.lab.models.preact_resnet import PreActResNet


def wide_resnet28_10(*, in_shape: tuple[int, ...], num_classes: int) -> PreActResNet:
    """WRN-28-10; 36,479,194 parameters on RGB with 10 classes."""
    channels, _, _ = image_shape(in_shape)
    return PreActResNet(
        channels=channels, stem=16, widths=(160, 320, 640), blocks=4, num_classes=num_classes
    )


class WideBottleneck(nn.Module):
    """1×1, 3×3 and 1×1 convolutions beside a shortcut, ReLU after their sum.

    The inner width is half the outer one, twice that of a plain bottleneck; the 3×3
    convolution takes the stride.
    """

    def __init__(self, in_channels: int, channels: int, *, stride: int = 1) -> None:
        super().__init__()
        inner = channels // 2
        self.residual = nn.Sequential(
            *_conv_norm(in_channels, inner, 1),
            nn.ReLU(inplace=True),
            *_conv_norm(inner, inner, 3, stride),
            nn.ReLU(inplace=True),
            *_conv_norm(inner, channels, 1),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or in_channels != channels:
            self.shortcut = nn.Sequential(*_conv_norm(in_channels, channels, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.residual(x) + self.shortcut(x))


class WideBottleneckResNet(nn.Sequential):
    """The ImageNet network: a stem that divides the sides by 4, four stages, an average.

    Args:
        channels: of the image.
        blocks: number of bottlenecks of each stage.
        num_classes: length of the vector of logits.
        width: outer channels of the first stage, doubled by each of the others.
    """

    def __init__(
        self, *, channels: int, blocks: Sequence[int], num_classes: int, width: int = 256
    ) -> None:
        stem = width // 4
        super().__init__()
        self.stem = nn.Sequential(
            *_conv_norm(channels, stem, 7, stride=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        before = stem
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


def wide_resnet101(*, in_shape: tuple[int, ...], num_classes: int) -> WideBottleneckResNet:
    """The wide ResNet-101 of ImageNet; 124,858,186 parameters on RGB with 10 classes."""
    channels, _, _ = image_shape(in_shape)
    return WideBottleneckResNet(channels=channels, blocks=(3, 4, 23, 3), num_classes=num_classes)


def _conv_norm(
    in_channels: int, out_channels: int, kernel: int, stride: int = 1
) -> tuple[nn.Conv2d, nn.BatchNorm2d]:
    conv = nn.Conv2d(
        in_channels, out_channels, kernel, stride=stride, padding=kernel // 2, bias=False
    )
    return conv, nn.BatchNorm2d(out_channels)


NETWORKS = {
    "wide-resnet28-10": Network(wide_resnet28_10, blocks=stages(3)),
    "wide-resnet101": Network(wide_resnet101, blocks=stages(4)),
}
