"""What the tests of sweeps share: made-up rows, engines without processes, and equal rows."""

from contextlib import nullcontext
from dataclasses import replace

from kmixup.lab.data import ENTRIES
from kmixup.lab.evaluate.scores import Scores
from kmixup.lab.experiments.driver import sweep
from kmixup.lab.experiments.rows import DataUsed, Done, Failed, TrainingCurve
from kmixup.lab.experiments.units import run

TABLES = frozenset(name for name, entry in ENTRIES.items() if entry.kind == "table")
FINISHED = "2026-01-01T00:00:00+00:00"


def done_row(trial, error=0.1, **changes):
    """A row as of a training, with this test error."""
    row = Done(
        trial=trial,
        alpha=trial.method.alpha,
        xi=0.5,
        data=DataUsed(trial.data, None, 100, 50, 3, (4,), "paper", trial.data in TABLES),
        scores=Scores(error, 1.0, 0.1),
        seconds=0.5,
        curve=TrainingCurve((1,), (1.0,), (error,)),
        versions={},
        machine={},
        finished=FINISHED,
    )
    return replace(row, **changes)


def failed_row(trial, reason="ValueError: no", **changes):
    """The row of a trial that failed for this reason."""
    row = Failed(
        trial=trial,
        reason=reason,
        traceback="",
        versions={},
        machine={},
        finished=FINISHED,
    )
    return replace(row, **changes)


class Here:
    """What engines without processes have in common."""

    workers = 1

    def kept(self):
        return nullcontext(self)


class Inline(Here):
    """Runs units in this process."""

    def rows(self, units, *, device, running):
        for unit in units:
            yield run(unit, device=device, running=running)


def inline(folder):
    """Return a function that runs trials in this process, as a sweep."""
    return lambda trials: sweep(trials, folder, engine=Inline()).rows


class Fake(Here):
    """Trains nothing: a row at once for every trial, failed for the seeds in `failing`."""

    def __init__(self, failing=()):
        self.failing, self.ran = failing, []

    def rows(self, units, *, device, running):
        for unit in units:
            self.ran += [trial.id for trial in unit]
            yield [self.row(trial) for trial in unit]

    def row(self, trial):
        if trial.seed in self.failing:
            return failed_row(trial, f"ValueError: seed {trial.seed}")
        return done_row(trial, trial.seed / 100)


def table(rows):
    """Rows by their ids, without the time and the machine: what no circumstance may change."""
    by_id = {row.id: unchanging(row) for row in rows}
    assert len(by_id) == len(rows)
    return by_id


def unchanging(row):
    """A row without the time and the machine."""
    timed = {"seconds": 0.0} if isinstance(row, Done) else {}
    return replace(row, finished="", machine={}, **timed)
