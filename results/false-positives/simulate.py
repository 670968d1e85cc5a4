"""How often `kmixup compare` calls a difference significant if no setting differs from another.

`python results/false-positives/simulate.py` runs the whole procedure on made-up rows, 10,000 times
for every design, and writes `rates.csv`: tuning in each trial on validation samples, the test of
the winners, paired differences, Holm correction. All settings have the same probability of error
on a sample; a trial's difficulty is shared by all methods, and every training has noise of its own.
Methods have 1, 3 and 12 settings, more unequal than `kmixup compare` allows: a family with more
settings has a better best, so a procedure that chooses on the scores that it reports would fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from kmixup.lab.evaluate.scores import ClassScores
from kmixup.lab.experiments.compare import Contender, Contest, compare, make_contests
from kmixup.lab.experiments.rows import DataUsed, Done, Row, TrainingCurve
from kmixup.lab.report.compare import standings_of
from kmixup.lab.trial import Method, Trial

EXPERIMENTS, LEVEL = 10_000, 0.05
SIZES = {"erm": 1, "mixup": 3, "kmixup": 12}
TRIAL, TRAINING = 0.3, 0.2  # standard deviations of the logit between trials and trainings


@dataclass(frozen=True)
class Design:
    """A data set and a number of trials."""

    validation: int  # samples
    test: int  # samples
    error: float  # of every setting
    trials: int


DESIGNS = (
    Design(validation=20, test=50, error=0.05, trials=10),
    Design(validation=100, test=300, error=0.2, trials=5),
    Design(validation=1000, test=10_000, error=0.03, trials=10),
)


def contest_of(design: Design) -> Contest:
    (contest,) = make_contests(["iris"], settings=6, trials=design.trials)
    alphas = [1 / n for n in range(1, max(SIZES.values()) + 1)]
    contenders = [
        Contender(name, name, tuple(Method(name, 4, alpha) for alpha in alphas[:size]))
        if size > 1
        else Contender(name, name, (Method(name),))
        for name, size in SIZES.items()
    ]
    return replace(contest, contenders=tuple(contenders))


def is_significant(contest: Contest, design: Design, rng: np.random.Generator) -> bool:
    """Whether some difference of an experiment is significant."""
    logit = math.log(design.error / (1 - design.error))
    trial_logits = logit + TRIAL * rng.standard_normal(design.trials)

    def row(trial: Trial) -> Row:
        n = design.test if trial.validation is None else design.validation
        chance = 1 / (1 + math.exp(-trial_logits[trial.seed] - TRAINING * rng.standard_normal()))
        error = float(rng.binomial(n, chance)) / n
        data = DataUsed("made up", None, 2 * n, n, 2, (1,), "none", True)
        return Done(
            trial=trial, alpha=1.0, xi=None, data=data, seconds=0.0, curve=TrainingCurve(),
            scores=ClassScores(error, 1.0, 0.0, 0.5, 1 - error, None, 2),
            versions={}, machine={}, finished="",
        )  # fmt: skip

    compared = compare(contest, lambda trials: [row(trial) for trial in trials])
    return any(test.side for test in standings_of([compared]).tests.values())


@contextmanager
def remembered() -> Iterator[None]:
    """Make each trial and its id once: they are the same in all experiments."""
    with_method, id_of = Trial.with_method, Trial.id.fget
    ids: dict[int, str] = {}

    def known(trial: Trial) -> str:
        if id(trial) not in ids:
            ids[id(trial)] = id_of(trial)
        return ids[id(trial)]

    with patch.multiple(Trial, with_method=cache(with_method), id=property(known)):
        yield


def positives(design: Design, experiments: int, seed: int = 0) -> int:
    """The number of experiments with a significant difference."""
    contest, rng = contest_of(design), np.random.default_rng(seed)
    with remembered():
        return sum(is_significant(contest, design, rng) for _ in range(experiments))


def main() -> None:
    lines = []
    for design in DESIGNS:
        found = positives(design, EXPERIMENTS)
        low, high = binomtest(found, EXPERIMENTS).proportion_ci()
        rate = found / EXPERIMENTS
        lines.append({**vars(design), "experiments": EXPERIMENTS, "positive": found, "rate": rate,
                      "low": round(low, 4), "high": round(high, 4)})  # fmt: skip
        print(lines[-1], flush=True)
    pd.DataFrame(lines).to_csv(Path(__file__).with_name("rates.csv"), index=False)


if __name__ == "__main__":
    main()
