"""Sources of random numbers: generators, their copies and checkpoints, and loader workers."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, distributed, nn
from torch.utils.data import get_worker_info

from kmixup._compiling import warn_user


class Source:
    """All random draws of a mixer, from a generator or from torch's global one.

    Unlike a generator, a source can be pickled with its state. In a loader worker it is reseeded
    from that worker's seed: draws differ between workers and epochs, and a loader with the same
    seed repeats them. Mixers that share a source share it after they are copied together. Each rank
    of a distributed job draws from its own `of_rank`, and so do that rank's loader workers.

    A subclass may provide some of the draws itself, as the lab's training loop does.
    """

    def __init__(self, generator: Generator | None = None) -> None:
        if generator is not None and not isinstance(generator, Generator):
            raise TypeError(
                f"generator must be a torch.Generator, got {generator!r}: "
                "use torch.Generator().manual_seed(0)"
            )
        self.generator = generator
        self.device = device_of(generator)
        self._worker: tuple[int, int] | None = None
        self._rank: int | None = None  # of the process that this was pickled in

    def of_rank(self) -> Source | None:
        """Return the source of this rank's next draw; None if there is only one process.

        Its generator is seeded with one number from this source and the rank. Sources that start
        the same on all ranks stay the same, so one rank's state is enough to resume all of them.
        """
        rank = current_rank(self._rank)
        if rank is None:
            return None
        number = torch.randint(2**62, (), generator=self.here(), device=self.device).item()
        return Source(Generator(self.device).manual_seed(seed_from(number, rank)))

    def here(self) -> Generator | None:
        """Return the generator to draw from in this process."""
        worker = get_worker_info()
        if self.generator is None or worker is None:
            return self.generator
        place = (os.getpid(), worker.seed)  # the loader draws the seeds of its workers
        if self._worker != place:
            self._worker = place
            state = self.generator.get_state().numpy().tobytes()
            self.generator.manual_seed(_seed_of(state + str(worker.seed).encode()))
        return self.generator

    def coin(self) -> float:
        """Draw whether a batch is mixed at all: it is, where this is below a probability."""
        return torch.rand((), generator=self.here(), device=self.device).item()

    def order(self, n: int) -> NDArray[np.int64]:
        """Draw a random permutation of `n` samples."""
        return torch.randperm(n, generator=self.here(), device=self.device).cpu().numpy()

    def quantiles(self, size: tuple[int, ...]) -> Tensor:
        """Draw quantiles of lam, uniform in [0, 1)."""
        generator = self.here()
        return torch.rand(size, generator=generator, dtype=torch.float64, device=self.device)

    def __getstate__(self) -> dict[str, Any]:
        rank = current_rank(self._rank)
        if self.generator is None:
            return {"device": None, "state": b"", "rank": rank}
        state = self.generator.get_state().numpy().tobytes()
        return {"device": str(self.generator.device), "state": state, "rank": rank}

    def __setstate__(self, stored: dict[str, Any]) -> None:
        self.generator, self._worker, self._rank = None, None, stored["rank"]
        if stored["device"] is not None:
            self.generator = Generator(stored["device"])
            state = torch.frombuffer(bytearray(stored["state"]), dtype=torch.uint8)
            self.generator.set_state(state)
        self.device = device_of(self.generator)


class Resumable(nn.Module):
    """A module with a generator, whose state is part of `state_dict()`.

    Loading warns if only one of checkpoint and module has a generator. Extra state that is None is
    left out of `state_dict()`.
    """

    def __init__(self, generator: Generator | None = None) -> None:
        super().__init__()
        self._source = Source(generator)

    @property
    def generator(self) -> Generator | None:
        return self._source.generator

    @generator.setter
    def generator(self, generator: Generator | None) -> None:
        self._source = Source(generator)

    def get_extra_state(self) -> Any:
        """Return the state of the generator."""
        return None if self.generator is None else self.generator.get_state()

    def set_extra_state(self, state: Any) -> None:
        if self.generator is not None:
            self.generator.set_state(state.cpu())
            return
        warn_user(
            "the checkpoint has a generator and this mixer has none, so it will not repeat the "
            "draws of that run: create it with generator=torch.Generator()"
        )

    def missing_extra_state(self) -> None:
        """Handle a checkpoint without extra state for this module."""
        if self.generator is not None:
            warn_user(
                "the checkpoint has no state for this mixer's generator, so it will not repeat the "
                "draws of that run: save the state_dict() of the mixer as well"
            )

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, *more: Any) -> None:
        super()._save_to_state_dict(destination, prefix, *more)
        if destination[key := f"{prefix}_extra_state"] is None:
            del destination[key]

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, metadata: Any, strict: bool, missing: Any, *more: Any
    ) -> None:
        super()._load_from_state_dict(state_dict, prefix, metadata, strict, missing, *more)
        if (key := f"{prefix}_extra_state") not in state_dict:
            self.missing_extra_state()
        if key in missing:
            missing.remove(key)


def current_rank(saved: int | None = None) -> int | None:
    """Return the rank of this process in its distributed job; None if there is one process.

    Loader workers that are not forked have no process group: they are given a `saved` rank.
    """
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank() if distributed.get_world_size() > 1 else None
    return None if get_worker_info() is None else saved


def seed_from(*parts: object) -> int:
    """Return a seed of 63 bits that differs wherever the parts do."""
    return _seed_of(str(parts).encode())


def _seed_of(content: bytes) -> int:
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big") >> 1


def device_of(generator: Generator | None) -> torch.device:
    """Return the device on which a generator draws; torch's global one draws on the CPU."""
    return torch.device("cpu") if generator is None else generator.device


def uniforms(size: tuple[int, ...], generator: Generator | None = None) -> Tensor:
    """Draw uniform numbers in [0, 1), float64, on the generator's device."""
    device = device_of(generator)
    return torch.rand(size, generator=generator, dtype=torch.float64, device=device)
