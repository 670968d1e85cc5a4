"""Networks of the lab beside scikit-learn's estimators, on tables as people have them.

`python -m benchmarks.own_data` prints a table. Each number is a mean over splits into a training
and a test part, ± its standard error; all columns have the same splits and the same inputs.
scikit-learn's estimators have their defaults (more iterations for logistic regression, and the
lab's hidden layers for the network), the lab's networks the defaults for your own tables. These
defaults were first chosen with the test errors of other splits of these tables, except those
marked as held out, and kept after a comparison by validation error on other tables
(`benchmarks.own_defaults`).
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
)
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.neural_network import MLPClassifier, MLPRegressor

from kmixup._measured import Measured
from kmixup.lab.data import Dataset
from kmixup.lab.data.own import write_npz
from kmixup.lab.evaluate.tasks import objective_of
from kmixup.lab.formatting import TextTable, with_error
from kmixup.lab.train.defaults import capped, defaults_for
from kmixup.lab.train.fleet import train_fleet
from kmixup.lab.train.loop import Trained
from kmixup.lab.train.setup import computing_on, load_data
from kmixup.lab.trial import Method, Trial
from kmixup.tables import encoder
from kmixup.tables.defaults import HIDDEN
from kmixup.tables.encoder import MAX_CATEGORIES
from tests.lab.own_tables import comments, imbalanced, mixed, regression, towns, twenty, wide

SEEDS = range(100, 105)  # of the splits; the lab's defaults were first chosen on seeds 0 to 4
PEERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "linear model": (
        lambda seed: LogisticRegression(max_iter=2000),
        lambda seed: RidgeCV(np.logspace(-2, 4, 13)),
    ),
    "boosted trees": (
        lambda seed: HistGradientBoostingClassifier(random_state=seed),
        lambda seed: HistGradientBoostingRegressor(random_state=seed),
    ),
    "scikit-learn's network": (
        lambda seed: MLPClassifier(hidden_layer_sizes=HIDDEN, random_state=seed),
        lambda seed: MLPRegressor(hidden_layer_sizes=HIDDEN, random_state=seed),
    ),
}
METHODS = {
    "ERM": Method("erm"),
    "mixup": Method("mixup"),
    "k-mixup, k = 16": Method("kmixup", 16),
}
HEADS = ["table", "metric", "constant", *PEERS, *METHODS]

Numbers = dict[str, float]  # by the names of metrics


@dataclass(frozen=True)
class Case:
    """A table, what is read of it, and the metrics to show."""

    title: str
    write: Callable[[Path], Path]
    metrics: tuple[str, ...] = ("error in %", "log-loss")
    settings: dict[str, Any] = field(default_factory=dict)
    means: bool = False  # whether more than 30 categories become mean targets


def _bundled(load: Callable[..., Any]) -> Callable[[Path], Path]:
    def write(path: Path) -> Path:
        x, y = load(return_X_y=True)
        return write_npz({"x": x, "y": y}, path.with_suffix(".npz"))

    return write


REGRESSION = ("RMSE", "R² in %")
RARE = ("error in %", "balanced accuracy in %", "AUC in %")
CASES = {
    "wine": Case("wine: 178 rows", _bundled(load_wine)),
    "digits": Case("digits: 1,797 rows", _bundled(load_digits)),
    "diabetes": Case("diabetes: a regression, 442 rows", _bundled(load_diabetes), REGRESSION),
    "clients": Case(
        "clients: categories, dates, blanks", mixed, settings={"drop": ("row", "currency")}
    ),
    "machines": Case("machines: 1 in 71 fails", imbalanced, RARE),
    "balanced": Case("machines, balanced weights", imbalanced, RARE, {"class_weights": "balanced"}),
    "genes": Case("genes: 400 columns, 32 rows", wide),
    "rents": Case("rents: a regression", regression, REGRESSION),
    "cancer": Case("breast cancer: 569 rows (held out)", _bundled(load_breast_cancer)),
    "comments": Case("comments: texts of words", comments),
    "comments without": Case("comments, texts left out", comments, settings={"drop": ("comment",)}),
    "towns": Case("towns: 90 categories", towns),
    "towns as means": Case("towns, as mean targets", towns, means=True),
    "twenty": Case("twenty: 20 rows (held out)", twenty),
}


def numbers_of(plain: dict[str, Any]) -> Numbers:
    """Return the metrics of a record's scores, shares in per cent."""
    if "r2" in plain:
        return {"RMSE": plain["error"], "R² in %": 100 * (plain["r2"] or 0.0)}
    return {
        "error in %": 100 * plain["error"],
        "log-loss": plain["nll"],
        "balanced accuracy in %": 100 * plain["balanced_accuracy"],
        "AUC in %": 100 * plain["auc"],
    }


