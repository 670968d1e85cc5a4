"""Which k and alpha should be the default? The regret of every setting on every data set.

The regret of a setting is its error minus the error of the best setting, in per cent of the error
of ERM (training without mixup). The default is tested on data that did not choose it: for each
data set, the setting with the least mean regret on the other data sets.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from published import DATA, results

FOLDERS = {"uci": ("default", "uci")}  # UCI at alpha = 0.2 is in a folder of its own
KS, ALPHAS = (1, 16), (0.2, 1.0)  # settings that all data sets have
ERM, HELD_OUT = "ERM", "chosen on the other data sets"


def setting(k: int, alpha: float) -> str:
    """The name of a setting."""
    if k == 0:
        return ERM
    return f"{'mixup' if k == 1 else f'k = {k}'}, alpha = {alpha:g}"


def errors(alphas: Sequence[float] = ALPHAS) -> pd.DataFrame:
    """Mean test errors, a line for each setting; only data sets that have all settings."""
    found = {name: _errors(*place, alphas) for name, place in DATA.items()}
    return pd.DataFrame(found).dropna(axis="columns")


def _errors(preset: str, table: str, alphas: Sequence[float]) -> dict[str, float]:
    result = results(preset, *FOLDERS.get(preset, ()))[table]
    (grid,) = (grid for grid in result.grids if grid.rule == "same")
    cells = [result.erm[0], *(cell for cell in grid if cell.k in KS and cell.alpha in alphas)]
    return {setting(cell.k, cell.alpha): cell.mean for cell in cells if cell.mean is not None}


def regrets(errors: pd.DataFrame) -> pd.DataFrame:
    """The regret of each setting and of the held-out choice, by data set."""
    regret = 100 * (errors - errors.min()) / errors.loc[ERM]
    choices = {name: regret.drop(columns=name).mean(axis=1).idxmin() for name in regret}
    regret.loc[HELD_OUT] = {name: regret.loc[choice, name] for name, choice in choices.items()}
    return regret


if __name__ == "__main__":
    print(regrets(errors()).assign(mean=lambda regret: regret.mean(axis=1)).round(1).to_string())
