"""The lab: an epoch of training with and without mixing, and fleets against one by one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch

from benchmarks.timing import interleaved, milliseconds, table
from kmixup.lab.batches import batch_of
from kmixup.lab.data import Dataset, at_hand, load
from kmixup.lab.fleet import train_fleet
from kmixup.lab.protocol import Method, Protocol, Trial
from kmixup.lab.streams import Streams, epoch
from kmixup.lab.train import train

STEPS = 100  # of 128 images: enough for a stable ratio, few enough for many turns
METHODS = {
    "ERM": Method("erm"),
    "mixup": Method("mixup"),
    "k=16": Method("kmixup", k=16),
    "k=64": Method("kmixup", k=64),
}
MEMBERS = 20


def random_data(name: str, n: int, shape: tuple[int, ...], classes: int) -> Dataset:
    """Noise of the size of a data set, with a single test sample."""
    x, y = torch.randint(256, (n, *shape), dtype=torch.uint8), torch.randint(classes, (n,))
    return Dataset(
        name, x, y, x[:1], y[:1], tuple(map(str, range(classes))),
        mean=torch.tensor(127.5), std=torch.tensor(127.5), scaling="symmetric",
        pixel_range=(0.0, 255.0),
    )  # fmt: skip


def epochs(seconds: float) -> None:
    """Epochs of LeNet, which itself costs little, so that the mixing shows most.

    The time of an epoch varies more from run to run than the methods differ. So what a
    method does, preparing the batches, is also timed alone, and set against the epoch.
    """
    n = 128 * STEPS
    if at_hand("mnist"):
        data = load("mnist", limit=n)
        data = replace(data, x_test=data.x_test[:1], y_test=data.y_test[:1])
    else:
        data = random_data("noise of the size of MNIST", n, (1, 28, 28), 10)
    trials = {
        name: Trial("mnist", "lenet", method, Protocol(epochs=1))
        for name, method in METHODS.items()
    }
    run = partial(train, data=data, device="cpu", progress=False)
    whole = interleaved(
        {name: partial(run, trial) for name, trial in trials.items()}, seconds=10 * seconds
    )
    part = interleaved(
        {name: partial(prepare, trial, data) for name, trial in trials.items()}, seconds=seconds
    )
    rows = []
    for name in METHODS:
        own = part.best(name)
        shares = [(own - part.best(base)) / whole.best(base) for base in ("ERM", "mixup")]
        rows.append(
            [
                name,
                milliseconds(whole.best(name) / STEPS),
                *(f"{100 * (whole.ratio(name, base) - 1):+.1f} %" for base in ("ERM", "mixup")),
                milliseconds(own / STEPS),
                *(f"{100 * share:+.1f} %" for share in shares),
            ]
        )
    table(
        f"LeNet on {STEPS} batches of 128 images: {data.title}",
        [
            "method",
            "a step",
            "over ERM",
            "over mixup",
            "of it, the batch",
            "over ERM, of a step",
            "over mixup, of a step",
        ],
        rows,
    )


def prepare(trial: Trial, data: Dataset) -> None:
    """Draw, gather, match and mix the batches of an epoch."""
    for step in epoch(trial, len(data.x_train), trial.method.alpha, Streams(0)):
        batch_of(step, data, trial.method, augment=None)


def fleets(seconds: float) -> None:
    """Twenty trials as one fleet, and one after the other, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    rows = []
    for name, model, data, count in (
        ("Iris-sized", "mlp-iris", random_data("iris", 100, (4,), 3), 50),
        ("Phishing-sized", "mlp-phishing", random_data("phishing", 7370, (30,), 2), 1),
    ):
        protocol = Protocol(epochs=count, rate=0.005)
        trials = [Trial(name, model, Method(), protocol, seed) for seed in range(MEMBERS)]
        alone = partial(train, data=data, device="cpu", progress=False)
        timed = interleaved(
            {
                "fleet": partial(train_fleet, trials, data=[data] * MEMBERS),
                "alone": lambda alone=alone, trials=trials: [alone(trial) for trial in trials],  # type: ignore[misc]
            },
            seconds=seconds,
            least=2,
        )
        ratio = f"{timed.ratio('alone', 'fleet'):.1f} x"
        rows.append([f"{MEMBERS} {name}", milliseconds(timed.best("fleet") / count), ratio])
    torch.set_num_threads(threads)
    table(
        "Trials of k-mixup with k = 16 as a fleet, on one thread",
        ["networks", "an epoch of the fleet", "one by one takes"],
        rows,
    )
