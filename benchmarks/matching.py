"""The matching against four other ways to compute the same, and the whole call against mixup."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import ot
import torch
from scipy.optimize import linear_sum_assignment
from scipy.spatial import distance_matrix
from scipy.spatial.distance import cdist
from torch import Tensor
from torch.nn import functional as F

import kmixup
from benchmarks.tables import table
from kmixup.lab.formatting import stopwatch
from kmixup.lab.timing import interleaved
from kmixup.matching._assignment import solve

BATCHES = [
    ((512, 3, 32, 32), 32),
    ((128, 3, 32, 32), 16),
    ((128, 1, 28, 28), 64),
    ((128, 30), 16),
    ((256, 3, 224, 224), 16),
    ((2048, 3072), 512),
]
LARGE_BLOCKS = [((256, 2), 64), ((256, 64), 64), ((8192, 2), 4096), ((8192, 64), 4096)]


def blocks(n: int, k: int) -> Iterator[slice]:
    return (slice(start, start + k) for start in range(0, n, k))


def pseudocode(x1: Tensor, x2: Tensor, k: int) -> None:
    """The paper's figure: unsquared distances and an assignment, block by block."""
    one, two = x1.flatten(1).numpy(), x2.flatten(1).numpy()
    for block in blocks(len(one), k):
        linear_sum_assignment(distance_matrix(one[block], two[block]))


def dense(x1: Tensor, x2: Tensor, k: int) -> None:
    """The scheme of the authors' script: all blocks in one matrix, the rest forbidden."""
    one, two = x1.flatten(1).numpy(), x2.flatten(1).numpy()
    cost = np.full((len(one), len(one)), 1e6)
    for block in blocks(len(one), k):
        cost[block, block] = distance_matrix(one[block], two[block])
    linear_sum_assignment(cost)


def inner_products(x1: Tensor, x2: Tensor, k: int) -> None:
    """A loop over scipy's solver on costs from inner products."""
    one, two = x1.flatten(1).numpy(), x2.flatten(1).numpy()
    for block in blocks(len(one), k):
        linear_sum_assignment(-(one[block] @ two[block].T))


def pot(x1: Tensor, x2: Tensor, k: int) -> None:
    """POT: its distances and its exact network simplex, block by block."""
    one, two = x1.flatten(1).numpy(), x2.flatten(1).numpy()
    weights = np.full(k, 1 / k)
    for block in blocks(len(one), k):
        ot.emd(weights, weights, ot.dist(one[block], two[block]))


PEERS: dict[str, Callable[[Tensor, Tensor, int], object]] = {
    "(a) paper's pseudocode": pseudocode,
    "(b) one dense assignment": dense,
    "(c) scipy on products": inner_products,
    "(d) POT": pot,
}


def matching(seconds: float) -> None:
    rows = []
    for shape, k in BATCHES:
        x1, x2 = torch.randn(2, *shape)
        contenders: dict[str, Callable[[], object]] = {"kmixup": partial(kmixup.match, x1, x2, k=k)}
        contenders |= {name: partial(peer, x1, x2, k) for name, peer in PEERS.items()}
        timed = interleaved(contenders, seconds=seconds, least=2)
        ratios = [f"{timed.ratio(peer, 'kmixup'):.3g} x" for peer in PEERS]
        rows.append([str(shape), str(k), stopwatch(timed.best("kmixup")), *ratios])
    table(
        "Matching two batches: time of kmixup.match, and how much longer each peer takes",
        ["batch", "k", "kmixup", *PEERS],
        rows,
    )


def squared_distances(x1: Tensor, x2: Tensor, k: int) -> None:
    """A loop over scipy's solver on squared distances."""
    for block in blocks(len(x1), k):
        linear_sum_assignment(cdist(x1[block].numpy(), x2[block].numpy(), "sqeuclidean"))


def dimensions(seconds: float) -> None:
    """Large blocks in few dimensions and in many; the largest take a minute."""
    rows = []
    for shape, k in LARGE_BLOCKS:
        x1, x2 = torch.randn(2, *shape)
        timed = interleaved(
            {
                "kmixup": partial(kmixup.match, x1, x2, k=k),
                "scipy": partial(squared_distances, x1, x2, k),
            },
            seconds=seconds,
            least=1,
        )
        ratio = f"{timed.ratio('scipy', 'kmixup'):.3g} x"
        rows.append([str(shape), str(k), stopwatch(timed.best("kmixup")), ratio])
    table(
        "Matching in few dimensions and in many: how much longer scipy's solver takes on distances",
        ["batch", "k", "kmixup", "scipy on squared distances"],
        rows,
    )


def plain_mixup(x: Tensor, y: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Mixup as most people write it: two draws, and one-hot targets."""
    lam = float(np.random.beta(1.0, 1.0))
    perm = torch.randperm(len(x))
    soft = F.one_hot(y, classes).float()
    return lam * x + (1 - lam) * x[perm], lam * soft + (1 - lam) * soft[perm]


def unchecked(x: Tensor, y: Tensor, classes: int, k: int) -> tuple[Tensor, Tensor]:
    """k-mixup in as few lines, with our solver: no check, no generator, and k must divide n."""
    lam = float(np.random.beta(1.0, 1.0))
    perm = torch.randperm(len(x))
    own, facing = perm.view(-1, k), perm.roll(-k).view(-1, k)
    flat = x.flatten(1)
    columns = solve((-torch.bmm(flat[own], flat[facing].mT)).numpy())
    partner = torch.empty_like(perm)
    partner[own] = facing.gather(1, torch.from_numpy(columns))
    soft = F.one_hot(y, classes).float()
    return lam * x + (1 - lam) * x[partner], lam * soft + (1 - lam) * soft[partner]


def mixing(seconds: float) -> None:
    rows = []
    for shape, k in BATCHES:
        x, y = torch.randn(shape), torch.randint(10, shape[:1])
        mix_1, mix_k = (kmixup.KMixup(k=size, alpha=1.0, num_classes=10) for size in (1, k))
        timed = interleaved(
            {
                "plain": partial(plain_mixup, x, y, 10),
                "unchecked": partial(unchecked, x, y, 10, k),
                "k=1": partial(mix_1, x, y),
                "k": partial(mix_k, x, y),
            },
            seconds=seconds,
            clock=time.process_time,  # what other programs take does not count
        )
        ratios = [f"{timed.ratio(name, 'plain'):.2f} x" for name in ("k=1", "k", "unchecked")]
        times = [stopwatch(timed.best(name)) for name in ("plain", "k")]
        rows.append([str(shape), str(k), *times, *ratios])
    table(
        "A whole call, draws and one-hot targets included on both sides: plain "
        "`lam*x + (1-lam)*x[perm]`, and KMixup relative to it",
        [
            "batch",
            "k",
            "mixup",
            "KMixup(k)",
            "KMixup(k=1) : plain",
            "KMixup(k) : plain",
            "k-mixup by hand, unchecked : plain",
        ],
        rows,
    )
