"""Batches mixed by hand, or as a data loader collates them: tuples, lists and dicts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from torch.utils.data import default_collate

from kmixup.integrations.ranks import TakesRank, current_rank, draws_of_rank
from kmixup.mixed import Mixed
from kmixup.mixer import Mixing

Batch = TypeVar("Batch")
Key = int | str


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
    if mixer.training:
        mixer.check_targets_suffice()
    return _mixed_or_clean(mixer, batch, input_key, target_key)


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
        return _mixed_or_clean(self.mixer, batch, self.input_key, self.target_key, self.rank)


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


def draw_batch(
    mixer: Mixing,
    batch: Batch,
    input_key: Key = 0,
    target_key: Key | None = 1,
    rank: int | None = None,
) -> tuple[Batch, Mixed]:
    """Return a mixed batch and its `Mixed` record; `rank` is that of this process, if known."""
    x = _entry(batch, input_key, "input_key")
    y = None if target_key is None else _entry(batch, target_key, "target_key")
    with draws_of_rank(mixer, current_rank() if rank is None else rank):
        mixed = mixer.draw(x, y)
    entries = {input_key: mixed.x}
    if target_key is not None:
        entries[target_key] = mixed.y
    return _replaced(batch, entries), mixed


def _mixed_or_clean(
    mixer: Mixing, batch: Batch, input_key: Key, target_key: Key | None, rank: int | None = None
) -> Batch:
    """Return the batch mixed, or in eval mode with inputs as the network must see them."""
    if mixer.training:
        return draw_batch(mixer, batch, input_key, target_key, rank)[0]
    if not mixer.encodes_clean:
        return batch
    x = mixer.encode_clean(_entry(batch, input_key, "input_key"))
    encoded: Batch = _replaced(batch, {input_key: x})
    return encoded


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


def _replaced(batch: Any, entries: dict[Key, Any]) -> Any:
    """Return a shallow copy of `batch`, of its type, with other `entries`."""
    changed: Any = list(batch) if isinstance(batch, tuple) else copy.copy(batch)
    for key, value in entries.items():
        changed[key] = value
    if not isinstance(batch, tuple):
        return changed
    return type(batch)(*changed) if hasattr(batch, "_fields") else tuple(changed)
