"""Residual networks with pre-activation, for small images.

He et al. 2016, "Identity Mappings in Deep Residual Networks": batch norm and ReLU come
before each convolution, so that the shortcut is the identity. The paper makes two
exceptions: the first block activates its input before the shortcut leaves, and a last
activation follows the last block. The shortcut of a block that changes the shape is a 1×1
convolution of its activated input. `convolutional.initialise` draws the first weights.

The public code of mixup has a slightly different network under the same name: one more
batch norm after the first convolution, none after the last block, and every shortcut
activated.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from kmixup.lab.models.convolutional import image_shape, initialise
from kmixup.lab.models.network import Network, stages


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
        channels: of the image.
        stem: channels of the first convolution.
        widths: channels of every stage.
        blocks: number of blocks of every stage.
        num_classes: length of the vector of logits.
        stride: of the first convolution.
    """

    def __init__(
        self,
        *,
        channels: int,
        stem: int,
        widths: Sequence[int],
        blocks: int,
        num_classes: int,
        stride: int = 1,
    ) -> None:
        super().__init__()
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


def preact_resnet18(*, in_shape: tuple[int, ...], num_classes: int) -> PreActResNet:
    """PreAct ResNet-18 for 32×32 and 64×64; 11,172,170 parameters on RGB with 10 classes."""
    channels, _, _ = image_shape(in_shape)
    return PreActResNet(
        channels=channels,
        stem=64,
        widths=(64, 128, 256, 512),
        blocks=2,
        num_classes=num_classes,
    )


def preact_resnet20(*, in_shape: tuple[int, ...], num_classes: int) -> PreActResNet:
    """PreAct ResNet-20, small enough for a CPU; 272,282 parameters on RGB with 10 classes."""
    channels, _, _ = image_shape(in_shape)
    return PreActResNet(
        channels=channels, stem=16, widths=(16, 32, 64), blocks=3, num_classes=num_classes
    )


def preact_resnet14(*, in_shape: tuple[int, ...], num_classes: int) -> PreActResNet:
    """PreAct ResNet-14 on images halved by its first convolution, six times faster than
    ResNet-20; 175,066 parameters on RGB with 10 classes.
    """
    channels, _, _ = image_shape(in_shape)
    return PreActResNet(
        channels=channels,
        stem=16,
        widths=(16, 32, 64),
        blocks=2,
        num_classes=num_classes,
        stride=2,
    )


def _activation(channels: int) -> nn.Sequential:
    return nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(inplace=True))


def _conv3x3(in_channels: int, out_channels: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)


NETWORKS = {
    "preact-resnet18": Network(preact_resnet18, blocks=stages(4)),
    "preact-resnet14": Network(preact_resnet14, blocks=stages(3)),
    "preact-resnet20": Network(preact_resnet20, blocks=stages(3)),
}
