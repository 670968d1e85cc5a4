"""The grids of an outcome as heat maps."""

from __future__ import annotations

from collections.abc import Callable

from kmixup.lab.formatting import number, signed, strength
from kmixup.lab.pages.heat import Box, HeatMap, Tint, diverging, sequential
from kmixup.lab.report import wording
from kmixup.lab.report.grids import Cell, Grid, Outcome


def errors(outcome: Outcome) -> tuple[HeatMap, ...]:
    """Our grids and the paper's on one scale of colours."""
    tint = sequential(value for cell in outcome.cells for value in (cell.mean, cell.paper))

    def ours(grid: Grid) -> HeatMap:
        best = _best(grid, lambda cell: cell.mean)

        def box(cell: Cell) -> Box:
            small = ", ".join(filter(None, [wording.cell_spread(cell), wording.cell_gaps(cell)]))
            return Box(wording.cell_mean(cell), small, tint(cell.mean), best(cell))

        title = wording.title(grid.rule)
        if outcome.table.errors is not None:
            title = f"Ours, {wording.RULE[grid.rule]}"
        return _map(outcome, grid, title, box)

    return (*map(ours, outcome.grids), *_printed(outcome, tint))


def _printed(outcome: Outcome, tint: Tint) -> list[HeatMap]:
    table, grid = outcome.table, outcome.grids[0]
    if table.errors is None:
        return []
    best = _best(grid, lambda cell: cell.paper)

    def box(cell: Cell) -> Box:
        return Box(number(cell.paper), "", tint(cell.paper), best(cell))

    title, erm = f"The paper, {table.label}", table.erm is not None
    return [_map(outcome, grid, title, box, erm=erm, printed_xi=True)]


def _best(grid: Grid, value: Callable[[Cell], float | None]) -> Callable[[Cell], bool]:
    """Whether a cell is the best of the grid at its eps. ERM never is."""
    least: dict[float | None, float] = {}
    for cell in grid:
        if (figure := value(cell)) is not None:
            least[cell.eps] = min(figure, least.get(cell.eps, figure))
    return lambda cell: cell.k > 0 and value(cell) is not None and value(cell) == least[cell.eps]


def differences(outcome: Outcome) -> tuple[HeatMap, ...]:
    """Ours less the paper's, and in standard errors where the paper states its own."""
    if outcome.table.errors is None:
        return ()
    tint = diverging(cell.difference for cell in outcome.cells)

    def box(cell: Cell) -> Box:
        small = "" if cell.ratio is None else f"{signed(cell.ratio, 1)} s.e."
        return Box(signed(cell.difference), small, tint(cell.difference))

    return tuple(
        _map(
            outcome,
            grid,
            f"Difference, {wording.RULE[grid.rule]}",
            box,
            erm=outcome.table.erm is not None,
        )
        for grid in outcome.grids
    )


def strengths(outcome: Outcome) -> tuple[HeatMap, ...]:
    """The alpha that was trained with and its xi."""

    def box(cell: Cell) -> Box:
        alpha, xi = strength(cell.trained_alpha), strength(cell.xi)
        return Box(f"α {alpha}", f"ξ {xi}")

    return tuple(
        _map(outcome, grid, wording.title(grid.rule), box, erm=False) for grid in outcome.grids
    )


def _map(
    outcome: Outcome,
    grid: Grid,
    title: str,
    box: Callable[[Cell], Box],
    *,
    erm: bool = True,
    printed_xi: bool = False,
) -> HeatMap:
    head = tuple(
        (
            wording.column_name(column, outcome),
            f"ξ = {column.xi:g}" if printed_xi and column.xi else "",
        )
        for column in outcome.columns
    )
    rows = [
        (f"k = {k}", tuple(map(box, cells)))
        for k, cells in zip(outcome.ks, grid.cells, strict=True)
    ]
    if erm:
        rows.insert(0, ("ERM", tuple(map(box, outcome.erm_by_column))))
    return HeatMap(title, head, tuple(rows))
