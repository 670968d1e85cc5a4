"""Grids as heat maps: tables of text on coloured ground, for the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kmixup.lab.report import wording
from kmixup.lab.report.grids import Cell, Grid, Outcome
from kmixup.lab.report.heat import diverging, sequential


@dataclass(frozen=True)
class Box:
    """One cell: a figure, something smaller below it, its colours, and whether it is the best."""

    text: str
    small: str = ""
    style: str = ""
    best: bool = False


@dataclass(frozen=True)
class Map:
    """Boxes under headings of one or two lines; a row with a single box is as wide as all."""

    title: str
    head: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, tuple[Box, ...]], ...]


def errors(outcome: Outcome) -> tuple[Map, ...]:
    """Our grids and the paper's on one scale of colours."""
    tint = sequential(value for cell in outcome.cells for value in (cell.mean, cell.paper))

    def ours(grid: Grid) -> Map:
        best = _best(grid, lambda cell: cell.mean)

        def box(cell: Cell) -> Box:
            small = ", ".join(filter(None, [wording.cell_spread(cell), wording.cell_gaps(cell)]))
            return Box(wording.cell_mean(cell), small, tint(cell.mean), best(cell))

        return _map(outcome, grid, f"Ours, {wording.RULE[grid.rule]}", box)

    return (*map(ours, outcome.grids), *_printed(outcome, tint))


def _printed(outcome: Outcome, tint: Callable[[float | None], str]) -> list[Map]:
    table, grid = outcome.table, outcome.grids[0]
    if table.errors is None:
        return []
    best = _best(grid, lambda cell: cell.paper)

    def box(cell: Cell) -> Box:
        return Box(wording.number(cell.paper), "", tint(cell.paper), best(cell))

    title, erm = f"The paper, {table.label}", table.erm is not None
    return [_map(outcome, grid, title, box, erm=erm, printed_xi=True)]


def _best(grid: Grid, value: Callable[[Cell], float | None]) -> Callable[[Cell], bool]:
    """Tells the best cells of a grid, each eps by itself; ERM is none of them."""
    least: dict[float | None, float] = {}
    for cell in grid:
        if (found := value(cell)) is not None:
            least[cell.eps] = min(found, least.get(cell.eps, found))
    return lambda cell: cell.k > 0 and value(cell) is not None and value(cell) == least[cell.eps]


def differences(outcome: Outcome) -> tuple[Map, ...]:
    """Ours less the paper's, and in standard errors where the paper states its own."""
    if outcome.table.errors is None:
        return ()
    tint = diverging(cell.difference for cell in outcome.cells)

    def box(cell: Cell) -> Box:
        small = "" if cell.ratio is None else f"{wording.signed(cell.ratio, 1)} s.e."
        return Box(wording.signed(cell.difference), small, tint(cell.difference))

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


def strengths(outcome: Outcome) -> tuple[Map, ...]:
    """The alpha that was trained with and its xi."""

    def box(cell: Cell) -> Box:
        alpha, xi = wording.strength(cell.trained_alpha), wording.strength(cell.xi)
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
) -> Map:
    head = tuple(
        (wording.column_name(one, outcome), f"ξ = {one.xi:g}" if printed_xi and one.xi else "")
        for one in outcome.columns
    )
    rows = [
        (f"k = {k}", tuple(map(box, cells)))
        for k, cells in zip(outcome.ks, grid.cells, strict=True)
    ]
    if erm:
        rows.insert(0, ("ERM", tuple(map(box, outcome.erm_by_column))))
    return Map(title, head, tuple(rows))
