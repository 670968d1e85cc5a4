"""Masks of PuzzleMix: the exact minimum cut against the published swap moves."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from benchmarks.tables import table
from kmixup.lab.formatting import stopwatch
from kmixup.lab.timing import interleaved
from kmixup.methods.puzzle import least_masks
from tests.oracles import energy, puzzles, swap_moves

GRIDS = (2, 4, 8, 16)
COUNT = 200  # pairs of images for each grid
WORSE = 1e-6  # relative: costs are rounded to 2⁻²⁶ of the largest one


def gaps(grid: int, count: int = COUNT, seed: int = 0) -> tuple[float, float]:
    """How often swap moves miss the least energy, and what that costs.

    The cost is the mean energy above the least, as a share of what the least one gains on
    average over the best constant mask.
    """
    costs = puzzles(grid, count, seed)
    cut, swap = (energy(solver(*costs), *costs) for solver in (least_masks, swap_moves))
    same = (np.full((count, grid, grid), level) for level in (0.0, 0.5, 1.0))
    constant = np.min([energy(mask, *costs) for mask in same], 0)
    worse = swap > cut + WORSE * np.abs(cut)
    return float(worse.mean()), float((swap - cut).mean() / (constant - cut).mean())


def puzzle(seconds: float) -> None:
    rows = []
    for grid in GRIDS:
        worse, gap = gaps(grid)
        costs = puzzles(grid, 100)
        calls = {"cut": partial(least_masks, *costs)}
        timed = interleaved(calls, seconds=seconds / 4, clock=time.process_time)
        share, lost = f"{100 * worse:.1f} %", f"{100 * gap:.1f} %"
        rows.append([f"{grid} x {grid}", share, lost, stopwatch(timed.best("cut"))])
    table(
        f"Masks of PuzzleMix, {COUNT} pairs of images: swap moves against exact cuts",
        ["grid", "swap moves are worse", "gain that they lose", "100 exact masks"],
        rows,
    )
