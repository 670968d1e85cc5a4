"""The numbers that the paper prints, as a table to merge with results."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from kmixup._checks import SettingError, did_you_mean
from kmixup.lab.paper.presets import TABLES
from kmixup.lab.paper.tables import ERROR, ErrorTable
from kmixup.lab.trial import TEST


def paper_numbers(table: str) -> pd.DataFrame:
    """Return the test errors of one of the paper's tables, to merge with those of `read`.

    Args:
        table: its name, such as "iris", "mnist" or "fgsm-mnist".

    Returns:
        A line for each printed number. `paper` is the error as a fraction, and `paper_sd` the
        largest standard deviation of a mean that the paper states for the table. All other columns
        are as in `read`, so `read(folder).merge(paper_numbers("iris"))` has both.

    Raises:
        ValueError: if the paper has no such table.

    >>> paper_numbers("iris").query("method == 'kmixup' and k == 16 and alpha == 1").paper.item()
    0.029
    """
    printed = {name: one for name, one in TABLES.items() if one.errors is not None}
    if table not in printed:
        hint = did_you_mean(table, printed)
        raise SettingError("table", f"must be a table of the paper, got {table!r}: {hint}")
    return _lines(printed[table])


def _lines(table: ErrorTable) -> pd.DataFrame:
    test = TEST if table.measure == ERROR else table.measure
    same: dict[str, Any] = {
        "data": table.data,
        "model": table.model,
        "test": test,
        "metric": "error",
    }
    lines = [
        same | {"level": level, "method": "erm", "k": 1, "alpha": 0.0, "paper": table.erm}
        for level in dict.fromkeys(column.eps for column in table.columns)
    ]
    for k in table.ks:
        for column in table.columns:
            at: dict[str, Any] = {"level": column.eps, "k": k, "alpha": column.alpha}
            at |= {"method": table.baseline if k == 1 else table.method}
            lines.append(same | at | {"paper": table.error_at(k, column)})
    frame = pd.DataFrame(lines).dropna(subset="paper").reset_index(drop=True)
    sd = math.nan if table.confidence is None else table.confidence
    # printed in per cent; a hundredth may round to more digits
    frame = frame.assign(paper=(frame.paper.astype(float) / 100).round(15), paper_sd=sd / 100)
    return frame.astype({"level": float})
