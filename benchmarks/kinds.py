"""The whole call on every kind of data, against k-mixup written by hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial

import torch
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn import functional as F

import kmixup
from benchmarks.calls import CLASSES, HEAPS, by_hand, measured
from benchmarks.tables import table
from kmixup.lab.data import load
from kmixup.lab.formatting import stopwatch
from kmixup.lab.timing import interleaved

N, JITTER = 128, 0.03


@cache
def images(name: str) -> Tensor:
    """Return images in [0, 1]."""
    if name == "digits":  # 8 × 8, so that they are smooth at 28 × 28
        x = torch.from_numpy(load_digits().images).float()[:, None] / 16
        return F.interpolate(x, 28, mode="bilinear")
    return load(name, limit=10_000).x_test.float() / 255


def some(name: str, n: int = N, size: int | None = None) -> Tensor:
    """Return random images, perhaps of three channels and another size."""
    x = images(name)
    x = x[torch.randperm(len(x))[:n]]
    return x if size is None else F.interpolate(x, size, mode="bilinear").expand(-1, 3, -1, -1)


def twice(x: Tensor, jitter: float) -> Tensor:
    """Return two copies of each image of the first half, with noise, in random order."""
    half = x[: len(x) // 2]
    both = torch.cat([half, half])
    return (both + jitter * torch.randn_like(both))[torch.randperm(len(both))]


KINDS: dict[str, tuple[Callable[[], Tensor], int]] = {
    "uniform noise, 3 × 32²": (lambda: torch.rand(N, 3, 32, 32), 16),
    "MNIST": (lambda: some("mnist"), 16),
    "CIFAR-10": (lambda: some("cifar10"), 16),
    "CIFAR-10, exact copies": (lambda: twice(some("cifar10"), 0), 16),
    "smooth digits, 28²": (lambda: some("digits"), 16),
    "smooth digits, 28², k = 64": (lambda: some("digits"), 64),
    "1 − MNIST": (lambda: 1 - some("mnist"), 16),
    "1 − MNIST, 3 × 112²": (lambda: 1 - some("mnist", N, 112), 16),
    "0.5 · CIFAR-10 + 0.5": (lambda: 0.5 * some("cifar10") + 0.5, 16),
    "CIFAR-10 + 10⁴": (lambda: some("cifar10") + 1e4, 16),
    "CIFAR-10, two jittered copies": (lambda: twice(some("cifar10"), JITTER), 16),
    "MNIST, two jittered copies": (lambda: twice(some("mnist"), JITTER), 16),
    "CIFAR-10 at 3 × 224², exact copies": (lambda: twice(some("cifar10", 64, 224), 0), 16),
    "clusters 10⁴ spreads apart": (
        lambda: torch.randn(N, 784) + 1e4 * (torch.rand(N, 1) < 0.5),
        16,
    ),
}


def kinds(seconds: float) -> None:
    """CPU time of `KMixup(k)(x, y)` relative to k-mixup by hand, on many kinds of data."""
    rows = []
    for name in KINDS:
        cells = [
            measured("kinds", f"ratio({name!r}, {seconds / 2})", settings)
            for settings in HEAPS.values()
        ]
        rows.append([name, *(cell for pair in cells for cell in pair)])
    table(
        "CPU time of one call of KMixup(k) on one thread, and as a multiple of k-mixup by hand",
        ["data", *(column for heap in HEAPS for column in (heap, "/ by hand"))],
        rows,
    )


def ratio(name: str, seconds: float) -> None:
    """Print the time of a call, and its ratio to that of k-mixup by hand."""
    torch.set_num_threads(1)
    build, k = KINDS[name]
    x = build().contiguous()
    y = torch.randint(CLASSES, (len(x),))
    contenders: dict[str, Callable[[], object]] = {
        "kmixup": partial(kmixup.KMixup(k, 1.0, CLASSES), x, y),
        "hand": partial(by_hand, x, y, k),
    }
    timed = interleaved(contenders, seconds=seconds, clock=time.process_time)
    print(stopwatch(timed.best("kmixup")), f"{timed.ratio('kmixup', 'hand'):.2f}", sep="\n")
