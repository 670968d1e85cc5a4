"""How accuracy grows in training and on the test part, for small and large k."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kmixup.lab.plotting import BLUE, DASHES, MARKERS, ORANGE, Array, panels, styled
from kmixup.lab.train import checkpoint, record
from kmixup.lab.train.config import Method, Trial
from kmixup.lab.train.loop import train


@dataclass(frozen=True, eq=False)
class Course:
    """Accuracy in [0, 1] after every epoch with one k and alpha, `(trials, epochs)`."""

    k: int
    alpha: float
    train: Array  # on the mixed batches, where each label counts by its weight
    test: Array


def courses(
    trial: Trial,
    *,
    ks: Sequence[int] = (1, 32),
    alphas: Sequence[float] = (1.0, 10.0),
    trials: int = 1,
    folder: Path | None = None,
) -> list[Course]:
    """Run `trial` with every alpha and k, and `trials` seeds from its own upwards.

    Runs are kept in `folder`, and those that are there already are not run again.
    """
    runs = []
    for alpha in alphas:
        for k in ks:
            method = Method(k=k, alpha=alpha)
            seeds = range(trial.seed, trial.seed + trials)
            histories = [_history(replace(trial, method=method, seed=s), folder) for s in seeds]
            accuracy = [[entry["accuracy"] for entry in history] for history in histories]
            test = [[1 - entry["error"] for entry in history] for history in histories]
            runs.append(Course(k, alpha, np.array(accuracy), np.array(test)))
    return runs


def _history(trial: Trial, folder: Path | None) -> record.History:
    """All epochs of a trial; `folder` keeps nothing but the record of a trial that ended."""
    if folder is None:
        written = train(trial).record
    else:
        out = folder / trial.id  # a hash of all settings
        if not (out / record.NAME).is_file():
            train(trial, out=out, resume=True)
            (out / checkpoint.NAME).unlink()
        written = json.loads((out / record.NAME).read_text())
    history: record.History = written["epochs"]
    return history


@styled
def convergence(courses: Sequence[Course], title: str) -> Figure:
    """Test and training accuracy against the epoch, one pair of panels for each alpha."""
    alphas = sorted({course.alpha for course in courses})
    figure, grid = panels(1, 2 * len(alphas), size=(2.3, 2.5), sharex=True)
    for i, alpha in enumerate(alphas):
        lines = [course for course in courses if course.alpha == alpha]
        for axes, part in zip(grid[0, 2 * i : 2 * i + 2], ("test", "train"), strict=True):
            for course, colour, dash, marker in zip(
                lines, (ORANGE, BLUE, "black", "gray"), DASHES, MARKERS, strict=False
            ):
                accuracy = 100 * getattr(course, part)
                epoch = np.arange(1, accuracy.shape[1] + 1)
                axes.plot(
                    epoch, accuracy.mean(0), color=colour, ls=dash, marker=marker,
                    markevery=max(1, len(epoch) // 10), label=f"k = {course.k}",
                )  # fmt: skip
                if len(accuracy) > 1:
                    axes.fill_between(
                        epoch, accuracy.min(0), accuracy.max(0), color=colour, alpha=0.2, lw=0
                    )
            axes.set_title(f"{'Test' if part == 'test' else 'Training'}, α = {alpha:g}")
            axes.set_xlabel("epoch")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.grid(visible=True)
    grid[0, 0].set_ylabel("accuracy, %")
    grid[0, -1].legend(loc="lower right")
    figure.suptitle(title, fontsize=9)
    count = len(courses[0].test)
    mean = f"the mean of {count} networks, with their range" if count > 1 else "one network"
    figure.set_label(
        f"Convergence on {title}; each line is {mean}. Training accuracy is on the mixed batches "
        "of the epoch, each label weighted by its share: it is lower the more labels differ "
        "within pairs, which they usually do less at larger k."
    )
    return figure
