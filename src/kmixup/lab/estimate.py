"""How long a sweep would take, from a short probe of each of its networks."""

from __future__ import annotations

import math
import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kmixup.lab.fleet import train_fleet
from kmixup.lab.prepare import computing_on, load_data
from kmixup.lab.protocol import Trial
from kmixup.lab.train import Trained, train
from kmixup.lab.unit import Unit, in_fleets, kind_of, units

STEPS = 4  # of a probe
SLOW = 1.0  # seconds; a large network that takes them for a step is not asked for more


@dataclass(frozen=True)
class Estimate:
    """Seconds of work on one core in all and of the longest piece, and what is not known."""

    seconds: float
    longest: float
    unknown: tuple[str, ...] = ()

    def on(self, workers: int) -> float:
        """Seconds on as many workers.

        >>> Estimate(60, 20).on(2), Estimate(60, 20).on(100)
        (30.0, 20)
        """
        return max(self.seconds / workers, self.longest)


def estimate(trials: Sequence[Trial]) -> Estimate:
    """Train one unit of each network on a few batches, and scale up.

    All units of a data set, network and protocol are taken to cost what the one with the
    largest k does, fleets apart from trials that run alone. Whatever cannot be probed, for
    want of data say, is named in `unknown`.
    """
    kinds: dict[tuple[Trial, bool], list[Unit]] = defaultdict(list)
    for unit in units(trials):
        kinds[kind_of(unit[0]), in_fleets(unit[0])].append(unit)
    total, longest, unknown = 0.0, 0.0, []
    for kind in kinds.values():
        unit = max(kind, key=lambda unit: (max(trial.method.k for trial in unit), len(unit)))
        try:
            with computing_on(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an xi out of reach of a few samples tells nothing
                seconds = _seconds(unit)
        except Exception as error:
            unknown.append(f"{type(error).__name__}: {error}")
        else:
            total += seconds * sum(map(len, kind)) / len(unit)
            longest = max(longest, seconds)
    return Estimate(total, longest, tuple(dict.fromkeys(unknown)))


def _seconds(unit: Unit) -> float:
    """Seconds of a unit: those of a short one, times the share of the samples it saw."""
    protocol, whole = unit[0].protocol, len(load_data(unit[0]).x_train)
    for steps in (1, STEPS):  # the first call of all is slow
        few = min(whole, steps * protocol.batch_size)
        short = replace(protocol, epochs=1)
        limit = math.ceil(few / (1 - (unit[0].validation or 0)))  # so that few are left
        probe = [replace(trial, protocol=short, limit=limit, noise=(), fgsm=()) for trial in unit]
        begin = time.perf_counter()
        epoch = _epoch(probe)
        around = time.perf_counter() - begin - epoch
        if epoch > SLOW and not in_fleets(unit[0]):
            break
    return around + epoch * (whole / few) * protocol.epochs


def _epoch(probe: Sequence[Trial]) -> float:
    """Seconds of a training of one epoch, without what comes before and after."""
    if not in_fleets(probe[0]):
        return float(train(probe[0], progress=False).record["seconds"])
    ended = [one for one in train_fleet(probe) if isinstance(one, Trained)]
    return sum(float(one.record["seconds"]) for one in ended)
