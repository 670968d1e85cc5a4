"""A search for k and alpha as one HTML page, and on the terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from kmixup.lab.experiments.tuning import Tuned
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import TextTable, with_error
from kmixup.lab.pages.html import render
from kmixup.lab.report.account import Account
from kmixup.lab.report.page import origin
from kmixup.lab.report.terminal import STYLE
from kmixup.lab.tuning.headline import headline
from kmixup.lab.tuning.report import (
    CAUTION,
    RECIPES,
    TIES,
    comparisons,
    course,
    curves,
    figure_of,
    name_of,
    protocol,
    reach,
    surface,
    trained_with,
)

NAME = "tune.html"


def page(tuned: Tuned, *, command: str) -> str:
    """The page of a search."""
    plan, measure = tuned.plan, tuned.measure
    rows = tuple(sorted(tuned.rows, key=lambda row: row.id))
    return render(
        "kmixup.lab.tuning",
        "tune.html",
        name=f"k and alpha for {Path(plan.base.data).name}",
        tuned=tuned,
        headline=headline(tuned),
        recipe=RECIPES[plan.strategy.name],
        reach=reach(tuned),
        ties=TIES,
        caution=CAUTION,
        comparisons=comparisons(tuned),
        map=surface(
            tuned.kmixup,
            f"k-mixup: validation {measure.name} {measure.unit} ± standard error (seeds)",
            erm=tuned.erm,
            measure=measure,
        ),
        drawn=curves(tuned),
        course=course(tuned),
        protocol=protocol(tuned),
        name_of=name_of,
        with_error=with_error,
        figure_of=figure_of,
        measure=measure,
        trained_with=trained_with,
        origin=origin(Account(rows, ())),
        command=command,
    )


def write(tuned: Tuned, folder: Path, *, command: str) -> Path:
    """Write the page into `folder`, whole or not at all."""
    path = folder / NAME
    replace_content(path, page(tuned, command=command))
    return path


def show(tuned: Tuned, console: Console) -> None:
    """Print the surface, the test and the verdicts on a terminal."""
    plain: dict[str, Any] = {"highlight": False, "markup": False, "soft_wrap": True}
    measure = tuned.measure
    title = f"Validation {measure.name} of k-mixup {measure.unit}, * the winner:"
    heat = surface(tuned.kmixup, title, erm=tuned.erm, measure=measure)
    caption = "± standard error (seeds)"
    table = heat.table(between="\n", between_heads="\n", best="* ", caption=caption)
    console.print(heat.title, **plain)
    console.print(replace(table, title="").printed())
    tested_in = f"Test {measure.name} {measure.unit}"
    console.print(f"{tested_in}, measured once, after the search:", **plain)
    header = [
        "", "chosen on validation samples", f"test {measure.name}", "trials", "trained with",
    ]  # fmt: skip
    rows = [
        (
            tested.name,
            name_of(tested.setting),
            with_error(tested.mean, tested.standard_error),
            str(len(tested.errors)),
            trained_with(tested),
        )
        for tested in tuned.tests
    ]
    console.print(TextTable(header, rows).printed(others="left"))
    console.print(f"Searched: {reach(tuned)}", **plain)
    for pair in comparisons(tuned):
        console.print(pair.sentence, style=STYLE[pair.mood], **plain)
    summary = headline(tuned)
    console.print()
    for sentence in summary.sentences:
        console.print(sentence, style="bold", **plain)
    if summary.line:
        console.print(f"\n  {summary.line}\n", style="bold green", **plain)
