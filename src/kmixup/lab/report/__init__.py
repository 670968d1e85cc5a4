"""What came of a sweep: grids beside the paper's, verdicts, and one page to look at.

Reads rows and tables and nothing else. The same rows give the same bytes in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from kmixup.lab.experiments.rows import Row
from kmixup.lab.files import replace_content
from kmixup.lab.pages.html import Picture
from kmixup.lab.paper.tables import BEST_CELLS, Claim, PaperTable
from kmixup.lab.report import terminal
from kmixup.lab.report.account import Preface, account_of
from kmixup.lab.report.markdown import markdown
from kmixup.lab.report.own import tables_of
from kmixup.lab.report.page import page
from kmixup.lab.report.table_csv import cells_csv

__all__ = ["Paths", "show", "tables_of", "write"]


@dataclass(frozen=True)
class Paths:
    """The files of a report.

    Attributes:
        page: the HTML page.
        markdown: the same as Markdown.
        cells: all cells as comma-separated values.
    """

    page: Path
    markdown: Path
    cells: Path


def write(
    rows: Iterable[Row],
    tables: Iterable[PaperTable],
    folder: str | Path,
    *,
    name: str,
    command: str,
    claim: str | None = None,
    comparison: Claim = BEST_CELLS,
    notes: Sequence[str] = (),
    pictures: Mapping[str, Sequence[Picture]] = {},
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
        pictures: decision surfaces for the page, by the name of their data; those of the
            toys come from `kmixup.lab.figures.surfaces.pictures`.
    """
    account, folder = account_of(rows, tables), Path(folder).expanduser()
    preface = Preface(name, command, claim, comparison, tuple(notes))
    html, text = page(account, preface, pictures=pictures), markdown(account, preface)
    paths = Paths(folder / "report.html", folder / "report.md", folder / "cells.csv")
    replace_content(paths.page, html)
    replace_content(paths.markdown, text)
    replace_content(paths.cells, cells_csv(account))
    return paths


def show(
    rows: Iterable[Row],
    tables: Iterable[PaperTable],
    console: Console,
    *,
    comparison: Claim = BEST_CELLS,
) -> None:
    """Print grids and verdicts on a terminal; `comparison` is the claim to judge."""
    terminal.show(account_of(rows, tables), console, claim=comparison)
