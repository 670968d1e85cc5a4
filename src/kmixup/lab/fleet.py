"""Many trials of one small network at once: one network with a leading dimension.

Twenty trials are twenty members of a fleet. Each keeps its own split, first weights,
order, partners and lam, and they share nothing but the time that a call takes. On one
thread a member ends in the same bits in any fleet, and run alone by `train`: the
products are batched (`torch.baddbmm`), which round alike whatever their number, and
all else is done element by element.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from kmixup.interpolation import Linear
from kmixup.lab import record
from kmixup.lab.batches import agreement, error_rate, partners, soft_cross_entropy, within_k
from kmixup.lab.data import Dataset
from kmixup.lab.evaluate import score_logits
from kmixup.lab.models.mlp import Linear as Layer
from kmixup.lab.models.mlp import affine
from kmixup.lab.prepare import (
    DivergedError,
    check_data,
    diverged,
    load_data,
    network,
    optimiser_of,
    set_rate,
    strengths,
)
from kmixup.lab.protocol import Method, Trial
from kmixup.lab.streams import Step, Streams, epoch
from kmixup.lab.train import TEST_BATCH, Trained
from kmixup.pairing import Pairing
from kmixup.targets import mix_targets


def train_fleet(
    trials: Sequence[Trial], *, data: Sequence[Dataset] | None = None
) -> list[Trained | DivergedError]:
    """Run trials that differ in their seed and their method alone, on the CPU.

    Args:
        trials: of one MLP on one data set with one protocol.
        data: the data of each where they are loaded already.

    Returns what `train` would return for each trial or, for one that diverged, the error
    it would raise: the others are not disturbed. The seconds of a record are the fleet's,
    divided by its members.

    >>> from kmixup.lab.protocol import Protocol
    >>> trial = Trial("iris", "mlp-iris", protocol=Protocol(epochs=2))
    >>> len(train_fleet([trial, replace(trial, seed=1), replace(trial, method=Method("erm"))]))
    3
    """
    _check_alike(trials)
    if data is None:  # it depends on the seed alone
        by_seed = {trial.seed: trial for trial in trials}
        loaded = {seed: load_data(trial) for seed, trial in by_seed.items()}
        data = [loaded[trial.seed] for trial in trials]
    if len(data) != len(trials):
        raise ValueError(f"data must have one entry for each of {len(trials)} trials: {len(data)}")
    for trial, one in zip(trials, data, strict=True):
        check_data(trial, one)
    mixing = strengths(trials, data)
    streams = [Streams(trial.seed) for trial in trials]
    nets = [network(*start) for start in zip(trials, data, streams, strict=True)]
    layers = _stacked(nets)
    members = _Members.of(trials, data)

    protocol = trials[0].protocol
    optimiser = optimiser_of([tensor for layer in layers for tensor in layer], protocol)
    histories: list[record.History] = [[] for _ in trials]
    failures: dict[int, DivergedError] = {}
    for number, rate in enumerate(protocol.rates()):
        start = time.perf_counter()
        set_rate(optimiser, rate)
        drawn = [
            epoch(trial, members.n, strength.alpha, stream)
            for trial, strength, stream in zip(trials, mixing, streams, strict=True)
        ]
        losses, accuracies = _epoch(layers, optimiser, list(zip(*drawn, strict=True)), members)
        logits = _logits(layers, members.x_test)
        errors = error_rate(logits, members.y_test).tolist()
        finite = logits.isfinite().all((1, 2)) & losses.isfinite()
        for i in (~finite).nonzero().flatten().tolist():
            failures.setdefault(i, diverged(number, rate))
        seconds = (time.perf_counter() - start) / len(trials)
        figures = zip(losses.tolist(), accuracies.tolist(), errors, strict=True)
        for history, (loss, accuracy, error) in zip(histories, figures, strict=True):
            history.append(record.figures(number + 1, rate, loss, accuracy, error, seconds))

    ended: list[Trained | DivergedError] = []
    for i, (trial, net, one) in enumerate(zip(trials, nets, data, strict=True)):
        if i in failures:
            ended.append(failures[i])
            continue
        _put_back(net, layers, i)
        result = score_logits(logits[i], members.y_test[i])
        written = record.describe(
            trial, one, histories[i], result, strength=mixing[i], device="cpu"
        )
        ended.append(Trained(net, written))
    return ended


@dataclass(frozen=True)
class _Members:
    """Data and methods of all members; normalised inputs `(m, n, d)`, classes `(m, n)`."""

    methods: list[Method]
    classes: int
    x: Tensor
    y: Tensor
    x_test: Tensor
    y_test: Tensor

    @classmethod
    def of(cls, trials: Sequence[Trial], data: Sequence[Dataset]) -> _Members:
        return cls(
            [trial.method for trial in trials],
            data[0].num_classes,
            torch.stack([one.normalise(one.x_train).flatten(1) for one in data]),
            torch.stack([one.y_train for one in data]),
            torch.stack([one.normalise(one.x_test).flatten(1) for one in data]),
            torch.stack([one.y_test for one in data]),
        )

    @property
    def n(self) -> int:
        return self.x.shape[1]

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Samples `index` `(m, b)` of each member, `(m, b, d)` and `(m, b)`."""
        m, b = index.shape
        flat = (index + self.n * torch.arange(m)[:, None]).flatten()
        x = self.x.flatten(0, 1).index_select(0, flat).view(m, b, -1)
        return x, self.y.flatten().index_select(0, flat).view(m, b)


