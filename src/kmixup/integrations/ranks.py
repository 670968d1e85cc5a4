"""Different draws in the processes of a distributed job that all have the same seed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Generator, distributed, nn

from kmixup.mixer import Mixing
from kmixup.randomness import Source, device_of


def current_rank(told: int | None = None) -> int | None:
    """Rank of this process in its distributed job; None where there is one process.

    The workers of a data loader that are not forked do not belong to the process group. They
    are `told` their rank, or know it from the environment that `torchrun` sets up.
    """
    if distributed.is_available() and distributed.is_initialized():
        rank, size = distributed.get_rank(), distributed.get_world_size()
    elif told is not None:
        return told
    else:
        rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    return rank if size > 1 else None


class TakesRank:
    """Takes the rank of its process along where it is pickled, as to the workers of a loader."""

    _told: int | None = None

    @property
    def rank(self) -> int | None:
        return current_rank(self._told)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_told": self.rank}


def generator_of_rank(source: Source, rank: int | None) -> Generator | None:
    """Generator for the next batch: that of the source, or one for this rank alone.

    With a rank, one number is taken from the source, and a new generator is seeded with the
    number and the rank. Sources that start alike stay alike on all ranks. So the state of
    the source on one rank is enough to resume all of them.
    """
    generator = source.here()
    if rank is None:
        return generator
    device = device_of(generator)
    number = int(torch.randint(2**62, (), generator=generator, device=device))
    digest = hashlib.sha256(f"{number} {rank}".encode()).digest()
    return Generator(device).manual_seed(int.from_bytes(digest[:8], "big") >> 1)


@contextmanager
def draws_of_rank(mixer: nn.Module, rank: int | None) -> Iterator[None]:
    """Within this context `mixer` draws its next batch for this rank; None changes nothing."""
    if rank is None:
        yield
        return
    modules = [module for module in mixer.modules() if isinstance(module, Mixing)]
    sources = [module._source for module in modules]
    own = Source(generator_of_rank(sources[0], rank))
    try:
        for module in modules:
            module._source = own
        yield
    finally:
        for module, source in zip(modules, sources, strict=True):
            module._source = source
