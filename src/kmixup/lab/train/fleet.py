"""Many trials of one small network at once: one network with a leading dimension.

Twenty trials are twenty members of a fleet. Each keeps its own split, first weights, order,
partners and lam; members share the calls and nothing else. On one thread a member ends in the
same bits in a fleet of any size, and when `train` runs it alone: `torch.baddbmm` rounds one
product as it rounds many, and all else is done element by element. A regression has one output,
a product with a vector, which libraries round differently: there figures agree to six digits.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from kmixup.lab.data import Dataset
from kmixup.lab.models.mlp import Affine, affine
from kmixup.lab.train import record
from kmixup.lab.train.config import Trial, variant_words
from kmixup.lab.train.loop import TEST_BATCH, Trained
from kmixup.lab.train.members import Members
from kmixup.lab.train.setup import (
    DivergedError,
    check_data,
    diverged,
    load_data,
    network,
    optimiser_of,
    set_rate,
    strengths,
)
from kmixup.lab.train.streams import BatchRows, Streams, epoch


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

    >>> from kmixup.lab.train.config import Protocol
    >>> from kmixup.lab.train.config import Method
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
    for trial, dataset in zip(trials, data, strict=True):
        check_data(trial, dataset)
    ended: dict[int, Trained | DivergedError] = {}
    for group in _of_one_shape(data):
        some = _train([trials[i] for i in group], [data[i] for i in group])
        ended.update(zip(group, some, strict=True))
    return [ended[i] for i in range(len(trials))]


def _of_one_shape(data: Sequence[Dataset]) -> list[list[int]]:
    """Positions of data sets whose inputs have the same shape.

    The inputs of a table with blanks or rare categories are fitted to its training rows, so
    their number can change with the split.
    """
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for i, dataset in enumerate(data):
        groups[dataset.shape, dataset.outputs, len(dataset.x_train)].append(i)
    return list(groups.values())


def _train(trials: Sequence[Trial], data: Sequence[Dataset]) -> list[Trained | DivergedError]:
    """Run trials whose networks are of one shape."""
    mixing = strengths(trials, data)
    streams = [Streams(trial.seed) for trial in trials]
    nets = [network(*start) for start in zip(trials, data, streams, strict=True)]
    layers = _stacked(nets)
    members = Members.of(trials, data, [strength.alpha for strength in mixing])

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
        tested = protocol.tests(number)
        errors = [
            float(objective.error(logits[i], members.y_test[i])) if tested else None
            for i, objective in enumerate(members.objectives)
        ]
        finite = logits.isfinite().all((1, 2)) & losses.isfinite()
        for i in (~finite).nonzero().flatten().tolist():
            failures.setdefault(i, diverged(number, rate))
        seconds = (time.perf_counter() - start) / len(trials)
        figures = zip(losses.tolist(), accuracies.tolist(), errors, strict=True)
        for history, (loss, accuracy, error) in zip(histories, figures, strict=True):
            history.append(record.figures(number + 1, rate, loss, accuracy, error, seconds))

    ended: list[Trained | DivergedError] = []
    for i, (trial, net, dataset) in enumerate(zip(trials, nets, data, strict=True)):
        if i in failures:
            ended.append(failures[i])
            continue
        _put_back(net, layers, i)
        result = members.objectives[i].scores(logits[i], members.y_test[i])
        written = record.describe(
            trial, dataset, histories[i], result, strength=mixing[i], device="cpu"
        )
        ended.append(Trained(net, written))
    return ended


Layers = list[tuple[Tensor, Tensor]]  # weights (m, out, in) and biases (m, out)


def _epoch(
    layers: Layers,
    optimiser: torch.optim.Optimizer,
    steps: list[tuple[BatchRows, ...]],
    members: Members,
) -> tuple[Tensor, Tensor]:
    """Train all members for one epoch; the mean loss and accuracy of each, `(m,)`."""
    total = torch.zeros(len(members), dtype=torch.float64)
    met, whole = torch.zeros(2, len(members))
    for step in steps:
        x, y = members.batch(step)
        optimiser.zero_grad()
        outputs = _forward(layers, x)
        losses = members.task.loss(outputs, y, x.shape[1])
        losses.sum().backward()
        optimiser.step()
        total += losses.detach().double() * x.shape[1]
        part_met, part = members.task.fit(outputs, y)
        met, whole = met + part_met, whole + part
    return total / members.n, met / whole


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


def _layers_of(net: nn.Module) -> list[Affine]:
    kinds = (Affine, nn.ReLU, nn.Flatten)
    if not isinstance(net, nn.Sequential) or not all(isinstance(part, kinds) for part in net):
        raise ValueError(
            f"a fleet is of MLPs, one of the models mlp-…, got {type(net).__name__}: use train"
        )
    return [part for part in net if isinstance(part, Affine)]


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
    for trial in trials:
        if reason := why_alone(trial):
            raise ValueError(f"{reason}: use train")


def why_alone(trial: Trial) -> str | None:
    """Why a trial cannot be a member of a fleet; None where it can, if its network is an MLP."""
    method, protocol = trial.method, trial.protocol
    if not method.entry.plain:
        return f"a fleet cannot train with the method {method.name}"
    if method.pairing == "reshuffle":
        return 'pairing must be "loaders" or "batch" in a fleet, got "reshuffle"'
    if words := variant_words(method):
        return f"a fleet cannot train with the method {method.name} {', '.join(words)}"
    if trial.shifts:
        names = " and ".join(name for name, _ in trial.shifts)
        return f"{names} are of images, a fleet has none"
    if protocol.precision != "fp32":
        return f"precision must be fp32 in a fleet, got {protocol.precision}"
    for name in ("layout", "drop_last", "clean_pass"):
        if getattr(protocol, name) is not None:
            return f"{name} must be left out in a fleet, got {getattr(protocol, name)}"
    return None
