"""Mixing beside the training step: the next batches are mixed while the current one trains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import is_dataclass
from functools import partial
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from kmixup.mixer import Mixing

POLL = 0.05  # seconds after which a thread that waits looks whether the loop has ended

Item = TypeVar("Item")


class Prefetch:
    """Iterates over a loader and gives mixed batches, gathered and mixed in a thread.

    Matching runs outside of Python's lock, so that it takes place beside the training step
    where a core is free, and beside the GPU's work in any case. The draws are those of the same
    loop without it, in the same order. What goes wrong in the thread is raised in the loop.
    Leaving the loop ends the thread, after the batch that it is at, and the generator of the mixer
    is then where it would be without it.

    Args:
        loader: gives tuples `(x, y, ...)`, or anything else that `mix` takes as it is.
        mix: a mixer with a generator of its own, or any function. It is called with the entries
            of a tuple, or with the batch itself.
        device: where batches are moved to before they are mixed; by default they stay.

    The thread is up to two batches ahead. So save the state of a mixer between epochs. If the loop
    is left early, these batches are gone from a loader that cannot start again, and stay in the
    memory of a mixer that has one. A loader without workers runs its transforms in the thread:
    there they should draw from a generator of their own, since the network may draw from torch's
    global one at the same time. A function `mix` must not look into the network that the loop
    trains, as `features=net.embed` would.

    On a GPU the copies and the mixing have a stream of their own, for which the loop waits. This
    part follows the documentation of torch and has not been run.

    >>> from kmixup import KMixup
    >>> mix = KMixup(k=2, num_classes=3, generator=torch.Generator().manual_seed(0))
    >>> loader = [(torch.randn(8, 2), torch.arange(8) % 3) for _ in range(4)]
    >>> [tuple(y.shape) for x, y in Prefetch(loader, mix)]
    [(8, 3), (8, 3), (8, 3), (8, 3)]
    """

    def __init__(
        self,
        loader: Iterable[Any],
        mix: Callable[..., Any],
        *,
        device: torch.device | str | None = None,
    ) -> None:
        if not callable(mix):
            raise TypeError(f"mix must be a mixer or a function, got {type(mix).__name__}")
        if any(part.generator is None for part in _mixers(mix)):
            raise ValueError(
                "mix must have a generator of its own, since the training loop may draw from "
                "torch's global one at the same time: use "
                "generator=torch.Generator().manual_seed(0)"
            )
        self.loader = loader
        self.mix = mix
        self.device = None if device is None else torch.device(device)

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        # here and not in the thread: a loader draws its seed from torch's global generator
        batches = iter(self.loader)
        stream = None
        if self.device is not None and self.device.type == "cuda":
            stream = torch.cuda.Stream(self.device)

        generators = [mixer.generator for mixer in _mixers(self.mix) if mixer.generator is not None]

        def prepared() -> Iterator[tuple[Any, list[Tensor], torch.cuda.Event | None]]:
            for batch in batches:
                with nullcontext() if stream is None else torch.cuda.stream(stream):
                    mixed = self._mixed(batch)
                    states = [generator.get_state() for generator in generators]
                    yield mixed, states, None if stream is None else stream.record_event()

        drawn: list[Tensor] = []
        try:
            with _Ahead(prepared()) as ahead:
                for mixed, states, ready in ahead:
                    drawn = states
                    if ready is not None:
                        current = torch.cuda.current_stream(self.device)
                        current.wait_event(ready)
                        # the memory must not be used again before the loop is done with it
                        for part in _tensors(mixed):
                            part.record_stream(current)
                    yield mixed
        except GeneratorExit:  # the loop was left: take back what was drawn beyond it
            for generator, state in zip(generators, drawn, strict=True):
                generator.set_state(state)
            raise

    def _mixed(self, batch: Any) -> Any:
        if self.device is not None:
            batch = pytree.tree_map_only(Tensor, self._moved, batch)
        return self.mix(*batch) if isinstance(batch, (tuple, list)) else self.mix(batch)

    def _moved(self, part: Tensor) -> Tensor:
        on_gpu = self.device is not None and self.device.type == "cuda"
        if on_gpu and part.device.type == "cpu":
            part = part.pin_memory()  # without it the copy would wait
        return part.to(self.device, non_blocking=on_gpu)


class _Ahead(Generic[Item]):
    """Items of an iterator that a thread takes in advance; the thread ends with the block."""

    def __init__(self, items: Iterator[Item]) -> None:
        self._items = items
        self._taken: Queue[tuple[str, Any]] = Queue(maxsize=1)
        self._stop = Event()
        self._thread = Thread(target=self._work, name="kmixup-prefetch", daemon=True)

    def __enter__(self) -> _Ahead[Item]:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stop.set()
        self._thread.join()

    def __iter__(self) -> Iterator[Item]:
        while True:
            try:
                kind, value = self._taken.get(timeout=POLL)
            except Empty:  # waiting in short pieces lets Ctrl-C through on every system
                continue
            if kind == "end":
                return
            if kind == "error":
                raise value
            yield value

    def _work(self) -> None:
        try:
            for item in self._items:
                if not self._put("item", item):
                    return
            self._put("end", None)
        except BaseException as error:  # whatever it is, the loop must hear of it
            self._put("error", error)

    def _put(self, kind: str, value: Any) -> bool:
        """Hand something over; False where the loop has ended."""
        while not self._stop.is_set():
            try:
                self._taken.put((kind, value), timeout=POLL)
            except Full:
                continue
            return True
        return False


def _mixers(mix: object) -> list[Mixing]:
    """The mixers that draw when `mix` is called: a module, a method of one, or a partial call."""
    if isinstance(mix, partial):
        parts = (mix.func, *mix.args, *mix.keywords.values())
        return [mixer for part in parts for mixer in _mixers(part)]
    owner = mix if isinstance(mix, torch.nn.Module) else getattr(mix, "__self__", None)
    if not isinstance(owner, torch.nn.Module):
        return []
    return [module for module in owner.modules() if isinstance(module, Mixing)]


def _tensors(mixed: Any) -> Iterator[Tensor]:
    """All tensors of a mixed batch, those of a `Mixed` among them."""
    for part in pytree.tree_leaves(mixed):
        if isinstance(part, Tensor):
            yield part
        elif is_dataclass(part) and not isinstance(part, type):
            yield from _tensors(list(vars(part).values()))
