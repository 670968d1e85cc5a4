"""The members of a fleet: their data and mixers, and one mixed batch of all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor

from kmixup.coefficient import PerBatch
from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.tasks import Objective, objective_of
from kmixup.lab.train.config import Trial
from kmixup.lab.train.mixing import mixer_of
from kmixup.lab.train.streams import BatchRows
from kmixup.mixed import Draw
from kmixup.mixer import Mixer
from kmixup.randomness import Source


@dataclass(frozen=True)
class Members:
    """Data, mixers and objectives of all members.

    Attributes:
        groups: the members by how they pair, with their mixers.
        objectives: of each member; they differ in their figures alone.
        class_weights: of all members, `(m, 1, classes)`; None where all samples weigh alike.
        x, x_test: normalised inputs, `(m, n, d)`.
        y, y_test: targets, `(m, n)`.
    """

    groups: list[_Group]
    objectives: list[Objective]
    class_weights: Tensor | None
    x: Tensor
    y: Tensor
    x_test: Tensor
    y_test: Tensor

    @classmethod
    def of(
        cls, trials: Sequence[Trial], data: Sequence[Dataset], alphas: Sequence[float]
    ) -> Members:
        objectives = [
            objective_of(dataset, trial.class_weights)
            for trial, dataset in zip(trials, data, strict=True)
        ]
        weights = [
            objective.class_weights
            for objective in objectives
            if objective.class_weights is not None
        ]
        mixers = [
            cast(Mixer, mixer_of(trial.method, alpha, objectives[0].num_classes))
            for trial, alpha in zip(trials, alphas, strict=True)
        ]
        return cls(
            _groups(trials, mixers),
            objectives,
            torch.stack(weights).unsqueeze(1) if weights else None,
            torch.stack([dataset.normalise(dataset.x_train).flatten(1) for dataset in data]),
            torch.stack([dataset.y_train for dataset in data]),
            torch.stack([dataset.normalise(dataset.x_test).flatten(1) for dataset in data]),
            torch.stack([dataset.y_test for dataset in data]),
        )

    def __len__(self) -> int:
        return len(self.objectives)

    @property
    def n(self) -> int:
        return self.x.shape[1]

    @property
    def task(self) -> Objective:
        """What all members learn."""
        return self.objectives[0]

    def rows(self, which: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs `(g · b, d)` and targets of samples `index` `(g, b)` of members `which` `(g,)`."""
        flat = (index + self.n * which[:, None]).flatten()
        y = self.y.flatten().index_select(0, flat)
        return self.x.flatten(0, 1).index_select(0, flat), self.task.targets(y)

    def batch(self, steps: Sequence[BatchRows]) -> tuple[Tensor, Tensor]:
        """One batch of every member, mixed and weighted: `(m, b, d)` and `(m, b, outputs)`."""
        if len(self.groups) == 1:
            x, y = self.groups[0].mixed(steps, self)
        else:
            m, b = len(self), len(steps[0].first)
            x = self.x.new_empty(m, b, self.x.shape[2])
            y = self.x.new_empty(m, b, self.task.num_classes or 1)
            for group in self.groups:
                x[group.which], y[group.which] = group.mixed(steps, self)
        return x, y if self.class_weights is None else y * self.class_weights


@dataclass(frozen=True)
class _Group:
    """Members that pair alike, so that their batches are matched in one call.

    Attributes:
        which: the numbers of the members, `(g,)`.
        mixer: of all of them, with a distribution of lam for each.
    """

    which: Tensor
    mixer: Mixer

    def mixed(self, steps: Sequence[BatchRows], members: Members) -> tuple[Tensor, Tensor]:
        """The mixed batches `(g, b, d)` and targets `(g, b, outputs)`, from all `steps`."""
        mine = [steps[i] for i in self.which.tolist()]
        first = torch.stack([step.first for step in mine])
        g, b = first.shape
        source = FleetSource(torch.stack([step.u for step in mine]))
        draw = cast(Draw, self.mixer.sample(b, within=False, batches=g, source=source))
        x, y = members.rows(self.which, first)
        other = None
        if self.mixer.coefficient.mixes:
            facing = [step.second for step in mine if step.second is not None]
            if facing:
                second = torch.stack(facing)
            else:
                # a batch in random order meets itself, one block on, and so disjoint blocks meet
                k = self.mixer.pairing.draw(b).k
                draw = replace(draw, blocks=replace(draw.blocks, k=k))
                second = first.roll(-k, 1)
            other = members.rows(self.which, second)
        mixed = self.mixer.mix(x, y, draw, other=other)
        return mixed.x.view(g, b, -1), mixed.y.view(g, b, -1)


class FleetSource(Source):
    """The quantiles of lam of all members, which their streams have drawn already."""

    def __init__(self, u: Tensor) -> None:
        super().__init__()
        self.u = u

    def coin(self) -> float:
        return 0.0

    def quantiles(self, size: tuple[int, ...]) -> Tensor:
        return self.u.view(size)


def _groups(trials: Sequence[Trial], mixers: Sequence[Mixer]) -> list[_Group]:
    """The members whose partners come from alike blocks; those that do not mix are one group."""
    alike: dict[object, list[int]] = defaultdict(list)
    for i, (trial, mixer) in enumerate(zip(trials, mixers, strict=True)):
        mixes = mixer.coefficient.mixes
        alike[(mixer.pairing, trial.method.pairing) if mixes else None].append(i)
    groups = []
    for numbers in alike.values():
        together = copy(mixers[numbers[0]])
        together.coefficient = PerBatch(tuple(mixers[i].coefficient for i in numbers))
        groups.append(_Group(torch.tensor(numbers), together))
    return groups
