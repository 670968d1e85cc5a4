"""`kmixup inspect`: what k and alpha would do to a data set, without training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kmixup.lab.commands.options import (
    DATA,
    Drop,
    Limit,
    Resize,
    Scaling,
    Target,
    Task,
    height_and_width,
    say_account,
)
from kmixup.lab.commands.running import typed
from kmixup.lab.files import check_folder

HELP = """Look at a data set before any training: what would k and alpha do to it?

Samples are matched at k = 1, 2, 4 and so on. You see how near partners come, which alpha
keeps the strength of mixup, how often labels change, whether mixed points lie among the data
and whether samples there contradict their labels, on the terminal and on a page with plots and
pairs. To choose k and alpha on validation samples, use kmixup tune.

\b
Without any download:
  kmixup inspect iris
  kmixup inspect swiss-roll --largest-k 64
Your own table, arrays or images:
  kmixup inspect table.csv --target species
  kmixup inspect arrays.npz --scaling minmax
  kmixup inspect photos/
Embeddings of a network: save them as x and y in an .npz, as they are
  kmixup inspect embeddings.npz --scaling none
Quick, on the terminal only:
  kmixup inspect mnist --size 2000 --largest-k 64 --no-page
"""


def inspect(
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help=DATA),
    ],
    alpha: Annotated[float, typer.Option(help="Of plain mixup, to compare strengths with.")] = 1.0,
    largest_k: Annotated[int, typer.Option(help="Where the powers of two end.")] = 256,
    size: Annotated[
        int, typer.Option(help="Samples to look at, drawn at random where there are more.")
    ] = 10_000,
    scaling: Scaling = None,
    limit: Limit = None,
    seed: Annotated[int, typer.Option(help="Of the split and of all draws.")] = 0,
    target: Target = None,
    drop: Drop = [],  # noqa: B006, typer copies it
    task: Task = None,
    resize: Resize = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the page; by default one in out/inspect.")
    ] = None,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write inspect.html.")] = True,
) -> None:
    if seed < 0:
        raise ValueError(f"seed must be at least 0, got {seed}")
    folder = out or Path("out/inspect") / Path(data).expanduser().resolve().name
    check_folder(folder)
    from rich.console import Console
    from rich.markup import escape

    from kmixup.lab.data import load
    from kmixup.lab.inspection import inspect_data
    from kmixup.lab.report.inspect import inspect_document, write_inspect
    from kmixup.lab.report.render_terminal import show

    shown = escape(data)
    with Console(stderr=True).status(f"reading {shown}") as status:
        loaded = load(
            data, limit=limit, scaling=scaling, seed=seed, target=target, drop=drop,  # type: ignore[arg-type]
            task=task, resize=height_and_width(resize),  # type: ignore[arg-type]
        )  # fmt: skip
        inspected = inspect_data(
            loaded, alpha=alpha, largest_k=largest_k, size=size, seed=seed,
            watch=lambda k: status.update(f"matching samples of {shown} at k = {k}"),
        )  # fmt: skip
    say_account(loaded)
    show(inspect_document(inspected, typed()), Console())
    if page:
        typer.echo(f"page: {write_inspect(inspected, folder, typed())}")
