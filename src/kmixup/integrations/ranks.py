"""Different random draws in the processes of a distributed job that share one seed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Generator, distributed, nn

from kmixup._randomness import Source
from kmixup.mixer import mixers_in


def current_rank(saved: int | None = None) -> int | None:
    """Return the rank of this process in its distributed job; None if there is one process.

    Loader workers that are not forked get it as `saved`, or from torchrun's environment variables.
    """
    if distributed.is_available() and distributed.is_initialized():
        rank, size = distributed.get_rank(), distributed.get_world_size()
    elif saved is not None:
        return saved
    else:
        rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    return rank if size > 1 else None


class TakesRank:
    """Keeps the rank of its process when it is pickled, as it is for loader workers."""

    saved_rank: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "saved_rank": current_rank(self.saved_rank)}


@contextmanager
def draws_of_rank(mixer: nn.Module, saved: int | None = None) -> Iterator[None]:
    """Make `mixer` draw its next batch for the current rank; one process draws as usual.

    A new generator is seeded with one number from the mixer's source and the rank. Sources that
    start alike stay alike, so the state of one rank is enough to resume all of them.
    """
    rank = current_rank(saved)
    if rank is None or not mixer.training:
        yield
        return
    modules = mixers_in(mixer)
    sources = [module._source for module in modules]
    device = sources[0].device
    number = torch.randint(2**62, (), generator=sources[0].here(), device=device).item()
    own = Source(Generator(device).manual_seed(seed_from(number, rank)))
    try:
        for module in modules:
            module._source = own
        yield
    finally:
        for module, source in zip(modules, sources, strict=True):
            module._source = source


def seed_from(*parts: object) -> int:
    """Return a seed of 63 bits that differs wherever the parts do."""
    return int.from_bytes(hashlib.sha256(str(parts).encode()).digest()[:8], "big") >> 1
