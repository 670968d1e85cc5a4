"""Random streams of a trial: one generator per purpose, all derived from its seed.

Nothing that a method draws can shift what another stream gives. So trials of the same seed
share their initial weights and the order of their samples, whatever they mix. In a job of
several processes the order is common, and each process draws the rest by itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from kmixup.lab.train.config import Trial
from kmixup.randomness import uniforms

COMMON = ("initialise", "order", "second", "calibrate", "noise")
BY_RANK = ("augment", "mix", "network", "place")


class Streams:
    """Generators of a trial, as attributes: `streams.order`, `streams.mix`, …

    `kmixup.lab.data.load` draws the split, from the same seed.

    Attributes:
        initialise: the first weights.
        order, second: the two permutations of an epoch.
        augment: crops and flips.
        mix: lam.
        network: what the network itself draws, such as dropout.
        place: where to mix: boxes and layers.
        calibrate: the sampling of distances for alpha.
        noise: tests under a shift.
    """

    order: Generator
    second: Generator
    augment: Generator
    mix: Generator
    network: Generator
    place: Generator
    initialise: Generator
    calibrate: Generator
    noise: Generator

    def __init__(self, seed: int, rank: int = 0) -> None:
        for name in (*COMMON, *BY_RANK):
            key = f"{seed}/{name}" + (f"/{rank}" if name in BY_RANK else "")
            digest = hashlib.sha256(key.encode()).digest()
            setattr(self, name, Generator().manual_seed(int.from_bytes(digest[:4], "big")))

    def state(self) -> Tensor:
        """State of all generators, `(streams, bytes)`."""
        return torch.stack([getattr(self, name).get_state() for name in (*COMMON, *BY_RANK)])

    def restore(self, state: Tensor) -> None:
        for name, row in zip((*COMMON, *BY_RANK), state, strict=True):
            getattr(self, name).set_state(row.clone())


@contextmanager
def drawing_from(generator: Generator) -> Iterator[None]:
    """Let what draws from torch's global generator depend on `generator` alone."""
    with torch.random.fork_rng():
        torch.manual_seed(int(torch.randint(1 << 62, (), generator=generator)))
        yield


@dataclass(frozen=True)
class BatchRows:
    """Which samples meet in one step.

    Attributes:
        first: rows of the batch, `(n,)`.
        second: rows of the batch that partners come from; None where that is the same batch.
        again: the order in which the batch meets itself; None where no sample may meet itself.
        u: the quantile of lam.
        size: the number of samples that all processes see together.
    """

    first: Tensor
    second: Tensor | None
    u: Tensor
    size: int
    again: Tensor | None = None


def epoch(
    trial: Trial, n: int, alpha: float, streams: Streams, *, rank: int = 0, ranks: int = 1
) -> list[BatchRows]:
    """Draw one epoch over `n` samples: every sample once on each side, and a lam per step.

    Of each batch a process takes every `ranks`-th sample. A last batch that would leave a
    process fewer than two samples joins the one before.
    """
    protocol = trial.protocol
    lengths = batch_lengths(n, protocol.batch_size, 2 * ranks, drop=bool(protocol.drop_last))
    used = sum(lengths)
    first = torch.split(torch.randperm(n, generator=streams.order)[:used], lengths)
    quantiles = uniforms((len(lengths),), streams.mix)
    second: list[Tensor | None] = [None] * len(lengths)
    if trial.method.pairing == "loaders" and alpha > 0:
        second = list(torch.split(torch.randperm(n, generator=streams.second)[:used], lengths))
    steps = [
        BatchRows(rows[rank::ranks], None if facing is None else facing[rank::ranks], u, len(rows))
        for rows, facing, u in zip(first, second, quantiles, strict=True)
    ]
    if trial.method.pairing != "reshuffle" or alpha == 0:
        return steps
    return [
        replace(step, again=torch.randperm(len(step.first), generator=streams.second))
        for step in steps
    ]


def batch_lengths(n: int, batch_size: int, least: int, *, drop: bool = False) -> list[int]:
    """Lengths of the batches of `n` samples; `drop` leaves out a last one that is short.

    >>> batch_lengths(10, 4, 2), batch_lengths(9, 4, 2), batch_lengths(10, 4, 2, drop=True)
    ([4, 4, 2], [4, 5], [4, 4])
    """
    if drop and n >= batch_size:
        return [batch_size] * (n // batch_size)
    lengths = [batch_size] * (n // batch_size) + [n % batch_size] * (n % batch_size > 0)
    if len(lengths) > 1 and lengths[-1] < least:
        last = lengths.pop()
        lengths[-1] += last
    return lengths
