"""Published rows and what they say, for the scripts that write tables and draw pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pandas as pd

from kmixup.lab.experiments.rows import Done, done_of, read
from kmixup.lab.paper.presets import PRESETS
from kmixup.lab.report.frame import Cell, TableResult, results_of
from kmixup.lab.report.meta_analysis import regrets
from kmixup.lab.results import frame_of

ROOT = Path(__file__).parents[1]
# tables by the names that their data have in pictures
DATA = {
    **{n.capitalize(): ("uci", n) for n in ("abalone", "arrhythmia", "cancer", "iris", "phishing")},
    "MNIST, 1,000": ("mnist-1000", "mnist-1000"),
    "MNIST, 5,000": ("mnist-5000", "mnist-5000"),
    "CIFAR-10, 5,000": ("cifar10-fitted", "cifar10-fitted-clean"),
}

# UCI at alpha = 0.2 is in its own folder
FOLDERS = {"uci": ("default", "uci")}
KS, ALPHAS = (1, 16), (0.2, 1.0)  # settings that all data sets have
ERM, HELD_OUT = "ERM", "chosen on the other data sets"


@cache
def rows(folder: str) -> list[Done]:
    """The finished trials of a folder of results."""
    return done_of(read(ROOT / "results" / folder))


@cache
def results(preset: str, *folders: str) -> Mapping[str, TableResult]:
    """The results of every table of an experiment, from its own folder unless others are named."""
    trials = {row.id: row for folder in folders or (preset,) for row in rows(folder)}
    found = results_of(frame_of(trials.values()), PRESETS[preset].tables)
    return {result.table.name: result for result in found}


@cache
def mnist_headline(eps: float | None = None) -> Mapping[str, Cell]:
    """ERM, the paper's best mixup and its best k-mixup on MNIST, trained for 200 epochs.

    Cells are tested under FGSM if there is an `eps`.
    """
    name = "mnist" if eps is None else "fgsm-mnist"
    return {
        f"mixup, {cell.name}" if cell.k == 1 else cell.name: cell
        for cell in results(name, "mnist-200")[name].cells
        if cell.errors and cell.eps == eps
    }


def regrets_of(alphas: Sequence[float] = ALPHAS) -> pd.DataFrame:
    """The regret of each setting, a line for each, on the data sets that have all settings."""
    errors = {}
    for name, (preset, table) in DATA.items():
        result = results(preset, *FOLDERS.get(preset, ()))[table]
        (grid,) = (grid for grid in result.grids if grid.rule == "same")
        mixed = [cell for cell in grid if cell.k in KS and cell.alpha in alphas]
        errors[name] = {
            ERM if cell.k == 0 else f"{_name(cell)}, alpha = {cell.alpha:g}": cell.mean
            for cell in (result.erm[0], *mixed)
            if cell.mean is not None
        }
    return regrets(pd.DataFrame(errors).dropna(axis="columns"), ERM, HELD_OUT)


def _name(cell: Cell) -> str:
    return "mixup" if cell.k == 1 else f"k = {cell.k}"
