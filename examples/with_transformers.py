"""k-mixup in the Hugging Face Trainer: a small vision transformer on digits.

    python examples/with_transformers.py [--epochs 20]

The model has random weights, so nothing is downloaded. k-mixup only replaces `Trainer` by
`MixTrainer` and adds `mixer=...`.
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Any

import torch
from sklearn.datasets import load_digits
from transformers import TrainingArguments, ViTConfig, ViTForImageClassification

from kmixup import KMixup
from kmixup.integrations.transformers import MixTrainer


def accuracy(prediction: Any) -> dict[str, float]:
    chosen = prediction.predictions.argmax(1)
    return {"accuracy": float((chosen == prediction.label_ids).mean())}


def main() -> None:
    parser = argparse.ArgumentParser(description="k-mixup in the Hugging Face Trainer.")
    parser.add_argument("--epochs", type=int, default=20, help="training epochs")
    epochs = parser.parse_args().epochs

    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images[:, None], dtype=torch.float32) / 8 - 1
    data = [
        {"pixel_values": image, "labels": int(label)}
        for image, label in zip(images, digits.target, strict=True)
    ]
    model = ViTForImageClassification(
        ViTConfig(
            image_size=8,
            patch_size=4,
            num_channels=1,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=1,
            num_attention_heads=4,
            num_labels=10,
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        trainer = MixTrainer(
            model,
            TrainingArguments(
                folder,
                num_train_epochs=epochs,
                per_device_train_batch_size=64,
                per_device_eval_batch_size=200,
                learning_rate=1e-2,
                dataloader_drop_last=True,
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
                report_to=[],
                use_cpu=True,
            ),
            train_dataset=data[:1400],
            eval_dataset=data[1400:1750],
            compute_metrics=accuracy,
            mixer=KMixup(k=16, alpha=0.2),
        )
        trainer.train()
        scores = trainer.evaluate()
    print(f"test accuracy {100 * scores['eval_accuracy']:.1f} %")


if __name__ == "__main__":
    main()
