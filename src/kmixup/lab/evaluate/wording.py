"""Scores in words, beside what a constant answer would give."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.scores import AnyScores, ClassScores, NumberScores
from kmixup.lab.formatting import number


def constant_answer(data: Dataset) -> str:
    """The best answer that looks at no input, as the training part tells it."""
    if data.task == "regression":
        return f"the mean of the training part, {data.target_mean:.4g}"
    return repr(data.classes[int(data.y_train.bincount(minlength=data.num_classes).argmax())])


def figures(scores: AnyScores) -> list[str]:
    """The figures beside the error.

    >>> figures(NumberScores(error=2.5, baseline=5.0, r2=0.75))
    ['R² 0.7500']
    """
    if isinstance(scores, NumberScores):
        return ["R² not defined" if scores.r2 is None else f"R² {scores.r2:.4f}"]
    return [f"log-loss {scores.nll:.4f}", f"calibration error {scores.ece:.4f}"]


def constant_sentence(scores: Iterable[AnyScores]) -> str:
    """What the constant answer comes to over trials, and how many networks are no better.

    Empty where scores are of versions that did not know it.

    >>> constant_sentence([NumberScores(error=2.5, baseline=5.0, r2=0.75)])
    'An answer that looks at no input, always the same, has the RMSE 5.000.'
    """
    known = [score for score in scores if isinstance(score, ClassScores | NumberScores)]
    if not known:
        return ""
    measure = known[0].measure
    mean = measure.factor * fmean(score.baseline for score in known)
    text = (
        f"An answer that looks at no input, always the same, has the {measure.name} "
        f"{number(mean, measure.digits(mean))}"
    )
    if not (stuck := sum(map(_is_constant, known))):
        return f"{text}."
    who = "the network" if len(known) == 1 else f"{stuck} of {len(known)} networks"
    if isinstance(known[0], NumberScores):
        does, remedy = f"{'is' if len(known) == 1 else 'are'} no better", ""
    else:
        does = f"always {'gives' if len(known) == 1 else 'give'} the same answer"
        remedy = " or with balanced class weights"
    text = f"{text}; {who} {does}."
    if stuck < len(known):
        return text
    return f"{text} Nothing was learnt: train for more epochs, at another rate{remedy}."


def _is_constant(scores: ClassScores | NumberScores) -> bool:
    """Whether a network is no better than the constant answer, or gives it itself."""
    if isinstance(scores, ClassScores):
        return scores.answers == 1
    return scores.error >= scores.baseline


def beside(scores: AnyScores, constant: str) -> list[str]:
    """Sentences that compare scores with those of the constant answer.

    >>> for line in beside(NumberScores(error=2.5, baseline=5.0, r2=0.75), "the mean, 12"):
    ...     print(line)
    always answering the mean, 12: RMSE 5
    """
    if not isinstance(scores, ClassScores | NumberScores):
        return []
    measure = scores.measure
    lines = [f"always answering {constant}: {measure.name} {measure.text(scores.baseline)}"]
    if scores.error == scores.baseline:
        lines = [
            f"test {measure.name} {measure.text(scores.error)} is exactly that of always answering "
            f"{constant}"
        ]
    if isinstance(scores, NumberScores):
        if _is_constant(scores):
            lines.append(
                "note: the network is no better than the mean: try another rate or more epochs"
            )
        return lines
    area = "not defined" if scores.auc is None else f"{scores.auc:.4f}"
    lines.append(f"balanced accuracy {scores.balanced_accuracy:.2%}, AUC {area}")
    if _is_constant(scores):
        lines.append(
            "note: the network gives the same answer to every test sample: training stayed at the "
            "majority; try --class-weights balanced, a higher rate or more epochs"
        )
    return lines
