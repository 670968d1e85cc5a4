"""Sweeps: run many trials with retries, resume and progress.

A sweep that was interrupted resumes when it is started again: trials that are done are skipped,
and trials that failed are run once more.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kmixup._checks import SettingError, check_choice
from kmixup.lab.data import ENTRIES
from kmixup.lab.experiments.engines import Engine
from kmixup.lab.experiments.rows import Done, Failed, Row, Store, done_of, failed_of, read
from kmixup.lab.experiments.units import seed_block, units
from kmixup.lab.formatting import count, duration
from kmixup.lab.train.setup import DEVICES
from kmixup.lab.trial import Trial, what_changed

INTERVAL = 30.0  # seconds between two progress lines without a terminal
RUNNING = "running"  # the folder of checkpoints of trials that have not ended


@dataclass(frozen=True)
class SweepOutcome:
    """How a sweep ended."""

    rows: list[Row]  # the latest row of each trial
    ran: int  # how many trials were run just now

    @property
    def failed(self) -> list[Failed]:
        return failed_of(self.rows)


def sweep(
    trials: Sequence[Trial],
    folder: str | Path,
    *,
    engine: Engine,
    device: str = "auto",
    accept_edited: bool = False,
    started: Callable[[Sequence[Trial], Sequence[Trial]], object] = lambda all_, todo: None,
    ended: Callable[[Sequence[Row]], object] = lambda rows: None,
) -> SweepOutcome:
    """Run the trials that are not done in `folder` yet, and return the rows of all.

    The folder may hold rows of other sweeps. If your own code was edited since the rows of these
    trials were written, they are run again only with `accept_edited`, as another version. `started`
    is called with all trials and the trials to run, `ended` with new rows as soon as they are on
    disk.
    """
    check_choice("device", device, DEVICES)
    wanted = {trial.id: trial for trial in trials}
    with Store(folder) as store:
        before = done_of(read(store.folder))
        known = {row.id for row in before}
        if not accept_edited:
            _check_edits(trials, before, store.folder)
        todo = [trial for name, trial in wanted.items() if name not in known]
        started(list(wanted.values()), todo)
        running = store.folder / RUNNING
        for folder_ in (running, *running.glob("*")):
            if folder_.is_symlink():
                raise ValueError(f"{folder_} must be a folder, is a link: remove it")
        running.mkdir(exist_ok=True)
        for name in known & set(os.listdir(running)):  # a crash came between row and removal
            shutil.rmtree(running / name)
        order = sorted(units(todo), key=lambda unit: (seed_block(unit[0]), -sum(map(weight, unit))))
        with closing(engine.rows(order, device=device, running=running)) as ending:
            for rows in ending:
                store.append(rows)
                for row in done_of(rows):
                    shutil.rmtree(running / row.id, ignore_errors=True)
                ended(rows)
        if not any(running.iterdir()):
            running.rmdir()
    return SweepOutcome([row for row in read(folder) if row.id in wanted], len(todo))


def earlier_versions(trials: Iterable[Trial], rows: Iterable[Row]) -> Iterator[tuple[Trial, Done]]:
    """Yield trials with the row of the same trial before your own code was edited."""
    latest = {trial.unversioned.id: trial for trial in trials if trial.code}
    for row in done_of(rows):
        trial = latest.get(row.trial.unversioned.id)
        if trial is not None and trial != row.trial:
            yield trial, row


def _check_edits(trials: Sequence[Trial], rows: Sequence[Done], folder: Path) -> None:
    known = {row.id for row in rows}
    for trial, row in earlier_versions(trials, rows):
        if trial.id not in known:
            raise SettingError(
                "out",
                f"must be a folder without rows of other code, {what_changed(row.trial, trial)} "
                f"was edited since rows of {folder} were written: choose another folder, or keep "
                "both versions apart (--accept-edited)",
            )


def weight(trial: Trial) -> float:
    """Return a number that grows with the time of a trial, among trials of the same network."""
    samples = ENTRIES[trial.data].train if trial.data in ENTRIES else 1000
    return trial.protocol.epochs * min(samples, trial.samples or trial.limit or samples)


class Watch:
    """Shows the progress of a sweep: a bar on a terminal, elsewhere a line now and then.

    `sweep` calls `started` and `ended`.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._bar: Any = None
        self._done = self._failed = 0

    def started(self, trials: Sequence[Trial], todo: Sequence[Trial]) -> None:
        self._weights = {trial.id: weight(trial) for trial in todo}
        self._left = self._whole = sum(self._weights.values())
        self._begin = self._last = time.monotonic()
        if len(todo) < len(trials):
            self._print(f"{len(trials) - len(todo):,} of {count(len(trials), 'trial')} done before")
        if todo and sys.stderr.isatty() and not self.quiet:
            self._start_bar(todo)

    def _start_bar(self, todo: Sequence[Trial]) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        from kmixup.lab._terminal import SafeConsole

        state = f"training, 0 of {count(len(todo), 'trial')} ended"
        text = TextColumn("{task.fields[state]}", markup=False)
        columns = (BarColumn(bar_width=30), TimeElapsedColumn(), text)
        self._bar = Progress(*columns, console=SafeConsole(stderr=True))
        self._task = self._bar.add_task("", total=self._whole, state=state)
        self._bar.start()

    def ended(self, rows: Sequence[Row]) -> None:
        self._done += len(rows)
        self._failed += len(failed_of(rows))
        self._left -= sum(self._weights[row.id] for row in rows)
        now = time.monotonic()
        left = (now - self._begin) * self._left / (self._whole - self._left)
        state = f"{self._done:,} of {count(len(self._weights), 'trial')}, {duration(left)} left"
        if self._failed:
            state += f", {self._failed:,} failed"
        row = rows[-1]
        result = row.measure.text(row.error) if isinstance(row, Done) else row.reason
        state += f"; last: {row.trial.data} {row.trial.method.label} {result}"
        if self._bar is not None:
            self._bar.update(self._task, completed=self._whole - self._left, state=state)
        elif now - self._last > INTERVAL or self._done == len(self._weights):
            self._last = now
            self._print(state)

    def _print(self, line: str) -> None:
        if not self.quiet:
            print(line, file=sys.stderr, flush=True)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            self._bar.stop()
