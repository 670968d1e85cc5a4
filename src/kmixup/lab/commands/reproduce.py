"""`kmixup reproduce`: the paper's experiments, re-run and shown beside its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from kmixup.lab.commands.options import (
    DryRun,
    Epochs,
    Out,
    SoFar,
    grouped,
)
from kmixup.lab.commands.running import How, carry_out, ended_so_far, finish, preview, report
from kmixup.lab.experiments.rows import Done, Row, has_rows, read
from kmixup.lab.formatting import count
from kmixup.lab.paper.presets import PRESETS, Preset, preset_of

RULES = {"same": ("same",), "xi": ("xi",), "root": ("root",), "both": None}

HELP = f"""Re-run an experiment of the paper, and show it beside the paper's figures.

Every trial is written down as it ends, so the same command continues after any interruption,
and draws the report again when all trials are there. Settings are the paper's where it states
them.

master is the paper's Table 1, which sums up seven other tables. It trains nothing unless
--train is given: it shows the paper's figures, the command that re-runs each of them, and our
figures where rows are in out/master, out/mnist, ... or in --out and its folders mnist, ...

\b
Experiments, and how many networks they train:
{chr(10).join(f"  {name:<16}{preset.networks:>6,}" for name, preset in PRESETS.items())}

\b
The toy tables in full, in a few minutes:
  kmixup reproduce toy
A glimpse of any other:
  kmixup reproduce uci --quick
The summary, with the rows that are published in results/:
  kmixup reproduce master --out results
What two cores can do in an hour:
  kmixup reproduce mnist --epochs 12 --trials 3 --k 1 --k 16 --alpha 1 --alpha 10
What would be run, and for how long:
  kmixup reproduce cifar10 --dry-run
The report of what has ended, while the rest is running or after Ctrl-C:
  kmixup reproduce uci --so-far
On a Ray cluster:
  kmixup reproduce cifar10 --engine ray --address auto --num-gpus 0.25
"""

Name = Annotated[str, typer.Argument(metavar="TABLE", help=f"One of {', '.join(PRESETS)}.")]


@grouped
def reproduce(
    name: Name,
    data: Annotated[
        list[str], typer.Option(help="Only the tables of this data set; may be repeated.")
    ] = [],  # noqa: B006, typer copies it
    trials: Annotated[int | None, typer.Option(help="Networks of each cell.")] = None,
    epochs: Epochs = None,
    k: Annotated[list[int], typer.Option(help="Rows of the tables; may be repeated.")] = [],  # noqa: B006
    alpha: Annotated[list[float], typer.Option(help="Columns; may be repeated.")] = [],  # noqa: B006
    alpha_rule: Annotated[
        str,
        typer.Option(
            help="At k > 1 alpha as it is (same), at equal xi (xi), as the public script "
            "computes it (root), or both that the experiment has."
        ),
    ] = "both",
    limit: Annotated[int | None, typer.Option(help="Only the first samples.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The smallest version that shows something.")
    ] = False,
    train: Annotated[
        bool, typer.Option("--train", help="Train the networks of master; the others always do.")
    ] = False,
    out: Out = None,
    dry_run: DryRun = False,
    so_far: SoFar = False,
    *,
    how: How,
) -> None:
    preset = _preset(name, data)
    if preset.summaries and not (train or dry_run):
        _show_summary(preset, out)
        return
    if alpha_rule not in RULES:
        raise ValueError(f"alpha_rule must be one of {', '.join(RULES)}, got {alpha_rule!r}")
    todo = preset.trials(
        trials=trials,
        epochs=epochs,
        k=k or None,
        alpha=alpha or None,
        alpha_rule=RULES[alpha_rule],  # type: ignore[arg-type]
        limit=limit,
        quick=quick,
    )
    shrunk = preset.shrinkage(todo)
    typer.echo(f"{preset.claim}\n{_extent(preset, shrunk)}")
    if dry_run:
        preview(todo, how)
        return
    folder = out or Path("out") / name
    outcome = ended_so_far(todo, folder) if so_far else carry_out(todo, folder, how)
    page = report(
        outcome.rows,
        preset.tables,
        folder,
        quiet=how.quiet,
        name=f"The paper's experiment {name}, run again" if preset.printed else name,
        claim=preset.claim,
        comparison=preset.comparison,
        notes=[_extent(preset, shrunk), *preset.deviations],
    )
    if preset.summaries:
        _show_master(preset, outcome.rows)
    finish(outcome, folder, page)


def _preset(name: str, data: Sequence[str]) -> Preset:
    """The preset of that name, with the tables of these data sets only."""
    if name not in PRESETS:
        close = get_close_matches(name, PRESETS, n=3, cutoff=0.5) or PRESETS
        raise ValueError(f"there is no experiment {name!r}: did you mean {' or '.join(close)}?")
    preset = PRESETS[name]
    known = dict.fromkeys(table.data for table in preset.tables)
    for wanted in data:
        if wanted not in known:
            raise ValueError(f"data of {name} must be among {', '.join(known)}, got {wanted!r}")
    chosen = data or known
    return replace(
        preset,
        tables=tuple(table for table in preset.tables if table.data in chosen),
        summaries=tuple(line for line in preset.summaries if line.table.data in chosen),
    )


def _show_summary(preset: Preset, out: Path | None) -> None:
    """Show the paper's summary beside the rows at hand, without any training."""
    base = out or Path("out")
    names = dict.fromkeys(preset_of(table).name for table in preset.tables)
    folders = [out or base / preset.name, *(base / name for name in names)]
    rows: dict[str, Row] = {}
    for folder in folders:
        if not has_rows(folder):
            continue
        for row in read(folder):
            if row.id not in rows or isinstance(row, Done):
                rows[row.id] = row
    typer.echo(preset.claim)
    _show_master(preset, list(rows.values()))
    if not rows:
        typer.echo(f"No rows of ours in {', '.join(map(str, folders))}.")
    typer.echo(
        f"Nothing was trained: kmixup reproduce {preset.name} --train re-runs all lines, "
        f"{count(preset.networks, 'network')}."
    )


def _show_master(preset: Preset, rows: Sequence[Row]) -> None:
    from rich.console import Console

    from kmixup.lab.report.master import master_document
    from kmixup.lab.report.render_terminal import show

    show(master_document(preset.summaries, rows), Console())


def _extent(preset: Preset, shrunk: Sequence[str]) -> str:
    """In plain words, whether this is the paper's protocol."""
    missing = "; ".join(shrunk)
    if not preset.printed:
        return f"The paper has no such table{f'; this one was shrunk: {missing}' * bool(shrunk)}."
    if not shrunk:
        return "This is the paper's protocol in full."
    return f"This is not the paper's protocol in full, it was shrunk: {missing}."
