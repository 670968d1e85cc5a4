"""k-mixup as a fastai callback, on small digits.

    python examples/with_fastai.py [--epochs 5]

`cbs=KMixUp(k=16)` replaces fastai's `cbs=MixUp()`.
"""

from __future__ import annotations

import argparse

import torch
from fastai.basics import CrossEntropyLossFlat, DataLoader, DataLoaders, Learner, accuracy
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset

from kmixup.integrations.fastai import KMixUp


def main() -> None:
    parser = argparse.ArgumentParser(description="k-mixup as a fastai callback.")
    parser.add_argument("--epochs", type=int, default=5, help="training epochs")
    epochs = parser.parse_args().epochs

    torch.manual_seed(0)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(x))
    train, test = (TensorDataset(x[part], y[part]) for part in (order[:1400], order[1400:]))
    loaders = DataLoaders(
        DataLoader(train, bs=64, shuffle=True, drop_last=True, num_workers=0),
        DataLoader(test, bs=200, num_workers=0),
        device="cpu",
    )
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    learner = Learner(
        loaders, net, loss_func=CrossEntropyLossFlat(), metrics=accuracy, cbs=KMixUp(k=16)
    )
    with learner.no_logging():
        learner.fit(epochs, lr=3e-3)
        _, score = learner.validate()
    print(f"test accuracy {100 * score:.1f} %")


if __name__ == "__main__":
    main()
