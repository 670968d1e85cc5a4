"""Estimate the time and the memory that a sweep needs, from short probes of its networks."""

from __future__ import annotations

import os
import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch.autograd.graph import saved_tensors_hooks

from kmixup.lab.data import ENTRIES, Holdout
from kmixup.lab.experiments.units import Unit, in_fleets, kind_of, units
from kmixup.lab.train.config import Trial
from kmixup.lab.train.fleet import train_fleet
from kmixup.lab.train.loop import Trained, train
from kmixup.lab.train.setup import computing_on, load_data, network
from kmixup.lab.train.streams import Streams

STEPS = 4  # of the second probe
SMALL = 4  # samples of the first batch of a large network
LONG = 5.0  # seconds that the second probe of a large network may take
STAND_IN = 4096  # samples of noise in place of data that are not downloaded
PER_WEIGHT = 12  # bytes of a weight, its gradient and its momentum


@dataclass(frozen=True)
class TimeEstimate:
    """What a sweep would take on one core."""

    seconds: float  # of all units together
    longest: float  # seconds of the longest unit
    unknown: tuple[str, ...] = ()  # why some units could not be probed, each reason once
    noise: tuple[str, ...] = ()  # data sets that were timed on noise, for they are not downloaded
    memory: int = 0  # bytes to train the largest network, without its data; 0 for fleets

    def on(self, workers: int) -> float:
        """Return the seconds on this many workers.

        >>> TimeEstimate(60, 20).on(2), TimeEstimate(60, 20).on(100)
        (30.0, 20)
        """
        return max(self.seconds / workers, self.longest)


def estimate(trials: Sequence[Trial]) -> TimeEstimate:
    """Train one unit of each network on a few batches, and scale up.

    All units of the same data set, network and protocol are assumed to cost as much as the unit
    with the largest k. Noise replaces data sets of the catalogue that are not downloaded.
    """
    kinds: dict[tuple[Trial, bool], list[Unit]] = defaultdict(list)
    for unit in units(trials):
        kinds[kind_of(unit[0]), in_fleets(unit[0])].append(unit)
    total, longest, memory, unknown, noise = 0.0, 0.0, 0, [], []
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
        longest, memory = max(longest, seconds), max(memory, probe.memory)
    reasons, stand_ins = tuple(dict.fromkeys(unknown)), tuple(dict.fromkeys(noise))
    return TimeEstimate(total, longest, reasons, stand_ins, memory)


def machine_memory() -> float:
    """Return the bytes of memory that this machine has, infinity if it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not on every system
        return float("inf")


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
        else:
            self.noise, self.loading = False, time.perf_counter() - begin
            self.data = [loaded[trial.seed] for trial in unit]
            self.train, self.test = len(self.data[0].x_train), len(self.data[0].x_test)
        self.memory = 0 if in_fleets(self.trial) else self._memory()

    def _stand_in(self) -> None:
        trial, entry = self.trial, ENTRIES[self.trial.data]
        self.noise, self.loading = True, 0.0
        self.train = min(entry.train, trial.samples or trial.limit or entry.train)
        self.test = min(entry.test, trial.limit or entry.test)
        if trial.validation is not None:
            left = Holdout(trial.validation).left(self.train)
            self.train, self.test = left, self.train - left
        self.data = [entry.noise(min(max(self.train, self.test), STAND_IN))] * len(self.unit)

    def _memory(self) -> int:
        """Return the bytes to train with full batches, from what two samples keep for backward."""
        net = network(self.trial, self.data[0], Streams(0))
        shape = self.trial.method.entry.seen_shape(self.data[0].shape)
        kept: dict[int, int] = {}

        def note(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        weights = {weight.untyped_storage().data_ptr() for weight in net.parameters()}
        with saved_tensors_hooks(note, lambda tensor: tensor):
            outputs = net.train()(torch.zeros(2, *shape))
        activations = sum(size for place, size in kept.items() if place not in weights)
        del outputs
        parameters = sum(weight.numel() for weight in net.parameters())
        return activations // 2 * self.trial.protocol.batch_size + PER_WEIGHT * parameters

    def seconds(self) -> float:
        """Return the seconds of the unit, scaled up from short trainings on a few of its samples.

        What a training does once is assumed to take a fixed time and a time for each sample.
        """
        batch = self.trial.protocol.batch_size
        first = batch if in_fleets(self.trial) else min(SMALL, batch)
        few, fixed, epoch = self._trained(first, first)
        if epoch < LONG and not in_fleets(self.trial):  # the very first call is slow
            few, fixed, epoch = self._trained(first, first)
        once, samples = 0.0, STEPS * batch
        if not in_fleets(self.trial):
            batch = int(min(batch, batch * machine_memory() / 4 / self.memory))
            samples = int(min(STEPS * batch, few * LONG / epoch))
        if samples >= 2 * few:
            more, around, epoch = self._trained(min(batch, samples), samples)
            if more > few:
                once = max(0.0, around - fixed) / (more - few)
            fixed, few = around - once * more, more
        whole = epoch * self.train / few * self.trial.protocol.epochs
        return self.loading + fixed + once * self.train + whole

    def _trained(self, batch: int, samples: int) -> tuple[int, float, float]:
        """Train for an epoch; return the number of samples, the seconds around it, and its own."""
        protocol = self.trial.protocol
        short = replace(protocol, epochs=1, batch_size=batch, rate=1e-9)  # which cannot diverge
        probe = []
        for trial in self.unit:
            method = trial.method
            if batch < protocol.batch_size:
                method = replace(method, k=min(method.k, batch // 2))
            probe.append(replace(trial, method=method, protocol=short, samples=None))
        k = max(trial.method.k for trial in probe)  # with a memory it may exceed the batch
        few = min(self.train, len(self.data[0].x_train), max(samples, k))
        tests = sum(map(protocol.tests, range(protocol.epochs))) / protocol.epochs
        tested = max(1, round(tests * few * self.test / self.train))
        data = [
            replace(
                data,
                x_train=data.x_train[:few],
                y_train=data.y_train[:few],
                x_test=data.x_test[:tested],
                y_test=data.y_test[:tested],
            )
            for data in self.data
        ]
        begin = time.perf_counter()
        ended: Sequence[Trained | Exception]
        if in_fleets(self.trial):
            ended = train_fleet(probe, data=data)
        else:
            ended = [train(probe[0], data=data[0], progress=False)]
        epoch = sum(float(one.record["seconds"]) for one in ended if isinstance(one, Trained))
        return few, time.perf_counter() - begin - epoch, epoch
