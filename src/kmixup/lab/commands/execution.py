"""Shared by commands that run many trials: engines, progress, dry runs and the last lines."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from kmixup._checks import SettingError
from kmixup.lab._files import replace_content
from kmixup.lab.commands import options
from kmixup.lab.commands.options import import_from_here, print_document, print_status, typed
from kmixup.lab.data import ENTRIES, at_hand, load
from kmixup.lab.experiments import engines
from kmixup.lab.experiments.driver import SweepOutcome, Watch, sweep
from kmixup.lab.experiments.engines import Engine, Execution
from kmixup.lab.experiments.rows import Row, read
from kmixup.lab.formatting import count, duration
from kmixup.lab.trial import Trial
from kmixup_command import FAILED, INTERRUPTED

if TYPE_CHECKING:
    from kmixup.lab.paper.tables import ErrorTable

ExecutionOptions = Annotated[
    Execution,
    Parameter(
        name="*",
        group=Group("Execution options", sort_key=5),
        negative=(),
        show_default=lambda value: None if value is False else value,
    ),
]
STARTUP = 5.0  # seconds for a worker to import torch and to start


def make_engine(execution: Execution) -> Engine:
    """Return the engine with its options."""
    import_from_here(execution.engine)
    return engines.make_engine(execution)


class TrialRunner:
    """Run the trials that have no row yet, in one call or more; `outcome` has the rows of all.

    `engine` is by default that of `execution`.
    """

    def __init__(self, folder: Path, execution: Execution, engine: Engine | None = None) -> None:
        self._folder, self._execution = folder, execution
        self._engine = engine or make_engine(execution)
        self.outcome = SweepOutcome([], ran=0)

    def __call__(self, trials: Sequence[Trial]) -> list[Row]:
        """Run trials and return their rows; on Ctrl-C print how to resume and exit."""
        try:
            with Watch(quiet=self._execution.quiet) as watch:

                def started(trials: Sequence[Trial], todo: Sequence[Trial]) -> None:
                    if self._execution.engine == "local":  # a cluster may have what is missing here
                        _check_at_hand(todo)
                    watch.started(trials, todo)

                outcome = sweep(
                    trials, self._folder, engine=self._engine, device=self._execution.device,
                    accept_edited=self._execution.accept_edited, started=started,
                    ended=watch.ended,
                )  # fmt: skip
        except KeyboardInterrupt:
            print_status(
                f"stopped; finished trials are in {self._folder}, resume with\n  {typed()}"
            )
            sys.exit(INTERRUPTED)
        rows = {row.id: row for row in (*self.outcome.rows, *outcome.rows)}
        self.outcome = SweepOutcome(list(rows.values()), self.outcome.ran + outcome.ran)
        return outcome.rows


def outcome_of(
    trials: Sequence[Trial], folder: Path, execution: Execution, *, so_far: bool
) -> SweepOutcome:
    """Run trials, or read the rows of those that have ended, while others may be running."""
    if so_far:
        wanted = {trial.id for trial in trials}
        return finished([row for row in read(folder) if row.id in wanted], folder)
    run = TrialRunner(folder, execution)
    run(trials)
    return run.outcome


def finished(rows: list[Row], folder: Path) -> SweepOutcome:
    """Return the outcome of trials that were run before; raise if there are none."""
    if not rows:
        raise SettingError(
            "out", f"must hold rows of these trials, {folder} has none: run them without --so-far"
        )
    return SweepOutcome(rows, ran=0)


def _check_at_hand(trials: Sequence[Trial]) -> None:
    """Raise on missing data before anything runs, rather than in every row."""
    for data, limit in dict.fromkeys((trial.data, trial.limit) for trial in trials):
        if data in ENTRIES and not at_hand(data, limit=limit):
            load(data, limit=limit)  # raises, and says how to get them


def report(
    rows: Sequence[Row],
    tables: Sequence[ErrorTable] | None,
    folder: Path,
    *,
    quiet: bool,
    **preface: Any,
) -> Path:
    """Print the tables, or those that the rows define, and write the page."""
    from kmixup.lab.report.frame import cells_csv, results_of, tables_of
    from kmixup.lab.report.render_html import write
    from kmixup.lab.report.sweep import Preface, sweep_document
    from kmixup.lab.results import frame_of

    frame = frame_of(rows)
    results = results_of(frame, tables_of(frame) if tables is None else tables)
    about = Preface(command=typed("--so-far"), **preface)
    document = sweep_document(frame, results, about)
    print_document(document, page=not quiet)
    folder = folder.expanduser()
    replace_content(folder / "cells.csv", cells_csv(results))
    return write(document, folder / "report.html", report=True)


def finish(outcome: SweepOutcome, folder: Path, page: Path | None) -> int:
    """Print how the sweep ended, and return the exit code."""
    print(f"{count(len(outcome.rows), 'trial')}, {outcome.ran:,} of them run now: {folder}")
    if page is not None:
        print(f"page: {page}")
    if not outcome.failed:
        return 0
    print_status(f"{count(len(outcome.failed), 'trial')} failed:")
    for reason, times in Counter(row.reason for row in outcome.failed).items():
        print_status(f"  {times} × {reason}")
    print_status(f"rerun the failed trials with:\n  {typed('--so-far')}")
    return FAILED


def preview(headline: str, trials: Sequence[Trial], execution: Execution) -> None:
    """Print what would run, and for how long."""
    from kmixup.lab.experiments.estimate import estimate

    workers = make_engine(execution).workers
    with options.spinner("timing a few steps of each network"):
        expected = estimate(trials)
    print(headline)
    if expected.seconds:
        print(
            f"about {duration(STARTUP + expected.on(workers))} on {count(workers, 'worker')} "
            "(from a few steps on this machine)"
        )
    for reason in expected.unknown:
        print(f"no time estimate for some trials: {reason}")
