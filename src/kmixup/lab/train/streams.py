"""Random streams of a trial: one generator per purpose, all derived from its seed.

Trials with the same seed share initial weights and sample order, whatever they mix.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from kmixup._randomness import uniforms
from kmixup.lab.trial import Trial

# names of the streams, with what their seeds are made of; renaming one would change every result
SEEDS = {
    **{name: name for name in ("initialise", "order", "second", "calibrate", "noise")},
    **{name: f"{name}/0" for name in ("augment", "mix", "network", "place")},
}


class Streams:
    """A trial's generators; `kmixup.lab.data.load` draws the split from the same seed."""

    initialise: Generator  # initial weights
    order: Generator  # the first permutation of an epoch
    second: Generator  # the second permutation
    augment: Generator  # crops and flips
    mix: Generator  # quantiles of lam
    network: Generator  # the network's own draws, such as dropout
    place: Generator  # where to mix: boxes and layers
    calibrate: Generator  # distances for alpha
    noise: Generator  # tests under a shift

    def __init__(self, seed: int) -> None:
        for name, key in SEEDS.items():
            digest = hashlib.sha256(f"{seed}/{key}".encode()).digest()
            setattr(self, name, Generator().manual_seed(int.from_bytes(digest[:4], "big")))

    def state(self) -> Tensor:
        """Return the state of all generators, `(streams, bytes)`."""
        return torch.stack([getattr(self, name).get_state() for name in SEEDS])

    def restore(self, state: Tensor) -> None:
        for name, row in zip(SEEDS, state, strict=True):
            getattr(self, name).set_state(row.clone())


@contextmanager
def drawing_from(generator: Generator) -> Iterator[None]:
    """Within this context torch's global generator is seeded by a draw from `generator`."""
    with torch.random.fork_rng():
        torch.manual_seed(int(torch.randint(1 << 62, (), generator=generator)))
        yield


@dataclass(frozen=True)
class BatchRows:
    """The samples that meet in one step."""

    first: Tensor  # rows of the batch, (n,)
    second: Tensor | None  # rows that partners come from; None for the same batch
    u: Tensor  # the quantile of lam
    again: Tensor | None = None  # the order in which the batch meets itself, with self-pairs


def epoch(trial: Trial, n: int, alpha: float, streams: Streams) -> list[BatchRows]:
    """Draw one epoch over `n` samples: every sample once on each side, and a lam per step."""
    protocol, pairing = trial.protocol, trial.method.pairing if alpha > 0 else None
    lengths = batch_lengths(n, protocol.batch_size, drop=bool(protocol.drop_last))
    used = sum(lengths)
    first = torch.split(torch.randperm(n, generator=streams.order)[:used], lengths)
    quantiles = uniforms((len(lengths),), streams.mix)
    second = first
    if pairing == "loaders":
        second = torch.split(torch.randperm(n, generator=streams.second)[:used], lengths)
    steps = []
    for rows, facing, u in zip(first, second, quantiles, strict=True):
        again = None
        if pairing == "reshuffle":
            again = torch.randperm(len(rows), generator=streams.second)
        steps.append(BatchRows(rows, facing if pairing == "loaders" else None, u, again))
    return steps


def batch_lengths(n: int, batch_size: int, *, drop: bool = False) -> list[int]:
    """Return the lengths of the batches of `n` samples; `drop` skips a short last one.

    A single sample that would be left over joins the last batch.

    >>> batch_lengths(10, 4), batch_lengths(9, 4), batch_lengths(10, 4, drop=True)
    ([4, 4, 2], [4, 5], [4, 4])
    """
    whole, rest = divmod(n, batch_size)
    lengths = [batch_size] * whole
    if not whole or (rest >= 2 and not drop):
        lengths.append(rest)
    elif not drop:
        lengths[-1] += rest
    return lengths
