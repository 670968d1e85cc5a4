"""The paper's Table 1, which sums up seven other tables, beside ours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from kmixup.lab.experiments.rows import Row
from kmixup.lab.formatting import NOTHING, number
from kmixup.lab.paper.deviations import shrinkage
from kmixup.lab.paper.presets import preset_of
from kmixup.lab.paper.tables import Summary
from kmixup.lab.report.comparisons import HEURISTIC
from kmixup.lab.report.document import Bullets, Document, Paragraph, ReportTable, Section
from kmixup.lab.report.frame import Grid, TableResult, results_of
from kmixup.lab.train.config import AlphaRule

OURS: dict[AlphaRule, str] = {"same": "ours", "xi": "ours at equal ξ"}


def master_document(summaries: Sequence[Summary], rows: Iterable[Row]) -> Document:
    """The paper's summary table, our numbers below each line, and the commands for them."""
    rows, lines, notes, commands = list(rows), [], [], []
    for summary in summaries:
        title, network = summary.table.title, summary.architecture
        name = title if network in title else f"{title}, {network}"
        errors = (summary.erm, summary.mixup, summary.kmixup, summary.heuristic)
        lines.append([name, *map(number, (*errors, summary.confidence))])
        commands.append(f"kmixup reproduce {preset_of(summary.table).name:<15}{name}")
        notes += [f"{name}: {note}" for note in summary.notes]
        for result in results_of(rows, [summary.table]):
            for grid in result.grids:
                if all(cell.mean is None for cell in (*result.erm, *grid)):
                    continue
                lines.append([f"  {OURS[grid.rule]}", *_best_errors(result, grid), ""])
                if short := shrinkage([summary.table], [row.trial for row in result.rows]):
                    notes.append(f"{name}, ours: reduced to {'; '.join(short)}.")
    header = ["test error in per cent", "ERM", "mixup", "k-mixup", f"{HEURISTIC}-mixup", "±"]
    caption = (
        f"mixup, k-mixup and {HEURISTIC}-mixup are the cells with k = 1, k > 1 and k = {HEURISTIC} "
        "that are best on the test error, as the paper chooses them. ± is the paper's largest "
        "standard error."
    )
    return Document(
        "The paper's Table 1",
        [
            ReportTable(header, lines, numeric=True),
            Paragraph(caption),
            Bullets(list(dict.fromkeys(notes))),
            Section("Re-run a line", [Bullets(commands)]),
        ],
    )


def _best_errors(result: TableResult, grid: Grid) -> Iterator[str]:
    """The lowest error of ERM, mixup, k-mixup and 16-mixup."""
    for cells in (
        result.erm,
        [cell for cell in grid if cell.k == 1],
        [cell for cell in grid if cell.k > 1],
        [cell for cell in grid if cell.k == HEURISTIC],
    ):
        best = min(cells, key=lambda c: math.inf if c.mean is None else c.mean, default=None)
        yield NOTHING if best is None else f"{best.text} {best.spread}".rstrip()
