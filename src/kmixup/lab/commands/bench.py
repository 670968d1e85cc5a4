"""`kmixup bench`: what mixing costs on this machine, and what the advice of an X-ray is worth."""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kmixup.lab.commands.options import DATA, Model
from kmixup.lab.commands.running import typed
from kmixup.lab.files import check_folder

if TYPE_CHECKING:
    from kmixup.lab.bench.hindsight import Difference, Hindsight

app = typer.Typer(
    help="Measure on this machine, or on what was trained.\n\n\b\n"
    "kmixup bench cost     what k-mixup adds to training\n"
    "kmixup bench advice   what the advice of kmixup inspect would have been worth",
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


ADVICE_HELP = """What the advice of `kmixup inspect` would have been worth.

Reads rows of sweeps over k and alpha. The training part of every trial is inspected, the
advice taken to the nearest setting that was run, and its test error compared with ERM's, with
k = 16 at alpha = 1, and with mixup at the alpha that is best over the other trials.

\b
On the published runs:
  kmixup bench advice results/toy results/uci results/columns
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
    out: Annotated[
        Path | None, typer.Option(help="Folder for cost.md, cost.json, cost.svg and cost.png.")
    ] = None,
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


@app.command(help=ADVICE_HELP)
def advice(
    folders: Annotated[list[Path], typer.Argument(help="Folders of sweeps, with rows.jsonl.")],
) -> None:
    from rich.console import Console
    from rich.text import Text

    from kmixup.lab.bench.hindsight import RIVALS, look_back
    from kmixup.lab.formatting import TextTable
    from kmixup.lab.sweep.store import read

    hindsights: list[Hindsight] = []
    with Console(stderr=True).status("reading") as status:
        for folder in folders:
            status.update(Text(f"inspecting the data of {folder}"))
            hindsights += look_back(read(folder))
    if not hindsights:
        raise ValueError(f"there are no trials of mixup in {', '.join(map(str, folders))}")
    header = ["data", "trials", "advice", "nearest run", "error", "least of all"]
    header += [f"less {name}" for name in RIVALS]
    typer.echo(TextTable(header, [_line(hindsight) for hindsight in hindsights]).aligned())


def _line(hindsight: Hindsight) -> list[str]:
    """A data set as a line of the table."""
    from kmixup.lab.bench.hindsight import RIVALS

    best, least = hindsight.best
    return [
        hindsight.data,
        str(hindsight.trials),
        _settings(hindsight.advised),
        _settings(hindsight.taken),
        f"{hindsight.error:.2f}",
        f"{least:.2f} ({_setting(best)})",
        *(_difference(hindsight.against.get(name)) for name in RIVALS),
    ]


def _difference(difference: Difference | None) -> str:
    if difference is None:
        return ""
    mean = f"{difference.mean:+.2f} ± {difference.error:.2f}"
    return f"{mean}, {difference.better} better, {difference.worse} worse"


def _settings(counts: Counter[tuple[int, float]]) -> str:
    """Settings by their k, the most frequent first, with the range of alpha and how often."""
    alphas: dict[int, list[float]] = defaultdict(list)
    for (k, alpha), times in counts.items():
        alphas[k] += [alpha] * times
    parts = [
        f"{_setting((k, min(some)), max(some))}{f' ({len(some)})' * (len(alphas) > 1)}"
        for k, some in sorted(alphas.items(), key=lambda item: -len(item[1]))
    ]
    return "; ".join(parts)


def _setting(setting: tuple[int, float], highest: float | None = None) -> str:
    k, alpha = setting
    low, high = (f"{bound:.2g}" for bound in (alpha, alpha if highest is None else highest))
    return f"k = {k}, α = {low if low == high else f'{low} to {high}'}" if alpha else "ERM"
