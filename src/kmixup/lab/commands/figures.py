"""`kmixup figures`: the paper's figures, drawn anew, and some that it lacks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from kmixup.lab.commands.options import Target
from kmixup.lab.figures import NAMES, OF_DATA
from kmixup.lab.files import check_folder
from kmixup.lab.formatting import duration

HELP = f"""Draw the figures of the paper, and some that it lacks, as SVG and PNG with a caption.

Without a name all are drawn. What is trained for a figure is kept in the folder, so that it
is drawn again in no time.

\b
Figures:
{chr(10).join(f"  {name:<15}{line}" for name, line in NAMES.items())}

\b
All of them:
  kmixup figures --out out/figures
One or two:
  kmixup figures couplings matching
What k-mixup would do to your own data; more than two features are projected:
  kmixup figures --data table.csv --target species
Convergence as in the paper, which needs a GPU:
  kmixup figures convergence --data cifar10 --epochs 200 --trials 20
A glimpse:
  kmixup figures --quick
"""

Names = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Some of the above; all if none.")
]


def figures(
    names: Names = None,
    out: Annotated[Path, typer.Option(help="Folder to draw into.")] = Path("out/figures"),
    data: Annotated[
        str | None,
        typer.Option(
            help=f"Draw {', '.join(OF_DATA)} of a data set by name, .npz, .csv or folder."
        ),
    ] = None,
    target: Target = None,
    limit: Annotated[
        int | None, typer.Option(help="Only the first samples, of --data or MNIST.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of points, partners and networks.")] = 0,
    epochs: Annotated[
        int | None, typer.Option(help="Of surfaces (200 by default) and convergence (10).")
    ] = None,
    trials: Annotated[int, typer.Option(help="Networks of each line of convergence.")] = 1,
    quick: Annotated[
        bool, typer.Option("--quick", help="The smallest version that shows something.")
    ] = False,
) -> None:
    wanted = chosen(names or (), own_data=data is not None)
    check_folder(out)
    from kmixup.lab.figures.gallery import Settings, draw

    settings = Settings(out, data, limit, target, seed, epochs, trials, quick)
    for i, name in enumerate(wanted, 1):
        typer.echo(f"{i} of {len(wanted)}: {name}, {NAMES[name]}", err=True)
        start = time.perf_counter()
        files = draw(name, settings)
        took = duration(time.perf_counter() - start)
        typer.echo(f"written: {files[0]}, {', '.join(file.suffix for file in files[1:])} ({took})")


def chosen(names: Sequence[str], *, own_data: bool) -> list[str]:
    """Figures to draw, in their order; all that need no training where there is no name."""
    for name in names:
        if name not in NAMES:
            close = get_close_matches(name, NAMES, n=3, cutoff=0.5) or NAMES
            raise ValueError(f"there is no figure {name!r}: did you mean {' or '.join(close)}?")
        if own_data and name not in OF_DATA:
            raise ValueError(f"data can be of {', '.join(OF_DATA)}, not of {name}: drop --data")
    usual = [name for name in OF_DATA if name != "convergence"] if own_data else NAMES
    return [name for name in NAMES if name in (names or usual)]
