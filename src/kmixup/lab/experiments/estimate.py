"""Estimate the time that a sweep needs, from short probes of its networks."""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kmixup.lab.data import Dataset
from kmixup.lab.experiments.units import Unit, kind_of, units
from kmixup.lab.train.fleet import fits_fleet, train_fleet
from kmixup.lab.train.loop import Trained, train
from kmixup.lab.train.setup import computing_on, load_data
from kmixup.lab.trial import Trial

STEPS = 4  # of the second probe
SMALL = 4  # samples of the first batch of a large network
LONG = 5.0  # seconds that the second probe of a large network may take


@dataclass(frozen=True)
class TimeEstimate:
    """What a sweep would take on one core."""

    seconds: float  # of all units together
    longest: float  # seconds of the longest unit
    unknown: tuple[str, ...] = ()  # why some units could not be probed, each reason once

    def on(self, workers: int) -> float:
        """Return the seconds on this many workers.

        >>> TimeEstimate(60, 20).on(2), TimeEstimate(60, 20).on(100)
        (30.0, 20)
        """
        return max(self.seconds / workers, self.longest)


def estimate(trials: Sequence[Trial]) -> TimeEstimate:
    """Train one unit of each network on a few batches, and scale up.

    All units of the same data set, network and protocol are assumed to cost as much as the unit
    with the largest k.
    """
    kinds: dict[tuple[Trial, bool], list[Unit]] = defaultdict(list)
    for unit in units(trials):
        kinds[kind_of(unit[0]), fits_fleet(unit[0])].append(unit)
    total, longest, unknown = 0.0, 0.0, []
    for kind in kinds.values():
        unit = max(kind, key=lambda unit: (max(trial.method.k for trial in unit), len(unit)))
        try:
            with computing_on(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an xi out of reach of a few samples means nothing
                seconds = _seconds(unit)
        except Exception as error:
            unknown.append(f"{type(error).__name__}: {error}")
            continue
        total += seconds * sum(map(len, kind)) / len(unit)
        longest = max(longest, seconds)
    return TimeEstimate(total, longest, tuple(dict.fromkeys(unknown)))


def _seconds(unit: Unit) -> float:
    """Return the seconds of a unit, scaled up from short trainings on a few of its samples.

    What a training does once is assumed to take a fixed time and a time for each sample.
    """
    begin = time.perf_counter()
    data = [load_data(unit[0])] * len(unit)  # other seeds split the same samples
    loading = (time.perf_counter() - begin) * len({trial.seed for trial in unit})
    protocol, size = unit[0].protocol, len(data[0].x_train)
    batch = protocol.batch_size
    once, samples = 0.0, STEPS * batch
    if fits_fleet(unit[0]):
        few, fixed, epoch = _probe(unit, data, batch, batch)
    else:
        first = min(SMALL, batch)
        _probe(unit, data, first, first)  # the very first call is slow
        few, fixed, epoch = _probe(unit, data, first, first)
        samples = int(min(samples, few * LONG / epoch))
    if samples >= 2 * few:
        more, around, epoch = _probe(unit, data, min(batch, samples), samples)
        if more > few:
            once = max(0.0, around - fixed) / (more - few)
        fixed, few = around - once * more, more
    return loading + fixed + once * size + epoch * size / few * protocol.epochs


def _probe(
    unit: Unit, data: Sequence[Dataset], batch: int, samples: int
) -> tuple[int, float, float]:
    """Train for an epoch; return the number of samples, the seconds around it, and its own."""
    protocol, whole = unit[0].protocol, data[0]
    short = replace(protocol, epochs=1, batch_size=batch, rate=1e-9)  # which cannot diverge
    probe = []
    for trial in unit:
        method = trial.method
        if batch < protocol.batch_size:
            method = replace(method, k=min(method.k, batch // 2))
        probe.append(replace(trial, method=method, protocol=short, samples=None))
    k = max(trial.method.k for trial in probe)  # with a memory it may exceed the batch
    few = min(len(whole.x_train), max(samples, k))
    tests = sum(map(protocol.tests, range(protocol.epochs))) / protocol.epochs
    tested = max(1, round(tests * few * len(whole.x_test) / len(whole.x_train)))
    some = [
        replace(
            one,
            x_train=one.x_train[:few],
            y_train=one.y_train[:few],
            x_test=one.x_test[:tested],
            y_test=one.y_test[:tested],
        )
        for one in data
    ]
    begin = time.perf_counter()
    ended: Sequence[Trained | Exception]
    if fits_fleet(unit[0]):
        ended = train_fleet(probe, data=some)
    else:
        ended = [train(probe[0], data=some[0], progress=False)]
    epoch = sum(float(one.record["seconds"]) for one in ended if isinstance(one, Trained))
    return few, time.perf_counter() - begin - epoch, epoch
