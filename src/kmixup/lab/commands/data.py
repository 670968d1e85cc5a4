"""`kmixup data`: list, describe and download data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from kmixup.lab.data import ENTRIES, Entry, at_hand, fetch_dataset
from kmixup.lab.formatting import TextTable

Name = Annotated[str, Parameter(help="Name from `kmixup data list`.")]

data = App(name="data", help="List, describe and download data sets.")


@data.command(name="list")
def list_data() -> None:
    """List all data sets, and whether they are available locally."""
    header = ("NAME", "KIND", "TRAIN", "TEST", "CLASSES", "SHAPE", "LOCAL")
    rows = []
    for name, entry in ENTRIES.items():
        counts = (f"{entry.train:,}", f"{entry.test:,}", f"{entry.classes}")
        rows.append((name, entry.kind, *counts, _shape(entry), _presence(name)))
    print(TextTable(header, rows).plain())


@data.command
def info(name: Name, /) -> None:
    """Describe a data set: source, size, checksums and license."""
    at_hand(name)  # raises on an unknown name
    entry = ENTRIES[name]
    print(f"{entry.title} ({name})")
    print(f"  samples  {entry.train:,} to train, {entry.test:,} to test")
    print(f"  inputs   {_shape(entry)} ({entry.kind}), {entry.classes} classes")
    usual = entry.default or entry.paper or "standard"
    print(f"  scaling  {usual} (--scaling paper: {entry.paper or 'not known'})")
    print(f"  license  {entry.licence}")
    print(f"  source   {entry.source}")
    print(f"  local    {_presence(name)}")
    if entry.recipe:
        print(f"  to get   {entry.recipe}")
    for remote in entry.remotes:
        size, unit = (1e6, "MB") if remote.size >= 1e6 else (1e3, "kB")
        print(f"  file     {remote.url} ({remote.size / size:,.1f} {unit})")
        print(f"           SHA-256 {remote.sha256}, {remote.published}")


@data.command
def fetch(name: Name, /, *, into: Path | None = None) -> None:
    """Download a data set and verify it.

    Args:
        into: Folder for it, in place of the cache. Set KMIXUP_DATA to this folder.
    """
    print(f"{name} is in {fetch_dataset(name, into=into)}")


def _shape(entry: Entry) -> str:
    return "×".join(map(str, entry.shape))


def _presence(name: str) -> str:
    if at_hand(name):
        return "yes"
    return "a part (use --limit)" if at_hand(name, limit=1) else "no"
