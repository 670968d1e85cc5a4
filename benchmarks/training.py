"""The cost of mixing in training, and small networks for other benchmarks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import kmixup
from kmixup.lab.cost import cost_document, measure
from kmixup.lab.report.render_text import markdown


def lenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


class Residual(nn.Module):
    """Two 3×3 convolutions around a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.body(x))


def small_resnet() -> nn.Module:
    def stage(narrow: int, wide: int) -> list[nn.Module]:
        return [nn.Conv2d(narrow, wide, 3, stride=2, padding=1), Residual(wide), Residual(wide)]

    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), Residual(16), Residual(16), *stage(16, 32), *stage(32, 64),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


def step_of(net: nn.Module, x: Tensor, y: Tensor, mix: kmixup.Mixing | None) -> Callable[[], None]:
    """One step of SGD on a batch, mixed or not."""
    optimiser = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)

    def step() -> None:
        inputs, targets = (x, y) if mix is None else mix(x, y)
        optimiser.zero_grad()
        F.cross_entropy(net(inputs), targets).backward()
        optimiser.step()

    return step


def training(seconds: float) -> None:
    """The report of `kmixup reproduce cost`: LeNet on MNIST."""
    cost = measure("mnist", seconds=5 * seconds)
    print(markdown(cost_document(cost, "kmixup reproduce cost")), flush=True)
