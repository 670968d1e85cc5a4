"""`kmixup data`: what data sets there are, at hand or not, and where they come from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kmixup.lab.data import ENTRIES, Entry, at_hand, fetch_dataset
from kmixup.lab.formatting import TextTable

app = typer.Typer(
    help="The data sets: what there is, at hand or not, and where it comes from.\n\n"
    "\b\nkmixup data list\nkmixup data info mnist\nkmixup data fetch mnist",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def list_data() -> None:
    """All data sets that have a name, and whether they are at hand."""
    header = ("NAME", "KIND", "TRAIN", "TEST", "CLASSES", "SHAPE", "AT HAND")
    rows = []
    for name, entry in ENTRIES.items():
        shape = "×".join(map(str, entry.shape))
        counts = (f"{entry.train:,}", f"{entry.test:,}", f"{entry.classes}")
        rows.append((name, entry.kind, *counts, shape, _presence(name)))
    typer.echo(TextTable(header, rows).plain())


@app.command("info")
def info(name: Annotated[str, typer.Argument(help="A name from `kmixup data list`.")]) -> None:
    """Where a data set comes from, how large it is, its checksums and its licence."""
    at_hand(name)  # refuses a name that is none
    entry = ENTRIES[name]
    typer.echo(f"{entry.title} ({name})")
    shape = "×".join(map(str, entry.shape))
    typer.echo(f"  samples  {entry.train:,} to train, {entry.test:,} to test")
    typer.echo(f"  inputs   {shape} ({entry.kind}), {entry.classes} classes")
    typer.echo(f"  scaling  {_scalings(entry)}")
    typer.echo(f"  licence  {entry.licence}")
    typer.echo(f"  source   {entry.source}")
    typer.echo(f"  at hand  {_presence(name)}")
    for remote in entry.remotes:
        typer.echo(f"  file     {remote.url} ({_bytes(remote.size)})")
        typer.echo(f"           SHA-256 {remote.sha256}, {remote.published}")


@app.command("fetch")
def fetch_data(
    name: Annotated[str, typer.Argument(help="A name from `kmixup data list`.")],
    into: Annotated[
        Path | None, typer.Option(help="A folder to be KMIXUP_DATA, in place of the cache.")
    ] = None,
) -> None:
    """Download a data set, verify it and keep it in the cache."""
    typer.echo(f"{name} is in {fetch_dataset(name, into=into)}")


def _presence(name: str) -> str:
    if at_hand(name):
        return "yes"
    return "a part (use --limit)" if at_hand(name, limit=1) else "no"


def _bytes(size: int) -> str:
    """
    >>> _bytes(9_912_422), _bytes(4_542)
    ('9.9 MB', '4.5 kB')
    """
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"


def _scalings(entry: Entry) -> str:
    """The default scaling, and the paper's."""
    if entry.paper is None:
        return f"{entry.default_scaling}, the paper's is not known"
    if entry.default is None:
        return f"{entry.paper}, as the paper's xi imply"
    return f"{entry.default}; the paper's xi imply {entry.paper} (--scaling paper)"
