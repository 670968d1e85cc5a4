"""The piece of a sweep that one worker takes: a fleet of small trials, or one large one.

Whoever runs a unit, and in whatever company, its rows are the same but for the time and
the machine: every worker computes on one thread.
"""

from __future__ import annotations

import math
import shutil
import traceback
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from kmixup.lab import record
from kmixup.lab.fleet import train_fleet
from kmixup.lab.models import MODELS
from kmixup.lab.protocol import Method, Trial
from kmixup.lab.store import Row
from kmixup.lab.train import train

# Fleets of twenty are near the best throughput on all the paper's tables, and a kill costs no
# more than one of them.
MEMBERS = 20
POINTS = 50  # of a stored curve

Unit = tuple[Trial, ...]


def units(trials: Iterable[Trial]) -> list[Unit]:
    """Trials grouped for workers: small networks by twenties, all else one by one.

    >>> trials = [Trial("iris", "mlp-iris", seed=seed) for seed in range(30)]
    >>> [len(unit) for unit in units([*trials, Trial("mnist", "lenet")])]
    [20, 10, 1]
    """
    fleets: dict[Trial, list[Trial]] = defaultdict(list)
    single: list[Unit] = []
    for trial in trials:
        if in_fleets(trial):
            fleets[kind_of(trial)].append(trial)
        else:
            single.append((trial,))
    grouped: list[Unit] = []
    for members in fleets.values():
        # neighbours that pair alike are matched in one call
        members.sort(key=lambda trial: (_pairing(trial.method), trial.method.alpha, trial.seed))
        grouped += [
            tuple(members[start : start + MEMBERS]) for start in range(0, len(members), MEMBERS)
        ]
    return grouped + single


def in_fleets(trial: Trial) -> bool:
    """Whether a trial is small and plain enough to be trained together with others."""
    small = trial.model.startswith("mlp-") and trial.model in MODELS
    plain = trial.method.mixes_rows and not (trial.noise or trial.fgsm)
    return small and plain and trial.protocol.precision == "fp32"


def kind_of(trial: Trial) -> Trial:
    """What trials share that differ in their seed and their method alone."""
    return replace(trial, seed=0, method=Method("erm"))


def run(unit: Unit, *, device: str = "auto", running: Path | None = None) -> list[Row]:
    """Run the trials of a unit; one that fails gives a row that says so.

    Args:
        unit: one of `units`.
        device: as in `train`; fleets run on the CPU.
        running: folder for the checkpoints of single trials, from which a second run of an
            interrupted one goes on; none are kept where that folder is not there.
    """
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an xi out of reach is seen in the row
        if in_fleets(unit[0]):
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
            failed(trial, one) if isinstance(one, Exception) else done(trial, one.record)
            for trial, one in zip(unit, ended, strict=True)
        ]
    half = len(unit) // 2  # what one member asks for is not the others' fault
    return _fleet(unit[:half]) + _fleet(unit[half:])


def _single(trial: Trial, device: str, running: Path | None) -> Row:
    out = running / trial.id if running is not None and running.is_dir() else None
    try:
        trained = train(trial, out=out, resume=out is not None, device=device, progress=False)
    except Exception as error:
        # it may be the checkpoint that does not fit; but a full disk is not its fault
        if out is not None and not isinstance(error, OSError):
            shutil.rmtree(out, ignore_errors=True)
        return failed(trial, error)
    return done(trial, trained.record)


def done(trial: Trial, written: dict[str, Any]) -> Row:
    """The row of a trial that has ended well, from its record."""
    rest = {key: value for key, value in written.items() if key not in ("trial", "epochs")}
    curves = _curves(written["epochs"])
    row = _opening(trial, "done") | rest | {"curves": curves, "finished": _now()}
    return {key: _finite(value) for key, value in row.items()}


def failed(trial: Trial, error: BaseException | str) -> Row:
    """The row of a trial that could not be run to its end."""
    trace = ""
    if isinstance(error, BaseException):
        trace = "".join(traceback.format_exception(error))
        error = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return _opening(trial, "failed") | {
        "error": error,
        "traceback": trace,
        "versions": record.versions(),
        "machine": record.machine("cpu", 1),
        "finished": _now(),
    }


def _opening(trial: Trial, status: str) -> Row:
    return {"id": trial.id, "status": status, "trial": trial.to_dict()}


def _curves(epochs: Sequence[dict[str, Any]]) -> dict[str, list[float]]:
    """Loss and error of evenly spaced epochs, the last among them, to four digits."""
    step = math.ceil(len(epochs) / POINTS)
    kept = epochs[(len(epochs) - 1) % step :: step]
    digits = {name: [float(f"{entry[name]:.4g}") for entry in kept] for name in ("loss", "error")}
    return {"epoch": [entry["epoch"] for entry in kept], **digits}


def _finite(value: Any) -> Any:
    """JSON knows no infinity: None in its place."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, list) else value


def _pairing(method: Method) -> tuple[str, int, str]:
    return method.name, method.k, method.pairing


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
