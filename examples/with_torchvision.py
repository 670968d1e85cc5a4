"""k-mixup or CutMix for each batch, as torchvision transforms, on small digits.

    python examples/with_torchvision.py [--epochs 5]

The recipe is from torchvision's guide to MixUp and CutMix. Only the import of the two transforms
changes.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, default_collate
from torchvision.transforms import v2

from kmixup.integrations.torchvision import CutMix, MixUp


def main() -> None:
    parser = argparse.ArgumentParser(description="k-mixup as a torchvision transform.")
    parser.add_argument("--epochs", type=int, default=5, help="training epochs")
    epochs = parser.parse_args().epochs

    torch.manual_seed(0)
    digits = load_digits()
    x = torch.tensor(digits.images[:, None], dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(x))
    train, test = order[:1400], order[1400:]

    cutmix_or_mixup = v2.RandomChoice([CutMix(num_classes=10), MixUp(num_classes=10)])

    def collate(samples: list[Any]) -> Any:
        return cutmix_or_mixup(*default_collate(samples))

    loader = DataLoader(
        TensorDataset(x[train], y[train]),
        batch_size=128,
        shuffle=True,
        drop_last=True,
        collate_fn=collate,
    )
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip
    optimiser = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(epochs):
        for mixed, soft in loader:
            optimiser.zero_grad()
            F.cross_entropy(net(mixed), soft).backward()
            optimiser.step()
    with torch.no_grad():
        right = (net(x[test]).argmax(1) == y[test]).float().mean()
    print(f"test accuracy {100 * float(right):.1f} %")


if __name__ == "__main__":
    main()
