"""`kmixup bench cost`: measure and report what k-mixup adds to training.

Everything is timed in turns, on the same batches and on one CPU thread. Whole steps vary more
from turn to turn than the methods differ, so each part that a method adds is also timed alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor

from kmixup.lab.bench.timing import Timings, interleaved
from kmixup.lab.data import ENTRIES, Dataset, at_hand, load
from kmixup.lab.data.toy import noise
from kmixup.lab.evaluate.tasks import soft_cross_entropy
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import count, stopwatch
from kmixup.lab.report import document as doc
from kmixup.lab.report.render_text import markdown
from kmixup.lab.train.config import Method, Protocol, Trial
from kmixup.lab.train.defaults import defaults_for
from kmixup.lab.train.record import machine, versions
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
# Supplement, "Computational cost": CIFAR-10 at k = 32, on the authors' GPU
PAPER = {
    "assignment": "0.69 s",
    "distance": "about 0.5 s",
    "epoch": "over 30 s",
    "share": "below 4%",
}
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

    A turn of a contender has `steps` batches, and there are three turns at least. Noise of the
    same size replaces data that are not at hand. `say` is called with the current step.
    """
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"seconds must be a finite number, 0 or more, got {seconds}")
    protocol = Protocol(rate=RATE, batch_size=batch_size)  # raises before data are loaded
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
        self.trial, self.data = trial, data
        self.streams = streams = Streams(trial.seed)
        self.augment = streams.augment if trial.protocol.augment else None
        self.net = network(trial, data, streams)
        self.optimiser = optimiser_of(self.net.parameters(), trial.protocol)
        drawn = epoch(trial, len(data.x_train), trial.method.alpha, streams)
        self.size = len(drawn[0].first)
        self.steps = [step for step in drawn if len(step.first) == self.size][:steps]
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
            soft_cross_entropy(logits, y, len(rows.first)).backward()
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


# The report


def cost_document(cost: Cost, command: str) -> doc.Document:
    """The methods and their parts, and the paper's numbers."""
    here, mixup = cost.row(cost.k), cost.row(1)
    share = here.shares["assignment"] + here.shares["distance"]
    conclusion = (
        f"k-mixup at k = {here.k} adds {here.added:.1%} to an epoch of ERM, mixup adds "
        f"{mixup.added:.1%}."
    )
    parts = (
        f"The assignment is {here.shares['assignment']:.1%} of a step at k = {here.k}, the "
        f"distances {here.shares['distance']:.1%}."
    )
    methods = doc.ReportTable(
        ("method", "epoch", "over ERM", *PARTS[1:], "added"),
        [_method(row) for row in cost.rows],
        "An epoch, and what mixing adds to it in % of an epoch of ERM (mixup is k = 1)",
        numeric=True,
    )
    paper = doc.ReportTable(
        ("of an epoch", "paper: CIFAR-10, k = 32, GPU", f"here: k = {here.k}, one thread"),
        (
            ("assignment", PAPER["assignment"], stopwatch(here.parts["assignment"])),
            ("distances", PAPER["distance"], stopwatch(here.parts["distance"])),
            ("all of it", PAPER["epoch"], stopwatch(here.epoch)),
            ("both, as a share", PAPER["share"], f"{share:.1%}"),
        ),
        "Beside the paper",
    )
    blocks = (
        doc.Headline(conclusion, [parts]), methods, paper, doc.Paragraph(protocol(cost)),
        doc.Code(command),
    )  # fmt: skip
    return doc.Document("What k-mixup costs", blocks)


def protocol(cost: Cost) -> str:
    """How it was measured."""
    where = machine()
    return (
        f"{cost.data}, {cost.model}, batches of {cost.batch_size}, on one CPU thread "
        f"({where['processor']}, {where['cores']} cores, torch {versions()['torch']}). All methods "
        f"and parts alternate, in {count(cost.turns, 'turn')} of {count(cost.steps, 'step')} each: "
        'times are the best turn\'s, "over ERM" is the median of the ratios within a turn, and an '
        f"epoch of {cost.samples:,} samples is extrapolated from the steps, without testing. The "
        "parts are timed alone, on the same batches; distance is all of the matching except the "
        "solver, which is the assignment."
    )


def write(cost: Cost, folder: Path, command: str) -> list[Path]:
    """Write `cost.md` and `cost.json`, with times in seconds, into a folder."""
    values = asdict(cost)
    for row, written in zip(cost.rows, values["rows"], strict=True):
        written |= {"name": row.name, "shares": row.shares, "added": row.added}
    values |= {
        "paper": {"data": "cifar10", "k": 32, **PAPER},
        "command": command,
        "versions": versions(),
        "machine": machine() | {"threads": 1},
    }
    contents = {
        "cost.md": markdown(cost_document(cost, command)),
        "cost.json": json.dumps(values, indent=2) + "\n",
    }
    for name, content in contents.items():
        replace_content(folder / name, content)
    return [folder / name for name in contents]


def _method(row: MethodCost) -> tuple[str, ...]:
    shares = [f"{100 * row.parts[part] / row.parts['training']:.2f}" for part in PARTS[1:]]
    over = f"{100 * (row.over_erm - 1):+.1f}"
    return (row.name, stopwatch(row.epoch), over, *shares, f"{100 * row.added:.2f}")
