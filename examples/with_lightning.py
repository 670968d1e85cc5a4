"""k-mixup as a Lightning callback, on small digits.

    python examples/with_lightning.py [--epochs 10]

The module needs no change: `F.cross_entropy` takes classes and soft targets. The callback mixes
training batches only, and skips the last two epochs.
"""

from __future__ import annotations

import argparse

import lightning as L
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from kmixup import KMixup
from kmixup.integrations.lightning import MixCallback


class Classifier(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        x, y = batch
        return F.cross_entropy(self.net(x), y)

    def validation_step(self, batch: list[Tensor], batch_idx: int) -> None:
        x, y = batch
        self.log("accuracy", (self.net(x).argmax(1) == y).float().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=3e-3)


def main() -> None:
    parser = argparse.ArgumentParser(description="k-mixup as a Lightning callback.")
    parser.add_argument("--epochs", type=int, default=10, help="training epochs")
    epochs = parser.parse_args().epochs

    L.seed_everything(0, verbose=False)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(x))
    train, test = (TensorDataset(x[part], y[part]) for part in (order[:1400], order[1400:]))

    mixer = KMixup(k=16, alpha=0.2, num_classes=10)
    trainer = L.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[MixCallback(mixer, off_epoch=max(0, epochs - 2))],
    )
    loader = DataLoader(train, batch_size=128, shuffle=True, drop_last=True)
    trainer.fit(Classifier(), loader, DataLoader(test, batch_size=len(test)))
    print(f"test accuracy {100 * float(trainer.callback_metrics['accuracy']):.1f} %")


if __name__ == "__main__":
    main()
