"""Uniformly random k-subsets of a data set, many at once, and where draws are made."""

from __future__ import annotations

import torch
from torch import Generator, Tensor


def device_of(generator: Generator | None) -> torch.device:
    """Where a generator draws; torch's global one draws on the CPU."""
    return torch.device("cpu") if generator is None else generator.device


def subsets(n: int, k: int, blocks: int, generator: Generator | None = None) -> Tensor:
    """Independent uniform k-subsets of `range(n)` in random order, `(blocks, k)`."""
    device = device_of(generator)
    if k * k > n:
        keys = torch.rand(blocks, n, generator=generator, dtype=torch.float64, device=device)
        return keys.argsort(1)[:, :k].cpu()
    # Drawn with replacement, a row is distinct with probability over one half:
    # drawing the others again is exact and does not touch all n indices.
    rows = torch.randint(n, (blocks, k), generator=generator, device=device)
    while len(again := _with_repeats(rows)):
        rows[again] = torch.randint(n, (len(again), k), generator=generator, device=device)
    return rows.cpu()


def subset_pairs(
    n: int, k: int, blocks: int, *, disjoint: bool = False, generator: Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Two k-subsets for each block: independent, or without a common element."""
    if disjoint:
        both = subsets(n, 2 * k, blocks, generator)
        return both[:, :k], both[:, k:]
    return subsets(n, k, blocks, generator), subsets(n, k, blocks, generator)


def _with_repeats(rows: Tensor) -> Tensor:
    ordered = rows.sort(1).values
    return (ordered[:, 1:] == ordered[:, :-1]).any(1).nonzero().squeeze(1)
