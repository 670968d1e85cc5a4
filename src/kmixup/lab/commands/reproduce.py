"""`kmixup reproduce`: the paper's experiments, re-run and shown beside its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

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
from kmixup.lab.commands.sweep import How, carry_out, finish, preview, report
from kmixup.lab.paper import PRESETS, Preset

RULES = {"same": ("same",), "xi": ("xi",), "both": ("same", "xi")}

HELP = f"""Re-run an experiment of the paper, and show it beside the paper's figures.

Every trial is written down as it ends, so the same command goes on after any interruption,
and draws the report anew once all is there. Settings are the paper's where it states them.

\b
Experiments, and how many networks they train for one reading of alpha:
{chr(10).join(f"  {name:<16}{preset.networks:>6,}" for name, preset in PRESETS.items())}

\b
The toy tables in full, in a few minutes:
  kmixup reproduce toy
A glimpse of any other:
  kmixup reproduce uci --quick
What two cores can do in an hour:
  kmixup reproduce mnist --epochs 12 --trials 3 --k 1 --k 16 --alpha 1 --alpha 10
What would be run, and for how long:
  kmixup reproduce cifar10 --dry-run
On a Ray cluster:
  kmixup reproduce cifar10 --engine ray --address auto --num-gpus 0.25
"""

Name = Annotated[str, typer.Argument(metavar="TABLE", help=f"One of {', '.join(PRESETS)}.")]


def reproduce(
    name: Name,
    data: Annotated[
        list[str], typer.Option(help="Only the tables of this data set; may be repeated.")
    ] = [],  # noqa: B006, typer copies it
    trials: Annotated[int | None, typer.Option(help="Networks of each cell.")] = None,
    epochs: Annotated[int | None, typer.Option(help="The rate's milestones move along.")] = None,
    k: Annotated[list[int], typer.Option(help="Rows of the tables; may be repeated.")] = [],  # noqa: B006
    alpha: Annotated[list[float], typer.Option(help="Columns; may be repeated.")] = [],  # noqa: B006
    alpha_rule: Annotated[
        str, typer.Option(help="At k > 1 alpha as it is (same), at equal xi (xi), or both.")
    ] = "both",
    limit: Annotated[int | None, typer.Option(help="Only the first samples.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The smallest version that shows something.")
    ] = False,
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
    preset = _preset(name, data)
    if alpha_rule not in RULES:
        raise ValueError(f"alpha-rule must be one of {', '.join(RULES)}, got {alpha_rule!r}")
    todo = preset.trials(
        trials=trials,
        epochs=epochs,
        k=k or None,
        alpha=alpha or None,
        alpha_rule=RULES[alpha_rule],  # type: ignore[arg-type]
        limit=limit,
        quick=quick,
    )
    how = How(engine, workers, address, num_cpus, num_gpus, device, quiet)
    shrunk = preset.shrinkage(todo)
    typer.echo(f"{preset.claim}\n{_extent(preset, shrunk)}")
    if dry_run:
        preview(todo, how)
        return
    folder = out or Path("out") / name
    outcome = carry_out(todo, folder, how)
    page = report(
        outcome.rows,
        preset.tables,
        folder,
        name=f"The paper's experiment {name}, run again" if preset.printed else name,
        claim=preset.claim,
        comparison=preset.comparison,
        notes=[_extent(preset, shrunk), *preset.deviations],
    )
    finish(outcome, folder, page)


def _preset(name: str, data: Sequence[str]) -> Preset:
    """The preset of that name, with the tables of these data sets only."""
    if name not in PRESETS:
        close = get_close_matches(name, PRESETS, n=3, cutoff=0.5) or PRESETS
        raise ValueError(f"there is no experiment {name!r}: did you mean {' or '.join(close)}?")
    preset = PRESETS[name]
    known = dict.fromkeys(table.data for table in preset.tables)
    for one in data:
        if one not in known:
            raise ValueError(f"data of {name} must be among {', '.join(known)}, got {one!r}")
    return replace(
        preset, tables=tuple(table for table in preset.tables if table.data in (data or known))
    )


def _extent(preset: Preset, shrunk: Sequence[str]) -> str:
    """In plain words, whether this is the paper's protocol."""
    missing = "; ".join(shrunk)
    if not preset.printed:
        return f"The paper has no such table{f'; this one was shrunk: {missing}' * bool(shrunk)}."
    if not shrunk:
        return "This is the paper's protocol in full."
    return f"This is not the paper's protocol in full, it was shrunk: {missing}."
