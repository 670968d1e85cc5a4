"""Estimators of `kmixup.integrations.sklearn` beside scikit-learn's own, by cross-validation.

    python -m benchmarks.estimators [--out results/estimators] [--data iris ...]

Four data sets that scikit-learn ships, 5 stratified folds, the same for all, and defaults
everywhere: the networks have one hidden layer of 100 units and 200 epochs. Writes a line per
fold to `folds.csv`, and `report.md`, a table of means with their standard errors.
"""

from __future__ import annotations

import argparse
import csv
import io
import warnings
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kmixup.integrations.sklearn import KMixupClassifier
from kmixup.lab.formatting import TextTable

DATA = {
    "iris": load_iris,
    "wine": load_wine,
    "breast-cancer": load_breast_cancer,
    "digits": load_digits,
}
FOLDS = 5
REPORT = """\
Accuracy in per cent, and log loss, over {folds} folds: mean ± standard error. \
Written by `python -m benchmarks.estimators`.

{table}
"""


class Fold(NamedTuple):
    """A line of `folds.csv`: an estimator on the test samples of one fold."""

    data: str
    estimator: str
    fold: int
    accuracy: float
    log_loss: float


def estimators() -> dict[str, Any]:
    """The estimators with their defaults, and seed 0."""
    return {
        "KMixupClassifier": KMixupClassifier(random_state=0),
        "KMixupClassifier, alpha = 0": KMixupClassifier(mixer__alpha=0, random_state=0),
        "MLPClassifier": make_pipeline(StandardScaler(), MLPClassifier(random_state=0)),
        "GradientBoostingClassifier": GradientBoostingClassifier(random_state=0),
    }


def folds_of(data: str) -> list[Fold]:
    X, y = DATA[data](return_X_y=True)
    splits = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    folds = []
    for name, estimator in estimators().items():
        with warnings.catch_warnings():
            # 200 epochs are for all; MLPClassifier says that it could use more
            warnings.simplefilter("ignore", ConvergenceWarning)
            scores = cross_validate(
                estimator, X, y, cv=splits, scoring=["accuracy", "neg_log_loss"]
            )
        pairs = zip(scores["test_accuracy"], -scores["test_neg_log_loss"], strict=True)
        folds += [Fold(data, name, i, *map(float, pair)) for i, pair in enumerate(pairs)]
    return folds


def csv_of(folds: Iterable[Fold]) -> str:
    file = io.StringIO()
    lines = csv.writer(file, lineterminator="\n")
    lines.writerow(Fold._fields)
    lines.writerows([*fold[:3], *(f"{score:.6f}" for score in fold[3:])] for fold in folds)
    return file.getvalue()


def read(text: str) -> list[Fold]:
    rows = csv.DictReader(io.StringIO(text))
    return [
        Fold(
            row["data"],
            row["estimator"],
            int(row["fold"]),
            float(row["accuracy"]),
            float(row["log_loss"]),
        )
        for row in rows
    ]


def table_of(folds: Iterable[Fold]) -> str:
    """The means over the folds, a row per estimator and a column per data set."""
    cells: dict[str, dict[str, list[Fold]]] = {}
    for fold in folds:
        cells.setdefault(fold.estimator, {}).setdefault(fold.data, []).append(fold)
    data = list(next(iter(cells.values())))
    rows = [
        [
            name,
            *(
                f"{_mean([100 * fold.accuracy for fold in row[column]], 2)}, "
                f"{_mean([fold.log_loss for fold in row[column]], 3)}"
                for column in data
            ),
        ]
        for name, row in cells.items()
    ]
    return TextTable(["estimator", *data], rows).markdown()


def report_of(folds: Iterable[Fold]) -> str:
    return REPORT.format(folds=FOLDS, table=table_of(folds))


def _mean(scores: list[float], digits: int) -> str:
    error = stdev(scores) / len(scores) ** 0.5
    return f"{fmean(scores):.{digits}f} ± {error:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimators", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/estimators"), help="the folder")
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA), help="which of them")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # networks this small run fastest on one
    folds = [fold for data in arguments.data for fold in folds_of(data)]
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "folds.csv").write_text(csv_of(folds))
    (arguments.out / "report.md").write_text(report_of(folds))
    print(table_of(folds))


if __name__ == "__main__":
    main()
