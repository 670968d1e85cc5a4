"""Samples of earlier batches, with which a batch is filled up to whole blocks of k."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import index
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.utils import _pytree as pytree

from kmixup.inputs import Features, Mixes, Nest
from kmixup.interpolation import joined
from kmixup.randomness import device_of
from kmixup.state import Resumable

Rows = dict[str, list[Tensor]]  # tensors (n, ...) of samples: inputs, targets, and others


class Memory(Resumable):
    """The last `size` samples of earlier batches.

    A batch is filled up with samples that are drawn from here, to a multiple of k and to 2k at
    least, so that whole blocks of k are matched. The samples have the age of at most `size / n`
    batches of n. Kept are the inputs that are mixed, the targets, and features where the mixer
    was given some of their own. They are part of `state_dict()`. In a distributed job every
    process has its own memory, since nothing here is a buffer that processes would exchange.

    Args:
        size: the number of samples that are kept, at least twice k.
        device: where they are kept; by default where the batches are. "cpu" spares the memory of
            a GPU and copies what is drawn in every step.

    >>> memory = Memory(4)
    >>> memory.add({"x": [torch.arange(3.0)]})
    >>> memory.add({"x": [torch.tensor([7.0, 8.0])]})
    >>> len(memory), memory.take(torch.arange(4))
    (4, {'x': [tensor([8., 1., 2., 7.])]})
    """

    def __init__(self, size: int, *, device: torch.device | str | None = None) -> None:
        super().__init__()
        if isinstance(size, bool) or not hasattr(size, "__index__") or index(size) < 2:
            raise ValueError(f"memory must be a number of samples, at least 2, got {size!r}")
        self.size = index(size)
        self.device = None if device is None else torch.device(device)
        self.clear()

    def clear(self) -> None:
        """Forget all samples."""
        self._rows: Rows = {}
        self._seen = 0

    def __len__(self) -> int:
        """The number of samples that are kept now."""
        return min(self._seen, self.size)

    def draw(
        self, n: int, k: int, *, within: bool, generator: Generator | None = None
    ) -> Tensor | None:
        """Draw the samples that fill up a batch of `n`, as their places in the memory.

        Within one batch, `(1, f)` places fill it up to a multiple of `k`, and to two blocks at
        least. Across two batches, `(2, f)` places fill both up to a multiple of `k`. No place
        is drawn twice. A memory that holds fewer gives as many as it can; None stands for
        none.
        """
        sides = 1 if within else 2
        missing = max(2 * k - n, -n % k) if within else -n % k
        f = min(missing, len(self) // sides)
        if f == 0:
            return None
        order = torch.randperm(len(self), generator=generator, device=device_of(generator))
        return order[: sides * f].view(sides, f)

    def add(self, rows: Rows) -> None:
        """Keep the samples of a batch, tensors `(n, ...)`; the oldest give way."""
        rows = _over(lambda new: new.detach(), rows)
        first = pytree.tree_leaves(rows)[0]
        device = first.device if self.device is None else self.device
        if not self._rows:
            self._rows = _over(
                lambda new: torch.zeros(
                    (self.size, *new.shape[1:]), dtype=new.dtype, device=device
                ),
                rows,
            )
        self.check(rows)
        stop = self._seen + len(first)
        last = min(len(first), self.size)  # of a batch that is larger than the memory
        places = torch.arange(stop - last, stop, device=device) % self.size

        def written(kept: Tensor, new: Tensor) -> Tensor:
            # on the device where batches are now, should that have changed
            return kept.to(device).index_copy_(0, places, new[len(new) - last :].to(device))

        self._rows, self._seen = _over(written, self._rows, rows), stop

    def take(self, places: Tensor) -> Rows:
        """The samples at `places`, as they were added."""
        return _over(lambda kept: kept.index_select(0, places.to(kept.device)), self._rows)

    def below(self, rows: Rows, places: Tensor) -> Rows:
        """The samples of a batch, and below them those at `places`."""
        self.check(rows)
        return _over(lambda own, kept: joined(own, kept.to(own.device)), rows, self.take(places))

    def check(self, rows: Rows) -> None:
        """Refuse samples that are not like those in the memory."""
        there, here = (_over(_kind, side) for side in (self._rows, rows))
        if there != here:
            raise ValueError(
                f"a batch must be like those in the memory, got samples of {here}, it holds "
                f"{there}: use another mixer for them, or forget these with mixer.memory.clear()"
            )

    def get_extra_state(self) -> dict[str, Any] | None:
        if not self._rows:
            return None
        rows = _over(lambda kept: kept.clone(), self._rows)  # they change with the next batch
        return {"rows": rows, "seen": self._seen, "size": self.size}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        if state["size"] != self.size:
            raise ValueError(
                f"memory must have the size of the checkpoint, {state['size']}, got {self.size}: "
                f"use memory={state['size']}"
            )
        device = self.device
        self._rows = _over(lambda kept: kept.to(device or kept.device, copy=True), state["rows"])
        self._seen = state["seen"]

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *more: Any) -> None:
        if f"{prefix}_extra_state" not in state_dict:  # of a memory that held nothing
            self.clear()
        super()._load_from_state_dict(state_dict, prefix, *more)

    def __repr__(self) -> str:
        where = "" if self.device is None else f", device='{self.device}'"
        return f"Memory({self.size}{where})"


@dataclass(frozen=True, eq=False)
class Side:
    """One side of the pairs: a batch, and what is known of its samples.

    Attributes:
        x: inputs.
        y: targets.
        features: what is matched on: a tensor, the key of an entry of `x`, or None for all of it.
        importance: of the pixels.
    """

    x: Nest
    y: Nest
    features: Features | None
    importance: Tensor | None

    def rows(self, mixes: Mixes) -> Rows:
        """What a memory keeps of the samples: all that their partners need of them."""
        return {
            **_named("x", self.x, lambda entry: entry is self.x or mixes(entry)),
            **_named("y", self.y, lambda _: True),
            "features": [self.features] if isinstance(self.features, Tensor) else [],
            "importance": [] if self.importance is None else [self.importance],
        }

    def filled(self, memory: Memory, places: Tensor, mixes: Mixes) -> Side:
        """The side with the samples at `places` of a memory below its own.

        Entries of `x` that are not mixed stay as they are.
        """
        rows = memory.below(self.rows(mixes), places)
        return Side(
            _replaced("x", self.x, rows),
            None if self.y is None else _replaced("y", self.y, rows),
            rows["features"][0] if rows["features"] else self.features,
            rows["importance"][0] if rows["importance"] else None,
        )


def has_memory(mixer: nn.Module) -> bool:
    """Whether a mixer, or one that it is made of, has a memory."""
    return any(isinstance(module, Memory) for module in mixer.modules())


def _named(name: str, nest: Nest, keeps: Mixes) -> Rows:
    """The entries of a nest that are kept, by where they are in it.

    >>> _named("x", {"a": torch.ones(1), "b": "c"}, torch.is_tensor)
    {"x['a']": [tensor([1.])]}
    """
    if nest is None:
        return {name: []}
    entries, _ = pytree.tree_flatten_with_path(nest)
    return {f"{name}{pytree.keystr(path)}": [entry] for path, entry in entries if keeps(entry)}


def _replaced(name: str, nest: Nest, rows: Rows) -> Nest:
    """A nest with `rows` in place of the entries that `_named` gave."""
    return pytree.tree_map_with_path(
        lambda path, entry: rows.get(f"{name}{pytree.keystr(path)}", [entry])[0], nest
    )


def _over(function: Callable[..., Any], *rows: Rows) -> Rows:
    every: Rows = pytree.tree_map(function, *rows)
    return every


def _kind(tensor: Tensor) -> tuple[tuple[int, ...], torch.dtype]:
    """What all tensors of a memory must have in common."""
    return tuple(tensor.shape[1:]), tensor.dtype
