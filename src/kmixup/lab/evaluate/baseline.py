"""Scores next to those of a constant prediction: the majority class, or the mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from kmixup.lab.evaluate.scores import (
    RMSE,
    AnyScores,
    ClassScores,
    Measure,
    NumberScores,
    metrics_of,
)


def is_constant(scores: AnyScores) -> bool:
    """Whether a network predicts a constant, or is no better than one."""
    if isinstance(scores, ClassScores):
        return scores.answers == 1 or scores.error > scores.baseline
    return isinstance(scores, NumberScores) and scores.error >= scores.baseline


def constant_sentence(scores: Iterable[AnyScores]) -> str:
    """Return the constant prediction's error over trials, and how many networks are no better.

    >>> constant_sentence([NumberScores(error=2.5, baseline=5.0, r2=0.75)])
    'Always predicting the mean has the RMSE 5.'
    """
    known = [score for score in scores if isinstance(score, ClassScores | NumberScores)]
    if not known:
        return ""
    baselines, stuck = [score.baseline for score in known], sum(map(is_constant, known))
    single = all(getattr(score, "answers", 0) == 1 for score in known if is_constant(score))
    return baseline_sentence(known[0].measure, baselines, stuck, single=single)


def baseline_sentence(
    measure: Measure, baselines: Sequence[float], stuck: int, *, single: bool = True
) -> str:
    """Return the mean error of the constant prediction, and how many networks are stuck on one.

    They may also be worse, unless all predict a `single` class.
    """
    if not baselines:
        return ""
    regression = measure is RMSE
    constant = "mean" if regression else "majority class"
    error = measure.text(fmean(baselines))
    text = f"Always predicting the {constant} has the {measure.name} {error}"
    if not stuck:
        return f"{text}."
    who = "the network is" if len(baselines) == 1 else f"{stuck} of {len(baselines)} networks are"
    text = (
        f"{text}; {who} {'stuck on a single class' if single and not regression else 'no better'}."
    )
    if stuck < len(baselines):
        return text
    more = "" if regression else ", or balanced class weights"
    return f"{text} Try more epochs or another learning rate{more}."


def figures(scores: AnyScores) -> list[str]:
    """Return the metrics in addition to the error.

    >>> figures(NumberScores(error=2.5, baseline=5.0, r2=0.75))
    ['R² 0.7500']
    """
    return [
        metric.text(getattr(scores, name))
        for name, metric in metrics_of(scores).items()
        if metric.shown
    ]