def peer(name: str, data: Dataset, seed: int, weights: str | None) -> Numbers:
    """Score one of scikit-learn's estimators on the same inputs."""
    x, x_test = (data.normalise(part).numpy() for part in (data.x_train, data.x_test))
    estimator = PEERS[name][data.task == "regression"](seed)
    if weights is not None and "class_weight" in estimator.get_params():
        estimator.set_params(class_weight=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that 200 epochs may not be enough
        estimator.fit(x, data.y_train.numpy())
    if data.task == "regression":
        outputs = torch.from_numpy(estimator.predict(x_test)).unsqueeze(1)
    else:
        outputs = torch.full((len(x_test), data.num_classes), -30.0, dtype=torch.float64)
        known = torch.from_numpy(estimator.classes_)
        shares = estimator.predict_proba(x_test).clip(1e-12)
        outputs[:, known] = torch.from_numpy(np.log(shares)).double()
    return numbers_of(vars(objective_of(data).scores(outputs, data.y_test)))


def constant(data: Dataset) -> Numbers:
    """Score always predicting the class frequencies of the training rows, or their mean."""
    outputs = torch.zeros(len(data.y_test), data.outputs, dtype=torch.float64)
    if data.task == "classes":
        outputs += data.y_train.bincount(minlength=data.num_classes).clamp(min=1).log()
    return numbers_of(vars(objective_of(data).scores(outputs, data.y_test)))


def measure(case: Case, folder: Path) -> list[list[str]]:
    """Return the table's lines for a case."""
    encoder.MAX_CATEGORIES = 30 if case.means else MAX_CATEGORIES
    path = case.write(folder / f"{case.write.__name__}.csv")
    first = Trial(str(path), "mlp-1", Method("erm"), **case.settings)
    usual = defaults_for(str(path), load_data(first))
    first = replace(first, model=usual.model, protocol=usual.protocol)
    weights = case.settings.get("class_weights")
    by_column: dict[str, list[Numbers]] = {name: [] for name in HEADS[2:]}
    for seed in SEEDS:
        data = load_data(replace(first, seed=seed))
        by_column["constant"].append(constant(data))
        for name in PEERS:
            by_column[name].append(peer(name, data, seed, weights))
    for name, method in METHODS.items():
        fitting, _ = capped(method, len(data.x_train))
        trials = [replace(first, seed=seed, method=fitting) for seed in SEEDS]
        for trained in train_fleet(trials):
            assert isinstance(trained, Trained), trained
            by_column[name].append(numbers_of(trained.record["result"]))
    return [
        [case.title if i == 0 else "", metric, *(_cell(by_column[n], metric) for n in HEADS[2:])]
        for i, metric in enumerate(case.metrics)
    ]


def _cell(trials: list[Numbers], metric: str) -> str:
    reading = Measured.of([trial[metric] for trial in trials])
    return with_error(reading.value, reading.error)


def main() -> None:
    """Print the table, of all cases or of those named on the command line."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, computing_on(1):
        for name in sys.argv[1:] or CASES:
            rows += measure(CASES[name], Path(folder))
    print(TextTable(HEADS, rows).markdown())


if __name__ == "__main__":
    main()
