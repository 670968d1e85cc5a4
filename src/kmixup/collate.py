"""Mixing while a data loader collates a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils.data import default_collate

from kmixup._nests import Keys
from kmixup.mixer import Mixing


class MixCollate:
    """Collate samples, then mix the batch: the `collate_fn` of a data loader.

    The loader's workers do the matching. They have a copy of the mixer: what is set on the mixer
    later does not reach running workers. Workers, epochs and ranks draw differently.

    Args:
        mixer: e.g. `KMixup(k=16, num_classes=10)`.
        collate: makes a batch of samples: a tuple, a list or a mapping.
        keys: where inputs and targets are in a batch, as in a call of the mixer.

    >>> import torch
    >>> from kmixup import KMixup
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> data = TensorDataset(torch.randn(64, 3), torch.randint(10, (64,)))
    >>> collate = MixCollate(KMixup(k=16, num_classes=10))
    >>> x, y = next(iter(DataLoader(data, batch_size=32, collate_fn=collate)))
    >>> y.shape
    torch.Size([32, 10])
    """

    def __init__(
        self,
        mixer: Mixing,
        collate: Callable[[list[Any]], Any] = default_collate,
        *,
        keys: Keys = (0, 1),
    ) -> None:
        check_mixer(mixer, evaluates=False)
        mixer.check_targets_suffice()
        self.mixer = mixer
        self.collate = collate
        self.keys = keys

    def __call__(self, samples: list[Any]) -> Any:
        return self.mixer(self.collate(samples), keys=self.keys)


def check_mixer(mixer: Mixing, *, evaluates: bool = True) -> None:
    """Raise on what is not a mixer.

    A framework that `evaluates` hands clean batches to the network as they are, so mixers that
    encode clean inputs raise as well.
    """
    if not isinstance(mixer, Mixing):
        raise TypeError(
            f"mixer must mix inputs, such as KMixup or CutMix, got {type(mixer).__name__}"
        )
    if evaluates and mixer.encodes_clean:
        raise ValueError(
            f"mixer must leave unmixed inputs as they are, got {type(mixer).__name__}, which "
            "changes them in evaluation too: use collate_fn=MixCollate(mixer) to train, and "
            "MixCollate(copy.deepcopy(mixer).eval()) to evaluate"
        )
