"""k beyond the batch, other metrics, and mixing beside the training step: what they cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import kmixup
from benchmarks.tables import table
from benchmarks.training import lenet, small_resnet, step_of
from kmixup.lab.formatting import stopwatch
from kmixup.lab.timing import interleaved

KEPT = 512  # samples of a memory
STEPS = 10  # of a loop with and without Prefetch


def memory(seconds: float) -> None:
    rows = []
    for name, build, sample in (
        ("LeNet", lenet, (1, 28, 28)),
        ("small ResNet", small_resnet, (3, 32, 32)),
    ):
        for n in (16, 32):
            x, y = torch.randn(n, *sample), torch.randint(10, (n,))
            mixers: dict[int, kmixup.Mixing] = {0: kmixup.KMixup(n // 2, 1.0, 10)}
            for k in (64, 256):
                mixers[k] = kmixup.Memory(kmixup.KMixup(k, 1.0, 10), KEPT)
                for _ in range(KEPT // n):
                    mixers[k](torch.randn_like(x), y)
            net = build()
            calls: dict[str, Callable[[], object]] = {
                f"call {k}": partial(mix, x, y) for k, mix in mixers.items()
            }
            calls |= {f"step {k}": step_of(net, x, y, mix) for k, mix in mixers.items()}
            # in CPU time, since a call is short and on one thread
            timed = interleaved(calls, seconds=2 * seconds, clock=time.process_time)
            rows += [
                [
                    f"{name} {tuple(x.shape)}",
                    str(k),
                    f"{_megabytes(mixers[k]):.1f} MB",
                    stopwatch(timed.best("call 0")),
                    stopwatch(timed.best(f"call {k}")),
                    f"{timed.ratio(f'step {k}', 'step 0'):.2f} x",
                ]
                for k in (64, 256)
            ]
    table(
        f"k beyond the batch, with a memory of {KEPT} samples",
        ["network, batch", "k", "kept", "call without, k = n/2", "call", "training step"],
        rows,
    )


def _megabytes(mix: kmixup.Mixing) -> float:
    """What the memory of a mixer holds."""
    state: dict[str, Any] = mix.state_dict()["_extra_state"]
    tensors: list[Tensor] = [tensor for kept in state["rows"].values() for tensor in kept]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors) / 1e6


def labels(seconds: float) -> None:
    rows = []
    for shape in ((64, 1, 28, 28), (128, 3, 32, 32), (128, 30)):
        x, y = torch.randn(shape), torch.randint(10, shape[:1])
        calls = {str(c): partial(kmixup.KMixup(16, 1.0, 10, labels=float(c)), x, y) for c in (0, 1)}
        timed = interleaved(calls, seconds=seconds, clock=time.process_time)
        rows.append([str(shape), *(stopwatch(timed.best(c)) for c in calls)])
    table("A call that looks at labels, k = 16", ["batch", "labels = 0", "labels = 1"], rows)


def prefetch(seconds: float) -> None:
    rows = []
    for name, build, shape, k in (
        ("LeNet", lenet, (128, 1, 28, 28), 64),
        ("small ResNet", small_resnet, (128, 3, 32, 32), 64),
        ("LeNet", lenet, (1024, 1, 28, 28), 512),
    ):
        batches = [(torch.randn(shape), torch.randint(10, shape[:1])) for _ in range(STEPS)]
        net = build()
        generator = torch.Generator().manual_seed(0)
        mix = kmixup.KMixup(k, 1.0, 10, generator=generator)
        calls: dict[str, Callable[[], object]] = {
            "ERM": partial(_train, net, [(x, F.one_hot(y, 10).float()) for x, y in batches]),
            "plain": partial(_train_mixed, net, batches, mix),
            "ahead": partial(_train, net, kmixup.Prefetch(batches, mix)),
        }
        timed = interleaved(calls, seconds=2 * seconds, least=3)
        rows.append(
            [
                f"{name} {shape}",
                str(k),
                stopwatch(timed.best("ERM") / STEPS),
                f"{timed.ratio('plain', 'ERM'):.3f} x",
                f"{timed.ratio('ahead', 'ERM'):.3f} x",
            ]
        )
    table(
        "A training step with k-mixup, mixed in the loop and beside it, relative to ERM",
        ["network, batch", "k", "ERM", "in the loop", "Prefetch"],
        rows,
    )


def _train_mixed(
    net: nn.Module, batches: Iterable[tuple[Tensor, Tensor]], mix: kmixup.KMixup
) -> None:
    _train(net, (mix(x, y) for x, y in batches))


def _train(net: nn.Module, batches: Iterable[tuple[Tensor, Tensor]]) -> None:
    """Steps of SGD on batches with soft targets."""
    optimiser = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    for x, y in batches:
        optimiser.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimiser.step()
