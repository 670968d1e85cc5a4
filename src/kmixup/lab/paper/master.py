"""Table 1: the best of each image sweep, ERM beside mixup, k-mixup and 16-mixup.

The paper's footnote counts 3,680 networks behind it. That is exact: the seven sweeps have
184 cells of 20 trials each. The networks of the ERM column, 140 more, are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from kmixup.lab.paper.images import (
    CIFAR10,
    CIFAR100,
    DENSENET,
    MNIST,
    SVHN,
    TINY_IMAGENET,
    WIDE_RESNET,
)
from kmixup.lab.paper.tables import PaperTable


@dataclass(frozen=True)
class Summary:
    """One line of the master table, in per cent as printed.

    Attributes:
        table: the sweep that the line sums up.
        architecture: the network, as the paper calls it.
        erm: the error without mixing.
        mixup: the best error with k = 1.
        kmixup: the best error with k > 1.
        heuristic: the best error with k = 16.
        confidence: the greatest standard deviation of a mean in the sweep.
        notes: what to know of the figures.
    """

    table: PaperTable
    architecture: str
    erm: float
    mixup: float
    kmixup: float
    heuristic: float
    confidence: float
    notes: tuple[str, ...] = ()


MASTER = (
    Summary(MNIST, "LeNet", 0.95, 0.76, 0.66, 0.74, 0.02),
    Summary(CIFAR10, "ResNet18", 5.6, 4.18, 4.02, 4.02, 0.03),
    Summary(DENSENET, "DenseNet-BC-190", 3.70, 3.29, 2.85, 2.85, 0.03),
    Summary(WIDE_RESNET, "WideResNet-101", 11.6, 11.53, 11.25, 11.25, 0.09),
    Summary(
        CIFAR100,
        "DenseNet-BC-190",
        18.91,
        18.91,
        18.31,
        18.31,
        0.05,
        (
            "The paper's footnote: mixup's 18.91 is at alpha = 0, which is ERM; the best "
            "k = 1 of the sweep is 20.45.",
        ),
    ),
    Summary(SVHN, "ResNet18", 3.37, 2.93, 2.78, 2.93, 0.02),
    Summary(TINY_IMAGENET, "ResNet18", 38.50, 37.58, 35.67, 35.67, 0.06),
)
