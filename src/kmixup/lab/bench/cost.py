"""Measure what k-mixup adds to training: an epoch with each method, and the parts of a step.

Everything is timed in turns, on the same batches and on one CPU thread. Whole steps vary more
from turn to turn than the methods differ, so each part that a method adds is also timed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np
import torch
from torch import Tensor

from kmixup.lab.bench.timing import Timings, interleaved
from kmixup.lab.data import ENTRIES, Dataset, at_hand, load
from kmixup.lab.data.toy import noise
from kmixup.lab.evaluate.tasks import soft_cross_entropy
from kmixup.lab.train.config import Method, Protocol, Trial
from kmixup.lab.train.defaults import defaults_for
from kmixup.lab.train.setup import check_data, computing_on, network, optimiser_of
from kmixup.lab.train.step import Step, draw_of, gather, mixer_of
from kmixup.lab.train.streams import Streams, epoch
from kmixup.matching.assignment import Floats, solve
from kmixup.matching.points import as_rows
from kmixup.mixer import Mixer

KS = (1, 2, 4, 8, 16, 32, 64)
# Training is a step of ERM. Distance is all of the matching but the solver: norms, inner
# products, and the check that they have kept their digits. Mixing is of inputs and targets;
# ERM makes its targets one-hot as well, so that this little is counted twice.
PARTS = ("training", "second batch", "mixing", "distance", "assignment")
RATE = 1e-6  # the weights hardly move, so that every turn does the same work


@dataclass(frozen=True)
class MethodCost:
    """The cost of a method."""

    k: int | None  # None for ERM
    epoch: float  # seconds, timed in whole steps
    over_erm: float  # relative to an epoch of ERM
    parts: Mapping[str, float]  # seconds of each part of an epoch, timed alone

    @property
    def name(self) -> str:
        return "ERM" if self.k is None else "mixup" if self.k == 1 else f"k = {self.k}"

    @property
    def shares(self) -> dict[str, float]:
        """What each part is of all of them."""
        total = sum(self.parts.values())
        return {name: seconds / total for name, seconds in self.parts.items()}

    @property
    def added(self) -> float:
        """What mixing adds to a step of ERM, as a share of it."""
        training = self.parts["training"]
        return sum(self.parts.values()) / training - 1


@dataclass(frozen=True)
class Cost:
    """All measurements."""

    data: str
    model: str
    samples: int  # in an epoch
    dimensions: int  # of a sample
    batch_size: int
    steps: int  # batches in a turn
    turns: int
    rows: tuple[MethodCost, ...]  # one for each method

    @property
    def k(self) -> int:
        """The k to speak of: 32, as the paper does, or the largest below."""
        return max(row.k for row in self.rows if row.k is not None and row.k <= 32)

    def row(self, k: int | None) -> MethodCost:
        return next(row for row in self.rows if row.k == k)


def measure(
    name: str = "mnist",
    *,
    model: str | None = None,
    batch_size: int = 128,
    steps: int = 20,
    seconds: float = 60.0,
    say: Callable[[str], object] = lambda _: None,
) -> Cost:
    """Time ERM, mixup and k-mixup with k up to 64, or up to the size of a batch.

    Args:
        name: as in `kmixup.lab.data.load`. Noise of the same size replaces data that are not
            at hand.
        model: the network; by default the paper's for the data.
        batch_size: the lab's usual one by default.
        steps: batches in a turn of a contender.
        seconds: to spend on the methods, three turns at least.
        say: called with the current step.
    """
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"seconds must be a finite number, 0 or more, got {seconds}")
    protocol = Protocol(rate=RATE, batch_size=batch_size)
    data, samples = subject(name, batch_size, steps)
    usual = defaults_for(name, data)
    protocol = replace(protocol, augment=usual.protocol.augment)
    trial = Trial(name, model or usual.model, Method("mixup"), protocol)
    check_data(trial, data)
    with computing_on(1):  # on more, their pools disturb each other's turns
        bench = Bench(trial, data, steps)
        say(f"timing {data.title}, {trial.model}")
        timed = interleaved(bench.contenders(), seconds=seconds)
        per_epoch = samples / (bench.size * len(bench.steps))
        rows = [row(k, timed, per_epoch) for k in (None, *bench.ks)]
    return Cost(
        data.title,
        trial.model,
        samples,
        int(np.prod(data.shape)),
        bench.size,
        len(bench.steps),
        len(timed.turns["ERM"]),
        tuple(rows),
    )


def subject(name: str, batch_size: int, steps: int) -> tuple[Dataset, int]:
    """The data to time on, and the number of training samples in an epoch of them."""
    if name not in ENTRIES or at_hand(name):
        data = load(name)
        return data, len(data.x_train)
    entry = ENTRIES[name]
    title = f"noise of the size of {entry.title}"
    return noise(title, batch_size * steps, entry.shape, entry.classes), entry.train


class Bench:
    """A network, some batches of its data, and the calls to be timed on them."""

    def __init__(self, trial: Trial, data: Dataset, steps: int) -> None:
        self.trial, self.data, self.streams = trial, data, Streams(trial.seed)
        streams = self.streams
        self.augment = streams.augment if trial.protocol.augment else None
        self.net = network(trial, data, streams)
        self.optimiser = optimiser_of(self.net.parameters(), trial.protocol)
        drawn = epoch(trial, len(data.x_train), trial.method.alpha, streams)
        self.size = drawn[0].size
        self.steps = [step for step in drawn if step.size == self.size][:steps]
        self.ks = tuple(k for k in KS if k <= self.size)
        # all have one: partners come from a second order of the data
        self.second = [step.second for step in self.steps if step.second is not None]
        self.batches = [
            (*self.gather(step.first), *self.gather(second))
            for step, second in zip(self.steps, self.second, strict=True)
        ]

    def contenders(self) -> dict[str, Callable[[], object]]:
        """Whole steps by method, and their parts."""
        calls: dict[str, Callable[[], object]] = {"ERM": partial(self.train, Method("erm"))}
        for k in self.ks:
            calls[f"k={k}"] = partial(self.train, Method("kmixup", k))
        calls |= {"second batch": self.gather_second, "mixing": self.mix}
        for k in self.ks[1:]:
            costs = [cost for x, _, x2, _ in self.batches for cost in block_costs(x, x2, k)]
            calls[f"matching k={k}"] = partial(self.match, k)
            calls[f"assignment k={k}"] = partial(solve_all, costs)
        return calls

    def train(self, method: Method) -> None:
        self.net.train()
        trial = replace(self.trial, method=method)
        step = Step(self.net, trial, self.data, self.streams, method.alpha)
        for rows in self.steps:
            if method.alpha == 0:
                rows = replace(rows, second=None)
            logits, y = step(rows)
            self.optimiser.zero_grad()
            soft_cross_entropy(logits, y, rows.size).backward()
            self.optimiser.step()

    def gather(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return gather(rows, self.data, self.augment)

    def gather_second(self) -> None:
        for rows in self.second:
            self.gather(rows)

    def mix(self) -> None:
        mixer = self.mixer(1)  # with k = 1 there is nothing to match
        for step, (x, y, x2, y2) in zip(self.steps, self.batches, strict=True):
            _ = mixer.mix(x, y, draw_of(step, mixer), other=(x2, y2)).y

    def match(self, k: int) -> None:
        mixer = self.mixer(k)
        for step, (x, _, x2, _) in zip(self.steps, self.batches, strict=True):
            mixer.pairing.partners([as_rows(x)], [as_rows(x2)], draw_of(step, mixer).blocks)

    def mixer(self, k: int) -> Mixer:
        method = Method("kmixup", k)
        return cast(Mixer, mixer_of(method, method.alpha, self.data.num_classes))


def block_costs(x: Tensor, x2: Tensor, k: int) -> list[Floats]:
    """What the solver is given for a batch: the full blocks of `k`, and the smaller last one."""
    full = len(x) - len(x) % k
    costs = []
    for start, stop, size in ((0, full, k), (full, len(x), len(x) - full)):
        if start < stop:
            a, b = (side[start:stop].reshape(-1, size, side[0].numel()) for side in (x, x2))
            costs.append(-torch.bmm(a, b.mT).numpy())
    return costs


def solve_all(costs: Sequence[Floats]) -> None:
    for cost in costs:
        solve(cost)


def row(k: int | None, timed: Timings, per_epoch: float) -> MethodCost:
    """What was timed of a method, `per_epoch` turns to an epoch."""
    name = "ERM" if k is None else f"k={k}"
    parts = {"training": timed.best("ERM")}
    if k is not None:
        parts |= {part: timed.best(part) for part in ("second batch", "mixing")}
    if k is not None and k > 1:
        assignment = timed.best(f"assignment k={k}")
        # the solver runs inside the matching; on tiny blocks noise may exceed the rest
        distance = max(0.0, timed.best(f"matching k={k}") - assignment)
        parts |= {"distance": distance, "assignment": assignment}
    return MethodCost(
        k,
        per_epoch * timed.best(name),
        timed.ratio(name, "ERM"),
        {part: per_epoch * parts.get(part, 0.0) for part in PARTS},
    )
