"""Keras layers `MixUp` and `CutMix` with optimal pairs, on every backend and inside `tf.data`."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import torch
from numpy.typing import NDArray

from kmixup.matching import Blocks, Optimal, warn_short


class _Matched:
    """Replaces the random partners of a Keras layer by matched ones.

    The layer's random permutation becomes the order in which blocks are formed. Images are matched
    on the host, from a compiled function through a callback.
    """

    backend: Any
    k: int

    def __init__(self, *args: Any, k: int = 16, **options: Any) -> None:
        super().__init__(*args, **options)
        self.k = Optimal(k).k

    def get_random_transformation(
        self, data: Any, training: bool = True, seed: Any = None
    ) -> dict[str, Any] | None:
        """Return what Keras draws for a batch, with matched partners."""
        if not training:
            return None
        images = self.backend.convert_to_tensor(data["images"] if isinstance(data, dict) else data)
        drawn: dict[str, Any] | None = super().get_random_transformation(images, training, seed)  # type: ignore[misc]
        if drawn is None or len(images.shape) < 4:  # a single image has no partner
            return drawn
        return {**drawn, "permutation_order": self._partners(images, drawn["permutation_order"])}

    def transform_labels(self, labels: Any, transformation: Any, training: bool = True) -> Any:
        """Mix labels; class indices raise, which Keras would turn into `(n, n)` numbers."""
        if training and len(labels.shape) < 2:
            raise ValueError(
                "labels must be one-hot or soft, of shape (n, classes), got shape "
                f"{tuple(labels.shape)}: use keras.ops.one_hot(labels, classes)"
            )
        return super().transform_labels(labels, transformation, training)  # type: ignore[misc]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "k": self.k}  # type: ignore[misc]

    def _partners(self, images: Any, order: Any) -> Any:
        if self.backend.name == "tensorflow":
            import tensorflow as tf

            partner = tf.numpy_function(self._match, [images, order], order.dtype)
            return tf.ensure_shape(partner, order.shape)
        if self.backend.name == "jax":
            import jax

            shape = jax.ShapeDtypeStruct(order.shape, order.dtype)
            return jax.pure_callback(self._match, shape, images, order)
        arrays = map(self.backend.convert_to_numpy, (images, order))
        return self.backend.convert_to_tensor(self._match(*arrays))

    def _match(self, images: Any, order: Any) -> NDArray[np.int64]:
        points = [torch.from_numpy(np.array(images, np.float32)).flatten(1)]
        order = np.asarray(order)
        warn_short(len(order), self.k)
        blocks = Blocks(len(order), max(1, min(self.k, len(order) // 2)), order.astype(np.int64))
        return Optimal(self.k).partners(points, points, blocks).numpy().astype(order.dtype)


@keras.saving.register_keras_serializable(package="kmixup")
class KMixUp(_Matched, keras.layers.MixUp):
    """`keras.layers.MixUp` with partners matched inside blocks of `k`.

    It is called like `MixUp`, with images or with a dict of `"images"`, `"labels"` and others, also
    in `tf.data.Dataset.map`. Labels are one-hot floats, and every image has its own lam. Keras'
    own `SeedGenerator` draws everything: give the processes of a distributed job different seeds,
    and use `MixCollate` instead in the workers of a torch loader.

    Args:
        args, options: those of `keras.layers.MixUp`; `alpha=0` mixes nothing.
        k: the number of samples in a block; 1 takes random partners.

    >>> import torch
    >>> images, labels = torch.rand(16, 8, 8, 3), torch.eye(10)[torch.arange(16) % 10]
    >>> mixed = KMixUp(0.2, k=4, seed=0)({"images": images, "labels": labels})
    >>> mixed["images"].shape, mixed["labels"].shape
    (torch.Size([16, 8, 8, 3]), torch.Size([16, 10]))
    """

    def call(self, data: Any, training: bool = True) -> Any:
        return super().call(data, training=training and self.alpha > 0)


@keras.saving.register_keras_serializable(package="kmixup")
class KCutMix(_Matched, keras.layers.CutMix):
    """`keras.layers.CutMix` with partners matched inside blocks of `k`.

    Args:
        args, options: those of `keras.layers.CutMix`.
        k: the number of samples in a block; 1 takes random partners.

    >>> import torch
    >>> images, labels = torch.rand(16, 8, 8, 3), torch.eye(10)[torch.arange(16) % 10]
    >>> KCutMix(k=4, seed=0)({"images": images, "labels": labels})["labels"].shape
    torch.Size([16, 10])
    """
