"""Train many small networks at once, as a batched ensemble: one network with a leading dimension.

Members share only the calls. On one thread a member is bitwise identical in a fleet of any size and
when `train` runs it alone: `torch.baddbmm` rounds one product as it rounds many, and everything
else is elementwise. A regression has one output, a product with a vector, which libraries round
differently: there scores agree to six digits.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.func import stack_module_state

from kmixup.coefficient import LEAST, MOST, Beta, Coefficient, beta_quantiles
from kmixup.lab import _provenance
from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.tasks import objective_of, smoothed
from kmixup.lab.models import network
from kmixup.lab.models.mlp import affine
from kmixup.lab.train import record, setup
from kmixup.lab.train.loop import TEST_BATCH, Trained
from kmixup.lab.train.step import mixer_of
from kmixup.lab.train.streams import BatchRows, Streams, epoch
from kmixup.lab.trial import Trial, variant_words
from kmixup.matching import Blocks, LamPer
from kmixup.matching._assignment import Indices
from kmixup.mixed import PairDraw
from kmixup.mixer import Mixer


@dataclass(frozen=True, eq=False)
class FleetBlocks(Blocks):
    """Blocks of equally long batches, end to end; no block crosses from one into the next."""

    batches: int = field(kw_only=True)

    @property
    def length(self) -> int:
        """The number of samples in each batch."""
        return self.n // self.batches

    def pairs(self) -> list[tuple[Indices, Indices]]:
        starts = self.length * np.arange(self.batches)[:, None, None]

        def in_all(rows: Indices) -> Indices:
            return (rows + starts).reshape(-1, rows.shape[1])

        alone = Blocks(self.length, self.k).pairs()
        return [(in_all(own), in_all(facing)) for own, facing in alone]

    def lam_shape(self, per: LamPer) -> tuple[int, ...]:
        return (self.batches,)

    def lam_index(self, per: LamPer) -> Tensor:
        return torch.arange(self.n) // self.length


@dataclass(frozen=True)
class PerBatch(Coefficient):
    """One distribution of lam for each batch; all mix, or none does."""

    batches: tuple[Beta, ...]

    @property
    def mixes(self) -> bool:
        return self.batches[0].mixes

    def lam(self, u: Tensor, distance: Tensor | None = None) -> Tensor:
        alphas = np.array([one.alpha for one in self.batches])
        return beta_quantiles(alphas.clip(LEAST, MOST), u)


Layers = list[tuple[Tensor, Tensor]]  # weights (m, out, in) and biases (m, out)


def train_fleet(
    trials: Sequence[Trial], *, data: Sequence[Dataset] | None = None
) -> list[Trained | setup.DivergedError]:
    """Run trials that differ only in their seed and their method, on the CPU.

    Args:
        trials: of one MLP on one data set with one protocol.
        data: the data of each trial, if they are loaded already.

    Returns:
        What `train` would return for each trial or, for one that diverged, the error it would
        raise. The seconds in a record are the fleet's, divided by the number of members.

    >>> from kmixup.lab.trial import Method, Protocol
    >>> trial = Trial("iris", "mlp-iris", protocol=Protocol(epochs=2))
    >>> len(train_fleet([trial, replace(trial, seed=1), replace(trial, method=Method("erm"))]))
    3
    """
    for trial in trials:
        if replace(trial, seed=trials[0].seed, method=trials[0].method) != trials[0]:
            raise ValueError(
                "the trials of a fleet may differ only in seed and method, got "
                f"{trial} and {trials[0]}"
            )
        if not fits_fleet(trial):
            raise ValueError(
                f"a fleet cannot train with the network, method or protocol of {trial}: use train"
            )
    if data is None:  # they depend only on the seed
        by_seed = {trial.seed: trial for trial in trials}
        loaded = {seed: setup.load_data(trial) for seed, trial in by_seed.items()}
        data = [loaded[trial.seed] for trial in trials]
    # a table with blanks or rare categories is encoded by its training rows, so the number of its
    # inputs can change with the split
    alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for i, (trial, dataset) in enumerate(zip(trials, data, strict=True)):
        setup.check_data(trial, dataset)
        alike[dataset.shape, dataset.outputs, len(dataset.x_train)].append(i)
    ended: dict[int, Trained | setup.DivergedError] = {}
    for group in alike.values():
        some = _train([trials[i] for i in group], [data[i] for i in group])
        ended.update(zip(group, some, strict=True))
    return [ended[i] for i in range(len(trials))]


def _train(trials: Sequence[Trial], data: Sequence[Dataset]) -> list[Trained | setup.DivergedError]:
    """Run trials whose networks have the same shape."""
    mixing = setup.strengths(trials, data)
    streams = [Streams(trial.seed) for trial in trials]
    nets = [setup.network(*start) for start in zip(trials, data, streams, strict=True)]
    weights, _ = stack_module_state(nets)  # by name, weight and bias of each layer in turn
    stacked = list(weights.values())
    layers = list(zip(stacked[::2], stacked[1::2], strict=True))
    members = _Members(trials, data, [strength.alpha for strength in mixing])
    protocol = trials[0].protocol
    optimiser = setup.optimiser_of(stacked, protocol)
    histories: list[record.History] = [[] for _ in trials]
    failures: dict[int, setup.DivergedError] = {}
    for number in range(protocol.epochs):
        start = time.perf_counter()
        drawn = [
            epoch(trial, members.n, strength.alpha, stream)
            for trial, strength, stream in zip(trials, mixing, streams, strict=True)
        ]
        steps = list(zip(*drawn, strict=True))
        rates = [protocol.rate_at(number * len(steps) + i, len(steps)) for i in range(len(steps))]
        losses, accuracies = _epoch(layers, optimiser, rates, steps, members)
        logits = _logits(layers, members.x_test)
        tested = protocol.tests(number)
        errors = members.errors(logits) if tested else [None] * len(trials)
        finite = logits.isfinite().all((1, 2)) & losses.isfinite()
        for i in (~finite).nonzero().flatten().tolist():
            failures.setdefault(i, setup.diverged(number, rates[-1]))
        seconds = (time.perf_counter() - start) / len(trials)
        measured = zip(losses.tolist(), accuracies.tolist(), errors, strict=True)
        for history, (loss, accuracy, error) in zip(histories, measured, strict=True):
            history.append(record.entry(number + 1, rates[-1], loss, accuracy, error, seconds))

    on_training = _logits(layers, members.x[:, record.training_rows(members.n)])
    on_final: Sequence[Tensor | None] = [None] * len(trials)
    if members.x_final is not None:
        on_final = list(_logits(layers, members.x_final))
    machine = _provenance.machine()
    ended: list[Trained | setup.DivergedError] = []
    for i, (trial, net, dataset) in enumerate(zip(trials, nets, data, strict=True)):
        if i in failures:
            ended.append(failures[i])
            continue
        net.load_state_dict({name: value[i] for name, value in weights.items()})
        outputs = members.objectives[i], logits[i], on_training[i], on_final[i]
        written = record.describe(trial, dataset, histories[i], *outputs, mixing[i], machine)
        ended.append(Trained(net, written))
    return ended


def _epoch(
    layers: Layers,
    optimiser: torch.optim.Optimizer,
    rates: list[float],
    steps: list[tuple[BatchRows, ...]],
    members: _Members,
) -> tuple[Tensor, Tensor]:
    """Train all members for one epoch; return the mean loss and accuracy of each, `(m,)`."""
    task = members.objectives[0]  # members differ only in how errors are measured
    total = torch.zeros(len(members.objectives), dtype=torch.float64)
    met, whole = torch.zeros(2, len(members.objectives))
    for rate, step in zip(rates, steps, strict=True):
        optimiser.param_groups[0]["lr"] = rate
        x, y = members.mix(step)
        optimiser.zero_grad()
        outputs = _forward(layers, x)
        losses = task.loss(outputs, y, x.shape[1])
        losses.sum().backward()
        optimiser.step()
        total += losses.detach().double() * x.shape[1]
        part_met, part = task.fit(outputs, y)
        met, whole = met + part_met, whole + part
    return total / members.n, met / whole


class _Members:
    """Data of all members, `(m, n, ...)`, and a mixer for each group that pairs in the same way."""

    def __init__(
        self, trials: Sequence[Trial], data: Sequence[Dataset], alphas: Sequence[float]
    ) -> None:
        weighting = trials[0].class_weights
        self.smoothing = trials[0].protocol.label_smoothing
        self.objectives = [objective_of(dataset, weighting) for dataset in data]
        weights = [each.class_weights for each in self.objectives if each.class_weights is not None]
        self.class_weights = torch.stack(weights).unsqueeze(1) if weights else None
        self.x = torch.stack([each.normalise(each.x_train).flatten(1) for each in data])
        self.y = torch.stack([each.y_train for each in data])
        self.x_test = torch.stack([each.normalise(each.x_test).flatten(1) for each in data])
        self.y_test = torch.stack([each.y_test for each in data])
        final = [each.normalise(each.x_final).flatten(1) for each in data if len(each.x_final)]
        self.x_final = torch.stack(final) if final else None
        self.n = self.x.shape[1]
        self.groups = _groups(trials, alphas, self.objectives[0].num_classes)

    def mix(self, steps: Sequence[BatchRows]) -> tuple[Tensor, Tensor]:
        """Return a mixed batch of every member: `(m, b, d)` and targets `(m, b, outputs)`."""
        if len(self.groups) == 1:
            x, y = self._mix_group(*self.groups[0], steps)
        else:
            m, b = len(self.objectives), len(steps[0].first)
            x = self.x.new_empty(m, b, self.x.shape[2])
            y = self.x.new_empty(m, b, self.objectives[0].num_classes or 1)
            for members, mixer in self.groups:
                x[members], y[members] = self._mix_group(members, mixer, steps)
        y = smoothed(y, self.smoothing)
        return x, y if self.class_weights is None else y * self.class_weights

    def errors(self, logits: Tensor) -> Sequence[float | None]:
        """Return the test error of every member."""
        tested = zip(self.objectives, logits, self.y_test, strict=True)
        return [float(objective.error(*member)) for objective, *member in tested]

    def _mix_group(
        self, members: Tensor, mixer: Mixer, steps: Sequence[BatchRows]
    ) -> tuple[Tensor, Tensor]:
        mine = [steps[i] for i in members.tolist()]
        first = torch.stack([step.first for step in mine])
        g, b = first.shape
        second = [step.second for step in mine if step.second is not None]  # none if nothing mixes
        other = self._rows(members, torch.stack(second)) if second else None
        blocks = FleetBlocks(g * b, min(mixer.k, b), batches=g)
        draw = PairDraw(blocks, torch.stack([step.u for step in mine]))
        mixed = mixer.mix(*self._rows(members, first), draw, other=other)
        return mixed.x.view(g, b, -1), mixed.y.view(g, b, -1)

    def _rows(self, members: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        """Return inputs `(g · b, d)` and targets of samples `(g, b)` of members `(g,)`."""
        flat = (index + self.n * members[:, None]).flatten()
        y = self.y.flatten().index_select(0, flat)
        return self.x.flatten(0, 1).index_select(0, flat), self.objectives[0].targets(y)


def _groups(
    trials: Sequence[Trial], alphas: Sequence[float], classes: int | None
) -> list[tuple[Tensor, Mixer]]:
    """Return the numbers of the members that pair in the same way, and their mixer."""
    alike: dict[object, list[tuple[int, Mixer]]] = defaultdict(list)
    for i, (trial, alpha) in enumerate(zip(trials, alphas, strict=True)):
        mixer = cast(Mixer, mixer_of(trial.method, alpha, classes))
        alike[mixer.pairing if mixer.coefficient.mixes else None].append((i, mixer))
    groups = []
    for members in alike.values():
        numbers, mixers = zip(*members, strict=True)
        mixer = copy(mixers[0])
        mixer.coefficient = PerBatch(tuple(cast(Beta, each.coefficient) for each in mixers))
        groups.append((torch.tensor(numbers), mixer))
    return groups


def _forward(layers: Layers, x: Tensor) -> Tensor:
    for weight, bias in layers[:-1]:
        x = affine(x, weight, bias).relu()
    return affine(x, *layers[-1])


@torch.no_grad()
def _logits(layers: Layers, x: Tensor) -> Tensor:
    """Return the logits of clean samples, in the same batches as alone: `(m, n, classes)`."""
    return torch.cat([_forward(layers, part) for part in torch.split(x, TEST_BATCH, dim=1)], dim=1)


def fits_fleet(trial: Trial) -> bool:
    """Whether a trial can be trained in a fleet."""
    method, protocol = trial.method, trial.protocol
    special = (
        trial.shifts, protocol.augment, protocol.layout, protocol.drop_last, protocol.clean_pass
    )  # fmt: skip
    return (
        trial.model.startswith("mlp-")
        and network(trial.model) is not None
        and method.entry.plain
        and method.pairing == "loaders"
        and protocol.precision == "fp32"
        and not variant_words(method)
        and not any(special)
    )
