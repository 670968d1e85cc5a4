"""Tune k and alpha on a data set: search on validation samples, then test once.

Both winners and ERM are trained on the whole training part, with seeds that no search has used,
and tested. All trials share one division into training and test part; trials of a search differ
in the samples held out for validation, the initial weights and the order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kmixup.lab._files import open_regular, read_bytes, replace_content
from kmixup.lab.checks import SettingError, check_whole, known_settings
from kmixup.lab.data import ENTRIES, Holdout, at_hand, load
from kmixup.lab.evaluate.scores import Measure
from kmixup.lab.experiments.rows import Row, measure_of
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
from kmixup.lab.experiments.selection import FinalTest, Run, final_trials, validation_error
from kmixup.lab.train.config import Method, Protocol, Trial, TrialData, code_of
from kmixup.lab.train.defaults import defaults_for

STUDY = "study.db"  # the SQLite file of the Optuna studies, beside the rows
# the application id in the header of an SQLite file, by which our studies are known
MARK, MARKED = slice(68, 72), b"kmix"
TESTED = 10_000  # the first seed of the final test, beyond those of any search


@dataclass(frozen=True)
class Plan:
    """A search on a data set, and the test after it."""

    base: Trial  # whose method, seed and validation are replaced
    strategy: Strategy  # which settings are tried
    validation: float  # the share of the training samples that is held out in every trial
    tests: int  # seeds of the final test

    def __post_init__(self) -> None:
        check_whole("tests", self.tests)
        for k in self.strategy.ks:
            self.trial(Setting(k, 1.0), 0)  # raises if a batch is smaller than k

    def trial(self, setting: Setting | None, seed: int) -> Trial:
        """Return a trial of the search; None for ERM."""
        return replace(self.base, method=_method(setting), seed=seed, validation=self.validation)

    def test_trials(self, setting: Setting | None) -> list[Trial]:
        """Return the trials of the final test; None for ERM."""
        first = self.base.seed + TESTED
        seeds = range(first, first + self.tests)
        return final_trials(self.base, dict.fromkeys(seeds, _method(setting)))


def _method(setting: Setting | None) -> Method:
    if setting is None:
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
    tests: int = 10,
    seed: int = 0,
    protocol: Mapping[str, Any] | None = None,
    **reading: Any,
) -> Plan:
    """Return a plan, by default with the paper's network and protocol for the data set.

    The default of `k` is the powers of two up to 32 that batches and training samples allow;
    `seed` splits training and test part, and is the first of the trials; `reading` are settings
    of `TrialData`.
    """
    options = TrialData(**known_settings(TrialData, reading))
    holdout = Holdout(validation, seed)
    if seed >= 1 << 32:
        raise SettingError("seed", f"must be below 2**32, as Optuna's are, got {seed}: lower it")
    loaded = None
    if data in ENTRIES and not at_hand(data, limit=options.limit):  # a cluster may have them
        left = holdout.left(min(ENTRIES[data].train, options.limit or ENTRIES[data].train))
    else:
        loaded = load(data, **options.data_options(), seed=seed, holdout=holdout)
        left = len(loaded.x_train)
    default = defaults_for(data, loaded)
    base = Trial(
        data,
        model or default.model,
        Method("erm"),
        replace(default.protocol, **known_settings(Protocol, protocol or {}, "protocol.")),
        seed,
        split=seed,
        digest=None if loaded is None else loaded.digest,
        code=code_of(data, model or default.model, "erm"),
        **vars(options),
    )
    for given in k or ():
        if given > left:
            raise SettingError(
                "k",
                f"must be at most {left}, the training samples that validation leaves of {data}, "
                f"got {given}: lower it",
            )
    ks = k or [usual for usual in KS if usual <= min(left, base.protocol.batch_size)]
    chosen = make_strategy(strategy, k=ks, alpha=alpha, trials=trials)
    return Plan(base, chosen, validation, tests)


@dataclass(frozen=True)
class Finalist(FinalTest):
    """A method in the final test."""

    name: str  # "k-mixup", "mixup" or "ERM"
    setting: Setting | None  # the winner of the search, None for ERM


@dataclass(frozen=True)
class Tuned:
    """Results of the searches on a data set, and of the final test; returned by `tune_data`.

    Attributes:
        plan: what was searched.
        budget: trials of each search at most, if limited.
        kmixup: the search over k and alpha.
        mixup: the search over the alpha of mixup.
        erm: validation errors of ERM, of the seeds that the winner of `kmixup` has; NaN for a
            trial that failed.
        tests: the final test of k-mixup, mixup and ERM. Each has a `name`, the `setting` that
            the search chose, its test `errors` by seed, their `mean` and `standard_error`.
        rows: of all trials.
    """

    plan: Plan
    budget: int | None
    kmixup: Searched
    mixup: Searched
    erm: tuple[float, ...]
    tests: tuple[Finalist, ...]
    rows: tuple[Row, ...]

    @property
    def measure(self) -> Measure:
        return measure_of(self.rows)


def tune_plan(
    plan: Plan,
    run: Run,
    *,
    budget: int | None = None,
    on_status: Callable[[str], object] = lambda sentence: None,
    study: Path | None = None,
) -> Tuned:
    """Search, then test; `on_status` is called with a sentence before each part.

    The SQLite file of the Optuna studies, `study`, is replaced after the searches: the rows are
    the record of the search. Raises if another program wrote the file.
    """
    rows: dict[str, Row] = {}

    def get(trials: Sequence[Trial]) -> list[Row]:
        rows.update((row.id, row) for row in run(trials))
        return [rows[trial.id] for trial in trials]

    def train(configs: Sequence[Config]) -> list[float]:
        rows = get([plan.trial(config, config.seed) for config in configs])
        return list(map(validation_error, rows))

    if study is not None:
        _check_study(study)
    seed = plan.base.seed
    with TemporaryDirectory() as scratch:
        storage = None if study is None else Path(scratch) / STUDY
        on_status("the search of k-mixup, on validation samples")
        kmixup = search(plan.strategy, train, budget=budget, seed=seed, storage=storage)
        on_status("the search of mixup, with as many trials")
        strategy = plan.strategy.for_mixup(len(kmixup.table), kmixup.seeds)
        mixup = search(strategy, train, seed=seed, name="mixup", storage=storage)
        if study is not None and storage is not None:
            content = read_bytes(storage)
            replace_content(study, content[: MARK.start] + MARKED + content[MARK.stop :])
    on_status("ERM, on the same validation samples")
    erm = get([plan.trial(None, seed + i) for i in range(kmixup.seeds)])
    on_status("the test of k-mixup, mixup and ERM")
    chosen = {"k-mixup": kmixup.winner, "mixup": mixup.winner, "ERM": None}
    get([trial for setting in chosen.values() for trial in plan.test_trials(setting)])
    tests = tuple(
        Finalist(tuple(rows[trial.id] for trial in plan.test_trials(setting)), name, setting)
        for name, setting in chosen.items()
    )
    errors = tuple(map(validation_error, erm))
    return Tuned(plan, budget, kmixup, mixup, errors, tests, tuple(rows.values()))


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
