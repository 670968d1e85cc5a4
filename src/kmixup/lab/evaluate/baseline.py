"""Scores beside those of a constant prediction: the majority class, or the mean."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.scores import AnyScores, ClassScores, NumberScores, metrics_of
from kmixup.lab.formatting import joined, number


def constant_answer(data: Dataset) -> str:
    """Return the best constant prediction by the training set, in words."""
    if data.task == "regression":
        return f"the mean of the training set, {data.target_mean:.4g}"
    return repr(data.classes[int(data.y_train.bincount(minlength=data.num_classes).argmax())])


def is_constant(scores: AnyScores) -> bool:
    """Whether a network predicts a constant, or is no better than one."""
    if isinstance(scores, ClassScores):
        return scores.answers == 1
    return isinstance(scores, NumberScores) and scores.error >= scores.baseline


def all_constant(scores: Iterable[AnyScores]) -> bool:
    """Whether there are networks, and all of them predict a constant."""
    known = list(scores)
    return bool(known) and all(map(is_constant, known))


def constant_sentence(scores: Iterable[AnyScores], *, diverged: bool = False) -> str:
    """Return the constant prediction's error over trials, and how many networks are no better.

    `diverged`: some trial diverged, so that a higher learning rate would not help.

    >>> constant_sentence([NumberScores(error=2.5, baseline=5.0, r2=0.75)])
    'Always predicting the mean has the RMSE 5.000.'
    """
    known = [score for score in scores if isinstance(score, ClassScores | NumberScores)]
    if not known:
        return ""
    measure, regression = known[0].measure, isinstance(known[0], NumberScores)
    mean = measure.factor * fmean(score.baseline for score in known)
    constant, error = "mean" if regression else "majority class", number(mean, measure.digits(mean))
    text = f"Always predicting the {constant} has the {measure.name} {error}"
    stuck = [score for score in known if is_constant(score)]
    if not stuck:
        return f"{text}."
    single = len(known) == 1
    who = "the network" if single else f"{len(stuck)} of {len(known)} networks"
    predict = "predicts" if single else "predict"
    if regression:
        problem = f"{'is' if single else 'are'} no better"
    elif all(score.error == score.baseline for score in stuck):
        problem = f"{predict} only that class"
    else:
        problem = f"{predict} a single class, not always the majority"
    text = f"{text}; {who} {problem}."
    if len(stuck) < len(known):
        return text
    return f"{text} Try {_remedies(regression=regression, diverged=diverged)}."


def _remedies(*, regression: bool, diverged: bool = False) -> str:
    """Return what to try if networks predict a constant."""
    ways = ["a lower learning rate"] if diverged else ["more epochs", "another learning rate"]
    return joined(ways if regression else [*ways, "balanced class weights"], "or")


def figures(scores: AnyScores) -> list[str]:
    """Return the metrics beside the error.

    >>> figures(NumberScores(error=2.5, baseline=5.0, r2=0.75))
    ['R² 0.7500']
    """
    return [
        metric.text(getattr(scores, name))
        for name, metric in metrics_of(scores).items()
        if metric.shown
    ]


def beside(scores: AnyScores, constant: str) -> list[str]:
    """Compare scores with those of the constant prediction, a line each.

    >>> for line in beside(NumberScores(error=2.5, baseline=5.0, r2=0.75), "the mean, 12"):
    ...     print(line)
    always predicting the mean, 12: RMSE 5
    """
    if not isinstance(scores, ClassScores | NumberScores):
        return []
    measure, regression = scores.measure, isinstance(scores, NumberScores)
    line = f"always predicting {constant}: {measure.name} {measure.text(scores.baseline)}"
    if not is_constant(scores):
        return [line]
    problem = "is no better than the mean" if regression else "predicts a single class"
    if not regression and scores.error == scores.baseline:
        problem = f"always predicts {constant}"
    return [line, f"note: the network {problem}: try {_remedies(regression=regression)}"]
