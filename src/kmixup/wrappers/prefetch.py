"""Mix the next batches in a thread while the network trains on the current one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from torch import Tensor

from kmixup.mixer import mixers_in


class Prefetch:
    """Iterate over a loader and mix the next batches in a thread.

    Matching releases the GIL, so it runs in parallel with the training step if a core is free.
    Draws are the same as without it, in the same order. Exceptions in the thread are re-raised in
    the loop. Breaking out of the loop stops the thread and rewinds the mixer's generator to the
    state it would have had without prefetching.

    The thread is up to two batches ahead, so save the state of a mixer between epochs. After a
    `break` these batches are lost, but stay in a `Memory`. Transforms of a loader without workers
    should draw from a separate generator. A function `mix` must not use the network that the loop
    trains, as `features=net.embed` would.

    Args:
        loader: gives tuples `(x, y, ...)`, or anything else that `mix` takes as it is.
        mix: a mixer with its own generator, or any function. It is called with the entries
            of a tuple, or with the batch itself.

    >>> import torch
    >>> from kmixup import KMixup
    >>> mix = KMixup(k=2, num_classes=3, generator=torch.Generator().manual_seed(0))
    >>> loader = [(torch.randn(8, 2), torch.arange(8) % 3) for _ in range(4)]
    >>> [tuple(y.shape) for x, y in Prefetch(loader, mix)]
    [(8, 3), (8, 3), (8, 3), (8, 3)]
    """

    def __init__(self, loader: Iterable[Any], mix: Callable[..., Any]) -> None:
        if not callable(mix):
            raise TypeError(f"mix must be a mixer or a function, got {type(mix).__name__}")
        if any(mixer.generator is None for mixer in mixers_in(mix)):
            raise ValueError(
                "mix must have its own generator, because the training loop may draw from "
                "torch's global one at the same time: use "
                "generator=torch.Generator().manual_seed(0)"
            )
        self.loader = loader
        self.mix = mix

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        # here and not in the thread: a loader draws its seed from torch's global generator
        batches = iter(self.loader)
        generators = [mixer.generator for mixer in mixers_in(self.mix) if mixer.generator]

        def prepared() -> Iterator[tuple[Any, list[Tensor]]]:
            for batch in batches:
                mixed = self.mix(*batch) if isinstance(batch, (tuple, list)) else self.mix(batch)
                yield mixed, [generator.get_state() for generator in generators]

        drawn: list[Tensor] = []
        pool, items = ThreadPoolExecutor(1, "kmixup-prefetch"), prepared()
        ahead = deque([pool.submit(next, items, None), pool.submit(next, items, None)])
        try:
            while (item := ahead.popleft().result()) is not None:
                ahead.append(pool.submit(next, items, None))
                mixed, drawn = item
                yield mixed
        finally:
            pool.shutdown(cancel_futures=True)
            for generator, state in zip(generators, drawn, strict=False):
                generator.set_state(state)  # takes back what was drawn beyond the loop
