"""Estimators of `kmixup.integrations.sklearn` beside scikit-learn's own, by cross-validation.

    python -m benchmarks.estimators [--out results/estimators] [--data wine ...]

Five data sets, the same 5 folds for all estimators, and their defaults. Writes a line per fold to
`folds.csv`, and `report.md`, a table of means with their standard errors.
"""

from __future__ import annotations

import argparse
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_classification,
)
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold, cross_validate
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kmixup.integrations.sklearn import KMixupClassifier, KMixupRegressor
from kmixup.lab.formatting import TextTable

LOADERS = {
    "wine": partial(load_wine, return_X_y=True),
    "breast-cancer": partial(load_breast_cancer, return_X_y=True),
    "digits": partial(load_digits, return_X_y=True),
    # 5 % of 1,000 samples are of the rare class
    "imbalanced": partial(
        make_classification, 1000, n_informative=6, weights=[0.95], random_state=0
    ),
    "diabetes": partial(load_diabetes, return_X_y=True),
}
SCORES = {"imbalanced": "balanced_accuracy", "diabetes": "r2"}  # accuracy for the others
FOLDS = 5
REPORT = """\
# Estimators

Accuracy in per cent and log loss; for "imbalanced" balanced accuracy, for "diabetes" R² in per \
cent and root mean squared error. Mean ± standard error over {folds} folds. Written by \
`python -m benchmarks.estimators`.

{table}
"""


def estimators(data: str) -> dict[str, Any]:
    """Return the estimators for a data set, with their defaults and seed 0."""
    numbers = data == "diabetes"
    ours: Any = KMixupRegressor if numbers else KMixupClassifier
    mlp = MLPRegressor if numbers else MLPClassifier
    trees = HistGradientBoostingRegressor if numbers else HistGradientBoostingClassifier
    linear = Ridge() if numbers else LogisticRegression(max_iter=1000)
    return {
        "KMixup, alpha = 1": ours(mixer__alpha=1.0, random_state=0),
        "KMixup, alpha = 0.2": ours(random_state=0),
        "KMixup, alpha = 0 (ERM)": ours(mixer__alpha=0, random_state=0),
        "MLP": make_pipeline(StandardScaler(), mlp(random_state=0)),
        "HistGradientBoosting": trees(random_state=0),
        "LogisticRegression, Ridge": make_pipeline(StandardScaler(), linear),
    }


def folds_of(data: str) -> pd.DataFrame:
    """Return score and loss of every estimator on the test samples of every fold."""
    X, y = LOADERS[data]()
    score = SCORES.get(data, "accuracy")
    loss = "neg_root_mean_squared_error" if score == "r2" else "neg_log_loss"
    splits = (KFold if score == "r2" else StratifiedKFold)(FOLDS, shuffle=True, random_state=0)
    parts = []
    for name, estimator in estimators(data).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # MLP could use more epochs
            scores = cross_validate(estimator, X, y, cv=splits, scoring=[score, loss])
        parts.append(
            pd.DataFrame(
                {
                    "data": data,
                    "estimator": name,
                    "fold": range(FOLDS),
                    "score": (100 * scores[f"test_{score}"]).round(4),
                    "loss": (-scores[f"test_{loss}"]).round(6),
                }
            )
        )
    return pd.concat(parts)


def table_of(folds: pd.DataFrame) -> str:
    """Return the means over the folds, a row per estimator and a column per data set."""
    groups = folds.groupby(["estimator", "data"], sort=False)[["score", "loss"]]
    mean, error = groups.mean(), groups.sem()

    def cell(estimator: str, data: str) -> str:
        m: Any = mean.loc[(estimator, data)]
        e: Any = error.loc[(estimator, data)]
        digits = 1 if m["loss"] > 10 else 3
        loss = f"{m['loss']:.{digits}f} ± {e['loss']:.{digits}f}"
        return f"{m['score']:.1f} ± {e['score']:.1f}, {loss}"

    data = list(folds["data"].unique())
    names = folds["estimator"].unique()
    rows = [[name, *(cell(name, column) for column in data)] for name in names]
    return TextTable(["estimator", *data], rows).markdown()


def report_of(folds: pd.DataFrame) -> str:
    return REPORT.format(folds=FOLDS, table=table_of(folds))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimators", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/estimators"), help="the folder")
    parser.add_argument("--data", nargs="+", choices=LOADERS, default=list(LOADERS), help="which")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # networks this small run fastest on one
    folds = pd.concat([folds_of(data) for data in arguments.data])
    arguments.out.mkdir(parents=True, exist_ok=True)
    folds.to_csv(arguments.out / "folds.csv", index=False)
    (arguments.out / "report.md").write_text(report_of(folds))
    print(table_of(folds))


if __name__ == "__main__":
    main()
