"""What the commands that run sweeps share: engines, progress, previews and how a sweep ended."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kmixup.lab.commands.options import (
    Address,
    Device,
    EngineName,
    NumCpus,
    NumGpus,
    Quiet,
    Workers,
)
from kmixup.lab.data import ENTRIES, at_hand, load
from kmixup.lab.experiments.driver import SweepOutcome
from kmixup.lab.experiments.driver import sweep as run
from kmixup.lab.experiments.engines import Engine, Local, Ray
from kmixup.lab.experiments.rows import Row, read
from kmixup.lab.formatting import count, duration
from kmixup.lab.train.config import Protocol, Trial

if TYPE_CHECKING:
    from kmixup.lab.paper.tables import PaperTable

FAILED, INTERRUPTED = 1, 130
STARTUP = 5.0  # seconds for a worker to import torch and to start


@dataclass(frozen=True)
class How:
    """The options that say how a sweep is carried out, not what.

    Attributes:
        engine: "local" or "ray".
        workers: processes of the local engine; None for one a core.
        address: of a Ray cluster; None starts one on this machine.
        num_cpus: cores that a Ray task reserves.
        num_gpus: GPUs that a Ray task reserves.
        device: what each worker trains on, as in `train`.
        quiet: whether to show no progress.
    """

    engine: EngineName = "local"
    workers: Workers = None
    address: Address = None
    num_cpus: NumCpus = 1
    num_gpus: NumGpus = 0
    device: Device = "auto"
    quiet: Quiet = False

    def chosen(self) -> Engine:
        """The engine with its options; refuses those of the other engine."""
        foreign: dict[str, object] = {"workers": self.workers}
        if self.engine == "local":
            foreign = {"address": self.address, "num_gpus": self.num_gpus}
        elif self.engine != "ray":
            raise ValueError(f"engine must be local or ray, got {self.engine!r}")
        for name, value in foreign.items():
            if value:
                raise ValueError(f"{name} is no option of the engine {self.engine}")
        if self.engine == "ray":
            return Ray(self.address, self.num_cpus, self.num_gpus)
        return Local() if self.workers is None else Local(self.workers)


def carry_out(
    trials: Sequence[Trial],
    folder: Path,
    how: How,
    *,
    engine: Engine | None = None,
    news: Callable[[Sequence[Row]], str] | None = None,
) -> SweepOutcome:
    """Run the trials that have no row yet; Ctrl-C says how to go on.

    Args:
        trials: all trials of the sweep.
        folder: of the rows.
        how: the options.
        engine: that of `how` by default; one that is kept serves several calls.
        news: as in `Watch`.
    """
    from kmixup.lab.experiments.driver import Watch

    try:
        with Watch(quiet=how.quiet, news=news) as watch:

            def started(trials: Sequence[Trial], todo: Sequence[Trial]) -> None:
                if how.engine == "local":  # a cluster may have what this machine lacks
                    _check_at_hand(todo)
                watch.started(trials, todo)

            return run(
                trials,
                folder,
                engine=engine or how.chosen(),
                device=how.device,
                started=started,
                ended=watch.ended,
            )
    except KeyboardInterrupt:
        typer.echo(f"stopped; what has ended is in {folder}, go on with\n  {typed()}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def ended_so_far(trials: Sequence[Trial], folder: Path) -> SweepOutcome:
    """The rows of those trials that have ended, while others may be running."""
    wanted = {trial.id for trial in trials}
    rows = [row for row in read(folder) if row.id in wanted]
    if not rows:
        raise ValueError(
            f"out must hold rows of these trials, {folder} has none: run them without --so-far"
        )
    return SweepOutcome(rows, ran=0)


def _check_at_hand(trials: Sequence[Trial]) -> None:
    """Say which data are missing before anything is run, rather than in every row."""
    for data, limit in dict.fromkeys((trial.data, trial.limit) for trial in trials):
        if data in ENTRIES and not at_hand(data, limit=limit):
            load(data, limit=limit)  # raises, and knows how to get them


def say_drawing(*, quiet: bool) -> None:
    """Say what takes so long: a page with many plots takes up to half a minute."""
    if not quiet:
        typer.echo("drawing the page …", err=True)


def report(
    rows: Sequence[Row],
    tables: Sequence[PaperTable] | None,
    folder: Path,
    *,
    quiet: bool = False,
    **preface: Any,
) -> Path:
    """Show the tables, or those that the rows define, on the terminal, and write the page."""
    from rich.console import Console

    from kmixup.lab.figures.surfaces import pictures
    from kmixup.lab.report.frame import results_of, tables_of
    from kmixup.lab.report.render_terminal import show
    from kmixup.lab.report.sweep import Preface, sweep_document, write_sweep

    results = results_of(rows, tables_of(rows) if tables is None else tables)
    about = Preface(command=typed(), **preface)
    show(sweep_document(rows, results, about), Console())
    say_drawing(quiet=quiet)
    folder = folder.expanduser()
    surfaces = pictures((row.trial for row in rows), folder)
    return write_sweep(rows, results, folder, about, surfaces)


def finish(outcome: SweepOutcome, folder: Path, page: Path | None) -> None:
    """Say how the sweep ended; failures are told apart by the exit code as well."""
    rows = outcome.rows
    typer.echo(f"{count(len(rows), 'trial')}, {outcome.ran:,} of them run now: {folder}")
    if page is not None:
        typer.echo(f"page: {page}")
    if outcome.failed:
        typer.echo(
            f"{count(len(outcome.failed), 'trial')} failed, the same command tries them again:",
            err=True,
        )
        for reason, times in Counter(row.reason for row in outcome.failed).items():
            typer.echo(f"  {times} × {reason}", err=True)
        raise typer.Exit(FAILED)


def typed() -> str:
    """What was typed, so that it trains what is missing."""
    return shlex.join(["kmixup", *(word for word in sys.argv[1:] if word != "--so-far")])


def preview(trials: Sequence[Trial], how: How) -> None:
    """Print what would be run, and for how long."""
    workers = how.chosen().workers
    cells = Counter(replace(trial, seed=0) for trial in trials)
    settings = [field.name for field in fields(Protocol)]
    differ = [name for name in settings if len({getattr(c.protocol, name) for c in cells}) > 1]
    for cell, number in cells.items():
        words = [cell.data, cell.model, cell.method.label]
        words += [f"scaling={cell.scaling}"] * (cell.scaling is not None)
        words += [f"{name}={getattr(cell.protocol, name)}" for name in differ]
        typer.echo(f"{'  '.join(words)}  × {number}")
    typer.echo(f"{count(len(trials), 'trial')} in {count(len(cells), 'cell')}")
    forecast(trials, workers)


def forecast(trials: Sequence[Trial], workers: int) -> None:
    """Print for how long trials would run."""
    from kmixup.lab.experiments.estimate import estimate, machine_memory

    expected = estimate(trials)
    if expected.seconds:
        typer.echo(
            f"about {duration(STARTUP + expected.on(workers))} on {count(workers, 'worker')} "
            "(from a few steps on this machine)"
        )
    if expected.memory * workers > machine_memory():
        typer.echo(
            f"the largest network needs about {expected.memory / 1e9:.1f} GB for each worker, "
            f"this machine has {machine_memory() / 1e9:.1f} GB"
        )
    for name in expected.noise:
        typer.echo(f"{name} is not at hand: timed on noise of its shape")
    for reason in expected.unknown:
        typer.echo(f"no estimate for a part: {reason}")
