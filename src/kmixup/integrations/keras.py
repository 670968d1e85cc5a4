"""A layer for Keras with the torch backend, in the manner of its MixUp."""

from __future__ import annotations

import hashlib
from typing import Any

import keras
import torch
from torch import Generator, Tensor

from kmixup.integrations.ranks import current_rank
from kmixup.methods import KMixup


@keras.saving.register_keras_serializable(package="kmixup")
class KMixUp(keras.layers.MixUp):
    """`keras.layers.MixUp` whose partners are matched in blocks of `k`.

    It is called as MixUp is, with images or with a dict of `"images"`, `"labels"` and what
    else MixUp takes. Labels are one-hot floats, and every image has its own lam. All chance
    comes from the layer's `keras.random.SeedGenerator`. In the workers of a data loader, and in
    the processes of a distributed job, draws differ all the same.

    Args:
        k: size of the blocks; 1 is MixUp.
        alpha: lam is drawn from Beta(alpha, alpha).
        data_format, seed, options: those of `keras.layers.MixUp`.

    Images of any number of channels, and any batch of one size, can be matched. A single
    image, without a batch, comes back as it is.

    >>> import torch
    >>> images, labels = torch.rand(16, 8, 8, 3), torch.eye(10)[torch.arange(16) % 10]
    >>> mixed = KMixUp(k=4, alpha=0.2, seed=0)({"images": images, "labels": labels})
    >>> mixed["images"].shape, mixed["labels"].shape
    (torch.Size([16, 8, 8, 3]), torch.Size([16, 10]))
    """

    def __init__(
        self,
        k: int = 16,
        alpha: float = 0.2,
        data_format: str | None = None,
        seed: int | None = None,
        **options: Any,
    ) -> None:
        if keras.backend.backend() != "torch":
            raise RuntimeError(
                f"KMixUp needs the torch backend of Keras, got {keras.backend.backend()!r}: set "
                "KERAS_BACKEND=torch before keras is imported"
            )
        super().__init__(alpha=alpha, data_format=data_format, seed=seed, **options)
        self.k = k
        KMixup(k, alpha)  # refuses impossible settings now, not at the first batch

    def get_random_transformation(
        self, data: Any, training: bool = True, seed: Any = None
    ) -> dict[str, Tensor] | None:
        """lam and the partner of every image, in the words of MixUp."""
        if not training:
            return None
        images = keras.ops.convert_to_tensor(data["images"] if isinstance(data, dict) else data)
        batch = images if images.dim() == 4 else images.unsqueeze(0)
        mixer = KMixup(self.k, self.alpha, lam_per="sample", generator=self._seeded(seed))
        # MixUp itself mixes the images: here they are only matched
        mixed = mixer.draw(torch.zeros(len(batch), 1), None, features=batch.float())
        return {"mix_weight": mixed.lam.to(images.device), "permutation_order": mixed.partner}

    def _seeded(self, seed: Any) -> Generator:
        """A generator that starts from the next state of Keras' own, or from a number."""
        source = self.generator if seed is None else seed
        start = self._next(source) if isinstance(source, keras.random.SeedGenerator) else source
        digest = hashlib.sha256(str(start).encode()).digest()
        return Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)

    def _next(self, source: keras.random.SeedGenerator) -> Any:
        """What no other batch or rank starts from; the mixer knows of workers by itself."""
        state, rank = source.next().tolist(), current_rank()
        return state if rank is None else (state, rank)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "k": self.k}
