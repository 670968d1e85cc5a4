"""Samples of earlier batches, which fill up a batch to whole blocks of k."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Unpack

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from kmixup._batch import SIGNED, Batch
from kmixup._checks import check_whole
from kmixup._nests import Mixes, Nest
from kmixup._randomness import Source, device_of
from kmixup.interpolation import joined
from kmixup.mixed import Draw, Mixed
from kmixup.mixer import DrawOptions, Mixing
from kmixup.wrappers.wrapper import Wrapper, WrapperDraw

LOCK = Lock()  # a thread must not read rows that another one replaces
Rows = dict[str, Tensor]  # tensors (n, ...) of samples: inputs, targets, and others


@dataclass(frozen=True, eq=False)
class MemoryDraw(WrapperDraw):
    """The draw of a `Memory`, whose `inner` draw is for the n + f samples of a filled batch."""

    places: Tensor | None  # in the memory, of samples that fill up one or two batches, (1 or 2, f)


class Memory(Wrapper):
    """Fill up batches with samples of earlier batches, so that k may be larger than the batch.

    A batch is filled with randomly drawn samples to a multiple of k and to 2k at least. Only its
    own samples are mixed; partners may come from the memory, which is part of `state_dict()`. In
    a distributed job every process has its own memory.

    Args:
        mixer: the mixer inside.
        size: the number of samples to keep, at least 2k.

    >>> from kmixup import KMixup
    >>> mix = Memory(KMixup(k=64, num_classes=10), size=512)    # for batches of 16 or 32
    >>> x, y = mix(torch.randn(32, 8), torch.randint(10, (32,)))
    >>> len(mix)
    32
    """

    def __init__(self, mixer: Mixing, size: int) -> None:
        super().__init__(mixer)
        self.size = check_whole("size", size)
        self.has_memory = True
        self._check_size()
        self.clear()

    def _check_size(self) -> None:
        least = 2 * self.mixer.block_size
        if self.size < least:
            raise ValueError(
                f"size must be at least 2k = {least} samples, got {self.size}: raise size or "
                "lower k"
            )

    def clear(self) -> None:
        """Remove all samples."""
        self._rows: Rows = {}
        self._seen = 0

    def __len__(self) -> int:
        """Return the number of samples kept now."""
        return min(self._seen, self.size)

    @property
    def block_size(self) -> int:
        return 1  # no batch is too short

    def draw_batch(
        self, n: int, shape: tuple[int, ...], **options: Unpack[DrawOptions]
    ) -> MemoryDraw:
        self._check_size()
        source = options.get("source") or self._source
        places = self._places(n, options.get("within", True), source)
        whole = n if places is None else n + places.shape[1]
        return MemoryDraw(self.mixer.draw(whole, shape, **options), places)

    def _places(self, n: int, within: bool, source: Source) -> Tensor | None:
        """Draw places of the samples that fill up a batch; as many as there are."""
        k, sides = self.mixer.block_size, 1 if within else 2
        missing = max(2 * k - n, -n % k) if within else -n % k
        f = min(missing, len(self) // sides)
        if f == 0:
            return None
        generator = source.here()
        order = torch.randperm(len(self), generator=generator, device=device_of(generator))
        return order[: sides * f].view(sides, f)

    def mix_batch(self, batch: Batch, draw: Draw) -> Mixed:
        own = MemoryDraw.of(draw) or MemoryDraw(draw, None)
        if own.places is not None:
            if (needed := int(own.places.max()) + 1) > len(self):
                raise ValueError(
                    f"draw uses samples of a memory that holds at least {needed}, this one holds "
                    f"{len(self)}: use a draw of the same mixer"
                )
            with LOCK:
                batch = self._filled(batch, own.places)
        return self.mixer.mix_batch(batch, own.inner)

    def remember(self, batch: Batch) -> None:
        """Keep the samples of a `batch`; the oldest entries are evicted."""
        if self.training:
            with LOCK:
                self._add(_rows_of(batch, 0, self.mixes))

    def _filled(self, batch: Batch, places: Tensor) -> Batch:
        """Return the batch, or both batches, with samples of the memory below."""
        own = their = self._below(_rows_of(batch, 0, self.mixes), places[0])
        other = batch.other
        if other is not None:
            their = self._below(_rows_of(batch, 1, self.mixes), places[1])
            other = _replaced("x", other[0], their), _replaced("y", other[1], their)
        return replace(
            batch,
            x=_replaced("x", batch.x, own),
            y=_replaced("y", batch.y, own),
            other=other,
            features=batch.features and (own["features"], their["features"]),
            importance=batch.importance and (own["importance"], their["importance"]),
        )

    def _below(self, rows: Rows, places: Tensor) -> Rows:
        """Return the samples of a batch with those at `places` below."""
        self._check(rows)
        below = {}
        for name, own in rows.items():
            kept = self._rows[name]
            drawn = kept.index_select(0, places.to(kept.device))
            below[name] = joined(own, drawn.to(own.device))
        return below

    def _add(self, rows: Rows) -> None:
        n = len(next(iter(rows.values())))
        stop, last = self._seen + n, min(n, self.size)  # a batch may be larger than the memory
        if not self._rows:
            self._rows = {
                name: new.new_zeros((self.size, *new.shape[1:])) for name, new in rows.items()
            }
        self._check(rows)
        for name, new in rows.items():
            places = torch.arange(stop - last, stop, device=new.device) % self.size
            kept = self._rows[name].to(new.device)  # where batches are now
            bits = SIGNED.get(new.dtype, new.dtype)  # torch cannot copy the others by index
            kept.view(bits).index_copy_(
                0, places, new.detach().narrow(0, n - last, last).view(bits)
            )
            self._rows[name] = kept
        self._seen = stop

    def _check(self, rows: Rows) -> None:
        there, here = (
            {name: (tuple(row.shape[1:]), row.dtype) for name, row in side.items()}
            for side in (self._rows, rows)
        )
        if there != here:
            raise ValueError(
                f"a batch must be like those in the memory, got samples of {here}, it holds "
                f"{there}: use another mixer for them, or forget these with Memory.clear()"
            )

    def get_extra_state(self) -> dict[str, Any] | None:
        if not self._rows:
            return None
        rows = {name: kept.clone() for name, kept in self._rows.items()}
        return {"rows": rows, "seen": self._seen, "size": self.size}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        if state["size"] != self.size:
            raise ValueError(
                f"size must be that of the checkpoint, {state['size']}, got {self.size}: "
                f"use size={state['size']}"
            )
        self._rows = {name: kept.clone() for name, kept in state["rows"].items()}
        self._seen = state["seen"]

    def missing_extra_state(self) -> None:
        self.clear()  # the checkpoint is that of an empty memory

    def __repr__(self) -> str:
        return f"Memory({self.mixer}, size={self.size})"


def _rows_of(batch: Batch, side: int, mixes: Mixes) -> Rows:
    """Return everything that partners need of one side of a batch, by its path."""
    x, y = (batch.x, batch.y) if side == 0 or batch.other is None else batch.other
    rows = {}
    kinds = dict(pytree.tree_flatten_with_path(batch.types)[0])
    for name, nest in (("x", x), ("y", y)):
        for path, entry in pytree.tree_flatten_with_path(nest)[0]:
            mixed = kinds[path] != "pass" if name == "y" else entry is x or mixes(entry)
            if isinstance(entry, Tensor) and mixed:
                rows[f"{name}{pytree.keystr(path)}"] = entry
    if batch.features is not None:
        rows["features"] = batch.features[side]
    if batch.importance is not None:
        rows["importance"] = batch.importance[side]
    return rows


def _replaced(name: str, nest: Nest, rows: Rows) -> Nest:
    """Return a nest with `rows` in place of the entries that `_rows_of` returned."""
    return pytree.tree_map_with_path(
        lambda path, entry: rows.get(f"{name}{pytree.keystr(path)}", entry), nest
    )
