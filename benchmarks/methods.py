"""The cost of each method relative to mixup: of a call, and of a training step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import kmixup
from benchmarks.tables import milliseconds, table
from benchmarks.training import lenet, small_resnet
from kmixup.lab.timing import Timings, interleaved
from kmixup.mixing import Mixing

BATCHES = [((128, 1, 28, 28), 16), ((128, 3, 32, 32), 16), ((256, 3, 224, 224), 16)]


def named(k: int) -> dict[str, Mixing]:
    """Mixup first, then all others."""
    stages = kmixup.Beta(1.0), kmixup.Linear()
    return {
        "mixup": kmixup.KMixup(1, 1.0, 10),
        "k-mixup": kmixup.KMixup(k, 1.0, 10),
        "nearest": kmixup.Mixer(kmixup.Nearest(k), *stages, num_classes=10),
        "CutMix": kmixup.CutMix(1, 1.0, 10),
        "k-CutMix": kmixup.CutMix(k, 1.0, 10),
        "local": kmixup.LocalMixup(1, 1.0, 10),
        "k-local": kmixup.LocalMixup(k, 1.0, 10),
        "choice": kmixup.Choice([kmixup.KMixup(k, 1.0, 10), kmixup.CutMix(k, 1.0, 10)]),
    }


def call(mix: Mixing, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor | None]:
    """All that a loss needs: mixed inputs, soft targets, and weights if there are any."""
    m = mix.draw(x, y)
    return m.y, m.weight


def step_of(net: nn.Module, run: Callable[[], tuple[Tensor, Tensor]]) -> Callable[[], None]:
    """One step of SGD on the logits and soft targets that `run` gives."""
    optimiser = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)

    def step() -> None:
        optimiser.zero_grad()
        F.cross_entropy(*run()).backward()
        optimiser.step()

    return step


def inputs_mixed(net: nn.Module, mix: kmixup.KMixup, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    mixed, soft = mix(x, y)
    return net(mixed), soft


def methods(seconds: float) -> None:
    rows = []
    for shape, k in BATCHES:
        x, y = torch.randn(shape), torch.randint(10, shape[:1])
        mixers = named(k)
        calls = {name: partial(call, mix, x, y) for name, mix in mixers.items()}
        rows.append([str(shape), str(k), *_relative(interleaved(calls, seconds=seconds), "mixup")])
    table(
        "A whole call of each method, relative to mixup",
        ["batch", "k", *named(1)],
        rows,
    )

    rows = []
    for title, net, shape, layer in (
        ("LeNet", lenet(), (128, 1, 28, 28), "2"),
        ("small ResNet", small_resnet(), (128, 3, 32, 32), "2"),
    ):
        x, y = torch.randn(shape), torch.randint(10, shape[:1])
        steps = {"mixup": step_of(net, partial(inputs_mixed, net, kmixup.KMixup(1, 1.0, 10), x, y))}
        for k in (1, 16):
            hidden = kmixup.HiddenMixup(net, [layer], k=k, num_classes=10)
            steps[f"hidden, k={k}"] = step_of(net, partial(hidden, x, y))
        timed = interleaved(steps, seconds=5 * seconds)
        rows.append([f"{title} {shape}", layer, *_relative(timed, "mixup")])
    table(
        "A training step with a hidden layer mixed, relative to mixup",
        ["network, batch", "layer", "mixup", "manifold mixup", "k = 16"],
        rows,
    )


def _relative(timed: Timings, base: str) -> list[str]:
    """Time of the base, and ratios of all others to it."""
    others = [name for name in timed.turns if name != base]
    return [milliseconds(timed.best(base)), *(f"{timed.ratio(o, base):.2f} x" for o in others)]
