"""Tune k and alpha on a data set: choose a setting on validation samples.

All trials share one division into training and test set. They differ in the samples held out for
validation, the initial weights and the sample order. The test set is never read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

from kmixup._checks import SettingError, check_choice
from kmixup.lab._files import open_regular, read_bytes, replace_content
from kmixup.lab.checks import known_settings
from kmixup.lab.data import ENTRIES, Holdout, Task, at_hand, load
from kmixup.lab.evaluate.scores import LOG_LOSS, Measure, Scores
from kmixup.lab.experiments.rows import Done, Row, measure_of
from kmixup.lab.experiments.search import (
    KS,
    Config,
    Searched,
    Setting,
    Strategy,
    StrategyName,
    make_strategy,
    search,
)
from kmixup.lab.train.defaults import defaults_for
from kmixup.lab.trial import Method, Protocol, Trial, TrialData, code_of

STUDY = "study.db"  # the SQLite file of the Optuna study, next to the rows
# the application id in the header of an SQLite file, by which our studies are known
MARK, MARKED = slice(68, 72), b"kmix"
ScoreName = Literal["error", "log-loss"]

Run = Callable[[Sequence[Trial]], Iterable[Row]]  # trains trials, and returns rows in any order


def score_of(row: Row, metric: ScoreName = "error") -> float:
    """Return the score that settings are chosen by, NaN for a trial that failed."""
    if not isinstance(row, Done):
        return math.nan
    return row.scores.nll if metric == "log-loss" and isinstance(row.scores, Scores) else row.error


def measure(rows: Iterable[Row], metric: ScoreName) -> Measure:
    """Return name, unit and format of the score."""
    return LOG_LOSS if metric == "log-loss" else measure_of(rows)


@dataclass(frozen=True)
class Subject:
    """A data set to choose settings on, whose test set is not read."""

    base: Trial  # of ERM
    shape: tuple[int, ...]  # of an input
    left: int  # training samples that validation leaves
    task: Task


def make_subject(
    data: str,
    *,
    validation: float,
    model: str | None = None,
    protocol: Mapping[str, Any] | None = None,
    metric: ScoreName = "error",
    seed: int = 0,
    **reading: Any,
) -> Subject:
    """Return a subject, by default with the paper's network and protocol for the data set.

    `reading` are settings of `TrialData`; `seed` is that of the split.
    """
    check_choice("metric", metric, get_args(ScoreName))
    options = TrialData(**known_settings(TrialData, reading))
    holdout = Holdout(validation, seed)
    loaded = None
    task: Task = "classes"
    if data in ENTRIES and not at_hand(data, limit=options.limit):  # a cluster may have them
        entry = ENTRIES[data]
        shape, left = entry.shape, holdout.left(min(entry.train, options.limit or entry.train))
    else:
        loaded = load(data, **options.data_options(), seed=seed, holdout=holdout)
        shape, left, task = loaded.shape, len(loaded.x_train), loaded.task
    if metric == "log-loss" and task == "regression":
        raise SettingError("metric", f"must be error, as {data} has numbers to predict: a "
                           "regression has no log-loss")  # fmt: skip
    default = defaults_for(data, loaded)
    base = Trial(
        data,
        model or default.model,
        Method("erm"),
        replace(default.protocol, **known_settings(Protocol, protocol or {}, "protocol.")),
        seed,
        digest=None if loaded is None else loaded.digest,
        code=code_of(data, model or default.model, "erm"),
        **vars(options),
    )
    return Subject(base, shape, left, task)


@dataclass(frozen=True)
class Plan:
    """A search on a data set."""

    base: Trial  # whose method, seed and validation are replaced
    strategy: Strategy  # which settings are tried
    validation: float  # the fraction of the training samples that is held out in every trial
    metric: ScoreName = "error"

    def __post_init__(self) -> None:
        for k in self.strategy.ks:
            self.trial(Setting(k, 1.0), 0)  # raises if a batch is smaller than k

    def trial(self, setting: Setting, seed: int) -> Trial:
        """Return a trial of the search."""
        method = method_of(setting)
        return self.base.with_method(method, seed=seed, validation=self.validation)

    def final(self, setting: Setting) -> Trial:
        """Return the trial that trains with a setting on all training samples."""
        return self.base.with_method(method_of(setting), split=None)


def method_of(setting: Setting) -> Method:
    """Return the method with the values of a setting."""
    if setting.alpha == 0:
        return Method("erm")
    return Method("kmixup", setting.k, setting.alpha, setting.alpha_rule)


def make_plan(
    data: str,
    *,
    strategy: StrategyName = "two-step",
    model: str | None = None,
    k: Sequence[int] | None = None,
    alpha: Sequence[float] | None = None,
    trials: int | None = None,
    validation: float = 0.2,
    metric: ScoreName = "error",
    seed: int = 0,
    protocol: Mapping[str, Any] | None = None,
    **reading: Any,
) -> Plan:
    """Return a plan; arguments that are not explained here are those of `make_subject`.

    The default of `k` is the powers of two up to 32 that batches and training samples allow;
    `seed` splits training and test set, and is the first of the trials.
    """
    if seed >= 1 << 32:
        raise SettingError("seed", f"must be below 2**32, as Optuna's are, got {seed}: lower it")
    subject = make_subject(
        data, validation=validation, model=model, protocol=protocol, metric=metric, seed=seed,
        **reading,
    )  # fmt: skip
    base, left = replace(subject.base, split=seed), subject.left
    for given in k or ():
        if given > left:
            raise SettingError(
                "k",
                f"must be at most {left}, the training samples that validation leaves of {data}, "
                f"got {given}: lower it",
            )
    ks = k or [usual for usual in KS if usual <= min(left, base.protocol.batch_size)]
    chosen = make_strategy(strategy, k=ks, alpha=alpha, trials=trials)
    return Plan(base, chosen, validation, metric)


@dataclass(frozen=True)
class Tuned:
    """Results of a search on a data set; returned by `tune_data`.

    Attributes:
        plan: what was searched.
        search: all settings with their validation scores, and the `winner`.
        trial: what to train: the winner on all training samples.
        rows: of all trials.
    """

    plan: Plan
    search: Searched
    rows: tuple[Row, ...]

    @property
    def trial(self) -> Trial:
        return self.plan.final(self.search.winner)

    @property
    def measure(self) -> Measure:
        return measure(self.rows, self.plan.metric)


def tune_plan(
    plan: Plan, run: Run, *, budget: int | None = None, study: Path | None = None
) -> Tuned:
    """Search and choose.

    The SQLite file of the Optuna study, `study`, is replaced after the search: the rows are the
    record of the search. Raises if another program wrote the file.
    """
    rows: dict[str, Row] = {}

    def train(configs: Sequence[Config]) -> list[float]:
        trials = [plan.trial(config, config.seed) for config in configs]
        rows.update((row.id, row) for row in run(trials))
        return [score_of(rows[trial.id], plan.metric) for trial in trials]

    if study is not None:
        _check_study(study)
    with TemporaryDirectory() as scratch:
        storage = None if study is None else Path(scratch) / STUDY
        found = search(plan.strategy, train, budget=budget, seed=plan.base.seed, storage=storage)
        if study is not None and storage is not None:
            content = read_bytes(storage)
            replace_content(study, content[: MARK.start] + MARKED + content[MARK.stop :])
    return Tuned(plan, found, tuple(rows.values()))


def _check_study(path: Path) -> None:
    """Raise if there is a file at `path` that `tune_plan` did not write."""
    if os.path.lexists(path):
        with open_regular(path, follow=False) as stream:
            header = stream.read(MARK.stop)
        if header[MARK] != MARKED:
            raise SettingError(
                "out",
                f"must be a folder without a {STUDY} of another program or version, {path} is one: "
                "move it away, or choose another folder",
            )
