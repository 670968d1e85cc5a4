"""Compare methods that are tuned in the same way, on one data set after another.

Trial t has its own split, initial weights and sample order, which all methods share. Every setting
of a method is scored on held-out training samples of the trial. The best setting is then trained
on all of its training samples, and tested once. Samples that one trial tests on may be training
samples of another, so every trial chooses for itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kmixup._checks import SettingError, check_whole
from kmixup._measured import Measured
from kmixup.lab.data import ENTRIES
from kmixup.lab.evaluate.scores import Measure
from kmixup.lab.experiments.rows import Done, Row, done_of
from kmixup.lab.experiments.search import DIGITS
from kmixup.lab.experiments.tuning import Run, ScoreName, Subject, make_subject, measure, score_of
from kmixup.lab.methods import METHODS, method_entry
from kmixup.lab.trial import Method, Trial

if TYPE_CHECKING:
    from kmixup.lab.experiments.references import Reference

BUDGETS = (2, 4, 6)  # settings of a method: two k need an even number
# a method that tries n of them tries the first n
ALPHAS = (1.0, 0.2, 4.0, 0.05, 16.0, 0.5)
KS = (1, 16, 4, 8, 2, 32)  # of a method without an alpha
MATCHED_K = 16
DEFAULT = ("erm", "mixup", "kmixup")
BASELINES = ("mixup", "erm")  # that all methods are compared with


@dataclass(frozen=True)
class Contender:
    """A method that is compared."""

    name: str  # of the registry
    title: str  # its name in reports
    settings: tuple[Method, ...]  # tried on validation samples, in the order of k and alpha


def settings_of(name: str, budget: int) -> tuple[Method, ...]:
    """Return the settings that a method tries, those of small k and alpha first.

    >>> [method.label for method in settings_of("kmixup", 4)]
    ['kmixup k=4 alpha=0.2', 'kmixup k=4 alpha=1', 'kmixup k=16 alpha=0.2', 'kmixup k=16 alpha=1']
    >>> [method.k for method in settings_of("stackmix", 6)]
    [1, 2, 4, 8, 16, 32]
    """
    entry = method_entry(name)
    ks: tuple[int, ...] = (1,)
    alphas: tuple[float, ...] = (1.0,)
    if entry.has_k and entry.has_alpha:
        # at k = 1 some are mixup itself, which is compared anyway
        ks = (1, MATCHED_K) if entry.baseline is None else (4, MATCHED_K)
        alphas = ALPHAS[: budget // len(ks)]
    elif entry.has_k:
        ks = KS[:budget]
    elif entry.has_alpha:
        alphas = ALPHAS[:budget]
    return tuple(Method(name, k, alpha) for k in sorted(ks) for alpha in sorted(alphas))


@dataclass(frozen=True)
class Contest:
    """A comparison on one data set."""

    name: str  # of the data set
    base: Trial  # whose method, seed and validation are replaced
    contenders: tuple[Contender, ...]  # the methods that can be trained on the data
    trials: int
    validation: float  # the fraction of the training samples that is held out to tune on
    metric: ScoreName = "error"
    is_table: bool = False  # whether inputs are rows of numbers, for which there are references

    def __post_init__(self) -> None:
        check_whole("trials", self.trials)

    def tuning(self, contender: Contender, number: int) -> list[Trial]:
        """Return the trials in which a method tunes, none if it has a single setting."""
        if len(contender.settings) == 1:
            return []
        return [
            self.base.with_method(method, seed=number, validation=self.validation)
            for method in contender.settings
        ]

    @cached_property
    def tuning_trials(self) -> list[Trial]:
        """All trials that tune, each once."""
        trials: list[Trial] = []
        for contender in self.contenders:
            for number in range(self.trials):
                trials += self.tuning(contender, number)
        return list(dict.fromkeys(trials))

    def chosen(self, contender: Contender, rows: Mapping[str, Row]) -> dict[int, Method]:
        """Return the setting with the lowest validation score by trial, the first of equal ones.

        Trials in which all settings failed, or some have not ended, are left out.
        """
        if len(contender.settings) == 1:
            return dict.fromkeys(range(self.trials), contender.settings[0])
        winners = {}
        for number in range(self.trials):
            tried = self.tuning(contender, number)
            ended = [rows[trial.id] for trial in tried if trial.id in rows]
            scores = {row.trial.method: score_of(row, self.metric) for row in ended}
            finite = {
                m: round(value, DIGITS) for m, value in scores.items() if math.isfinite(value)
            }
            if finite and len(ended) == len(tried):
                winners[number] = min(finite, key=finite.__getitem__)
        return winners

    def final(self, chosen: Mapping[int, Method]) -> list[Trial]:
        """Return the trials that test the methods chosen in each trial."""
        return [self.base.with_method(one, seed=number) for number, one in chosen.items()]

    def test_trials(self, rows: Mapping[str, Row]) -> list[Trial]:
        """Return the trials that test the winners, each once."""
        trials: list[Trial] = []
        for contender in self.contenders:
            trials += self.final(self.chosen(contender, rows))
        return list(dict.fromkeys(trials))


@dataclass(frozen=True)
class Score:
    """The test of one method on one data set."""

    title: str  # of the method
    expected: int  # number of trials
    errors: Mapping[int, float]  # test scores by trial, in the unit of tables
    chosen: Mapping[int, str]  # the setting that won in each trial
    settings: int  # that were tried
    name: str = ""  # of the registry; empty for a reference
    rows: tuple[Row, ...] = ()

    @property
    def done(self) -> list[Done]:
        return done_of(self.rows)

    @property
    def complete(self) -> bool:
        return len(self.errors) == self.expected

    @property
    def mean(self) -> float | None:
        return Measured.of([*self.errors.values()]).value if self.errors else None

    @property
    def standard_error(self) -> float | None:
        return Measured.of([*self.errors.values()]).error if len(self.errors) > 1 else None


@dataclass(frozen=True)
class Compared:
    """Results of the methods on one data set."""

    contest: Contest
    scores: tuple[Score, ...]  # one for each method, in the order of the contest
    references: tuple[Score, ...]  # of scikit-learn's models, for tables
    rows: tuple[Row, ...]  # of all trials

    @property
    def measure(self) -> Measure:
        return measure(self.rows, self.contest.metric)

    @property
    def tested(self) -> list[Row]:
        return [row for row in self.rows if row.trial.validation is None]

    def score(self, title: str) -> Score | None:
        """Return the score of a method by its title, if no trial is missing."""
        return next((s for s in self.scores if s.title == title and s.complete), None)


def compare(
    contest: Contest,
    run: Run,
    on_status: Callable[[str], object] = lambda sentence: None,
    references: Callable[[Contest], Sequence[Reference]] = lambda contest: (),
) -> Compared:
    """Tune on validation samples, then test; `on_status` gets a sentence before each part."""
    on_status(f"{contest.name}: tuning on validation samples")
    rows = {row.id: row for row in run(contest.tuning_trials)}
    on_status(f"{contest.name}: the test")
    rows |= {row.id: row for row in run(contest.test_trials(rows))}
    return compared_in(contest, rows, references(contest))


def compared_in(
    contest: Contest, rows: Mapping[str, Row], references: Sequence[Reference] = ()
) -> Compared:
    """Return the results of a contest; `rows` may contain others, and some may be missing."""

    def ended(trials: Sequence[Trial]) -> tuple[Row, ...]:
        return tuple(rows[trial.id] for trial in trials if trial.id in rows)

    scores = []
    trials = [*contest.tuning_trials, *contest.test_trials(rows)]
    factor = measure(ended(trials), contest.metric).factor
    for contender in contest.contenders:
        chosen = contest.chosen(contender, rows)
        tests = ended(contest.final(chosen))
        tested = {row.trial.seed: factor * score_of(row, contest.metric) for row in done_of(tests)}
        labels = {number: _label(method) for number, method in chosen.items()}
        count = len(contender.settings)
        scores.append(
            Score(contender.title, contest.trials, tested, labels, count, contender.name, tests)
        )
    models = []
    for one in references:
        errors = {seed: factor * score for seed, score in one.scores.items()}
        models.append(Score(one.title, contest.trials, errors, one.chosen, one.settings))
    return Compared(contest, tuple(scores), tuple(models), ended(trials))


def _label(method: Method) -> str:
    """A setting without the method's name."""
    parts = [f"k = {method.k}"] if method.entry.has_k else []
    parts += [f"α {method.alpha:g}"] if method.entry.has_alpha else []
    return ", ".join(parts)


