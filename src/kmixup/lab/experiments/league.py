"""The league: every method at an equal budget, on one data set after another.

Trial t has its own split, initial weights and order, which all methods share. Every setting of a
method is scored on held-out training samples of the trial. The best setting is then trained on all
of its training samples, and tested. Samples that one trial tests on may be training samples of
another, so every trial chooses for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kmixup.lab.checks import SettingError, check_whole
from kmixup.lab.data import ENTRIES, Holdout, Task, load
from kmixup.lab.evaluate.scores import Measure
from kmixup.lab.experiments.rows import Row, measure_of
from kmixup.lab.experiments.selection import FinalTest, Run, choose, final_trials, validation_error
from kmixup.lab.train.config import Method, Trial, code_of
from kmixup.lab.train.defaults import defaults_for
from kmixup.lab.train.methods import METHODS, method_entry

BUDGETS = (2, 4, 6)  # settings of a method: two k need an even number
# a method that tries n of them tries the first n
ALPHAS = (1.0, 0.2, 4.0, 0.05, 16.0, 0.5)
KS = (1, 16, 4, 8, 2, 32)  # of a method without an alpha
MIXUP = "mixup"
MATCHED_K = 16


@dataclass(frozen=True)
class Entrant:
    """A method that takes part."""

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
        # at k = 1 some are mixup itself, which takes part anyway
        ks = (1, MATCHED_K) if entry.baseline is None else (4, MATCHED_K)
        alphas = ALPHAS[: budget // len(ks)]
    elif entry.has_k:
        ks = KS[:budget]
    elif entry.has_alpha:
        alphas = ALPHAS[:budget]
    return tuple(Method(name, k, alpha) for k in sorted(ks) for alpha in sorted(alphas))


@dataclass(frozen=True)
class Contest:
    """The league on one data set."""

    name: str  # of the data set
    base: Trial  # whose method, seed and validation are replaced
    entrants: tuple[Entrant, ...]  # the methods that can be trained on the data
    trials: int
    validation: float  # the share of the training samples that is held out to tune on

    def __post_init__(self) -> None:
        check_whole("trials", self.trials)

    def tuning(self, entrant: Entrant, number: int) -> list[Trial]:
        """Return the trials in which a method tunes, none if it has a single setting."""
        if len(entrant.settings) == 1:
            return []
        return [
            self.base.with_method(method, seed=number, validation=self.validation)
            for method in entrant.settings
        ]

    @cached_property
    def tuning_trials(self) -> list[Trial]:
        """All trials that tune, each once."""
        trials: list[Trial] = []
        for entrant in self.entrants:
            for number in range(self.trials):
                trials += self.tuning(entrant, number)
        return list(dict.fromkeys(trials))

    def chosen(self, entrant: Entrant, rows: Mapping[str, Row]) -> dict[int, Method]:
        """Return the setting with the lowest validation error, by trial.

        Trials in which all settings failed, or some have not ended, are left out.
        """
        if len(entrant.settings) == 1:
            return dict.fromkeys(range(self.trials), entrant.settings[0])
        winners = {}
        for number in range(self.trials):
            tried = self.tuning(entrant, number)
            ended = [rows[trial.id] for trial in tried if trial.id in rows]
            winner = choose({row.trial.method: [validation_error(row)] for row in ended})
            if winner is not None and len(ended) == len(tried):
                winners[number] = winner
        return winners

    def test_trials(self, rows: Mapping[str, Row]) -> list[Trial]:
        """Return the trials that test the winners, each once."""
        trials: list[Trial] = []
        for entrant in self.entrants:
            trials += final_trials(self.base, self.chosen(entrant, rows))
        return list(dict.fromkeys(trials))


@dataclass(frozen=True)
class Score(FinalTest):
    """Final test of a method on one data set."""

    entrant: Entrant
    chosen: Mapping[int, Method]  # the setting that won in each trial
    trials: int  # how many there should be

    @property
    def complete(self) -> bool:
        return len(self.errors) == self.trials


@dataclass(frozen=True)
class Result:
    """Results of the league on one data set."""

    contest: Contest
    scores: tuple[Score, ...]  # one for each method, in the order of the contest
    rows: tuple[Row, ...]  # of all trials

    @property
    def measure(self) -> Measure:
        return measure_of(self.rows)

    @property
    def tested(self) -> list[Row]:
        return [row for row in self.rows if row.trial.validation is None]

    def score(self, name: str) -> Score | None:
        """Return the score of a method by its name, if no trial is missing."""
        fitting = (s for s in self.scores if s.entrant.name == name and s.complete)
        return next(fitting, None)


def play(
    contest: Contest, run: Run, on_status: Callable[[str], object] = lambda sentence: None
) -> Result:
    """Tune on validation samples, then test; `on_status` gets a sentence before each part."""
    on_status(f"{contest.name}: tuning on validation samples")
    rows = {row.id: row for row in run(contest.tuning_trials)}
    on_status(f"{contest.name}: the test")
    rows |= {row.id: row for row in run(contest.test_trials(rows))}
    return result_of(contest, rows)


def result_of(contest: Contest, rows: Mapping[str, Row]) -> Result:
    """Return the result of a contest; `rows` may contain others, and some may be missing."""

    def ended(trials: Sequence[Trial]) -> tuple[Row, ...]:
        return tuple(rows[trial.id] for trial in trials if trial.id in rows)

    scores = []
    for entrant in contest.entrants:
        chosen = contest.chosen(entrant, rows)
        tests = ended(final_trials(contest.base, chosen))
        scores.append(Score(tests, entrant, chosen, contest.trials))
    trials = [*contest.tuning_trials, *contest.test_trials(rows)]
    return Result(contest, tuple(scores), ended(trials))


def make_contests(
    data: Sequence[str],
    *,
    methods: Sequence[str] | None = None,
    settings: int = 6,
    trials: int = 10,
    validation: float = 0.2,
    samples: int | None = None,
    epochs: int | None = None,
    experiments: Mapping[str, Trial] | None = None,
) -> tuple[Contest, ...]:
    """Return the contests of a league, one for each data set.

    `data` are names or paths as `kmixup.lab.data.load` takes them, or names of `experiments`:
    trials of ERM whose data, network and protocol are used. By default a contest has all methods
    that its data set allows.
    """
    if settings not in BUDGETS:
        raise SettingError("settings", f"must be {', '.join(map(str, BUDGETS))}, got {settings}")
    try:
        titles = {name: method_entry(name).title for name in methods or METHODS}
    except SettingError as error:
        raise SettingError("methods", error.problem) from error
    entrants = [Entrant(name, titles[name], settings_of(name, settings)) for name in titles]
    made = []
    for name in dict.fromkeys(data):
        base, shape, train, task = _subject(name, validation, experiments or {})
        if samples is not None:
            check_whole("samples", samples, least=2)
            if samples > train:
                raise SettingError(
                    "samples",
                    f"must be at most {train:,}, the training samples of {name}, got {samples}: "
                    "lower it",
                )
            base, train = replace(base, samples=samples), samples
        if epochs is not None:
            base = replace(base, protocol=replace(base.protocol, epochs=epochs))
        fitting = tuple(e for e in entrants if e.settings[0].entry.suits(shape, task))
        for asked in methods or ():
            if asked not in [entrant.name for entrant in fitting]:
                raise SettingError(
                    "methods",
                    f"must apply to every data set, {asked} does not apply to {name}: "
                    "leave it out, or run that data set apart",
                )
        contest = Contest(name, base, fitting, trials, validation)
        left = Holdout(validation).left(train)
        for method in (trial.method for trial in contest.tuning_trials):
            if method.smallest > left:
                raise ValueError(
                    f"{name} must leave {method.smallest} training samples for {method.label}, "
                    f"beside those held out it has {left}: take a larger data set, or leave the "
                    "method out"
                )
        made.append(contest)
    return tuple(made)


def _subject(
    name: str, validation: float, experiments: Mapping[str, Trial]
) -> tuple[Trial, tuple[int, ...], int, Task]:
    """Return a trial of ERM, the shape of an input, the number of training samples, the task."""
    erm = Method("erm")
    if name in experiments:
        base = experiments[name]
        entry = ENTRIES[base.data]
        return base, entry.shape, base.samples or entry.train, "classes"
    if name in ENTRIES:
        entry, default = ENTRIES[name], defaults_for(name)
        base = Trial(name, default.model, erm, default.protocol)
        if entry.paper is not None:
            base = replace(base, scaling="paper")
        return base, entry.shape, entry.train, "classes"
    own = load(name, holdout=Holdout(validation))  # does not read the test part
    default, train = defaults_for(name, own), len(own.x_train) + len(own.x_test)
    code = code_of(name, default.model, "erm")
    base = Trial(name, default.model, erm, default.protocol, digest=own.digest, code=code)
    return base, own.shape, train, own.task
