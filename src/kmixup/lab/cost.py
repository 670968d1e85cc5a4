"""`kmixup reproduce cost`: measure and report what k-mixup adds to training.

Whole steps vary more from turn to turn than the methods differ. So a step is timed once, without
mixing, and what a method adds is the difference in making its batches, without a network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from kmixup._checks import SettingError, check_whole
from kmixup.lab._provenance import machine, versions
from kmixup.lab.data import ENTRIES, Dataset, at_hand, load
from kmixup.lab.data.toy import noise
from kmixup.lab.formatting import count, stopwatch
from kmixup.lab.report import document as doc
from kmixup.lab.report.plots import curves
from kmixup.lab.timing import interleaved
from kmixup.lab.train.defaults import defaults_for
from kmixup.lab.train.setup import check_data, computing_on, network, optimiser_of
from kmixup.lab.train.step import Step
from kmixup.lab.train.streams import Streams, epoch
from kmixup.lab.trial import Method, Protocol, Trial

KS = (1, 2, 4, 8, 16, 32, 64)
RATE = 1e-6  # the weights hardly move, so that every turn does the same work
# Supplement, "Computational cost"
PAPER = (
    "The paper reports 0.69 s for the assignment and about 0.5 s for the distances, below 4% of "
    "an epoch of over 30 s, for CIFAR-10 at k = 32 on a GPU."
)


@dataclass(frozen=True)
class Cost:
    """What was measured, in seconds per epoch."""

    data: str
    model: str
    samples: int  # in an epoch
    batch_size: int
    steps: int  # batches in a turn
    turns: int
    erm: float  # an epoch without mixing
    added: Mapping[int, float]  # what mixing adds to it, by k

    def matching(self, k: int) -> float:
        """Return what matching adds; on tiny blocks noise may exceed it."""
        return max(0.0, self.added[k] - self.added[1])


def measure(
    name: str = "mnist",
    *,
    model: str | None = None,
    batch_size: int = 128,
    steps: int = 20,
    seconds: float = 60.0,
) -> Cost:
    """Time ERM, mixup and k-mixup with k up to 64, or up to the size of a batch, on one thread.

    A turn has `steps` batches, and there are three turns at least. Noise of the same shape
    replaces data that are not available.
    """
    check_whole("steps", steps)
    if not 0 <= seconds < float("inf"):
        raise SettingError("seconds", f"must be a finite number, 0 or more, got {seconds}")
    protocol = Protocol(rate=RATE, batch_size=batch_size)  # raises before data are loaded
    if name not in ENTRIES or at_hand(name):
        data = load(name)
        title, samples = data.title, len(data.x_train)
    else:
        entry = ENTRIES[name]
        title, samples = f"noise of the shape of {entry.title}", entry.train
        data = noise(title, batch_size * steps, entry.shape, entry.classes)
    usual = defaults_for(name, data)
    protocol = replace(protocol, augment=usual.protocol.augment)
    trial = Trial(name, model or usual.model, Method("mixup"), protocol)
    check_data(trial, data)
    with computing_on(1):  # on more, their pools disturb each other's turns
        size, used, calls = contenders(trial, data, steps)
        timed = interleaved(calls, seconds=seconds)
    per_epoch = samples / (size * used)
    added = {k: per_epoch * (timed.best(f"k={k}") - timed.best("unmixed")) for k in KS if k <= size}
    turns, erm = len(timed.turns["ERM"]), per_epoch * timed.best("ERM")
    return Cost(title, trial.model, samples, size, used, turns, erm, added)


def contenders(
    trial: Trial, data: Dataset, steps: int
) -> tuple[int, int, dict[str, Callable[[], object]]]:
    """Return the size and the number of the batches, and the calls to be timed on them."""
    streams = Streams(trial.seed)
    net = network(trial, data, streams).train()
    optimiser = optimiser_of(net.parameters(), trial.protocol)
    drawn = epoch(trial, len(data.x_train), trial.method.alpha, streams)
    size = len(drawn[0].first)
    pairs = [rows for rows in drawn if len(rows.first) == size][:steps]
    singles = [replace(rows, second=None) for rows in pairs]

    def step_of(method: Method) -> Step:
        return Step(net, replace(trial, method=method), data, streams, method.alpha)

    erm = step_of(Method("erm"))

    def train() -> None:
        for rows in singles:
            logits, y = erm(rows)
            optimiser.zero_grad()
            erm.objective.loss(logits, y, len(rows.first)).backward()
            optimiser.step()

    def mix(step: Step) -> None:
        for rows in pairs:
            step.weighted(step.mix(rows))

    def prepare() -> None:
        for rows in singles:
            erm.weighted(erm.mix(rows))

    calls: dict[str, Callable[[], object]] = {"ERM": train, "unmixed": prepare}
    for k in KS:
        if k <= size:
            calls[f"k={k}"] = partial(mix, step_of(Method("kmixup", k)))
    return size, len(pairs), calls


def cost_document(cost: Cost, command: str) -> doc.Document:
    """Return the report: what every k adds, next to the paper's numbers."""
    k = max(k for k in cost.added if k <= 32)  # the paper's, or the largest below
    where = machine()
    rows = [("ERM", stopwatch(cost.erm), "", "")]
    for size, added in cost.added.items():
        rows.append(
            (
                "mixup" if size == 1 else f"k = {size}",
                stopwatch(cost.erm + added),
                f"{added / cost.erm:.2%}",
                "" if size == 1 else f"{cost.matching(size) / cost.erm:.2%}",
            )
        )
    return doc.Document(
        "What k-mixup costs",
        (
            doc.Headline(
                f"k-mixup at k = {k} adds {cost.added[k] / cost.erm:.1%} to an epoch of ERM, "
                f"mixup adds {cost.added[1] / cost.erm:.1%}.",
                [
                    f"Matching at k = {k} takes {stopwatch(cost.matching(k))} of an epoch of "
                    f"{stopwatch(cost.erm + cost.added[k])}. {PAPER}"
                ],
            ),
            curves(
                "Added to an epoch of ERM, in per cent",
                "k",
                None,
                {"added": {k: (100 * added / cost.erm, None) for k, added in cost.added.items()}},
            ),
            doc.ReportTable(("method", "epoch", "added", "by matching"), rows, numeric=True),
            doc.Paragraph(
                f"{cost.data}, {cost.model}, batches of {cost.batch_size}, on one CPU thread "
                f"({where['processor']}, {where['cores']} cores, torch {versions()['torch']}). "
                "Batches are timed without a network, in turns with a step of ERM: the best of "
                f"{count(cost.turns, 'turn')} of {count(cost.steps, 'step')} each, extrapolated to "
                f"an epoch of {cost.samples:,} samples, without testing."
            ),
            doc.Code(command),
        ),
    )
