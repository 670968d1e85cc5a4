"""Mixing beside the training step: the next batches are mixed while the current one trains."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import is_dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from kmixup.mixer import mixers_in


class Prefetch:
    """Iterate over a loader and mix the next batches in a thread.

    Matching releases Python's lock, so it runs beside the training step where a core is free. The
    draws are those of the same loop without it, in the same order. Errors of the thread are raised
    in the loop. Leaving the loop ends the thread and resets the generator of the mixer to where it
    would be without it.

    The thread is up to two batches ahead, so save the state of a mixer between epochs. If the loop
    is left early, these batches are lost, but stay in a `Memory`. Transforms of a loader without
    workers should draw from a generator of their own. A function `mix` must not use the network
    that the loop trains, as `features=net.embed` would.

    On a GPU the copies and the mixing have a stream of their own, for which the loop waits. This
    part follows the documentation of torch and has not been run.

    Args:
        loader: gives tuples `(x, y, ...)`, or anything else that `mix` takes as it is.
        mix: a mixer with a generator of its own, or any function. It is called with the entries
            of a tuple, or with the batch itself.
        device: where batches are moved to before they are mixed; by default they stay.

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
        if any(mixer.generator is None for mixer in mixers_in(mix)):
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

        generators = [mixer.generator for mixer in mixers_in(self.mix) if mixer.generator]

        def prepared() -> Iterator[tuple[Any, list[Tensor], torch.cuda.Event | None]]:
            for batch in batches:
                with nullcontext() if stream is None else torch.cuda.stream(stream):
                    mixed = self._mixed(batch)
                    states = [generator.get_state() for generator in generators]
                    yield mixed, states, None if stream is None else stream.record_event()

        drawn: list[Tensor] = []
        pool, items = ThreadPoolExecutor(1, "kmixup-prefetch"), prepared()
        ahead = deque([pool.submit(next, items, None), pool.submit(next, items, None)])
        try:
            while (item := ahead.popleft().result()) is not None:
                ahead.append(pool.submit(next, items, None))
                mixed, drawn, ready = item
                if ready is not None:
                    current = torch.cuda.current_stream(self.device)
                    current.wait_event(ready)
                    # the memory must not be used again before the loop is done with it
                    for part in _tensors(mixed):
                        part.record_stream(current)
                yield mixed
        finally:
            pool.shutdown(cancel_futures=True)
            for generator, state in zip(generators, drawn, strict=False):
                generator.set_state(state)  # takes back what was drawn beyond the loop

    def _mixed(self, batch: Any) -> Any:
        if self.device is not None:
            batch = pytree.tree_map_only(Tensor, self._moved, batch)
        return self.mix(*batch) if isinstance(batch, (tuple, list)) else self.mix(batch)

    def _moved(self, part: Tensor) -> Tensor:
        on_gpu = self.device is not None and self.device.type == "cuda"
        if on_gpu and part.device.type == "cpu":
            part = part.pin_memory()  # without it the copy would wait
        return part.to(self.device, non_blocking=on_gpu)


def _tensors(mixed: Any) -> Iterator[Tensor]:
    """All tensors of a mixed batch, those of a `Mixed` among them."""
    for part in pytree.tree_leaves(mixed):
        if isinstance(part, Tensor):
            yield part
        elif is_dataclass(part) and not isinstance(part, type):
            yield from _tensors(list(vars(part).values()))
