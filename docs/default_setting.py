"""Which k and alpha should be the default? The regret of every setting on every data set.

The regret of a setting is its error minus the error of the best setting, in per cent of the error
of ERM (training without mixup). The default is tested on data that did not choose it: for each
data set, the setting with the least mean regret on the other data sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from kmixup.lab.experiments.rows import read
from kmixup.lab.paper.presets import PRESETS
from kmixup.lab.report.frame import results_of

RESULTS = Path(__file__).parents[1] / "results"
# tables by the names of their data; UCI at alpha = 0.2 is in a folder of its own
TABLES = {
    **{n.capitalize(): ("uci", n) for n in ("abalone", "arrhythmia", "cancer", "iris", "phishing")},
    "MNIST, 1,000": ("mnist-1000", "mnist-1000"),
    "MNIST, 5,000": ("mnist-5000", "mnist-5000"),
    "CIFAR-10, 5,000": ("cifar10-fitted", "cifar10-fitted-clean"),
}
FOLDERS = {"uci": ("default", "uci")}
KS, ALPHAS = (1, 16), (0.2, 1.0)  # settings that all data sets have
ERM, HELD_OUT = "ERM", "chosen on the other data sets"


def setting(k: int, alpha: float) -> str:
    """The name of a setting."""
    if k == 0:
        return ERM
    return f"{'mixup' if k == 1 else f'k = {k}'}, alpha = {alpha:g}"


def errors(alphas: Sequence[float] = ALPHAS) -> pd.DataFrame:
    """Mean test errors, a line for each setting; only data sets that have all settings."""
    found = {name: _errors(*place, alphas) for name, place in TABLES.items()}
    return pd.DataFrame(found).dropna(axis="columns")


def _errors(preset: str, table: str, alphas: Sequence[float]) -> dict[str, float]:
    folders = FOLDERS.get(preset, (preset,))
    rows = {row.id: row for folder in folders for row in read(RESULTS / folder)}
    (result,) = (
        result
        for result in results_of(rows.values(), PRESETS[preset].tables)
        if result.table.name == table
    )
    (grid,) = (grid for grid in result.grids if grid.rule == "same")
    cells = [result.erm[0], *(cell for cell in grid if cell.k in KS and cell.alpha in alphas)]
    return {setting(cell.k, cell.alpha): cell.mean for cell in cells if cell.mean is not None}


def regrets(errors: pd.DataFrame) -> pd.DataFrame:
    """The regret of each setting and of the held-out choice, by data set.

    >>> errors = pd.DataFrame({"a": [10.0, 9.0, 8.0], "b": [5.0, 4.0, 5.0], "c": [2.0, 1.0, 3.0]},
    ...                       index=["ERM", "mild", "strong"])
    >>> regrets(errors).round(0)
                                      a     b     c
    ERM                            20.0  20.0  50.0
    mild                           10.0   0.0   0.0
    strong                          0.0  20.0  100.0
    chosen on the other data sets  10.0   0.0   0.0
    """
    regret = 100 * (errors - errors.min()) / errors.loc[ERM]
    choices = {name: regret.drop(columns=name).mean(axis=1).idxmin() for name in regret}
    regret.loc[HELD_OUT] = {name: regret.loc[choice, name] for name, choice in choices.items()}
    return regret


if __name__ == "__main__":
    print(regrets(errors()).assign(mean=lambda regret: regret.mean(axis=1)).round(1).to_string())
