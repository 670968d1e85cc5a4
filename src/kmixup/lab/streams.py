"""The chances of a trial: one generator for each purpose, all from the trial's seed.

Nothing that a method draws can shift what another stream gives, so trials of the same
seed share their initial weights and the order of their samples whatever they mix. In
a job of several processes the order is common, and the rest is drawn by each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from kmixup.coefficient import Beta
from kmixup.lab.protocol import Trial

COMMON = ("initialise", "order", "second", "calibrate", "noise")
BY_RANK = ("augment", "mix", "network", "place")


class Streams:
    """Generators of a trial, as attributes: `streams.order`, `streams.mix`, …

    `initialise`: the first weights; `order` and `second`: the two permutations of an
    epoch; `augment`: crops and flips; `mix`: lam; `network`: what the network itself
    draws, such as dropout; `place`: where to mix, the boxes and the layers; `calibrate`:
    the sampling of alpha; `noise`: perturbed tests.
    The split is the data set's own, drawn from the same seed by `kmixup.lab.data.load`.
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
class Step:
    """Which samples meet in one step: rows `first` `(n,)`, rows `second`, and `lam`.

    `second` is None where partners come from the same batch, as augmented; `size` is
    the number of samples that all processes see together.
    """

    first: Tensor
    second: Tensor | None
    lam: Tensor
    size: int


def epoch(
    trial: Trial, n: int, alpha: float, streams: Streams, *, rank: int = 0, ranks: int = 1
) -> list[Step]:
    """Draw one epoch over `n` samples: every sample once on each side, and a lam a step.

    Of each batch a process takes every `ranks`-th sample. A last batch that would leave a
    process fewer than two samples joins the one before.
    """
    lengths = batch_lengths(n, trial.protocol.batch_size, least=2 * ranks)
    first = torch.split(torch.randperm(n, generator=streams.order), lengths)
    lams = Beta(alpha).sample((len(lengths),), streams.mix).float()
    second: list[Tensor | None] = [None] * len(lengths)
    if trial.method.pairing == "loaders" and alpha > 0:
        second = list(torch.split(torch.randperm(n, generator=streams.second), lengths))
    return [
        Step(one[rank::ranks], None if two is None else two[rank::ranks], lam, len(one))
        for one, two, lam in zip(first, second, lams, strict=True)
    ]


def batch_lengths(n: int, batch_size: int, *, least: int) -> list[int]:
    """
    >>> batch_lengths(10, 4, least=2), batch_lengths(9, 4, least=2)
    ([4, 4, 2], [4, 5])
    """
    lengths = [batch_size] * (n // batch_size) + [n % batch_size] * (n % batch_size > 0)
    if len(lengths) > 1 and lengths[-1] < least:
        last = lengths.pop()
        lengths[-1] += last
    return lengths
