"""The record of a run: its settings, its scores, and the machine and versions that made them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kmixup.lab._files import replace_content
from kmixup.lab._provenance import versions
from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.scores import temperature_of
from kmixup.lab.evaluate.tasks import Objective
from kmixup.lab.train.setup import Strength
from kmixup.lab.trial import SCALED, TEST, TRAINING, Trial
from kmixup.tables.defaults import HIDDEN
from kmixup.tables.fitting import constant_error, problem, unmixed_error

NAME = "record.json"

MOST_SAMPLES = 5_000  # that the training error is measured on
MOST_INPUTS = 512  # of a linear model, which is fitted in milliseconds
TOLERANCE = 0.1  # by which the training error may exceed a linear model's

History = list[dict[str, Any]]  # one entry per epoch


def entry(
    epoch: int, rate: float, loss: float, accuracy: float, error: float | None, seconds: float
) -> dict[str, Any]:
    """Return the entry of an epoch in the history.

    `loss` and `accuracy` (in a regression, the explained fraction of squares) are of mixed training
    batches, while the weights move; `error` is of the test samples, None if they were not tested.
    """
    names = ("epoch", "rate", "loss", "accuracy", "error", "seconds")
    return dict(zip(names, (epoch, rate, loss, accuracy, error, seconds), strict=True))


def describe(
    trial: Trial,
    data: Dataset,
    history: Sequence[Mapping[str, Any]],
    objective: Objective,
    on_test: Tensor,
    on_training: Tensor,
    on_final: Tensor | None,
    strength: Strength,
    machine: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the record of a run. Its `result` is the last epoch's, never the best.

    `on_test`, `on_training` and `on_final` are the final outputs for the samples in `x_test`,
    `training_rows` and, for a temperature, `x_final`.
    """
    written = {
        "trial": trial.to_dict(),
        "alpha": strength.alpha,
        "xi": strength.xi,
        "data": {
            "name": data.name,
            "part": data.part,
            "train": len(data.x_train),
            "test": len(data.x_test),
            "classes": data.num_classes,
            "shape": list(data.shape),
            "scaling": data.scaling,
            "split_by_seed": data.split_by_seed,
        },
        "digest": data.digest,
        "result": asdict(objective.scores(on_test, data.y_test)),
        TRAINING: _training_fit(on_training, data, objective),
        "seconds": sum(entry["seconds"] for entry in history),
        "epochs": list(history),
        "versions": versions(),
        "machine": dict(machine),
    }
    if on_final is not None:
        temperature = temperature_of(on_test, data.y_test)
        scaled = objective.scores(on_final.double() / temperature, data.y_final)
        as_trained = objective.scores(on_final, data.y_final)
        written |= {"temperature": temperature, TEST: asdict(as_trained), SCALED: asdict(scaled)}
    return written


def training_rows(n: int) -> Tensor:
    """Return the rows of `n` training samples that the training error is measured on."""
    return torch.arange(0, n, -(-n // MOST_SAMPLES))


def _training_fit(outputs: Tensor, data: Dataset, objective: Objective) -> dict[str, Any]:
    """Return the `error` on clean training samples next to a `linear` model's, and a constant's.

    The linear model's is None if there are too few samples or too many inputs, or if classes have
    weights. The network has not `fitted` the data if its error is far above the linear model's,
    not below the constant answer's, or, for a table, far above that of a network that is trained
    for a few steps without mixing.
    """
    rows = training_rows(len(data.x_train)).to(outputs.device)
    y = data.y_train[rows].cpu()
    error, linear = float(objective.error(outputs.cpu(), y)), None
    scale = data.target_std if objective.num_classes is None else 1.0
    constant = scale * constant_error(y)
    known = {"error": error, "linear": linear, "constant": constant, "fitted": True}
    inputs = 1 + data.x_train[0].numel()
    if objective.class_weights is not None or inputs > MOST_INPUTS or len(rows) < 2 * inputs:
        return known
    x = data.normalise(data.x_train[rows.cpu()]).flatten(1).cpu()
    linear = float(objective.error(_linear_outputs(x, y, objective), y))
    found = None
    if data.x_train.dim() == 2:
        found = problem(error / scale, constant / scale, lambda: unmixed_error(x, y, HIDDEN))
    fitted = found is None and error <= linear + TOLERANCE * scale
    return known | {"linear": linear, "fitted": fitted}


def _linear_outputs(x: Tensor, y: Tensor, objective: Objective) -> Tensor:
    """Return the outputs of a linear model, fitted by least squares, for its training samples."""
    x = torch.cat([x.double(), torch.ones(len(x), 1)], 1)
    classes = objective.num_classes
    targets = y[:, None] if classes is None else torch.nn.functional.one_hot(y, classes)
    ridge = 1e-9 * len(x) * torch.eye(x.shape[1], dtype=x.dtype)
    weights: Tensor = torch.linalg.solve(x.T @ x + ridge, x.T @ targets.double())
    return x @ weights


def training_note(record: Mapping[str, Any]) -> str | None:
    """Return a warning if the network of a record has not fitted its training data."""
    if (training := record[TRAINING])["fitted"]:
        return None
    reason = "its training error is far above a linear model's or that without mixing"
    if training["error"] >= training.get("constant", float("inf")):
        reason = "its training error is that of a constant answer"
    return (
        f"the network has not fitted the training data, {reason}: use smaller batches, more epochs "
        "or a higher learning rate"
    )


def write(record: Mapping[str, Any], folder: Path) -> None:
    """Write a record into the folder of its run, whole or not at all."""
    replace_content(folder / NAME, json.dumps(record, indent=2) + "\n")
