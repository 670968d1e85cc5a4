"""Reference models of scikit-learn on the tables of a comparison, with the same budget.

A linear model and gradient boosting see the same splits and held-out samples as the networks. In
every trial each tries as many settings, is fitted again with the best one, and tested once. Scores
are stored next to the rows.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kmixup.lab._files import read_json, replace_content
from kmixup.lab.data import Dataset
from kmixup.lab.train.setup import load_data
from kmixup.lab.trial import Trial

if TYPE_CHECKING:
    from kmixup.lab.experiments.compare import Contest

NAME = "references.json"
LEAST_PROBABILITY = 1e-15  # of a class that a model excludes
LINEAR = tuple({"strength": strength} for strength in (1.0, 0.01, 100.0, 0.1, 10.0, 1000.0))
BOOSTING = tuple(
    {"learning_rate": rate, "max_leaf_nodes": leaves}
    for rate, leaves in product((0.1, 0.03, 0.3), (31, 7))
)
MODELS: Mapping[str, Sequence[Mapping[str, float]]] = {
    "linear model": LINEAR,
    "gradient boosting": BOOSTING,
}


@dataclass(frozen=True)
class Reference:
    """The test of a model in every trial."""

    title: str
    scores: Mapping[int, float]  # by trial
    chosen: Mapping[int, str]  # the setting that won in each trial
    settings: int  # that were tried


def references(
    contest: Contest,
    folder: Path,
    on_status: Callable[[str], object] = lambda sentence: None,
    *,
    fit: bool = True,
) -> tuple[Reference, ...]:
    """Tune, fit and test the models on every trial of a table, or read the stored scores.

    Data that are no tables have none. Without `fit` only stored scores are returned.
    """
    if not contest.is_table:
        return ()
    path = folder / NAME
    stored = _stored(path)
    found = []
    budget = max(len(contender.settings) for contender in contest.contenders)
    for title, every in MODELS.items():
        settings = sorted(every[:budget], key=lambda one: tuple(one.values()))
        scores, chosen = {}, {}
        for seed in range(contest.trials):
            trial = replace(contest.base, seed=seed, validation=contest.validation)
            key = f"{title} {budget} {contest.metric} {trial.id}"
            if key not in stored:
                if not fit:
                    continue
                on_status(f"{contest.name}: {title}, trial {seed + 1} of {contest.trials}")
                stored[key] = _tuned(title, settings, trial, contest.metric)
                replace_content(path, json.dumps(stored, indent=1) + "\n")
            scores[seed], chosen[seed] = stored[key]
        if scores:
            found.append(Reference(title, scores, chosen, len(settings)))
    return tuple(found)


def _stored(path: Path) -> dict[str, tuple[float, str]]:
    """Return the scores and settings in a file, which need not exist."""
    if not os.path.lexists(path):
        return {}
    stored = read_json(path)
    try:
        return {key: (float(score), str(setting)) for key, (score, setting) in stored.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{path} must hold scores of reference models: delete it") from error


def _tuned(
    title: str, settings: Sequence[Mapping[str, float]], trial: Trial, metric: str
) -> tuple[float, str]:
    """Return the test score of the setting with the lowest validation score, and the setting."""
    held = load_data(trial)
    best = min(settings, key=lambda one: _score(title, one, held, trial.seed, metric))
    text = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in best.items())
    return _score(title, best, load_data(replace(trial, validation=None)), trial.seed, metric), text


def _score(
    title: str, setting: Mapping[str, float], data: Dataset, seed: int, metric: str
) -> float:
    """Fit a model to the training samples and return its score on the test samples."""
    x, x_test = (data.normalise(part).numpy() for part in (data.x_train, data.x_test))
    y, y_test = data.y_train.numpy(), data.y_test.numpy()
    model = _model(title, setting, seed, regression=data.task == "regression")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a linear model that has not converged may still win
        model.fit(x, y)
    if data.task == "regression":
        return data.target_std * math.sqrt(np.square(model.predict(x_test) - y_test).mean())
    if metric == "error":
        return float((model.predict(x_test) != y_test).mean())
    known = np.zeros((len(y_test), data.num_classes))
    known[:, model.classes_] = model.predict_proba(x_test)  # a rare class may be missing
    likely = known[np.arange(len(y_test)), y_test].clip(LEAST_PROBABILITY)
    return float(-np.log(likely).mean())


def _model(title: str, setting: Mapping[str, float], seed: int, *, regression: bool) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression, Ridge

    if title == "gradient boosting":
        kind = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
        return kind(**setting, random_state=seed)
    if regression:
        return Ridge(alpha=1 / setting["strength"])
    return LogisticRegression(C=setting["strength"], max_iter=1000)
