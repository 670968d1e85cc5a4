"""k-mixup in data-loader workers, on small digits.

    python examples/with_data_loader.py [--epochs 10]

Only the line with `MixCollate` is new: the workers match and mix the batches, and the loop gets
soft targets.
"""

from __future__ import annotations

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from kmixup import KMixup, MixCollate


def main() -> None:
    parser = argparse.ArgumentParser(description="k-mixup in data-loader workers.")
    parser.add_argument("--epochs", type=int, default=10, help="training epochs")
    epochs = parser.parse_args().epochs

    torch.manual_seed(0)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(x))
    train, test = order[:1400], order[1400:]

    loader = DataLoader(
        TensorDataset(x[train], y[train]),
        batch_size=128,
        shuffle=True,
        drop_last=True,
        num_workers=2,
        persistent_workers=True,
        collate_fn=MixCollate(KMixup(k=16, alpha=0.2, num_classes=10)),
    )
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
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