Layers = list[tuple[Tensor, Tensor]]  # weights (m, out, in) and biases (m, out)


def _epoch(
    layers: Layers,
    optimiser: torch.optim.Optimizer,
    steps: list[tuple[Step, ...]],
    members: _Members,
) -> tuple[Tensor, Tensor]:
    """Train all members for one epoch; the mean loss and accuracy of each, `(m,)`."""
    total = torch.zeros(len(members.methods), dtype=torch.float64)
    right = torch.zeros(len(members.methods))
    for step in steps:
        x, y = _batch(step, members)
        optimiser.zero_grad()
        logits = _forward(layers, x)
        losses = soft_cross_entropy(logits, y, x.shape[1])
        losses.sum().backward()
        optimiser.step()
        total += losses.detach().double() * x.shape[1]
        right += agreement(logits, y)
    return total / members.n, right / members.n


def _batch(steps: Sequence[Step], members: _Members) -> tuple[Tensor, Tensor]:
    """One batch of every member, mixed: `(m, b, d)` and `(m, b, classes)`."""
    first = torch.stack([step.first for step in steps])
    m, b = first.shape
    second, groups = [], defaultdict(list)
    for i, (step, method) in enumerate(zip(steps, members.methods, strict=True)):
        rows, k = _facing(step, method)
        second.append(rows)
        groups[method.stage, k].append(i)
    x, y = members.rows(first)
    x2, y2 = members.rows(torch.stack(second))
    partner = (_partners(groups, x, x2) + b * torch.arange(m)[:, None]).flatten()
    lam = torch.stack([step.lam for step in steps]).repeat_interleave(b)
    mixed = Linear()(x.flatten(0, 1), x2.flatten(0, 1), partner, lam)
    partner_y = y2.flatten().index_select(0, partner)
    targets = mix_targets(y.flatten(), partner_y, lam, members.classes)
    return mixed.view(m, b, -1), targets.view(m, b, -1)


def _facing(step: Step, method: Method) -> tuple[Tensor, int]:
    """The samples that a member's batch is matched with, and the size of its blocks."""
    if method.alpha == 0:
        return step.first, 1
    if step.second is not None:
        return step.second, method.k
    k = within_k(method.k, len(step.first))
    return step.first.roll(-k), k


def _partners(groups: dict[tuple[Pairing, int], list[int]], x: Tensor, x2: Tensor) -> Tensor:
    """Partners `(m, b)`; members that pair alike are matched in one call."""
    if len(groups) == 1:
        ((stage, k),) = groups
        return partners(stage, x, x2, k)
    rows = torch.empty(x.shape[:2], dtype=torch.long)
    for (stage, k), those in groups.items():
        rows[those] = partners(stage, x[those], x2[those], k)
    return rows


def _forward(layers: Layers, x: Tensor) -> Tensor:
    for weight, bias in layers[:-1]:
        x = affine(x, weight, bias).relu()
    return affine(x, *layers[-1])


@torch.no_grad()
def _logits(layers: Layers, x: Tensor) -> Tensor:
    """Logits of the test part, in the same batches as alone: `(m, n, classes)`."""
    return torch.cat([_forward(layers, part) for part in torch.split(x, TEST_BATCH, dim=1)], dim=1)


def _stacked(nets: Sequence[nn.Module]) -> Layers:
    """Weights and biases of all networks, layer by layer."""
    columns = zip(*map(_layers_of, nets), strict=True)
    return [
        (
            torch.stack([layer.weight.detach() for layer in column]).requires_grad_(),
            torch.stack([layer.bias.detach() for layer in column]).requires_grad_(),
        )
        for column in columns
    ]


def _layers_of(net: nn.Module) -> list[Layer]:
    kinds = (Layer, nn.ReLU, nn.Flatten)
    if not isinstance(net, nn.Sequential) or not all(isinstance(part, kinds) for part in net):
        raise ValueError(
            f"a fleet is of MLPs, one of the models mlp-…, got {type(net).__name__}: use train"
        )
    return [part for part in net if isinstance(part, Layer)]


def _put_back(net: nn.Module, layers: Layers, member: int) -> None:
    with torch.no_grad():
        for layer, (weight, bias) in zip(_layers_of(net), layers, strict=True):
            layer.weight.copy_(weight[member])
            layer.bias.copy_(bias[member])


def _check_alike(trials: Sequence[Trial]) -> None:
    if not trials:
        raise ValueError("trials must have at least one member, got none")
    first = trials[0]
    for trial in trials:
        if replace(trial, seed=first.seed, method=first.method) != first:
            raise ValueError(
                "the trials of a fleet may differ in seed and method alone, "
                f"got {trial} and {first}"
            )
    for method in (trial.method for trial in trials):
        if not method.mixes_rows:
            raise ValueError(f"a fleet cannot train with the method {method.name}: use train")
    if first.noise or first.fgsm:
        raise ValueError("noise and fgsm are of images, a fleet has none: use train")
    if first.protocol.precision != "fp32":
        raise ValueError(f"precision must be fp32 in a fleet, got {first.protocol.precision}")
