"""`kmixup sweep`: a grid of the user's own, and what all commands that sweep share."""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kmixup.lab.commands.options import (
    Address,
    Device,
    DryRun,
    EngineName,
    NumCpus,
    NumGpus,
    Out,
    Quiet,
    Workers,
)
from kmixup.lab.data import ENTRIES, at_hand, load
from kmixup.lab.engines import Engine, Local, Ray
from kmixup.lab.protocol import Protocol, Trial
from kmixup.lab.store import Row
from kmixup.lab.sweep import Outcome, read_config
from kmixup.lab.sweep import sweep as run
from kmixup.lab.words import count, duration

if TYPE_CHECKING:
    from kmixup.lab.paper import Table

FAILED, INTERRUPTED = 1, 130

HELP = """Train a grid of your own, and write down every trial.

\b
A grid is a TOML file; lists are swept, all else is one value:
  data = ["iris", "table.csv"]        # names, .npz, .csv or folders
  method = ["erm", "mixup", "kmixup"] # nearest, manifold, cutmix, local
  k = [4, 16]
  alpha = [0.1, 1.0]
  alpha_rule = ["same", "xi"]
  trials = 20
  [protocol]                          # what differs from the paper's
  epochs = 100
  batch_size = [32, 128]

\b
What would be run, and for how long:
  kmixup sweep grid.toml --dry-run
Run it, and go on with it after any interruption:
  kmixup sweep grid.toml --out results/grid
On a Ray cluster, four trials to a GPU:
  kmixup sweep grid.toml --engine ray --address auto --num-gpus 0.25
"""


def sweep(
    config: Annotated[
        Path, typer.Argument(help="The grid, a TOML file.", exists=True, dir_okay=False)
    ],
    out: Out = None,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
    num_cpus: NumCpus = 1,
    num_gpus: NumGpus = 0,
    device: Device = "auto",
    dry_run: DryRun = False,
    draw: Annotated[
        bool, typer.Option("--report/--no-report", help="Tables here, and a page beside the rows.")
    ] = True,
    quiet: Quiet = False,
) -> None:
    sys.path.insert(0, os.getcwd())  # for models of one's own
    trials = read_config(config)
    how = How(engine, workers, address, num_cpus, num_gpus, device, quiet)
    if dry_run:
        preview(trials, how)
        return
    folder = out or Path("out") / config.stem
    outcome = carry_out(trials, folder, how)
    name = f"The sweep {config.stem}"
    finish(outcome, folder, report(outcome.rows, None, folder, name=name) if draw else None)


@dataclass(frozen=True)
class How:
    """The options that say how a sweep is carried out, not what."""

    engine: str
    workers: int | None
    address: str | None
    num_cpus: float
    num_gpus: float
    device: str
    quiet: bool

    def chosen(self) -> Engine:
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
    news: Callable[[Sequence[Row]], str] | None = None,
) -> Outcome:
    """Run the trials that have no row yet, with `news` as in `Watch`; Ctrl-C says how to go on."""
    from kmixup.lab.watching import Watch

    try:
        with Watch(quiet=how.quiet, news=news) as watch:

            def started(trials: Sequence[Trial], todo: Sequence[Trial]) -> None:
                if how.engine == "local":  # a cluster may have what this machine lacks
                    _check_at_hand(todo)
                watch.started(trials, todo)

            return run(
                trials,
                folder,
                engine=how.chosen(),
                device=how.device,
                started=started,
                ended=watch.ended,
            )
    except KeyboardInterrupt:
        typer.echo(f"stopped; what has ended is in {folder}, go on with\n  {typed()}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _check_at_hand(trials: Sequence[Trial]) -> None:
    """Say which data are missing before anything is run, rather than in every row."""
    for data, limit in dict.fromkeys((trial.data, trial.limit) for trial in trials):
        if data in ENTRIES and not at_hand(data, limit=limit):
            load(data, limit=limit)  # raises, and knows how to get them


def report(
    rows: Sequence[Row], tables: Sequence[Table] | None, folder: Path, **preface: Any
) -> Path:
    """Show the tables on the terminal, or those that the rows make, and write the page."""
    from rich.console import Console

    from kmixup.lab.report import show, tables_of, write

    tables = tables_of(rows) if tables is None else tables
    judged = {"comparison": preface["comparison"]} if "comparison" in preface else {}
    show(rows, tables, Console(), **judged)
    return write(rows, tables, folder, command=typed(), **preface).page


def finish(outcome: Outcome, folder: Path, page: Path | None) -> None:
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
        for reason, times in Counter(row["error"] for row in outcome.failed).items():
            typer.echo(f"  {times} × {reason}", err=True)
        raise typer.Exit(FAILED)


def typed() -> str:
    """What was typed."""
    return shlex.join(["kmixup", *sys.argv[1:]])


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
    from kmixup.lab.estimate import estimate

    found = estimate(trials)
    if found.seconds:
        typer.echo(
            f"about {duration(found.on(workers))} on {count(workers, 'worker')} "
            "(from a few steps on this machine)"
        )
    for reason in found.unknown:
        typer.echo(f"no estimate for a part: {reason}")
