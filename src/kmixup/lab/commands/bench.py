"""`kmixup bench`: the cost of mixing on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from kmixup.lab.commands.options import DATA, Model
from kmixup.lab.commands.running import typed
from kmixup.lab.files import check_folder

app = typer.Typer(
    help="Measure on this machine.\n\n\b\nkmixup bench cost     what k-mixup adds to training",
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
The paper's example, from few steps of a large network, with tables in a folder:
  kmixup bench cost --data cifar10 --steps 2 --out out/cost
Your own data and network:
  kmixup bench cost --data photos/ --model my_package.nets:small --batch-size 256
A quick look:
  kmixup bench cost --data iris --steps 1 --seconds 1
"""


@app.command(help=HELP)
def cost(
    data: Annotated[str, typer.Option(help=DATA)] = "mnist",
    model: Model = None,
    batch_size: Annotated[int, typer.Option(help="k goes up to it.")] = 128,
    steps: Annotated[int, typer.Option(help="Batches in a turn; an epoch is extrapolated.")] = 20,
    seconds: Annotated[
        float, typer.Option(help="To spend on the methods, three turns at least.")
    ] = 60,
    out: Annotated[Path | None, typer.Option(help="Folder for cost.md and cost.json.")] = None,
) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.text import Text

    from kmixup.lab.bench import cost_report, sinkhorn
    from kmixup.lab.bench.cost import measure

    sys.path.insert(0, os.getcwd())  # for models of one's own
    if out is not None:
        check_folder(out)
    with Console(stderr=True).status("loading") as status:
        measured = measure(
            data, model=model, batch_size=batch_size, steps=steps, seconds=seconds,
            say=lambda words: status.update(Text(words)),
        )  # fmt: skip
    console = Console()
    for table in cost_report.tables(measured):
        console.print(table.printed(title_justify="left", box=SIMPLE, collapse_padding=True))
    typer.echo(cost_report.protocol(measured))
    typer.echo(f"\n{cost_report.conclusion(measured)}")
    if measured.sinkhorn is None:
        typer.echo(sinkhorn.MISSING, err=True)
    if out is not None:
        for path in cost_report.write(measured, out, typed()):
            typer.echo(f"written: {path}")
