"""Estimate how long a sweep takes, from a short probe of each of its networks."""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kmixup.lab.data import ENTRIES, Dataset, Holdout
from kmixup.lab.evaluate.shifts import score_test_under
from kmixup.lab.experiments.units import Unit, in_fleets, kind_of, units
from kmixup.lab.train.config import Trial
from kmixup.lab.train.fleet import train_fleet
from kmixup.lab.train.loop import Trained, train
from kmixup.lab.train.setup import computing_on, load_data, strengths
from kmixup.lab.train.streams import Streams

STEPS = 4  # of a probe
SLOW = 1.0  # seconds; a large network whose first step takes longer is not probed further
STAND_IN = 4096  # samples of noise in place of data that are not downloaded
CALIBRATED = 4096  # samples on which the calibration of alpha is timed, at most


@dataclass(frozen=True)
class TimeEstimate:
    """How long a sweep would take on one core.

    Attributes:
        seconds: of all units together.
        longest: seconds of the longest unit.
        unknown: why some units could not be probed, each reason once.
        noise: data sets that are not downloaded, which were timed on noise of their shape.
    """

    seconds: float
    longest: float
    unknown: tuple[str, ...] = ()
    noise: tuple[str, ...] = ()

    def on(self, workers: int) -> float:
        """Seconds on this many workers.

        >>> TimeEstimate(60, 20).on(2), TimeEstimate(60, 20).on(100)
        (30.0, 20)
        """
        return max(self.seconds / workers, self.longest)


def estimate(trials: Sequence[Trial]) -> TimeEstimate:
    """Train one unit of each network on a few batches, and scale up.

    All units of the same data set, network and protocol are assumed to cost as much as the unit
    with the largest k. Batched ensembles and single trials are probed separately. Data sets of the
    catalogue that are not downloaded are replaced by noise of their shape. Units that cannot be
    probed are listed in `unknown`.
    """
    kinds: dict[tuple[Trial, bool], list[Unit]] = defaultdict(list)
    for unit in units(trials):
        kinds[kind_of(unit[0]), in_fleets(unit[0])].append(unit)
    total, longest, unknown, noise = 0.0, 0.0, [], []
    for kind in kinds.values():
        unit = max(kind, key=lambda unit: (max(trial.method.k for trial in unit), len(unit)))
        try:
            with computing_on(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an xi out of reach of a few samples means nothing
                probe = _Probe(unit)
                seconds = probe.seconds()
        except Exception as error:
            unknown.append(f"{type(error).__name__}: {error}")
            continue
        if probe.noise:
            noise.append(unit[0].data)
        total += seconds * sum(map(len, kind)) / len(unit)
        longest = max(longest, seconds)
    return TimeEstimate(total, longest, tuple(dict.fromkeys(unknown)), tuple(dict.fromkeys(noise)))


class _Probe:
    """A unit with its data, or with noise in their place."""

    def __init__(self, unit: Unit) -> None:
        self.unit, self.trial = unit, unit[0]
        begin = time.perf_counter()
        try:
            loaded = {trial.seed: load_data(trial) for trial in unit}
        except FileNotFoundError:
            if self.trial.data not in ENTRIES:
                raise
            self._stand_in()
            return
        self.noise, self.loading = False, time.perf_counter() - begin
        self.data = [loaded[trial.seed] for trial in unit]
        self.train, self.test = len(self.data[0].x_train), len(self.data[0].x_test)

    def _stand_in(self) -> None:
        trial, entry = self.trial, ENTRIES[self.trial.data]
        self.noise, self.loading = True, 0.0
        self.train = min(entry.train, trial.samples or trial.limit or entry.train)
        self.test = min(entry.test, trial.limit or entry.test)
        if trial.validation is not None:
            left = Holdout(trial.validation).left(self.train)
            self.train, self.test = left, self.train - left
        self.data = [entry.noise(min(max(self.train, self.test), STAND_IN))] * len(self.unit)

    def seconds(self) -> float:
        """Seconds of the unit, scaled up from a short training on a few of its samples."""
        protocol = self.trial.protocol
        k = max(trial.method.k for trial in self.unit)  # with a memory it may exceed the batch
        tests = sum(map(protocol.tests, range(protocol.epochs))) / protocol.epochs
        once = replace(protocol, epochs=1)
        probe = [replace(trial, protocol=once, samples=None, shifts=()) for trial in self.unit]
        for steps in (1, STEPS):  # the very first call is slow
            few = min(self.train, len(self.data[0].x_train), max(steps * protocol.batch_size, k))
            data = self._first(few, tests)
            begin = time.perf_counter()
            ended = _trained(probe, data)
            epoch = sum(float(trained.record["seconds"]) for trained in ended)
            around = time.perf_counter() - begin - epoch
            if epoch > SLOW and not in_fleets(self.trial):
                break
        training = epoch * (self.train / few) * protocol.epochs
        shifts = self._shifted(ended[0], data[0])
        return self.loading + self._calibrating() + around + training + shifts

    def _first(self, few: int, tests: float = 1.0) -> list[Dataset]:
        """The first `few` training samples, and a proportional number of test samples.

        `tests` is the share of the epochs after which the network is tested.
        """
        tested = max(1, round(tests * few * self.test / self.train))
        return [
            replace(
                data,
                x_train=data.x_train[:few],
                y_train=data.y_train[:few],
                x_test=data.x_test[:tested],
                y_test=data.y_test[:tested],
            )
            for data in self.data
        ]

    def _calibrating(self) -> float:
        """Seconds to compute the strengths of a unit, which reads all training samples."""
        few = min(self.train, CALIBRATED)
        begin = time.perf_counter()
        strengths(self.unit, self._first(few))
        return (time.perf_counter() - begin) * self.train / few

    def _shifted(self, trained: Trained, data: Dataset) -> float:
        """Seconds of all tests under shifts, from one level of each on a few test samples."""
        total = 0.0
        for name, levels in self.trial.shifts:
            begin = time.perf_counter()
            generator = Streams(self.trial.seed).noise
            score_test_under(name, trained.net, data, eps=levels[0], generator=generator)
            total += (time.perf_counter() - begin) * len(levels) * self.test / len(data.x_test)
        return total


def _trained(probe: Sequence[Trial], data: Sequence[Dataset]) -> list[Trained]:
    if not in_fleets(probe[0]):
        return [train(probe[0], data=data[0], progress=False)]
    ended = train_fleet(probe, data=data)
    return [member for member in ended if isinstance(member, Trained)]
