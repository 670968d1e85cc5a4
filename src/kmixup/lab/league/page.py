"""A league as one HTML page, as Markdown, and on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from kmixup.lab.experiments.rows import Row, failed_of
from kmixup.lab.files import replace_content
from kmixup.lab.formatting import TextTable, count, escaped
from kmixup.lab.league import wording
from kmixup.lab.league.drawing import diagram
from kmixup.lab.league.standings import Standings
from kmixup.lab.pages.html import Drawing, render
from kmixup.lab.report.account import Account
from kmixup.lab.report.page import origin

PAGE, MARKDOWN = "league.html", "report.md"


@dataclass(frozen=True)
class WideTable:
    """A table of a page that becomes a list where the screen is narrow.

    Attributes:
        head: the heading of each column.
        rows: its cells.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def page(standings: Standings, *, command: str) -> str:
    """The page of a league."""
    drawn = []
    if (ranking := standings.ranking) is not None:
        note = wording.diagram_note(ranking)
        drawn.append(Drawing("Mean ranks", diagram(ranking, "ranks"), note))
    return render(
        "kmixup.lab.league",
        "league.html",
        name="The league: which method at an equal budget?",
        standings=standings,
        sentences=wording.headline(standings),
        words=wording,
        drawn=drawn,
        errors=wording.errors(standings),
        differences=wording.differences(standings),
        said=wording.against_sentence(standings),
        chosen=WideTable(wording.CHOSEN_HEAD, wording.chosen_rows(standings)),
        extent=extent(standings),
        origin=origin(Account(tuple(sorted(rows_of(standings), key=lambda row: row.id)), ())),
        command=command,
    )


def markdown(standings: Standings, *, command: str) -> str:
    """The league as a document."""
    parts = ["# The league: which method at an equal budget?", extent(standings)]
    parts += [escaped(sentence) for sentence in wording.headline(standings)]
    parts += [
        "## Errors",
        wording.table(standings, between=" ").markdown(),
        wording.READING.format(marked="starred"),
    ]
    parts += ["\n".join(f"- {escaped(gap)}" for gap in standings.gaps)]
    parts += ["## Against mixup", wording.against_sentence(standings)]
    against = [wording.against_row(test) for test in standings.against]
    note = f"{wording.CAUTION} {wording.NEW_DATA}"
    parts += [TextTable(wording.AGAINST_HEAD, against).markdown(), note] * bool(against)
    chosen = TextTable(wording.CHOSEN_HEAD, wording.chosen_rows(standings))
    parts += ["## What was chosen", chosen.markdown()]
    parts += ["## To repeat", f"```\n{command}\n```"]
    return "\n\n".join(part for part in parts if part) + "\n"


def write(standings: Standings, folder: Path, *, command: str) -> Path:
    """Write `league.html` and `report.md` into `folder`, each whole or not at all."""
    replace_content(folder / PAGE, page(standings, command=command))
    replace_content(folder / MARKDOWN, markdown(standings, command=command))
    return folder / PAGE


def show(standings: Standings, console: Console) -> None:
    """Print errors, comparisons and verdicts on a terminal."""
    plain: dict[str, Any] = {"highlight": False, "markup": False, "soft_wrap": True}
    console.print(wording.table(standings, between="\n").printed())
    for gap in standings.gaps:
        console.print(gap, **plain)
    console.print(wording.against_sentence(standings), **plain)
    console.print()
    for sentence in wording.headline(standings):
        console.print(sentence, style="bold", **plain)


def extent(standings: Standings) -> str:
    """How much was run, in a sentence."""
    rows = rows_of(standings)
    failed = len(failed_of(rows))
    trials = dict.fromkeys(result.contest.trials for result in standings.results)
    return (
        f"{count(len(standings.titles), 'method')} on "
        f"{count(len(standings.results), 'data set')}, {' or '.join(map(str, trials))} paired "
        f"trials of each; {count(len(rows), 'network')} were trained, {failed} failed."
    )


def rows_of(standings: Standings) -> list[Row]:
    """All rows behind the standings."""
    return [row for result in standings.results for row in result.rows]
