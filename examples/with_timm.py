"""k-mixup and k-CutMix in timm training, on small digits.

    python examples/with_timm.py [--epochs 6] [--mixup-off-epoch 4]

Arguments, loader with prefetcher, loss and the switch-off epoch are those of timm's training
script. Only the import of `FastCollateMixup` changes.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import timm
import torch
from PIL import Image
from sklearn.datasets import load_digits
from timm.data import create_loader
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from torch.utils.data import Dataset

from kmixup.integrations.timm import FastCollateMixup


class Digits(Dataset[tuple[Any, int]]):
    """Images and classes; timm's loader sets the transform."""

    transform: Any = None

    def __init__(self, part: slice) -> None:
        digits = load_digits()
        self.images = (digits.images[part] * 15.9).astype(np.uint8)
        self.classes = digits.target[part]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        image = Image.fromarray(self.images[index]).convert("RGB")
        return self.transform(image), int(self.classes[index])


def main() -> None:
    parser = argparse.ArgumentParser(description="k-mixup in timm training.")
    parser.add_argument("--epochs", type=int, default=6, help="training epochs")
    parser.add_argument("--mixup-off-epoch", type=int, default=4, help="first epoch without mixing")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cpu")
    mixup_args: dict[str, Any] = {
        "mixup_alpha": 0.8,
        "cutmix_alpha": 1.0,
        "label_smoothing": 0.1,
        "num_classes": 10,
    }
    loader = create_loader(
        Digits(slice(0, 1400)),
        input_size=(3, 32, 32),
        batch_size=100,
        is_training=True,
        hflip=0.0,
        color_jitter=0.0,
        scale=(0.9, 1.0),
        num_workers=0,
        persistent_workers=False,
        collate_fn=FastCollateMixup(**mixup_args, k=16),
        device=device,
    )
    evaluation = create_loader(
        Digits(slice(1400, None)),
        input_size=(3, 32, 32),
        batch_size=397,
        num_workers=0,
        persistent_workers=False,
        crop_pct=1.0,
        device=device,
    )
    net = timm.create_model("test_resnet", num_classes=10)
    optimiser = create_optimizer_v2(net, "adamw", lr=5e-3)
    criterion = SoftTargetCrossEntropy()
    for epoch in range(arguments.epochs):
        if epoch == arguments.mixup_off_epoch and loader.mixup_enabled:
            loader.mixup_enabled = False
        net.train()
        for x, target in loader:
            optimiser.zero_grad()
            criterion(net(x), target).backward()
            optimiser.step()
    net.eval()
    with torch.no_grad():
        right = torch.cat([net(x).argmax(1) == y for x, y in evaluation]).float().mean()
    print(f"test accuracy {100 * float(right):.1f} %")


if __name__ == "__main__":
    main()
