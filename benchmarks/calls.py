"""The whole call: against k-mixup written by hand, against mixup, and how its cost grows."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import lap
import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor
from torch.nn import functional as F

import kmixup
from benchmarks.matching import inner_products, pot, pseudocode
from benchmarks.tables import table
from kmixup.lab.formatting import stopwatch
from kmixup.lab.timing import interleaved

CALLS = [
    ((128, 30), 16),
    ((128, 3, 32, 32), 16),
    ((128, 1, 28, 28), 64),
    ((512, 3, 32, 32), 32),
    ((64, 3, 224, 224), 16),
]
CLASSES = 10
GROWTH_K = (1, 4, 16, 64, 256, 1024)
GROWTH_D = (2, 30, 784, 3072, 150_528)
LARGEST = 2**28  # numbers in the two batches of a cell, a gigabyte


def by_hand(x: Tensor, y: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """k-mixup with torch and scipy and without any check: gather, bmm, assign, lerp, one-hot."""
    n = len(x)
    first = torch.randperm(n)
    second = first.roll(-k)
    rows = x.flatten(1)
    a, b = (rows[side].view(n // k, k, -1) for side in (first, second))
    cost = -torch.bmm(a, b.mT).numpy()
    partner = torch.empty_like(first)
    for i, block in enumerate(cost):
        _, columns = linear_sum_assignment(block)
        partner[first[i * k : (i + 1) * k]] = second[i * k + torch.from_numpy(columns)]
    lam = np.random.beta(1.0, 1.0)
    labels = F.one_hot(y, CLASSES).float()
    return x[partner].lerp_(x, lam), labels[partner].lerp_(labels, lam)


class Bare:
    """The arithmetic of k-mixup and nothing else, for n = bk: no checks, no precision, no options.

    One gather into kept memory, norms, one batched product, the batched solver, lerp, one-hot. It
    is the least that k-mixup can cost in Python.
    """

    def __init__(self, x: Tensor, k: int) -> None:
        self.k, self.memory = k, torch.empty(len(x) + k, x[0].numel())

    def __call__(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        n, k = len(x), self.k
        order = torch.randperm(n)
        index = torch.cat([order, order[:k]])
        torch.index_select(x.view(n, -1), 0, index, out=self.memory)
        points = self.memory.view(n // k + 1, k, -1)
        norms = points.square().sum(2) if x.numel() < 2**16 else points.norm(dim=2).square_()
        cost = torch.baddbmm(
            norms[:-1, :, None] + norms[1:, None, :], points[:-1], points[1:].mT, alpha=-2
        )
        _, columns = lap.lapjvr_batch(cost.numpy(), return_cost=False, n_threads=1)
        faced = torch.from_numpy(np.concatenate(columns)) + torch.arange(
            k, n + k, k
        ).repeat_interleave(k)
        partner = torch.empty_like(order)
        partner[order] = index[faced]
        lam = np.random.beta(1.0, 1.0)
        labels = F.one_hot(y, CLASSES).float()
        mixed = x.index_select(0, partner).lerp_(x, lam)
        return mixed, labels.index_select(0, partner).lerp_(labels, lam)


def mixup_by_roll(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Mixup as torchvision's `v2.MixUp` computes it, for when torchvision is not installed."""
    lam = np.random.beta(1.0, 1.0)
    labels = F.one_hot(y, CLASSES).float()
    mixed = (side.roll(1, 0).mul_(1 - lam).add_(side.mul(lam)) for side in (x, labels))
    return next(mixed), next(mixed)


def mixup() -> Callable[[Tensor, Tensor], object]:
    try:
        from torchvision.transforms import v2
    except (ImportError, RuntimeError):  # no CPU build of it, or one for another torch
        return mixup_by_roll
    return v2.MixUp(num_classes=CLASSES)  # type: ignore[no-any-return]


# Large memory that a call frees and allocates again comes back from glibc in two ways, depending on
# what the process did before: as new pages, which fault on first use, or from its heap.
HEAPS = {
    "new pages": {"MALLOC_MMAP_THRESHOLD_": str(2**17)},
    "reused heap": {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**30)},
}


