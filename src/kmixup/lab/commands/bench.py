"""`kmixup bench`: what mixing costs on this machine."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Measure on this machine.\n\n\b\nkmixup bench cost   what k-mixup adds to training",
    no_args_is_help=True,
    rich_markup_mode=None,
)

HELP = """What k-mixup adds to training: time, part by part.

Seconds of an epoch with ERM, mixup and k-mixup for k = 1 … 64, the shares of distance,
assignment and mixing in a step, and the exact assignment against Sinkhorn (with POT: pip
install "kmixup[bench]"), beside the paper's figures. On one thread, all in turns. Where a
data set is not at hand, noise of its size takes its place.

\b
MNIST and LeNet, about two minutes:
  kmixup bench cost
The paper's example, from few steps of a large network, with tables and a figure:
  kmixup bench cost --data cifar10 --steps 2 --out out/cost
Your own data and network:
  kmixup bench cost --data photos/ --model my_package.nets:small --batch-size 256
A quick look:
  kmixup bench cost --data iris --steps 1 --seconds 1
"""


@app.callback()
def bench() -> None:
    """Keep `cost` a command of its own name, though there is no other."""


@app.command(help=HELP)
def cost(
    data: Annotated[
        str, typer.Option(help="A name from `kmixup data list`, or a .npz, a .csv or a folder.")
    ] = "mnist",
    model: Annotated[
        str | None, typer.Option(help="A name, or package.module:function of your own.")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="k goes up to it.")] = 128,
    steps: Annotated[int, typer.Option(help="Batches in a turn; an epoch is extrapolated.")] = 20,
    seconds: Annotated[
        float, typer.Option(help="To spend on the methods, three turns at least.")
    ] = 60,
    out: Annotated[
        Path | None, typer.Option(help="Folder for cost.md, cost.json, cost.svg and cost.png.")
    ] = None,
) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    from kmixup.lab import cost_report, sinkhorn
    from kmixup.lab.cost import measure

    sys.path.insert(0, os.getcwd())  # for models of one's own
    if out is not None and out.exists() and not out.is_dir():
        raise ValueError(f"out must be a folder, {out} is a file")
    with Console(stderr=True).status("loading") as status:
        found = measure(
            data, model=model, batch_size=batch_size, steps=steps, seconds=seconds,
            say=status.update,
        )  # fmt: skip
    console = Console()
    for one in cost_report.tables(found):
        drawn = Table(title=one.title, title_justify="left", box=SIMPLE, collapse_padding=True)
        for i, name in enumerate(one.header):
            drawn.add_column(name, justify="left" if i == 0 else "right")
        for row in one.rows:
            drawn.add_row(*row)
        console.print(drawn)
    typer.echo(cost_report.protocol(found))
    typer.echo(f"\n{cost_report.conclusion(found)}")
    if found.sinkhorn is None:
        typer.echo(sinkhorn.MISSING, err=True)
    if out is not None:
        command = shlex.join(["kmixup", *sys.argv[1:]])
        for path in cost_report.write(found, out, command):
            typer.echo(f"written: {path}")
