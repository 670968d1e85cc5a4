"""How long a sweep would take, from a short probe of each of its networks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from kmixup.lab.data import load
from kmixup.lab.fleet import train_fleet
from kmixup.lab.protocol import Trial
from kmixup.lab.train import Trained, train
from kmixup.lab.unit import Unit, units

PROBE_STEPS = 4


@dataclass(frozen=True)
class Estimate:
    """Seconds of work in all on one core, or why it is not known."""

    seconds: float
    unknown: tuple[str, ...] = ()


def estimate(trials: Sequence[Trial]) -> Estimate:
    """Train one unit of each network on a few batches, and scale up.

    All units of a data set, network and protocol are taken to cost what the one with the
    largest k does, fleets apart from trials that run alone. Whatever cannot be probed, for
    want of data say, is named in `unknown`.
    """
    by_kind: dict[tuple[object, ...], list[Unit]] = {}
    for unit in units(trials):
        one = unit[0]
        kind = (one.data, one.model, one.protocol, one.limit, one.size, len(unit) > 1)
        by_kind.setdefault(kind, []).append(unit)
    total, unknown = 0.0, []
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for group in by_kind.values():
            unit = max(group, key=lambda unit: (unit[0].method.k, len(unit)))
            try:
                each = _seconds(unit) / len(unit)
            except (OSError, ValueError) as error:
                unknown.append(str(error))
            else:
                total += each * sum(map(len, group))
    finally:
        torch.set_num_threads(before)
    return Estimate(total, tuple(dict.fromkeys(unknown)))


def _seconds(unit: Unit) -> float:
    """Seconds of a unit: those of a short one, times the share of the samples it saw."""
    one = unit[0]
    whole = len(
        load(one.data, limit=one.limit, size=one.size, target=one.target, seed=one.seed).x_train
    )
    few = max(min(whole, PROBE_STEPS * one.protocol.batch_size), one.method.smallest)
    short = replace(one.protocol, epochs=1)
    probe = [replace(trial, protocol=short, limit=few, noise=(), fgsm=()) for trial in unit]
    _epoch(probe)  # the first call of all is slow
    begin = time.perf_counter()
    epoch = _epoch(probe)
    starting = time.perf_counter() - begin - epoch
    return starting + epoch * (whole / few) * one.protocol.epochs


def _epoch(probe: Sequence[Trial]) -> float:
    """Seconds of a training of one epoch, without what comes before and after."""
    if len(probe) == 1:
        return float(train(probe[0], progress=False).record["seconds"])
    ended = [one for one in train_fleet(probe) if isinstance(one, Trained)]
    return sum(float(one.record["seconds"]) for one in ended)
