"""Evaluate predictions on labelled samples: confusion matrix and scores of each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from kmixup.lab.evaluate.scores import score_classes, score_numbers
from kmixup.lab.formatting import TextTable


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How good predictions are on labelled samples.

    Attributes:
        metrics: by title: error, balanced accuracy, log-loss and more, or RMSE and R².
        classes: names of the classes; empty for a regression.
        confusion: number of samples of each true class (rows) by predicted class (columns).
        report: scikit-learn's table of precision, recall and F1 of each class.
        notes: what a user should know about the reading.
    """

    metrics: dict[str, float]
    classes: tuple[str, ...] = ()
    confusion: NDArray[np.int64] | None = None
    report: str = ""
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        metrics = "\n".join(f"{title} {value:.4g}" for title, value in self.metrics.items())
        if self.confusion is None:
            return metrics
        counts = [
            [name, *(f"{count:,}" for count in row)]
            for name, row in zip(self.classes, self.confusion.tolist(), strict=True)
        ]
        confusion = TextTable(["true \\ predicted", *self.classes], counts)
        return "\n\n".join([metrics, self.report, confusion.plain()])


def evaluate_classes(
    probabilities: NDArray[np.float64],
    y: NDArray[np.int64],
    classes: Sequence[str],
    *,
    threshold: float | None = None,
) -> Evaluation:
    """Evaluate predicted probabilities `(n, classes)` against the true classes `y`, `(n,)`.

    `threshold`: for two classes, the probability from which the second one is predicted.

    >>> shares = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    >>> evaluate_classes(shares, np.array([0, 1, 1]), ["no", "yes"], threshold=0.3).metrics["error"]
    0.0
    """
    from sklearn.metrics import classification_report, confusion_matrix

    chosen = probabilities.argmax(1)
    if threshold is not None:
        chosen = (probabilities[:, 1] >= threshold).astype(np.int64)
    logits, targets = torch.from_numpy(np.log(probabilities.clip(1e-300))), torch.from_numpy(y)
    majority = int(targets.bincount().argmax())
    scores = score_classes(logits, targets, majority=majority)
    labels = range(len(classes))
    report = classification_report(
        y, chosen, labels=labels, target_names=classes, digits=3, zero_division=0.0
    )
    confusion = confusion_matrix(y, chosen, labels=labels)
    samples = confusion.sum(1)
    recall = confusion.diagonal()[samples > 0] / samples[samples > 0]
    metrics = {
        "error": float((chosen != y).mean()),
        f"error of always predicting {classes[majority]!r}": scores.baseline,
        "balanced accuracy": float(recall.mean()),
        "log-loss": scores.nll,
        "calibration error": scores.ece,
    }
    if scores.auc is not None:
        metrics["AUC"] = scores.auc
    return Evaluation(metrics, tuple(classes), confusion, report.rstrip())


def evaluate_numbers(
    values: NDArray[np.float64], y: NDArray[np.float64], *, mean: float, std: float
) -> Evaluation:
    """Evaluate predicted numbers `(n,)`; `mean` and `std` are those of the training targets."""
    outputs, targets = (torch.from_numpy((numbers - mean) / std) for numbers in (values, y))
    scores = score_numbers(outputs, targets, deviation=std)
    metrics = {"RMSE": scores.error, "RMSE of always predicting the mean": scores.baseline}
    return Evaluation(metrics if scores.r2 is None else metrics | {"R²": scores.r2})
