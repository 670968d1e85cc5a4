"""Residual networks: with pre-activation for small images, and wide bottlenecks for ImageNet.

Pre-activation: He et al. 2016, "Identity Mappings in Deep Residual Networks". Batch norm and ReLU
come before each convolution, so that the shortcut is the identity, with two exceptions: the first
block activates its input before the shortcut leaves, and a last activation follows the last
block. The shortcut of a block that changes the shape is a 1×1 convolution of its activated input.
The public code of mixup has a slightly different network under the same name: one more batch norm
after the first convolution, none after the last block, and every shortcut activated.

Wide: Zagoruyko & Komodakis 2016, "Wide Residual Networks", use the name for two kinds of network.
The one for small images, WRN-28-10, is a pre-activation network whose three stages of 16, 32 and
64 channels are ten times as wide; it has no dropout, as in their main results. The one for
ImageNet makes the bottlenecks of ResNet-50 (He et al. 2016, "Deep Residual Learning for Image
Recognition") twice as wide.

The k-mixup paper trains a "WideResNet-101" on CIFAR-10. No network for small images has 101
layers (their depth is 6n + 4), and an error of 11.6 % is far from the 4 % of WRN-28-10. So we
read it as the second kind with 101 layers, torchvision's `wide_resnet101_2`, applied to 32×32
unchanged: its 7×7 stem with stride 2 and its pooling leave 8×8 to the first stage and a single
pixel to the last.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from kmixup.lab.models.convolutional import image_shape, initialise


class PreActBlock(nn.Module):
    """x + conv(act(conv(act(x)))), where act is batch norm and ReLU.

    `first`: the shortcut starts after the first activation instead of before it.
    """

    def __init__(
        self, in_channels: int, channels: int, *, stride: int = 1, first: bool = False
    ) -> None:
        super().__init__()
        self.act1 = _activation(in_channels)
        self.conv1 = _conv3x3(in_channels, channels, stride)
        self.act2 = _activation(channels)
        self.conv2 = _conv3x3(channels, channels)
        self.first = first
        self.projection: nn.Module | None = None
        if stride != 1 or in_channels != channels:
            self.projection = nn.Conv2d(in_channels, channels, 1, stride=stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        active = self.act1(x)
        if self.projection is not None:
            shortcut = self.projection(active)
        else:
            shortcut = active if self.first else x
        out: Tensor = self.conv2(self.act2(self.conv1(active))) + shortcut
        return out


class PreActResNet(nn.Module):
    """A convolution, stages `layer1`, `layer2`, … of blocks, an average, a linear layer.

    Every stage but the first halves the image, and the average takes what is left, so that
    an image may have any size.

    Args:
        in_shape: of an image of any size.
        num_classes: length of the vector of logits.
        stem: channels of the first convolution.
        widths: channels of every stage.
        blocks: number of blocks of every stage.
        stride: of the first convolution.
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
        self.stem = _conv3x3(channels, stem, stride)
        width = stem
        self.stages = [f"layer{i}" for i in range(1, len(widths) + 1)]
        for name, out in zip(self.stages, widths, strict=True):
            first = name == "layer1"
            head = PreActBlock(width, out, stride=1 if first else 2, first=first)
            rest = [PreActBlock(out, out) for _ in range(blocks - 1)]
            self.add_module(name, nn.Sequential(head, *rest))
            width = out
        self.act = _activation(width)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.linear = nn.Linear(width, num_classes)
        initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for name in self.stages:
            x = self.get_submodule(name)(x)
        logits: Tensor = self.linear(self.pool(self.act(x)).flatten(1))
        return logits


def _activation(channels: int) -> nn.Sequential:
    return nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(inplace=True))


def _conv3x3(in_channels: int, out_channels: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)


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
        in_shape: of an image of any size.
        num_classes: length of the vector of logits.
        blocks: number of bottlenecks of each stage.
        width: outer channels of the first stage, doubled by each of the others.
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


def _conv_norm(
    in_channels: int, out_channels: int, kernel: int, stride: int = 1
) -> tuple[nn.Conv2d, nn.BatchNorm2d]:
    conv = nn.Conv2d(
        in_channels, out_channels, kernel, stride=stride, padding=kernel // 2, bias=False
    )
    return conv, nn.BatchNorm2d(out_channels)
