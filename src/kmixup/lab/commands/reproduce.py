"""`kmixup reproduce`: the paper's experiments, re-run and shown beside its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kmixup.lab.commands.sweep import (
    Address,
    Device,
    DryRun,
    EngineName,
    How,
    NumCpus,
    NumGpus,
    Out,
    Quiet,
    Workers,
    carry_out,
    finish,
    preview,
)
from kmixup.lab.paper import PRESETS


def reproduce(
    name: Annotated[str, typer.Argument(metavar="TABLE", help=", ".join(PRESETS))],
    trials: Annotated[int | None, typer.Option(help="Networks of each cell.")] = None,
    epochs: Annotated[int | None, typer.Option(help="The rate's milestones move along.")] = None,
    k: Annotated[list[int], typer.Option(help="Rows of the tables; may be repeated.")] = [],  # noqa: B006
    alpha: Annotated[list[float], typer.Option(help="Columns; may be repeated.")] = [],  # noqa: B006
    alpha_rule: Annotated[
        str, typer.Option(help="same, xi or both: which reading of alpha at k > 1.")
    ] = "both",
    limit: Annotated[int | None, typer.Option(help="Only the first samples.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The smallest version.")] = False,
    out: Out = None,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
    num_cpus: NumCpus = 1,
    num_gpus: NumGpus = 0,
    device: Device = "auto",
    dry_run: DryRun = False,
    quiet: Quiet = False,
) -> None:
    preset = PRESETS[name]
    todo = preset.trials(
        trials=trials,
        epochs=epochs,
        k=k or None,
        alpha=alpha or None,
        alpha_rule=("same", "xi") if alpha_rule == "both" else (alpha_rule,),
        limit=limit,
        quick=quick,
    )
    how = How(engine, workers, address, num_cpus, num_gpus, device, quiet)
    if dry_run:
        preview(todo, how)
        return
    folder = out or Path("out") / name
    finish(carry_out(todo, folder, how), folder)
