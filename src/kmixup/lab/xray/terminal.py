"""An X-ray on the terminal."""

from __future__ import annotations

from rich.console import Console

from kmixup.lab.formatting import narrow_table
from kmixup.lab.xray import wording
from kmixup.lab.xray.examining import Xray


def show(xray: Xray, console: Console) -> None:
    """Print the readings and what they imply."""
    inspection = xray.inspection
    columns = wording.columns(inspection, labelled=xray.labelled)
    names = [column.name for column in columns]
    table = narrow_table(
        ["k", *(f"{column.name} {column.unit}".strip().replace(" ", "\n") for column in columns)],
        [
            (str(reading.k), *wording.cells(reading, labelled=xray.labelled))
            for reading in inspection.readings
        ],
        wrapped=[1 + names.index(wording.ALPHA)],  # its cells may be words
        first="right",
    )
    _say(console, wording.extent(xray))
    if text := wording.classes(xray):
        _say(console, text)
    console.print(table)
    for column in columns:
        _say(console, f"{column.name}: {column.meaning}", style="dim")
    _say(console, f"\n{wording.dimension(inspection.decay)}")
    if inspection.by_labels:
        _say(console, f"\n{wording.by_labels(inspection)}")
        console.print(wording.labels_table(inspection).printed(others="right"))
    _say(console, f"\n{wording.CHOOSE}")


def _say(console: Console, text: str, *, style: str | None = None) -> None:
    console.print(text, style=style, highlight=False, markup=False)
