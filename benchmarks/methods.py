"""The cost of each method relative to mixup: of a call, and of a training step."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import kmixup
from benchmarks.tables import table
from benchmarks.training import lenet
from kmixup.lab.formatting import stopwatch
from kmixup.lab.timing import interleaved
from kmixup.mixer import Mixing

K = 16
BATCHES = [(128, 1, 28, 28), (128, 3, 32, 32), (64, 3, 224, 224)]
SMALL = 64  # the greatest side of images that all methods are timed on
BASE = "mixup"
each = nn.CrossEntropyLoss(reduction="none")

Build = Callable[[int], Mixing]


def itself(x: Tensor) -> Tensor:
    """Codecs that cost nothing: what remains is the cost of latent mixup without its model."""
    return x


def by_call() -> dict[str, Build]:
    """Methods that mix a batch without a network, by k."""
    stages = kmixup.Beta(1.0), kmixup.Linear()
    return {
        BASE: lambda k: kmixup.KMixup(k, 1.0, 10),
        "nearest neighbours": lambda k: kmixup.Mixer(kmixup.Nearest(k), *stages, num_classes=10),
        "CutMix": lambda k: kmixup.CutMix(k, 1.0, 10),
        "ResizeMix": lambda k: kmixup.ResizeMix(k, 10),
        "FMix": lambda k: kmixup.FMix(k, 1.0, 10),
        "SaliencyMix": lambda k: kmixup.SaliencyMix(k, 1.0, 10),
        "local mixup": lambda k: kmixup.LocalMixup(k, 1.0, 10),
        "similarity mixup": lambda k: kmixup.SimilarMixup(k, 1.0, 10),
        "RegMixup": lambda k: kmixup.RegMixup(k, 10.0, 10),
        "StackMix": lambda k: kmixup.StackMix(k, 10),
        "C-Mixup": lambda k: kmixup.CMixup(k),
        "latent mixup": lambda k: kmixup.LatentMixup(itself, itself, k, 1.0, 10),
    }


def by_importance() -> dict[str, Build]:
    """Methods that mix by the importance of pixels."""
    return {
        "GuidedMixup": lambda k: kmixup.GuidedMixup(k, 1.0, 10),
        "PuzzleMix": lambda k: kmixup.PuzzleMix(k, 1.0, 10),
        "Co-Mixup": lambda k: kmixup.CoMixup(k, 1.0, 10),
    }


def learned(net: nn.Module, shape: tuple[int, ...]) -> dict[str, Build]:
    """Methods that learn with the network."""
    return {
        "AdaMixup": lambda k: kmixup.AdaMixup(net, shape, k, 10),
        "AutoMix": lambda k: kmixup.AutoMix(net, shape, k, 1.0, 10),
    }


def call(mix: Mixing, x: Tensor, y: Tensor, importance: Tensor | None) -> tuple[Tensor, object]:
    """All that a loss needs: mixed inputs, soft targets, and weights if there are any."""
    m = mix.mix(x, y, importance=importance)
    return m.y, m.weight


def step_of(net: nn.Module, run: Callable[[], Tensor], mix: nn.Module) -> Callable[[], None]:
    """One step of SGD on the loss that `run` gives, of the network and of what a mixer learns."""
    weights = dict.fromkeys([*net.parameters(), *mix.parameters()])
    learning = [weight for weight in weights if weight.requires_grad]
    optimiser = torch.optim.SGD(learning, lr=1e-3, momentum=0.9)

    def step() -> None:
        optimiser.zero_grad()
        run().backward()
        optimiser.step()

    return step


def mixed_loss(net: nn.Module, mix: Mixing, x: Tensor, y: Tensor, *, salient: bool) -> Tensor:
    """The loss of a batch, mixed before the network; saliency is a part of the step."""
    m = mix.mix(x, y, importance=kmixup.saliency(net, x, y) if salient else None)
    return m.loss(each, net(m.x)).mean()


def hidden_loss(hidden: kmixup.HiddenMixup, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(*hidden(x, y))


def methods(seconds: float) -> None:
    print(f"\nk = {K}. A time is that of mixup, a ratio is to it; both are of the processor.")
    _calls(seconds)
    _steps(seconds)


def _calls(seconds: float) -> None:
    columns: dict[str, dict[str, str]] = {}
    for shape in BATCHES:
        x, y, importance = torch.randn(shape), torch.randint(10, shape[:1]), None
        builds = by_call()
        if shape[-1] <= SMALL:
            builds |= by_importance()
            importance = torch.rand(shape[0], *shape[2:]) ** 4
        calls = {}
        for name, build in builds.items():
            targets = torch.randn(len(y)) if name == "C-Mixup" else y
            for k in (1, K):
                given = importance if name in by_importance() else None
                calls[_name(name, k)] = partial(call, build(k), x, targets, given)
        columns[str(shape)] = _relative(calls, 4 * seconds)
    _table("A whole call of each method", columns)


def _steps(seconds: float) -> None:
    net, shape = lenet(), BATCHES[0]
    x, y = torch.rand(shape), torch.randint(10, shape[:1])
    steps = {}
    salient = by_importance()
    for name, build in {**by_call(), **salient, **learned(net, shape[1:])}.items():
        if name in ("C-Mixup", "StackMix"):  # another loss, another network
            continue
        for k in (1, K):
            mix = build(k)
            run = partial(mixed_loss, net, mix, x, y, salient=name in salient)
            steps[_name(name, k)] = step_of(net, run, mix)
    for k in (1, K):
        hidden = kmixup.HiddenMixup(net, ["2"], k=k, alpha=1.0, num_classes=10)
        steps[_name("manifold mixup", k)] = step_of(net, partial(hidden_loss, hidden, x, y), hidden)
    _table("A training step of LeNet", {str(shape): _relative(steps, 8 * seconds)})


def _name(name: str, k: int) -> str:
    return name if k == 1 else f"{name}, k = {k}"


def _relative(calls: Mapping[str, Callable[[], object]], seconds: float) -> dict[str, str]:
    """Time of mixup, and ratios of all others to it."""
    timed = interleaved(calls, seconds=seconds, clock=time.process_time)
    ratios = {name: f"{timed.ratio(name, BASE):.2f} x" for name in calls}
    return {**ratios, BASE: stopwatch(timed.best(BASE))}


def _table(title: str, columns: dict[str, dict[str, str]]) -> None:
    names = [name for name in next(iter(columns.values())) if ", k = " not in name]
    rows = [
        [name, *(column.get(_name(name, k), "") for column in columns.values() for k in (1, K))]
        for name in names
    ]
    head = [f"{shape}, k = {k}" for shape in columns for k in (1, K)]
    table(title, ["method", *head], rows)
