"""What was found, on the terminal."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from kmixup.lab.xray import wording
from kmixup.lab.xray.examining import Xray


def show(xray: Xray, console: Console) -> None:
    """Print the readings, what they imply, and the advice."""
    found, advice = xray.found, xray.found.advice
    columns = wording.columns(found, labelled=xray.labelled)
    table = Table(box=SIMPLE, collapse_padding=True, pad_edge=False, show_edge=False)
    table.add_column("k", justify="right")
    for column in columns:
        heading = f"{column.name} {column.unit}".strip().replace(" ", "\n")
        words = column.name == wording.ALPHA  # the only cells that may be wrapped
        table.add_column(heading, justify="right", no_wrap=not words)
    for reading in found.readings:
        table.add_row(str(reading.k), *wording.cells(reading, labelled=xray.labelled))
    _say(console, wording.extent(xray))
    console.print(table)
    for column in columns:
        _say(console, f"{column.name}: {column.meaning}", style="dim")
    _say(console, f"\n{wording.dimension(found.decay)}")
    if advice.warning is not None:
        _say(console, f"\nWarning: {advice.warning}.", style="bold red")
    _say(console, f"\nAdvice: {wording.answer(found)}", style="bold green")
    for sentence in (*advice.reasons, advice.changes):
        _say(console, sentence)
    if (line := wording.code(xray)) is not None:
        _say(console, f"\n  {line}\n", style="bold")


def _say(console: Console, text: str, *, style: str | None = None) -> None:
    console.print(text, style=style, highlight=False, markup=False)
