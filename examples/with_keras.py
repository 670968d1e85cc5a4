"""k-mixup as a Keras layer with the torch backend, on small digits.

    KERAS_BACKEND=torch python examples/with_keras.py [--epochs 10]

`KMixUp(k=16)` replaces `keras.layers.MixUp()` where batches are prepared.
"""

from __future__ import annotations

import argparse
from typing import Any

import keras
import numpy as np
from sklearn.datasets import load_digits

from kmixup.integrations.keras import KMixUp


class MixedBatches(keras.utils.PyDataset):
    """Shuffled and mixed batches of 64."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        super().__init__()
        self.images = images
        self.labels = labels
        self.mix = KMixUp(alpha=0.2, k=16, seed=0)
        self.random = np.random.default_rng(0)
        self.on_epoch_end()

    def __len__(self) -> int:
        return len(self.images) // 64

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        rows = self.order[64 * index : 64 * index + 64]
        batch = self.mix({"images": self.images[rows], "labels": self.labels[rows]})
        return batch["images"], batch["labels"]

    def on_epoch_end(self) -> None:
        self.order = self.random.permutation(len(self.images))


def main() -> None:
    parser = argparse.ArgumentParser(description="k-mixup as a Keras layer.")
    parser.add_argument("--epochs", type=int, default=10, help="training epochs")
    epochs = parser.parse_args().epochs

    keras.utils.set_random_seed(0)
    digits = load_digits()
    images = digits.images[..., None].astype("float32") / 16
    labels = np.eye(10, dtype="float32")[digits.target]
    order = np.random.permutation(len(images))
    train, test = order[:1400], order[1400:]
    layers = keras.layers
    model = keras.Sequential(
        [layers.Flatten(), layers.Dense(128, "relu"), layers.Dense(10, "softmax")]
    )
    model.compile(keras.optimizers.Adam(3e-3), "categorical_crossentropy", metrics=["accuracy"])
    model.fit(MixedBatches(images[train], labels[train]), epochs=epochs, verbose=0)
    _, score = model.evaluate(images[test], labels[test], verbose=0)
    print(f"test accuracy {100 * score:.1f} %")


if __name__ == "__main__":
    main()
