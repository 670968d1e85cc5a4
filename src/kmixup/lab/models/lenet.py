"""LeNet-5, for digits and for spectrograms.

LeCun et al. 1998, "Gradient-Based Learning Applied to Document Recognition", in the form
that is usual today: ReLU for tanh, max pooling for the trained subsampling, all maps of
one layer seen by all of the next, and a linear last layer for the radial basis functions.
Weights and biases keep torch's default, uniform within ± 1/√fan-in.

The third layer is a convolution, as in LeCun's paper. On 32×32 it sees all of its 5×5
input and is a fully connected layer of 120 units; smaller images are centred in 32×32 of
zeros, as LeCun's digits were. On the 160×101 log-spectrograms of the speech experiments
it slides, and 120 maps of 33×18 meet the layer of 84. The k-mixup paper follows Zhang
et al. 2018 ("mixup") there and says only "a simple LeNet"; this is our reading of its
public code, where that layer has the same 71,280 inputs.
"""

from __future__ import annotations

from torch import nn

from kmixup.lab.models.convolutional import image_shape
from kmixup.lab.models.network import Network

FIELD = 32


def lenet(*, in_shape: tuple[int, ...], num_classes: int) -> nn.Sequential:
    """LeNet-5 on images of any size; 61,706 parameters on 1×28×28 with 10 classes."""
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


NETWORKS = {"lenet": Network(lenet, blocks=("3", "6", "8", "11"))}  # two pools, two activations
