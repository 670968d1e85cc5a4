"""Evaluate predictions on labelled samples: confusion matrix and scores of each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from kmixup.lab.evaluate.scores import (
    ClassScores,
    NumberScores,
    metrics_of,
    score_classes,
    score_numbers,
)


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
        confusion = pd.DataFrame(self.confusion, self.classes, self.classes).to_string()
        title = "true classes (rows) by predicted classes (columns)"
        return f"{metrics}\n\n{self.report}\n\n{title}\n{confusion}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, fit for JSON."""
        plain: dict[str, Any] = {"scores": self.metrics}
        if self.confusion is not None:
            plain |= {"classes": list(self.classes), "confusion": self.confusion.tolist()}
        return plain


def evaluate_classes(
    probabilities: NDArray[np.float64], y: NDArray[np.int64], classes: Sequence[str]
) -> Evaluation:
    """Evaluate predicted probabilities `(n, classes)` against the true classes `y`, `(n,)`.

    >>> shares = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.3, 0.7]])
    >>> evaluate_classes(shares, np.array([0, 1, 1, 1]), ["no", "yes"]).metrics["error"]
    0.25
    """
    from sklearn.metrics import classification_report, confusion_matrix

    logits, targets = torch.from_numpy(np.log(probabilities.clip(1e-300))), torch.from_numpy(y)
    scores = score_classes(logits, targets, majority=int(targets.bincount().argmax()))
    chosen, labels = probabilities.argmax(1), range(len(classes))
    confusion = confusion_matrix(y, chosen, labels=labels)
    report = classification_report(
        y, chosen, labels=labels, target_names=classes, digits=3, zero_division=0.0
    )
    return Evaluation(_metrics(scores), tuple(classes), confusion, report.rstrip())


def evaluate_numbers(
    values: NDArray[np.float64], y: NDArray[np.float64], *, mean: float, std: float
) -> Evaluation:
    """Evaluate predicted numbers `(n,)`; `mean` and `std` are those of the training targets."""
    outputs, targets = (torch.from_numpy((numbers - mean) / std) for numbers in (values, y))
    return Evaluation(_metrics(score_numbers(outputs, targets, deviation=std)))


def _metrics(scores: ClassScores | NumberScores) -> dict[str, float]:
    name = scores.measure.name
    metrics = {name: scores.error, f"{name} of a constant prediction": scores.baseline}
    for field, metric in metrics_of(scores).items():
        if metric.shown and getattr(scores, field) is not None:
            metrics[metric.title] = getattr(scores, field)
    return metrics
