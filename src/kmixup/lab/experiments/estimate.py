"""How long a sweep would take, from a short probe of each of its networks."""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kmixup.lab.data import ENTRIES, Dataset, Holdout
from kmixup.lab.data.noise import noise_like
from kmixup.lab.evaluate.shifts import score_test_under
from kmixup.lab.experiments.units import Unit, in_fleets, kind_of, units
from kmixup.lab.train.config import Trial
from kmixup.lab.train.fleet import train_fleet
from kmixup.lab.train.loop import Trained, train
from kmixup.lab.train.setup import computing_on, load_data, strengths
from kmixup.lab.train.streams import Streams

STEPS = 4  # of a probe
SLOW = 1.0  # seconds; a large network that takes them for a step is not asked for more
STAND_IN = 4096  # samples of noise in the place of data that are not at hand
CALIBRATED = 4096  # samples on which the calibration of alpha is timed, at most


@dataclass(frozen=True)
class TimeEstimate:
    """How long a sweep would take on one core.

    Attributes:
        seconds: of all units together.
        longest: seconds of the longest unit.
        unknown: why some units could not be probed, each reason once.
        noise: data sets that are not at hand, which were timed on noise of their shape.
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


@dataclass(frozen=True)
class _Source:
    """The data of a unit, or noise in their place.

    Attributes:
        data: of each trial.
        train: the number of training samples of the true data.
        test: the number of test samples of the true data.
        seconds: the time that loading took; 0 for noise.
        noise: whether `data` are noise.
    """

    data: list[Dataset]
    train: int
    test: int
    seconds: float
    noise: bool

    def first(self, few: int, tests: float = 1.0) -> list[Dataset]:
        """The first `few` training samples, and as many of the test samples as go with them.

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


def estimate(trials: Sequence[Trial]) -> TimeEstimate:
    """Train one unit of each network on a few batches, and scale up.

    All units of the same data set, network and protocol are assumed to cost as much as the
    unit with the largest k. Fleets and single trials are probed apart. Data sets of the
    catalogue that are not at hand are replaced by noise of their shape. A unit that cannot be
    probed is named in `unknown`.
    """
    kinds: dict[tuple[Trial, bool], list[Unit]] = defaultdict(list)
    for unit in units(trials):
        kinds[kind_of(unit[0]), in_fleets(unit[0])].append(unit)
    total, longest, unknown, noise = 0.0, 0.0, [], []
    for kind in kinds.values():
        unit = max(kind, key=lambda unit: (max(trial.method.k for trial in unit), len(unit)))
        try:
            with computing_on(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an xi out of reach of a few samples tells nothing
                source = _source(unit)
                seconds = _seconds(unit, source)
        except Exception as error:
            unknown.append(f"{type(error).__name__}: {error}")
        else:
            noise += [unit[0].data] * source.noise
            total += seconds * sum(map(len, kind)) / len(unit)
            longest = max(longest, seconds)
    return TimeEstimate(total, longest, tuple(dict.fromkeys(unknown)), tuple(dict.fromkeys(noise)))


def _source(unit: Unit) -> _Source:
    """The data of a unit; noise where they belong to the catalogue and are not at hand."""
    begin = time.perf_counter()
    try:
        by_seed = {trial.seed: trial for trial in unit}
        loaded = {seed: load_data(trial) for seed, trial in by_seed.items()}
    except FileNotFoundError:
        if unit[0].data not in ENTRIES:
            raise
        return _stand_in(unit)
    seconds = time.perf_counter() - begin
    data = [loaded[trial.seed] for trial in unit]
    return _Source(data, len(data[0].x_train), len(data[0].x_test), seconds, noise=False)


def _stand_in(unit: Unit) -> _Source:
    trial = unit[0]
    entry = ENTRIES[trial.data]
    train = min(entry.train, trial.samples or trial.limit or entry.train)
    test = min(entry.test, trial.limit or entry.test)
    if trial.validation is not None:
        left = Holdout(trial.validation).left(train)
        train, test = left, train - left
    data = noise_like(entry, min(max(train, test), STAND_IN))
    return _Source([data] * len(unit), train, test, 0.0, noise=True)


def _seconds(unit: Unit, source: _Source) -> float:
    """Seconds of a unit, scaled up from a short training on a few of its samples."""
    protocol, whole = unit[0].protocol, source.train
    k = max(trial.method.k for trial in unit)  # with a memory it may exceed the batch
    tests = sum(map(protocol.tests, range(protocol.epochs))) / protocol.epochs
    for steps in (1, STEPS):  # the first call of all is slow
        few = min(whole, len(source.data[0].x_train), max(steps * protocol.batch_size, k))
        probe = [
            replace(trial, protocol=replace(protocol, epochs=1), samples=None, shifts=())
            for trial in unit
        ]
        data = source.first(few, tests)
        begin = time.perf_counter()
        ended = _trained(probe, data)
        epoch = sum(float(trained.record["seconds"]) for trained in ended)
        around = time.perf_counter() - begin - epoch
        if epoch > SLOW and not in_fleets(unit[0]):
            break
    shifts = _shifted(unit[0], ended[0], data[0], source.test) if unit[0].shifts else 0.0
    training = epoch * (whole / few) * protocol.epochs
    return source.seconds + _calibrating(unit, source) + around + training + shifts


def _trained(probe: Sequence[Trial], data: Sequence[Dataset]) -> list[Trained]:
    if not in_fleets(probe[0]):
        return [train(probe[0], data=data[0], progress=False)]
    ended = train_fleet(probe, data=data)
    return [member for member in ended if isinstance(member, Trained)]


def _calibrating(unit: Unit, source: _Source) -> float:
    """Seconds that the strengths of a unit take: all training samples are read for them."""
    few = min(source.train, CALIBRATED)
    begin = time.perf_counter()
    strengths(unit, source.first(few))
    return (time.perf_counter() - begin) * source.train / few


def _shifted(trial: Trial, trained: Trained, data: Dataset, test: int) -> float:
    """Seconds of all tests under shifts, from one level of each on a few test samples."""
    total = 0.0
    for name, levels in trial.shifts:
        begin = time.perf_counter()
        generator = Streams(trial.seed).noise
        score_test_under(name, trained.net, data, eps=levels[0], generator=generator)
        total += (time.perf_counter() - begin) * len(levels) * test / len(data.x_test)
    return total