def make_contests(
    data: Sequence[str],
    *,
    methods: Sequence[str] | None = DEFAULT,
    settings: int = 6,
    trials: int = 10,
    validation: float = 0.2,
    metric: ScoreName = "error",
    experiments: Mapping[str, Trial] | None = None,
    **subject: Any,
) -> tuple[Contest, ...]:
    """Return the contests, one for each data set.

    `data` are names or paths as `kmixup.lab.data.load` takes them, or names of `experiments`:
    trials of ERM whose data, network and protocol are used. Without `methods` a contest has all
    that its data set allows. Other arguments are those of `make_subject`.
    """
    if settings not in BUDGETS:
        raise SettingError("settings", f"must be {', '.join(map(str, BUDGETS))}, got {settings}")
    try:
        titles = {name: method_entry(name).title for name in methods or METHODS}
    except SettingError as error:
        raise SettingError("methods", error.problem) from error
    contenders = [Contender(name, titles[name], settings_of(name, settings)) for name in titles]
    made = []
    for name in dict.fromkeys(data):
        found = _subject(name, (experiments or {}).get(name), validation, metric, subject)
        fitting = tuple(
            one for one in contenders if one.settings[0].entry.suits(found.shape, found.task)
        )
        if lost := sorted(set(methods or ()) - {one.name for one in fitting}):
            raise SettingError(
                "methods",
                f"must apply to every data set, {lost[0]} does not apply to {name}: "
                "leave it out, or run that data set apart",
            )
        is_table = len(found.shape) == 1
        contest = Contest(name, found.base, fitting, trials, validation, metric, is_table)
        _check_size(contest, found.left)
        made.append(contest)
    return tuple(made)


def _check_size(contest: Contest, left: int) -> None:
    """Raise if a method needs more training samples than validation leaves."""
    for method in (trial.method for trial in contest.tuning_trials):
        if method.smallest > left:
            raise ValueError(
                f"{contest.name} must leave {method.smallest} training samples for {method.label}, "
                f"those not held out are only {left}: take a larger data set, or leave the method "
                "out"
            )


def _subject(
    name: str,
    experiment: Trial | None,
    validation: float,
    metric: ScoreName,
    given: Mapping[str, Any],
) -> Subject:
    """Return the subject of a data set, or of an experiment with its network and protocol."""
    options = dict(given)
    if experiment is None:
        if name in ENTRIES and ENTRIES[name].paper is not None:
            options["scaling"] = options.get("scaling") or "paper"
        return make_subject(name, validation=validation, metric=metric, **options)
    for key in ("model", "samples", "scaling"):
        options[key] = options.get(key) or getattr(experiment, key)
    options["protocol"] = vars(experiment.protocol) | dict(options.get("protocol") or {})
    found = make_subject(experiment.data, validation=validation, metric=metric, **options)
    base = replace(found.base, clean_statistics=experiment.clean_statistics)
    return replace(found, base=base)
