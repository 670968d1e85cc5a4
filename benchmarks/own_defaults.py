"""Choose the training defaults for your own tables by validation error.

`python -m benchmarks.own_defaults` compares candidates for `kmixup.tables.defaults.TableRule` and
prints them, the best first. It tries every learning rate with every weight decay, then changes one
other setting of the best at a time.

None of its tables is in the documentation's comparison (`benchmarks.own_data`). A third of each
table is set aside as its test part and never read; errors
are those on a third of the rest. Regret is how far a candidate's validation error is above the
table's best, in per cent of the constant prediction's error: RMSE for a regression, 1 - balanced
accuracy for the rare class. It is the mean over ERM, mixup and k-mixup with k = 16, two splits and
all tables. The difference from the present rule has its standard error over tables; the rule
changes only for a candidate that is better by more than two of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import (
    load_iris,
    make_classification,
    make_friedman3,
    make_gaussian_quantiles,
    make_regression,
)

from kmixup.lab.data import load
from kmixup.lab.data.own import write_npz
from kmixup.lab.formatting import TextTable, with_error
from kmixup.lab.train.defaults import balance_of
from kmixup.lab.train.fleet import train_fleet
from kmixup.lab.train.loop import Trained
from kmixup.lab.train.setup import computing_on, load_data
from kmixup.lab.trial import Method, Protocol, Trial
from kmixup.tables.defaults import HIDDEN, TableRule

METHODS = (Method("erm"), Method("mixup", alpha=1.0), Method("kmixup", 16, alpha=1.0))
SEEDS = (0, 1)
RATES = (0.003, 0.01, 0.03)
DECAYS = (0.0, 2.0, 6.0, 12.0)
CHANGES: tuple[dict[str, Any], ...] = (
    {"steps": 1000},
    {"steps": 4000},
    {"batch": 64},
    {"batch": 128},
    {"rare": 1.0},
)


def uci(name: str, rows: int) -> tuple[Any, Any]:
    """Return rows of a table of the paper, the rings of abalone as numbers."""
    data = load(name, scaling="standard")
    x, y = data.x_train[:rows].numpy(), data.y_train[:rows].numpy()
    if name == "abalone":
        y = np.array(data.classes, dtype=float)[y] + 0.5  # decimals make it a regression
    return x, y


made = partial(make_classification, random_state=1)
TABLES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "iris": partial(load_iris, return_X_y=True),
    "arrhythmia": partial(uci, "arrhythmia", 300),
    "phishing": partial(uci, "phishing", 600),
    "abalone": partial(uci, "abalone", 600),
    "noisy classes": partial(made, 300, 10, flip_y=0.2),
    "wide classes": partial(made, 120, 200, n_informative=10, class_sep=3.0),
    "nested spheres": partial(make_gaussian_quantiles, n_samples=450, n_features=5, random_state=1),
    "rare class": partial(made, 800, 8, weights=[0.97], class_sep=1.5),
    "linear": partial(make_regression, 200, 20, noise=150.0, random_state=1),
    "friedman3": partial(make_friedman3, 300, noise=0.1, random_state=1),
}


def shares(rule: TableRule, table: str, folder: Path) -> pd.Series:
    """Return the validation error of each method, as a share of the constant prediction's."""
    x, y = TABLES[table]()
    path = write_npz({"x": x, "y": y}, folder / "table.npz")
    first = Trial(str(path), f"mlp-{'-'.join(map(str, HIDDEN))}", split=0, validation=1 / 3)
    data = load_data(first)
    settings = rule.settings(len(data.x_train), balance=balance_of(data))
    first = replace(first, protocol=Protocol(**settings._asdict()))
    trials = [replace(first, seed=seed, method=method) for seed in SEEDS for method in METHODS]
    rows = []
    for trial, trained in zip(trials, train_fleet(trials), strict=True):
        share = 1.0  # a diverged network counts as a constant
        if isinstance(trained, Trained):
            result = trained.record["result"]
            share = result["error"] / result["baseline"]
            if table == "rare class":
                share = 2 * (1 - result["balanced_accuracy"])
        rows.append({"table": table, "method": trial.method.name, "share": share})
    return pd.DataFrame(rows).groupby(["table", "method"])["share"].mean()


def ranking(cells: pd.DataFrame) -> pd.DataFrame:
    """Return a row per rule, the best first, from a column of errors for each."""
    regrets = 100 * cells.sub(cells.min(axis=1), axis=0).groupby("table").mean()
    gaps = regrets.sub(regrets[TableRule()], axis=0)
    rows = {"regret": regrets.mean(), "difference": gaps.mean(), "error": gaps.sem()}
    return pd.DataFrame(rows).sort_values("regret")


def main() -> None:
    """Train all candidates and print their ranking."""
    cells = pd.DataFrame()
    with tempfile.TemporaryDirectory() as folder, computing_on(1):

        def train(rule: TableRule) -> None:
            cells[rule] = pd.concat([shares(rule, table, Path(folder)) for table in TABLES])

        for rate, decay in product(RATES, DECAYS):
            train(TableRule(rate=rate, decay=decay))
        best: Any = ranking(cells).index[0]
        for change in CHANGES:
            train(replace(best, **change))
    heads = [field.name for field in fields(TableRule)]
    rows = []
    for rule, row in ranking(cells).iterrows():
        settings = [f"{getattr(rule, name):.4g}" for name in heads]
        gap = with_error(row["difference"], row["error"])
        rows.append([*settings, f"{row['regret']:.2f}", gap])
    print(TextTable([*heads, "regret", "difference"], rows).markdown())


if __name__ == "__main__":
    main()
