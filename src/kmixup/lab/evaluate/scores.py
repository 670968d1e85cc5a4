"""Scores of classifiers and regressions, from their outputs on test samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from statistics import fmean
from typing import Any, ClassVar

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot


@dataclass(frozen=True)
class Measure:
    """How a task's error is called and written."""

    name: str
    factor: float  # that tables multiply it by
    unit: str  # of tables, in words
    points: str  # the unit of a difference, in words

    def digits(self, figure: float | None) -> int:
        """Return the number of decimals in tables: two of per cent, else four digits in all.

        >>> PERCENT.digits(0.01), RMSE.digits(0.0123), RMSE.digits(54.3), RMSE.digits(12345.0)
        (2, 5, 2, 0)
        """
        if self.factor != 1 or not figure:
            return 2
        return max(0, 3 - math.floor(math.log10(abs(figure))))

    def text(self, error: float) -> str:
        """Return an error with its unit.

        >>> PERCENT.text(0.016), RMSE.text(2.3149), RMSE.text(123456.7)
        ('1.60%', '2.315', '123,457')
        """
        if self.factor == 1:
            return f"{error:.4g}" if abs(error) < 1000 else f"{error:,.0f}"
        return f"{error:.2%}"


PERCENT = Measure("error", 100, "in per cent", "points")
LOG_LOSS = Measure("log-loss", 1, "in nats", "nats")
RMSE = Measure("RMSE", 1, "in the unit of the target", "in the unit of the target")


@dataclass(frozen=True)
class ClassPredictions:
    """A classifier's predictions, from which its metrics are computed."""

    logits: Tensor  # (n, classes) in float64
    y: Tensor  # true classes, (n,)
    majority: int = -1  # the most frequent class of the training set; -1 if unknown

    def __post_init__(self) -> None:
        if wrong := int(self.logits.isnan().any(1).sum()):
            raise ValueError(
                f"logits must be numbers, got NaN for {wrong} of the {len(self.y)} samples: the "
                "network has diverged, or its inputs hold NaN"
            )

    @cached_property
    def probabilities(self) -> Tensor:
        return self.logits.softmax(1)

    @cached_property
    def predicted(self) -> Tensor:
        return self.probabilities.max(1).indices

    @cached_property
    def present(self) -> list[int]:
        """The classes that occur in `y`."""
        return list(map(int, self.y.unique().tolist()))


@dataclass(frozen=True)
class NumberPredictions:
    """A regression's predictions, from which its metrics are computed."""

    outputs: Tensor  # standardised, (n,) in float64; 0 is the mean of the training targets
    y: Tensor  # true numbers, standardised likewise
    deviation: float  # standard deviation of the training targets, in their own unit

    @cached_property
    def mse(self) -> Tensor:
        return (self.outputs - self.y).square().mean()


@dataclass(frozen=True)
class Metric:
    """How a metric is computed and shown."""

    title: str  # in tables and on pages
    compute: Callable[[Any], float | None]  # from predictions
    form: str = ".4f"  # the format of its value
    optional: bool = False  # may be None: undefined for some samples, or missing in old rows
    shown: bool = True  # next to the error
    later: bool = False  # whether rows were published before it existed, which lack it

    def text(self, value: float | None) -> str:
        """Return the value with its title."""
        return f"{self.title} {'not defined' if value is None else format(value, self.form)}"


def metric(title: str, compute: Callable[[Any], float | None], **options: Any) -> Any:
    """Define a metric as a field of a class of scores; the arguments are those of `Metric`.

    That is all a new metric takes: it is then computed after training, stored in rows, a column of
    frames and of `cells.csv`, printed by `kmixup train`, and shown on the pages of reports.
    """
    metadata = {"metric": Metric(title, compute, **options)}
    if options.get("later"):
        return field(metadata=metadata, default=None, kw_only=True)
    return field(metadata=metadata)


def metrics_of(scores: AnyScores | type[AnyScores]) -> dict[str, Metric]:
    """Return the metrics of scores, by name.

    >>> list(metrics_of(Scores))
    ['error', 'nll', 'ece', 'brier']
    """
    return {entry.name: entry.metadata["metric"] for entry in fields(scores)}


def _computed(kind: type[AnyScores], predictions: object) -> dict[str, Any]:
    return {name: entry.compute(predictions) for name, entry in metrics_of(kind).items()}


def _balanced_accuracy(of: ClassPredictions) -> float:
    right = of.predicted == of.y
    return fmean(float(right[of.y == label].double().mean()) for label in of.present)


def _brier(of: ClassPredictions) -> float:
    """Return the mean squared distance of the probabilities from the one-hot true classes."""
    truth = one_hot(of.y.long(), of.logits.shape[1])
    return float((of.probabilities - truth).square().sum(1).mean())


def _auc(of: ClassPredictions) -> float | None:
    """Return the area under the ROC curve, averaged over the classes that occur."""
    from sklearn.metrics import roc_auc_score  # on first use: it loads slowly

    if len(of.present) < 2:
        return None
    probabilities, y = of.probabilities.cpu().numpy(), of.y.cpu().numpy()
    return fmean(roc_auc_score(y == label, probabilities[:, label]) for label in of.present)


