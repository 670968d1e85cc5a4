"""What came of a sweep: grids beside the paper's, verdicts, and one page to look at.

Reads rows and tables and nothing else. The same rows give the same bytes in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from kmixup.lab.checkpoint import replace_file
from kmixup.lab.paper.claims import Comparison as Claim
from kmixup.lab.paper.tables import Table
from kmixup.lab.report import terminal
from kmixup.lab.report.account import Preface, account_of
from kmixup.lab.report.grids import Row
from kmixup.lab.report.markdown import markdown
from kmixup.lab.report.own import tables_of
from kmixup.lab.report.page import page
from kmixup.lab.report.surfaces import pictures
from kmixup.lab.report.table_csv import cells_csv

__all__ = ["Paths", "show", "tables_of", "write"]

BEST = Claim()  # the best cell with k > 1 is below the best with k = 1


@dataclass(frozen=True)
class Paths:
    """The files of a report."""

    page: Path
    markdown: Path
    cells: Path


def write(
    rows: Iterable[Row],
    tables: Iterable[Table],
    folder: str | Path,
    *,
    name: str,
    command: str,
    claim: str | None = None,
    comparison: Claim = BEST,
    notes: Sequence[str] = (),
    surfaces: bool = True,
) -> Paths:
    """Write `report.html`, `report.md` and `cells.csv` into `folder`, each whole or not at all.

    Args:
        rows: of a store, in any order.
        tables: of the paper, or `tables_of(rows)`.
        folder: made where it is not there.
        name: heading of the report.
        command: what to type to repeat it.
        claim: what the paper says of its tables, in a sentence.
        comparison: the same for the grids to answer; by default that the best cell with
            k > 1 is below the best with k = 1.
        notes: how the run departs from the paper, a sentence each.
        surfaces: draw decision surfaces where there are toys among the rows. This trains
            three small networks for each, unless they are in `folder` already.
    """
    account, folder = account_of(rows, tables), Path(folder).expanduser()
    drawn = pictures(account.rows, folder) if surfaces else {}
    preface = Preface(name, command, claim, comparison, tuple(notes))
    html, text = page(account, preface, pictures=drawn), markdown(account, preface)
    paths = Paths(folder / "report.html", folder / "report.md", folder / "cells.csv")
    _put(paths.page, html)
    _put(paths.markdown, text)
    _put(paths.cells, cells_csv(account))
    return paths


def show(
    rows: Iterable[Row], tables: Iterable[Table], console: Console, *, comparison: Claim = BEST
) -> None:
    """Print grids and verdicts on a terminal; `comparison` is the claim to judge."""
    terminal.show(account_of(rows, tables), console, claim=comparison)


def _put(path: Path, text: str) -> None:
    replace_file(path, lambda stream: stream.write(text.encode()))
