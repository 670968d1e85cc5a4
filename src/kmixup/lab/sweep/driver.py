"""Sweeps: many trials, run to the end whatever happens on the way.

A sweep that was interrupted goes on when it is started again: trials that are done are
skipped, and trials that failed are tried once more.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from kmixup.lab.data import ENTRIES
from kmixup.lab.sweep.engines import Engine
from kmixup.lab.sweep.rows import Failed, Row, done_of, failed_of
from kmixup.lab.sweep.store import Store, read
from kmixup.lab.sweep.units import units
from kmixup.lab.train.config import Trial
from kmixup.lab.train.loop import DEVICES

RUNNING = "running"  # the folder of checkpoints of trials that have not ended


@dataclass(frozen=True)
class SweepOutcome:
    """How a sweep ended.

    Attributes:
        rows: the latest row of each trial.
        ran: how many trials were run just now.
    """

    rows: list[Row]
    ran: int

    @property
    def failed(self) -> list[Failed]:
        return failed_of(self.rows)


def sweep(
    trials: Sequence[Trial],
    folder: str | Path,
    *,
    engine: Engine,
    device: str = "auto",
    started: Callable[[Sequence[Trial], Sequence[Trial]], object] = lambda all_, todo: None,
    training: Callable[[], object] = lambda: None,
    ended: Callable[[Sequence[Row]], object] = lambda rows: None,
) -> SweepOutcome:
    """Run the trials that are not done in `folder` yet, and return the rows of all.

    Args:
        trials: from `expand` or `read_config`.
        folder: the store; it may hold rows of other sweeps.
        engine: `Local` or `Ray`.
        device: what each worker trains on, as in `train`.
        started: called with all trials, and with the trials to run.
        training: called when a worker has started.
        ended: called with new rows as soon as they are on the disk.
    """
    if device not in DEVICES:
        raise ValueError(f"device must be one of {', '.join(DEVICES)}, got {device!r}")
    wanted = {trial.id: trial for trial in trials}
    with Store(folder) as store:
        known = {row.id for row in done_of(read(store.folder))}
        todo = [trial for name, trial in wanted.items() if name not in known]
        started(list(wanted.values()), todo)
        running = store.folder / RUNNING
        running.mkdir(exist_ok=True)
        for name in known & set(os.listdir(running)):  # a crash came between row and removal
            shutil.rmtree(running / name)
        heavy_first = sorted(units(todo), key=lambda unit: -sum(map(weight, unit)))
        with closing(engine.rows(heavy_first, device=device, running=running)) as ending:
            for rows in ending:
                if not rows:
                    training()
                    continue
                store.append(rows)
                for row in done_of(rows):
                    shutil.rmtree(running / row.id, ignore_errors=True)
                ended(rows)
        if not any(running.iterdir()):
            running.rmdir()
    return SweepOutcome([row for row in read(folder) if row.id in wanted], len(todo))


def weight(trial: Trial) -> float:
    """A number that grows with the time of a trial, to compare trials of the same network."""
    samples = ENTRIES[trial.data].train if trial.data in ENTRIES else 1000
    return trial.protocol.epochs * min(samples, trial.samples or trial.limit or samples)
