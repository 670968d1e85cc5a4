"""How accuracy grows in training and on the test part, for small and large k."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kmixup.lab.plotting import BLUE, DASHES, MARKERS, ORANGE, Array, panels, styled
from kmixup.lab.train import checkpoint, record
from kmixup.lab.train.config import Method, Trial
from kmixup.lab.train.loop import train

# accuracy in [0, 1] by alpha and k: test and training (on mixed batches, where each label counts
# by its weight), `(2, trials, epochs)`
Courses = dict[tuple[float, int], Array]


def courses(
    trial: Trial,
    *,
    ks: Sequence[int] = (1, 32),
    alphas: Sequence[float] = (1.0, 10.0),
    trials: int = 1,
    folder: Path | None = None,
) -> Courses:
    """Run `trial` with every alpha and k, and `trials` seeds from its own upwards.

    Runs are kept in `folder`, and those that are there already are not run again.
    """
    accuracy = {}
    for alpha, k in ((alpha, k) for alpha in alphas for k in ks):
        runs = [
            _record(replace(trial, method=Method(k=k, alpha=alpha), seed=seed), folder)["epochs"]
            for seed in range(trial.seed, trial.seed + trials)
        ]
        test = [[1 - epoch["error"] for epoch in run] for run in runs]
        training = [[epoch["accuracy"] for epoch in run] for run in runs]
        accuracy[alpha, k] = np.array([test, training])
    return accuracy


def _record(trial: Trial, folder: Path | None) -> Mapping[str, Any]:
    """Return the record of a trial; `folder` keeps only the records of trials that ended."""
    if folder is None:
        return train(trial).record
    out = folder / trial.id  # a hash of all settings
    if not (out / record.NAME).is_file():
        train(trial, out=out, resume=True)
        (out / checkpoint.NAME).unlink()
    written: dict[str, Any] = json.loads((out / record.NAME).read_text())
    return written


@styled
def convergence(courses: Courses, title: str) -> Figure:
    """Draw test and training accuracy against the epoch, a pair of panels for each alpha."""
    alphas = sorted({alpha for alpha, _ in courses})
    figure, grid = panels(1, 2 * len(alphas), size=(2.3, 2.5), sharex=True)
    parts = [(alpha, part) for alpha in alphas for part in (0, 1)]
    for axes, (alpha, part) in zip(grid[0], parts, strict=True):
        lines = [(k, accuracy) for (its, k), accuracy in courses.items() if its == alpha]
        looks = zip((ORANGE, BLUE, "black", "gray"), DASHES, MARKERS, strict=False)
        for (k, accuracy), (colour, dash, marker) in zip(lines, looks, strict=False):
            percent = 100 * accuracy[part]
            count, epochs = percent.shape
            epoch = np.arange(1, epochs + 1)
            axes.plot(
                epoch, percent.mean(0), color=colour, ls=dash, marker=marker,
                markevery=max(1, epochs // 10), label=f"k = {k}",
            )  # fmt: skip
            if count > 1:
                low, high = percent.min(0), percent.max(0)
                axes.fill_between(epoch, low, high, color=colour, alpha=0.2, lw=0)
        axes.set_title(f"{('Test', 'Training')[part]}, α = {alpha:g}")
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(visible=True)
    grid[0, 0].set_ylabel("accuracy, %")
    grid[0, -1].legend(loc="lower right")
    figure.suptitle(title, fontsize=9)
    mean = f"the mean of {count} networks, with their range" if count > 1 else "one network"
    figure.set_label(
        f"Convergence on {title}; each line is {mean}. Training accuracy is on the mixed batches "
        "of the epoch, each label weighted by its share: it is lower the more labels differ "
        "within pairs, which they usually do less at larger k."
    )
    return figure
