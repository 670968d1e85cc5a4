"""What a network learns, classes or a number: the loss, the scores and the words of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from kmixup._checks import SettingError
from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.scores import (
    PERCENT,
    RMSE,
    ClassScores,
    Measure,
    NumberScores,
    score_classes,
    score_numbers,
)

ClassWeights = Literal["balanced"]


def soft_cross_entropy(logits: Tensor, targets: Tensor, count: float) -> Tensor:
    """-Σ targets · log softmax(logits) / count over `(..., n, classes)`, `(...)`."""
    return -(targets * logits.log_softmax(-1)).sum((-2, -1)) / count


def smoothed(targets: Tensor, smoothing: float | None) -> Tensor:
    """Return mixed targets `(..., classes)` with that weight of the uniform distribution."""
    if not smoothing:
        return targets
    return (1 - smoothing) * targets + smoothing / targets.shape[-1]


@dataclass(frozen=True, eq=False)
class Classes:
    """Cross-entropy of classes.

    All methods take the network's outputs `(..., n, outputs)`: in a fleet the first dimension
    is that of its members.
    """

    measure: ClassVar[Measure] = PERCENT

    num_classes: int
    majority: int  # the most frequent class of the training set
    class_weights: Tensor | None = None  # factors of the losses, (classes,)

    def targets(self, y: Tensor) -> Tensor:
        """Return the targets `(n,)` of a data set as a mixer is given them."""
        return y

    def weigh(self, targets: Tensor, weight: Tensor) -> Tensor:
        """Return mixed targets that hold the weights of their losses, `(..., n)`, as well."""
        # cross-entropy is linear in its targets
        return weight.unsqueeze(-1) * targets

    def loss(self, outputs: Tensor, targets: Tensor, count: float) -> Tensor:
        """Return the sum of the losses over `count`, `(...)`."""
        return soft_cross_entropy(outputs, targets, count)

    def criterion(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean loss of outputs `(n, outputs)` against what `targets` returns."""
        return F.cross_entropy(outputs, targets)

    def fit(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return two sums over the samples, `(...)` each, whose ratio is the accuracy.

        For numbers the ratio is the explained fraction of their squares.
        """
        predicted = outputs.detach().argmax(-1, keepdim=True)
        return targets.gather(-1, predicted).sum((-2, -1)), targets.sum((-2, -1))

    def error(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return the error on unmixed targets `(..., n)`, `(...)` in float64."""
        return (outputs.argmax(-1) != y).double().mean(-1)

    def scores(self, outputs: Tensor, y: Tensor) -> ClassScores:
        """Return all scores of outputs `(n, outputs)` on targets `(n,)`."""
        return score_classes(outputs, y, majority=self.majority)


@dataclass(frozen=True, eq=False)
class Regression:
    """The mean squared error of standardised numbers, with the methods of `Classes`.

    Mixed targets are `(..., n, 1)`, or `(..., n, 2)` where the second is the weight of the loss.
    """

    measure: ClassVar[Measure] = RMSE

    deviation: float  # standard deviation of the training targets, in their own unit
    num_classes: None = None
    class_weights: None = None

    def targets(self, y: Tensor) -> Tensor:
        return y.unsqueeze(-1)

    def weigh(self, targets: Tensor, weight: Tensor) -> Tensor:
        return torch.cat([targets, weight.unsqueeze(-1)], dim=-1)

    def loss(self, outputs: Tensor, targets: Tensor, count: float) -> Tensor:
        return _weighted((outputs - targets[..., :1]).square(), targets).sum((-2, -1)) / count

    def criterion(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return F.mse_loss(outputs, targets)

    def fit(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        missed = _weighted((outputs.detach() - targets[..., :1]).square(), targets).sum((-2, -1))
        whole = _weighted(targets[..., :1].square(), targets).sum((-2, -1))
        return whole - missed, whole

    def error(self, outputs: Tensor, y: Tensor) -> Tensor:
        gaps = outputs.squeeze(-1).double() - y.double()
        return self.deviation * gaps.square().mean(-1).sqrt()

    def scores(self, outputs: Tensor, y: Tensor) -> NumberScores:
        return score_numbers(outputs.squeeze(-1), y, deviation=self.deviation)


def _weighted(squares: Tensor, targets: Tensor) -> Tensor:
    return squares if targets.shape[-1] == 1 else targets[..., 1:] * squares


Objective = Classes | Regression


def objective_of(data: Dataset, weighting: ClassWeights | None = None) -> Objective:
    """Return what a network learns from a data set.

    "balanced" weights the loss of a class by the inverse of its frequency in the training set, so
    that all classes together weigh as much as all samples.
    """
    if data.task == "regression":
        if weighting is not None:
            raise SettingError(
                "class_weights",
                f"must not be given for a regression, got {weighting!r}: "
                f"{data.title} has no classes",
            )
        return Regression(data.target_std)
    counts = data.y_train.bincount(minlength=data.num_classes)
    weights = None
    if weighting is not None:
        occurring = int((counts > 0).sum())
        weights = torch.where(
            counts > 0, len(data.y_train) / (occurring * counts.clamp(min=1)), 0.0
        ).float()
    return Classes(data.num_classes, int(counts.argmax()), weights)
