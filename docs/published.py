"""Published rows and what they say, for the scripts that write tables and draw pictures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from kmixup.lab.experiments.rows import Done, done_of, read
from kmixup.lab.paper.presets import PRESETS
from kmixup.lab.report.frame import Cell, TableResult, results_of

ROOT = Path(__file__).parents[1]
# tables by the names that their data have in pictures
DATA = {
    **{n.capitalize(): ("uci", n) for n in ("abalone", "arrhythmia", "cancer", "iris", "phishing")},
    "MNIST, 1,000": ("mnist-1000", "mnist-1000"),
    "MNIST, 5,000": ("mnist-5000", "mnist-5000"),
    "CIFAR-10, 5,000": ("cifar10-fitted", "cifar10-fitted-clean"),
}


@cache
def rows(folder: str) -> list[Done]:
    """The finished trials of a folder of results."""
    return done_of(read(ROOT / "results" / folder))


@cache
def results(preset: str, *folders: str) -> Mapping[str, TableResult]:
    """The results of every table of an experiment, from its own folder unless others are named."""
    trials = {row.id: row for folder in folders or (preset,) for row in rows(folder)}
    found = results_of(trials.values(), PRESETS[preset].tables)
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
