"""A search for k and alpha as one HTML page, and on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Lines

from kmixup.lab.checkpoint import replace_file
from kmixup.lab.report.account import Account
from kmixup.lab.report.page import rendered
from kmixup.lab.report.terminal import STYLE
from kmixup.lab.report.tuned import (
    CAUTION,
    RECIPES,
    TIES,
    comparisons,
    course,
    curves,
    figure,
    name_of,
    percent,
    protocol,
    reach,
    surface,
    trained_with,
)
from kmixup.lab.tuning import Tuned

NAME = "tune.html"


def page(tuned: Tuned, *, command: str) -> str:
    """The page of a search."""
    plan = tuned.plan
    return rendered(
        "tune.html",
        name=f"k and alpha for {Path(plan.base.data).name}",
        tuned=tuned,
        recipe=RECIPES[plan.name],
        reach=reach(tuned),
        ties=TIES,
        caution=CAUTION,
        comparisons=comparisons(tuned),
        map=surface(tuned.kmixup, "k-mixup: validation error in per cent ± standard error (seeds)"),
        drawings_=curves(tuned),
        course=course(tuned),
        protocol=protocol(tuned),
        name_of=name_of,
        figure=figure,
        percent=percent,
        trained_with=trained_with,
        account=Account(tuple(sorted(tuned.rows, key=lambda row: str(row["id"]))), ()),
        command=command,
    )


def write(tuned: Tuned, folder: Path, *, command: str) -> Path:
    """Write the page into `folder`, whole or not at all."""
    path, text = folder / NAME, page(tuned, command=command)
    replace_file(path, lambda stream: stream.write(text.encode()))
    return path


def show(tuned: Tuned, console: Console) -> None:
    """Print the surface, the test and the verdicts on a terminal."""
    plain: dict[str, Any] = {"highlight": False, "markup": False, "soft_wrap": True}
    found = surface(tuned.kmixup, "Validation error of k-mixup in per cent, * the winner:")
    table = Lines(caption="± standard error (seeds)")
    table.add_column("")
    for head, _ in found.head:
        table.add_column(escape(head), justify="right")
    for label, boxes in found.rows:
        texts = (f"{'* ' * box.best}{box.text}\n{box.small}" for box in boxes)
        table.add_row(label, *(escape(text.strip()) for text in texts))
    console.print(found.title, **plain)
    console.print(table)
    console.print("Test error in per cent, measured once, after the search:", **plain)
    final = Lines()
    for heading in ("", "chosen on validation samples", "test error", "trials", "trained with"):
        final.add_column(heading)
    for one in tuned.tests:
        error = figure(one.mean, one.standard_error)
        final.add_row(
            one.name, name_of(one.setting), error, str(len(one.errors)), trained_with(one)
        )
    console.print(final)
    console.print(f"Searched: {reach(tuned)}", **plain)
    for pair in comparisons(tuned):
        console.print(pair.sentence, style=STYLE[pair.mood], **plain)
