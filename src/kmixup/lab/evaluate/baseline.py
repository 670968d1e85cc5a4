"""Scores beside those of the constant prediction: the majority class, or the mean."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.scores import AnyScores, ClassScores, NumberScores
from kmixup.lab.formatting import number


def constant_answer(data: Dataset) -> str:
    """The best constant prediction by the training set."""
    if data.task == "regression":
        return f"the mean of the training set, {data.target_mean:.4g}"
    return repr(data.classes[int(data.y_train.bincount(minlength=data.num_classes).argmax())])


def is_constant(scores: AnyScores) -> bool:
    """Whether a network predicts a constant, or is no better than one."""
    if isinstance(scores, ClassScores):
        return scores.answers == 1
    return isinstance(scores, NumberScores) and scores.error >= scores.baseline


def constant_sentence(scores: Iterable[AnyScores]) -> str:
    """The error of the constant prediction over trials, and how many networks are no better.

    >>> constant_sentence([NumberScores(error=2.5, baseline=5.0, r2=0.75)])
    'Always predicting the mean has the RMSE 5.000.'
    """
    known = [score for score in scores if isinstance(score, ClassScores | NumberScores)]
    if not known:
        return ""
    measure = known[0].measure
    regression = isinstance(known[0], NumberScores)
    constant = "mean" if regression else "majority class"
    mean = measure.factor * fmean(score.baseline for score in known)
    error = number(mean, measure.digits(mean))
    text = f"Always predicting the {constant} has the {measure.name} {error}"
    stuck = sum(map(is_constant, known))
    if not stuck:
        return f"{text}."
    who = "the network" if len(known) == 1 else f"{stuck} of {len(known)} networks"
    if regression:
        does, remedy = f"{'is' if len(known) == 1 else 'are'} no better", ""
    else:
        does = f"{'predicts' if len(known) == 1 else 'predict'} a single class"
        remedy = " or with balanced class weights"
    text = f"{text}; {who} {does}."
    if stuck < len(known):
        return text
    return f"{text} Nothing was learned: train longer, with another learning rate{remedy}."


def figures(scores: AnyScores) -> list[str]:
    """The metrics beside the error.

    >>> figures(NumberScores(error=2.5, baseline=5.0, r2=0.75))
    ['R² 0.7500']
    """
    if isinstance(scores, NumberScores):
        return ["R² not defined" if scores.r2 is None else f"R² {scores.r2:.4f}"]
    return [f"log-loss {scores.nll:.4f}", f"calibration error {scores.ece:.4f}"]


def beside(scores: AnyScores, constant: str) -> list[str]:
    """Compare scores with those of the constant prediction, a line each.

    >>> for line in beside(NumberScores(error=2.5, baseline=5.0, r2=0.75), "the mean, 12"):
    ...     print(line)
    always predicting the mean, 12: RMSE 5
    """
    if not isinstance(scores, ClassScores | NumberScores):
        return []
    measure = scores.measure
    lines = [f"always predicting {constant}: {measure.name} {measure.text(scores.baseline)}"]
    if scores.error == scores.baseline:
        lines = [
            f"test {measure.name} {measure.text(scores.error)} is exactly that of always "
            f"predicting {constant}"
        ]
    if isinstance(scores, ClassScores):
        area = "not defined" if scores.auc is None else f"{scores.auc:.4f}"
        lines.append(f"balanced accuracy {scores.balanced_accuracy:.2%}, AUC {area}")
    if is_constant(scores):
        problem, remedy = "the network is no better than the mean", ""
        if isinstance(scores, ClassScores):
            problem = "the network predicts the same class for every test sample"
            remedy = "--class-weights balanced, "
        lines.append(f"note: {problem}: try {remedy}another learning rate or more epochs")
    return lines
