"""Networks of the lab beside scikit-learn's of the same size, on tables as people have them.

`python -m benchmarks.own_data` prints a table. Each figure is a mean over 10 divisions into a
training and a test part, ± its standard error. All networks have the same inputs, hidden layers
of 120, 120 and 84 units and 200 epochs. Those of scikit-learn train by its defaults (Adam at the
rate 0.001), those of the lab by its own for tables (SGD, rate 0.005, batches of 32).
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.neural_network import MLPClassifier, MLPRegressor

from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.scores import NumberScores
from kmixup.lab.evaluate.tasks import objective_of
from kmixup.lab.experiments.rows import read_scores
from kmixup.lab.formatting import TextTable, with_error
from kmixup.lab.train.config import Method, Trial
from kmixup.lab.train.defaults import UCI
from kmixup.lab.train.fleet import train_fleet
from kmixup.lab.train.loop import Trained
from kmixup.lab.train.setup import computing_on, load_data
from kmixup.measured import Measured
from tests.lab.own_tables import imbalanced, mixed, regression, wide

SEEDS = 10
EPOCHS = 200
MODEL, HIDDEN = "mlp-phishing", (120, 120, 84)
METHODS = {
    "ERM": Method("erm"),
    "mixup": Method("mixup"),
    "k-mixup, k = 8": Method("kmixup", 8),
}
HEADS = ["table", "figure", "constant answer", "scikit-learn", *METHODS]

Figures = dict[str, float]  # by their names


@dataclass(frozen=True)
class Case:
    """A table, what is read of it, and the figures to show."""

    title: str
    write: Callable[[Path], Path]
    figures: tuple[str, ...]
    settings: dict[str, Any]


PERCENTS = ("error in %",)
RARE = ("error in %", "balanced accuracy in %", "AUC in %")
CASES = (
    Case("clients: categories, dates, blanks", mixed, PERCENTS, {"drop": ("row", "currency")}),
    Case("machines: 1 in 71 fails", imbalanced, RARE, {}),
    Case("machines, balanced weights", imbalanced, RARE, {"class_weights": "balanced"}),
    Case("genes: 400 columns, 32 rows", wide, PERCENTS, {}),
    Case("rents: a regression", regression, ("RMSE", "R² in %"), {}),
)


def figures_of(plain: dict[str, Any]) -> Figures:
    """The figures of a record's scores, shares in per cent."""
    scores = read_scores(plain)
    if isinstance(scores, NumberScores):
        return {"RMSE": scores.error, "R² in %": 100 * (scores.r2 or 0.0)}
    return {
        "error in %": 100 * scores.error,
        "balanced accuracy in %": 100 * plain["balanced_accuracy"],
        "AUC in %": 100 * plain["auc"],
    }


def peer(data: Dataset, seed: int) -> Figures:
    """scikit-learn's network on the same inputs."""
    x, x_test = (data.normalise(part).numpy() for part in (data.x_train, data.x_test))
    kind = MLPRegressor if data.task == "regression" else MLPClassifier
    net = kind(hidden_layer_sizes=HIDDEN, max_iter=EPOCHS, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that 200 epochs are not all
        net.fit(x, data.y_train.numpy())
    if data.task == "regression":
        outputs = torch.from_numpy(net.predict(x_test)).unsqueeze(1)
    else:
        outputs = torch.from_numpy(np.log(net.predict_proba(x_test).clip(1e-12)))
    return figures_of(vars(objective_of(data).scores(outputs, data.y_test)))


def constant(data: Dataset) -> Figures:
    """Always the most frequent class, or the mean."""
    n = len(data.y_test)
    outputs = torch.zeros(n, data.outputs)
    if data.task == "classes":
        outputs[:, int(data.y_train.bincount().argmax())] = 1.0
    return figures_of(vars(objective_of(data).scores(outputs, data.y_test)))


def measure(case: Case, folder: Path) -> list[list[str]]:
    """The lines of a case."""
    path = case.write(folder / f"{case.write.__name__}.csv")
    protocol = replace(UCI, epochs=EPOCHS, batch_size=32)
    first = Trial(str(path), MODEL, Method("erm"), protocol, **case.settings)
    by_column: dict[str, list[Figures]] = {name: [] for name in HEADS[2:]}
    for seed in range(SEEDS):
        data = load_data(replace(first, seed=seed))
        by_column["constant answer"].append(constant(data))
        by_column["scikit-learn"].append(peer(data, seed))
    trials = [
        replace(first, seed=seed, method=method)
        for method in METHODS.values()
        for seed in range(SEEDS)
    ]
    names = [name for name in METHODS for _ in range(SEEDS)]
    for name, trained in zip(names, train_fleet(trials), strict=True):
        assert isinstance(trained, Trained), trained
        by_column[name].append(figures_of(trained.record["result"]))
    return [
        [case.title if i == 0 else "", figure, *(_cell(by_column[n], figure) for n in HEADS[2:])]
        for i, figure in enumerate(case.figures)
    ]


def _cell(trials: list[Figures], figure: str) -> str:
    reading = Measured.of([trial[figure] for trial in trials])
    return with_error(reading.value, reading.error)


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder, computing_on(1):
        for case in CASES:
            rows += measure(case, Path(folder))
    print(TextTable(HEADS, rows).markdown())


if __name__ == "__main__":
    main()
