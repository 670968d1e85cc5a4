"""Batches mixed by hand, or as a data loader collates them: tuples, lists and dicts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from torch.utils.data import default_collate

from kmixup.integrations.ranks import TakesRank, draws_of_rank
from kmixup.mixer import Mixing

Batch = TypeVar("Batch")
Key = int | str
Mix = Callable[[Any, Any], tuple[Any, Any]]  # of inputs and targets


def mix_batch(
    mixer: Mixing, batch: Batch, *, input_key: Key = 0, target_key: Key | None = 1
) -> Batch:
    """Return a batch with mixed inputs and soft targets; other entries pass through.

    Args:
        mixer: e.g. `KMixup(k=16, num_classes=10)`; in `.eval()` mode nothing is mixed.
        batch: a tuple, a list, a dict or another mapping. It is not changed.
        input_key: where the inputs are.
        target_key: where the targets are; None mixes only inputs.

    Returns:
        A batch of the same type, with the mixed inputs and soft targets.

    >>> import torch
    >>> from kmixup import KMixup
    >>> batch = {"image": torch.randn(8, 3), "label": torch.arange(8), "path": list("abcdefgh")}
    >>> mixer = KMixup(k=4, num_classes=8)
    >>> mixed = mix_batch(mixer, batch, input_key="image", target_key="label")
    >>> mixed["label"].shape, mixed["path"] is batch["path"]
    (torch.Size([8, 8]), True)
    """
    with draws_of_rank(mixer):
        return apply(mixer, batch, input_key, target_key)


class MixCollate(TakesRank):
    """Collate samples, then mix the batch: the `collate_fn` of a data loader.

    The loader's workers do the matching. They have a copy of the mixer: what is set on the mixer
    later does not reach running workers. In a distributed job every rank draws differently.

    Args:
        mixer: e.g. `KMixup(k=16, num_classes=10)`.
        collate: makes a batch of samples.
        input_key: where the inputs of a batch are.
        target_key: where the targets are; None mixes only inputs.

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
        input_key: Key = 0,
        target_key: Key | None = 1,
    ) -> None:
        check_mixer(mixer, evaluates=False)
        mixer.check_targets_suffice()
        self.mixer = mixer
        self.collate = collate
        self.input_key = input_key
        self.target_key = target_key

    def __call__(self, samples: list[Any]) -> Any:
        batch = self.collate(samples)
        with draws_of_rank(self.mixer, self.saved_rank):
            return apply(self.mixer, batch, self.input_key, self.target_key)


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


def apply(mix: Mix, batch: Batch, input_key: Key, target_key: Key | None) -> Batch:
    """Return a batch with the inputs and targets that `mix` returns for its own."""
    x = _entry(batch, input_key, "input_key")
    y = None if target_key is None else _entry(batch, target_key, "target_key")
    x, y = mix(x, y)
    # a shallow copy of the same type
    changed: Any = list(batch) if isinstance(batch, tuple) else copy.copy(batch)
    changed[input_key] = x
    if target_key is not None:
        changed[target_key] = y
    if isinstance(batch, tuple):
        changed = type(batch)(*changed) if hasattr(batch, "_fields") else tuple(changed)
    mixed: Batch = changed
    return mixed


def _entry(batch: Any, key: Key, name: str) -> Any:
    if not isinstance(batch, (tuple, list, Mapping)):
        raise TypeError(
            "batch must be a tuple, a list or a mapping of inputs and targets, "
            f"got {type(batch).__name__}: use mixer(x, y)"
        )
    try:
        return batch[key]  # type: ignore[index]
    except (KeyError, IndexError, TypeError) as error:
        entries = list(batch) if isinstance(batch, Mapping) else f"{len(batch)} entries"
        raise ValueError(
            f"{name} must name an entry of the batch, got {key!r}, but it has {entries}"
        ) from error
