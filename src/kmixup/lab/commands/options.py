"""Options that several commands share, so that they are called and explained alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DATA = "A name from `kmixup data list`, or a .npz, a .csv or a folder."

Model = Annotated[str | None, typer.Option(help="A name, or package.module:function of your own.")]
Limit = Annotated[int | None, typer.Option(help="Only the first samples, this many of each part.")]
Scaling = Annotated[str | None, typer.Option(help="paper, standard, minmax, symmetric or none.")]
Points = Annotated[int | None, typer.Option(help="Points of a toy.")]
Target = Annotated[str | None, typer.Option(help="The column of a .csv with the classes.")]

Out = Annotated[Path | None, typer.Option(help="Folder of the rows; by default one in out/.")]
EngineName = Annotated[str, typer.Option("--engine", help="local or ray.")]
Workers = Annotated[
    int | None, typer.Option(help="Processes of the local engine; by default one a core.")
]
Address = Annotated[
    str | None, typer.Option(help="Of a Ray cluster; by default one is started here.")
]
NumCpus = Annotated[float, typer.Option(help="Cores that a Ray task reserves.")]
NumGpus = Annotated[float, typer.Option(help="GPUs that a Ray task reserves, e.g. 0.25.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps; tables train on the CPU.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the trials and an estimate of the time.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
