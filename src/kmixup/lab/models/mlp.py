"""Fully connected networks with ReLU, for points and tables.

The layers multiply with `torch.baddbmm`, as a fleet of such networks does. It rounds one network as
it rounds many; the product of nn.Linear does not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

# hidden widths by data set, from the paper's section 5 and, for the toys, its appendix
HIDDEN = {
    "toy": (130, 120),
    "iris": (120, 84),
    "cancer": (120, 120, 84),
    "abalone": (120, 120, 84),
    "phishing": (120, 120, 84),
    "arrhythmia": (120, 120, 36, 84),
}


class Affine(nn.Linear):
    """nn.Linear on rows `(n, d)`, bitwise identical to a member of a batched product."""

    def forward(self, x: Tensor) -> Tensor:
        return affine(x[None], self.weight[None], self.bias[None])[0]


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x @ weight.T + bias for each of m layers: `(m, n, d)`, `(m, out, d)`, `(m, out)`."""
    return torch.baddbmm(bias[:, None], x, weight.mT)


def mlp(*, in_shape: tuple[int, ...], num_classes: int, hidden: Sequence[int]) -> nn.Sequential:
    """Build linear layers of the `hidden` widths with ReLU between, on flattened samples."""
    widths = [math.prod(in_shape), *hidden]
    layers: list[nn.Module] = [nn.Flatten()]
    for fan_in, fan_out in pairwise(widths):
        layers += [Affine(fan_in, fan_out), nn.ReLU()]
    return nn.Sequential(*layers, Affine(widths[-1], num_classes))
