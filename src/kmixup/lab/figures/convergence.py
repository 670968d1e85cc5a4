"""How accuracy grows in training and on the test set, for small and large k."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kmixup.lab._files import read_json
from kmixup.lab.plotting import BLUE, DASHES, MARKERS, ORANGE, Array, panels, styled
from kmixup.lab.train import checkpoint, record
from kmixup.lab.train.loop import train
from kmixup.lab.trial import Method, Trial

ALPHAS, KS = (1.0, 10.0), (1, 32)
# accuracy in [0, 1] by alpha and k: test and training (on mixed batches, where each label counts
# by its weight), `(2, trials, epochs)`
Courses = dict[tuple[float, int], Array]


def courses(trial: Trial, *, trials: int = 1, folder: Path | None = None) -> Courses:
    """Run `trial` with every alpha and k, and `trials` seeds from its own upwards.

    Runs are kept in `folder`, and those that are there already are not run again.
    """
    accuracy = {}
    for alpha, k in product(ALPHAS, KS):
        test, training = [], []
        for seed in range(trial.seed, trial.seed + trials):
            run = replace(trial, method=Method(k=k, alpha=alpha), seed=seed)
            epochs = _record(run, folder)["epochs"]
            test.append([1 - epoch["error"] for epoch in epochs])
            training.append([epoch["accuracy"] for epoch in epochs])
        accuracy[alpha, k] = np.array([test, training])
    return accuracy


def _record(trial: Trial, folder: Path | None) -> Mapping[str, Any]:
    if folder is None:
        return train(trial).record
    out = folder / trial.id  # a hash of all settings
    if not (out / record.NAME).is_file():
        train(trial, out=out, resume=True)
        (out / checkpoint.NAME).unlink()
    written: dict[str, Any] = read_json(out / record.NAME)
    return written


@styled
def convergence(courses: Courses, title: str) -> Figure:
    """Draw test and training accuracy against the epoch, a pair of panels for each alpha."""
    figure, grid = panels(1, 2 * len(ALPHAS), size=(2.3, 2.5), sharex=True)
    for axes, (alpha, part) in zip(grid[0], product(ALPHAS, (0, 1)), strict=True):
        for k, colour, dash, marker in zip(KS, (ORANGE, BLUE), DASHES, MARKERS, strict=False):
            percent = 100 * courses[alpha, k][part]
            count, epochs = percent.shape
            epoch = np.arange(1, epochs + 1)
            axes.plot(
                epoch, percent.mean(0), color=colour, ls=dash, marker=marker,
                markevery=max(1, epochs // 10), label=f"k = {k}",
            )  # fmt: skip
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
