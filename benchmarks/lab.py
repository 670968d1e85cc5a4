"""The lab: fleets against one by one; `kmixup reproduce cost` measures what mixing adds."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks.tables import table
from kmixup.lab.data.toy import noise
from kmixup.lab.formatting import stopwatch
from kmixup.lab.timing import interleaved
from kmixup.lab.train.fleet import train_fleet
from kmixup.lab.train.loop import train
from kmixup.lab.trial import Method, Protocol, Trial

MEMBERS = 20


def fleets(seconds: float) -> None:
    """Twenty trials as one fleet, and one after the other, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    rows = []
    for name, model, data, count in (
        ("Iris-sized", "mlp-iris", noise("iris", 100, (4,), 3), 50),
        ("Phishing-sized", "mlp-phishing", noise("phishing", 7370, (30,), 2), 1),
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
        rows.append([f"{MEMBERS} {name}", stopwatch(timed.best("fleet") / count), ratio])
    torch.set_num_threads(threads)
    table(
        "Trials of k-mixup with k = 16 as a fleet, on one thread",
        ["networks", "an epoch of the fleet", "one by one takes"],
        rows,
    )