def _r2(of: NumberPredictions) -> float | None:
    spread = (of.y - of.y.mean()).square().mean()
    return float(1 - of.mse / spread) if spread > 0 else None


@dataclass(frozen=True)
class Scores:
    """The scores of a classifier, also under shift: shares in [0, 1], the log-loss in nats."""

    measure: ClassVar[Measure] = PERCENT

    error: float = metric(
        "error", lambda of: int((of.predicted != of.y).sum()) / len(of.y), form=".2%", shown=False
    )
    nll: float = metric("log-loss", lambda of: float(cross_entropy(of.logits, of.y.long())))
    ece: float = metric(
        "calibration error",
        lambda of: calibration_error(of.probabilities.max(1).values, of.predicted == of.y),
    )
    brier: float | None = metric("Brier score", lambda of: _brier(of), optional=True, later=True)


@dataclass(frozen=True)
class ClassScores(Scores):
    """`Scores`, with those that reveal a constant prediction.

    `baseline` is the error of always predicting the majority class of the training set, `answers`
    the number of different classes that were predicted.
    """

    baseline: float = metric(
        "majority class",
        lambda of: float((of.y != of.majority).double().mean()),
        form=".2%",
        shown=False,
    )
    balanced_accuracy: float = metric("balanced accuracy", _balanced_accuracy, form=".2%")
    auc: float | None = metric("AUC", _auc, optional=True)
    answers: int = metric(
        "predicted classes", lambda of: len(of.predicted.unique()), form="d", shown=False
    )


@dataclass(frozen=True)
class NumberScores:
    """The scores of a regression, in the unit of the target.

    `baseline` is the RMSE of always predicting the mean of the training targets.
    """

    measure: ClassVar[Measure] = RMSE

    error: float = metric(
        "RMSE", lambda of: of.deviation * float(of.mse.sqrt()), form=".4g", shown=False
    )
    baseline: float = metric(
        "mean",
        lambda of: of.deviation * float(of.y.square().mean().sqrt()),
        form=".4g",
        shown=False,
    )
    r2: float | None = metric("R²", _r2, optional=True)


AnyScores = Scores | NumberScores


def score_logits(logits: Tensor, y: Tensor) -> Scores:
    """Return the scores of logits `(n, classes)` against the classes `y` `(n,)`.

    >>> score_logits(torch.tensor([[2.0, 1.0], [3.0, 4.0]]), torch.tensor([0, 0])).error
    0.5
    """
    return Scores(**_computed(Scores, ClassPredictions(logits.double(), y)))


def score_classes(logits: Tensor, y: Tensor, *, majority: int) -> ClassScores:
    """Return all scores of logits; `majority` is the most frequent class in training."""
    return ClassScores(**_computed(ClassScores, ClassPredictions(logits.double(), y, majority)))


def score_numbers(outputs: Tensor, y: Tensor, *, deviation: float) -> NumberScores:
    """Return the scores of standardised numbers `(n,)`, as in `NumberPredictions`."""
    predictions = NumberPredictions(outputs.double(), y.double(), deviation)
    return NumberScores(**_computed(NumberScores, predictions))


def calibration_error(confidence: Tensor, correct: Tensor, *, bins: int = 15) -> float:
    """Return the expected calibration error: the mean of |accuracy - confidence| over bins.

    Samples `(n,)` are binned by the confidence in their predicted class into intervals (a, b] of
    equal width, and bins weighted by their fraction of the samples (Guo et al. 2017, "On
    Calibration of Modern Neural Networks").

    >>> calibration_error(torch.tensor([0.75] * 4), torch.tensor([True, True, True, False]))
    0.0
    """
    inner_edges = torch.linspace(0, 1, bins + 1, dtype=torch.float64)[1:-1]
    bin_of = torch.bucketize(confidence.double(), inner_edges.to(confidence.device))
    # share · |accuracy - confidence| of a bin is |sum of the differences| / n
    gaps = torch.zeros(bins, dtype=torch.float64, device=confidence.device)
    gaps.scatter_add_(0, bin_of, correct.double() - confidence.double())
    return float(gaps.abs().sum() / len(confidence))


def temperature_of(logits: Tensor, y: Tensor) -> float:
    """Return the temperature T at which logits / T have the lowest log-loss on held-out samples.

    As in Platt scaling, one more sample counts as wrong, so T stays finite where all are right
    (Platt 1999, "Probabilistic outputs for support vector machines"; Guo et al. 2017, "On
    Calibration of Modern Neural Networks").

    >>> sure = 10 * torch.eye(2).repeat(50, 1)
    >>> temperature_of(sure, torch.tensor([0, 1] * 50)) > 2
    True
    """
    logits = logits.double()
    n, classes = logits.shape
    wrong = 1 / (n + 2)
    targets = torch.full_like(logits, wrong / max(1, classes - 1))
    targets.scatter_(1, y.long().unsqueeze(1), 1 - wrong)

    def loss(log_temperature: float) -> float:
        return float(cross_entropy(logits * math.exp(-log_temperature), targets))

    # convex in 1 / T, so the logarithm of T has one minimum
    found = minimize_scalar(loss, bounds=(-7, 7), method="bounded", options={"xatol": 1e-6})
    return math.exp(found.x)
