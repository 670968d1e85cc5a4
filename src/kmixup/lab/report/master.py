"""The paper's Table 1 on the terminal: its best cells, and those of the rows at hand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console

from kmixup.lab.experiments.rows import Row
from kmixup.lab.formatting import NOTHING, narrow_table, number
from kmixup.lab.paper.deviations import shrinkage
from kmixup.lab.paper.presets import preset_of
from kmixup.lab.paper.tables import Summary
from kmixup.lab.report.comparing import HEURISTIC
from kmixup.lab.report.grids import Cell, Grid, Outcome
from kmixup.lab.report.outcomes import outcomes
from kmixup.lab.report.wording import cell_error
from kmixup.lab.train.config import AlphaRule

OURS: dict[AlphaRule, str] = {"same": "ours", "xi": "ours at equal ξ"}
HEADINGS = ("ERM", "mixup", "k-mixup", f"{HEURISTIC}-mixup", "±")
CAPTION = (
    f"Test error in per cent. mixup, k-mixup and {HEURISTIC}-mixup are the cells with k = 1, "
    f"k > 1 and k = {HEURISTIC} that are best on the test error, as the paper chooses them. "
    "±: the paper's greatest standard deviation of a mean."
)


def show_master(summaries: Sequence[Summary], rows: Iterable[Row], console: Console) -> None:
    """Print the lines of the master table, our figures below each, and the commands for them."""
    rows, lines, notes, commands = list(rows), [], [], []
    for summary in summaries:
        name = _name(summary)
        errors = (summary.erm, summary.mixup, summary.kmixup, summary.heuristic)
        lines.append((name, *map(number, (*errors, summary.confidence))))
        commands.append(f"  kmixup reproduce {preset_of(summary.table).name:<15}{name}")
        notes += [f"{name}: {note}" for note in summary.notes]
        for outcome, grid in _measured(summary, rows):
            lines.append((f"  {OURS[grid.rule]}", *map(_figure, _best(outcome, grid))))
            if shrunk := _shrunk(summary, outcome):
                notes.append(f"{name}, ours: shrunk to {shrunk}.")
    table = narrow_table(
        ["", *HEADINGS],
        lines,
        wrapped=[0],
        title="The paper's Table 1",
        caption=CAPTION,
        caption_justify="left",
        padding=(0, 0),
    )
    console.print(table)
    for line in ("", *dict.fromkeys(notes), "", "To re-run a line:", *commands):
        console.print(line, highlight=False, markup=False)


def _name(summary: Summary) -> str:
    """The data set and the network, which the titles of some tables name already."""
    title, network = summary.table.title, summary.architecture
    return title if network in title else f"{title}, {network}"


def _measured(summary: Summary, rows: Sequence[Row]) -> Iterator[tuple[Outcome, Grid]]:
    """The grids of a sweep in which some trial ended well."""
    for outcome in outcomes(rows, [summary.table]):
        for grid in outcome.grids:
            if any(cell.mean is not None for cell in (*outcome.erm, *grid)):
                yield outcome, grid


def _best(outcome: Outcome, grid: Grid) -> Iterator[Cell | None]:
    """The cell with the lowest error of ERM, mixup, k-mixup and 16-mixup; None without cells."""
    for cells in (
        outcome.erm,
        [cell for cell in grid if cell.k == 1],
        [cell for cell in grid if cell.k > 1],
        [cell for cell in grid if cell.k == HEURISTIC],
    ):
        yield min(cells, key=_error, default=None)


def _error(cell: Cell) -> float:
    return math.inf if cell.mean is None else cell.mean


def _figure(cell: Cell | None) -> str:
    return NOTHING if cell is None else cell_error(cell)


def _shrunk(summary: Summary, outcome: Outcome) -> str:
    """In which ways our figures fall short of the paper's protocol."""
    trials = [row.trial for row in outcome.rows]
    return "; ".join(shrinkage([summary.table], trials))
