"""What a network learns, classes or a number: the loss, the scores and the words of each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from kmixup.lab.checks import SettingError
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
CLASS_WEIGHTS: tuple[str, ...] = get_args(ClassWeights)


def soft_cross_entropy(logits: Tensor, targets: Tensor, count: float) -> Tensor:
    """-Σ targets · log softmax(logits) / count over `(..., n, classes)`, `(...)`."""
    return -(targets * logits.log_softmax(-1)).sum((-2, -1)) / count


def agreement(logits: Tensor, targets: Tensor) -> Tensor:
    """Weight that soft targets give to the chosen class, summed over `(..., n, classes)`, `(...)`.

    Of a mixed batch this is the lam-weighted number of samples that are put in a right class.
    """
    chosen = logits.detach().argmax(-1, keepdim=True)
    return targets.gather(-1, chosen).sum((-2, -1))


def error_rate(logits: Tensor, y: Tensor) -> Tensor:
    """Share of wrong classes over `(..., n, classes)` and `(..., n)`, `(...)` in float64."""
    return (logits.argmax(-1) != y).double().mean(-1)


class Objective(ABC):
    """What a network is trained for.

    All methods take the network's outputs `(..., n, outputs)`: in a fleet the first dimension
    is that of its members.

    Attributes:
        measure: how its error is called and written.
        num_classes: of targets that are classes, None for numbers.
        class_weights: what the losses of the classes are multiplied by, `(classes,)`; or None.
    """

    measure: ClassVar[Measure]
    num_classes: int | None
    class_weights: Tensor | None

    @abstractmethod
    def targets(self, y: Tensor) -> Tensor:
        """Targets `(n,)` of a data set as a mixer is given them."""

    @abstractmethod
    def weigh(self, targets: Tensor, weight: Tensor) -> Tensor:
        """Mixed targets that hold the weights of their losses, `(..., n)`, as well."""

    @abstractmethod
    def loss(self, outputs: Tensor, targets: Tensor, count: float) -> Tensor:
        """The sum of the losses over `count`, `(...)`."""

    @abstractmethod
    def criterion(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean loss of outputs `(n, outputs)` against targets as `targets` gives them."""

    @abstractmethod
    def fit(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Two sums over the samples, `(...)` each, whose ratio says how well targets are met.

        For classes the ratio is the accuracy. For numbers it is the share of their squares
        that is explained.
        """

    @abstractmethod
    def error(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The error on targets `(..., n)` as they are, `(...)` in float64."""

    @abstractmethod
    def scores(self, outputs: Tensor, y: Tensor) -> ClassScores | NumberScores:
        """All scores of outputs `(n, outputs)` on targets `(n,)`."""


@dataclass(frozen=True, eq=False)
class Classes(Objective):
    """Cross-entropy of classes.

    Attributes:
        num_classes: their number.
        majority: the most frequent class of the training part.
        class_weights: as in `Objective`.
    """

    measure: ClassVar[Measure] = PERCENT

    num_classes: int
    majority: int
    class_weights: Tensor | None = None

    def targets(self, y: Tensor) -> Tensor:
        return y

    def weigh(self, targets: Tensor, weight: Tensor) -> Tensor:
        # cross-entropy is linear in its targets
        return weight.unsqueeze(-1) * targets

    def loss(self, outputs: Tensor, targets: Tensor, count: float) -> Tensor:
        return soft_cross_entropy(outputs, targets, count)

    def criterion(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(outputs, targets)

    def fit(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        return agreement(outputs, targets), targets.sum((-2, -1))

    def error(self, outputs: Tensor, y: Tensor) -> Tensor:
        return error_rate(outputs, y)

    def scores(self, outputs: Tensor, y: Tensor) -> ClassScores:
        return score_classes(outputs, y, majority=self.majority)


@dataclass(frozen=True, eq=False)
class Regression(Objective):
    """The mean squared error of standardised numbers.

    Mixed targets are `(..., n, 1)`, or `(..., n, 2)` where the second is the weight of the loss.

    Attributes:
        deviation: the standard deviation of the training targets, in their own unit.
    """

    measure: ClassVar[Measure] = RMSE

    deviation: float
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


def objective_of(data: Dataset, weighting: ClassWeights | None = None) -> Objective:
    """What a network learns from a data set.

    Args:
        data: the data set.
        weighting: "balanced" weighs the loss of a class by the inverse of its frequency in the
            training part, so that all classes together weigh as much as all samples.
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
