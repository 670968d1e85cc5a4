"""Units: the pieces of a sweep that workers take, a fleet of small trials or one large trial.

The row of a trial depends neither on the worker nor on the other trials of its unit, except for
time and machine: every worker computes on one thread.
"""

from __future__ import annotations

import math
import shutil
import traceback
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from kmixup.lab import _provenance
from kmixup.lab.experiments.rows import Done, Failed, Row
from kmixup.lab.train import checkpoint
from kmixup.lab.train.fleet import fits_fleet, train_fleet
from kmixup.lab.train.loop import Trained, train
from kmixup.lab.trial import Method, Trial

# Fleets of twenty are near the best throughput on all the paper's tables, and a worker that is
# killed loses no more than one of them.
MEMBERS = 20
SEEDS = 5  # of every cell are trained before the next ones, so that partial results have all cells
POINTS = 50  # of a stored curve

Unit = tuple[Trial, ...]


def units(trials: Iterable[Trial]) -> list[Unit]:
    """Group trials for workers: small networks in twenties, all others one by one.

    >>> trials = [Trial("iris", "mlp-iris", seed=seed) for seed in range(30)]
    >>> [len(unit) for unit in units([*trials, Trial("mnist", "lenet")])]
    [20, 10, 1]
    """
    fleets: dict[Trial, list[Trial]] = defaultdict(list)
    single: list[Unit] = []
    for trial in trials:
        if fits_fleet(trial):
            fleets[kind_of(trial)].append(trial)
        else:
            single.append((trial,))
    grouped: list[Unit] = []
    for members in fleets.values():
        members.sort(key=_order)
        grouped += [
            tuple(members[start : start + MEMBERS]) for start in range(0, len(members), MEMBERS)
        ]
    return grouped + single


def kind_of(trial: Trial) -> Trial:
    """Return a trial that is equal for trials which differ only in seed and method."""
    return replace(trial, seed=0, method=Method("erm"))


def run(unit: Unit, *, device: str = "auto", running: Path | None = None) -> list[Row]:
    """Run the trials of a unit. A trial that fails gives a failed row.

    Fleets run on the CPU. `running` is the folder for the checkpoints of single trials, from which
    they resume; none are kept if it does not exist.
    """
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an xi out of reach is seen in the row
        if fits_fleet(unit[0]):
            return _fleet(unit)
        return [_single(trial, device, running) for trial in unit]


def _fleet(unit: Unit) -> list[Row]:
    try:
        ended = train_fleet(unit)
    except Exception as error:
        if len(unit) == 1:
            return [failed(unit[0], error)]
    else:
        return [
            failed(trial, member) if isinstance(member, Exception) else done(trial, member.record)
            for trial, member in zip(unit, ended, strict=True)
        ]
    half = len(unit) // 2  # an error of one member must not fail the others
    return _fleet(unit[:half]) + _fleet(unit[half:])


def _single(trial: Trial, device: str, running: Path | None) -> Row:
    out = running / trial.id if running is not None and running.is_dir() else None

    def attempt() -> Trained:
        return train(trial, out=out, resume=out is not None, device=device, progress=False)

    try:
        try:
            trained = attempt()
        except checkpoint.UnusableError:
            if out is not None:
                shutil.rmtree(out)
            trained = attempt()
    except Exception as error:
        return failed(trial, error)
    return done(trial, trained.record)


def done(trial: Trial, written: Mapping[str, Any]) -> Done:
    """Return the row of a trial that succeeded, from its record."""
    return Done.of(trial, {**written, "curves": _curves(written["epochs"]), "finished": _now()})


def failed(trial: Trial, error: BaseException | str) -> Failed:
    """Return the row of a trial that failed."""
    trace = ""
    if isinstance(error, BaseException):
        trace = "".join(traceback.format_exception(error))
        error = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return Failed(
        trial=trial,
        reason=error,
        traceback=trace,
        versions=_provenance.versions(),
        machine=_provenance.machine(),
        finished=_now(),
    )


def _curves(epochs: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return loss and error at evenly spaced epochs, including the last, to four digits."""
    epochs = [entry for entry in epochs if entry["error"] is not None]
    step = math.ceil(len(epochs) / POINTS)
    kept = epochs[(len(epochs) - 1) % step :: step]
    curves = {name: [float(f"{entry[name]:.4g}") for entry in kept] for name in ("loss", "error")}
    return {"epoch": [entry["epoch"] for entry in kept], **curves}


def seed_block(trial: Trial) -> int:
    """Return the number of a trial's block of seeds: earlier blocks are trained first."""
    return trial.seed // SEEDS


def _order(trial: Trial) -> tuple[Any, ...]:
    """Return the key that sorts fleets: neighbours with equal pairings are matched in one call."""
    method = trial.method
    return seed_block(trial), method.name, method.k, method.pairing, method.alpha, trial.seed


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