def calls(seconds: float) -> None:
    """CPU time of `KMixup(k)(x, y)` relative to peers; below 1 is faster."""
    rows = []
    for shape, k in CALLS:
        row = [str(shape), str(k)]
        for settings in HEAPS.values():
            row += measured("calls", f"ratios({shape}, {k}, {seconds / 2})", settings)
        memory = float(measured("calls", f"peak({shape}, {k})", HEAPS["reused heap"])[0])
        rows.append([*row, f"{memory:.1f} MB"])
    name = "torchvision" if mixup() is not mixup_by_roll else "roll"
    peers = ("by hand", "bare", f"mixup by {name}")
    columns = [f"/ {peer}, {heap}" for heap in HEAPS for peer in peers]
    table(
        "CPU time of one call of KMixup(k) on one thread, as a multiple of its peers', and memory "
        "beyond inputs and outputs",
        ["batch", "k", *columns, "memory"],
        rows,
    )


def ratios(shape: tuple[int, ...], k: int, seconds: float) -> None:
    """Print the ratios of a call's time to those of k-mixup by hand and of mixup."""
    torch.set_num_threads(1)
    x, y = torch.rand(shape), torch.randint(CLASSES, shape[:1])
    contenders: dict[str, Callable[[], object]] = {
        "kmixup": partial(kmixup.KMixup(k, 1.0, CLASSES), x, y),
        "hand": partial(by_hand, x, y, k),
        "bare": partial(Bare(x, k), x, y),
        "mixup": partial(mixup(), x, y),
    }
    timed = interleaved(contenders, seconds=seconds, clock=time.process_time)
    names = ("hand", "bare", "mixup")
    print(*(f"{timed.ratio('kmixup', peer):.2f}" for peer in names), sep="\n")


def growth(seconds: float) -> None:
    """How the cost of matching grows with k and d, per sample, against three peers."""
    peers = {"scipy": inner_products, "POT": pot, "paper's pseudocode": pseudocode}
    rows = []
    for d in GROWTH_D:
        for k in GROWTH_K:
            n = 2 * max(k, 64)
            if 2 * n * d > LARGEST:
                continue
            x1, x2 = torch.randn(2, n, d)
            contenders: dict[str, Callable[[], object]] = {
                "kmixup": partial(kmixup.match, x1, x2, k=k)
            }
            contenders |= {name: partial(peer, x1, x2, k) for name, peer in peers.items()}
            timed = interleaved(contenders, seconds=seconds / 4, least=1, clock=time.process_time)
            ratios = [f"{timed.ratio(peer, 'kmixup'):.3g} x" for peer in peers]
            rows.append([str(d), str(k), stopwatch(timed.best("kmixup") / n), *ratios])
    table(
        "Matching one sample in d dimensions: CPU time, and how much longer each peer takes",
        ["d", "k", "kmixup", *peers],
        rows,
    )


def measured(module: str, call: str, settings: dict[str, str]) -> list[str]:
    """Return the lines that a call prints in a process of its own with a given heap."""
    code = f"from benchmarks.{module} import *; {call}"
    environment = {**os.environ, **settings}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def peak(shape: tuple[int, ...], k: int) -> None:
    """Print the growth of this process's peak memory in one call, less the size of its output."""
    torch.set_num_threads(1)
    mix = kmixup.KMixup(k, 1.0, CLASSES)
    mix(torch.rand(2 * k, 70), torch.randint(CLASSES, (2 * k,)))  # loads everything
    x, y = torch.rand(shape), torch.randint(CLASSES, shape[:1])
    with open("/proc/self/clear_refs", "w") as peaks:
        peaks.write("5")  # forget the peak so far
    before = _status("VmRSS")
    mixed = mix(x, y)
    grown = _status("VmHWM") - before
    print((grown - sum(part.nbytes for part in mixed)) / 1e6)


def _status(name: str) -> int:
    """A size from /proc/self/status, in bytes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
