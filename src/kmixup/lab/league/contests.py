"""The league on one data set: which trials tune, who wins in each, and what is tested.

Trial t has a division, first weights and an order of its own, which all methods share. A part
of its training samples is held out. Every setting of a method is trained on the rest and scored
on what is held out. The best of them is then trained on all training samples of the trial, and
tested. What one trial tests on may be what another trains on, so no trial chooses for another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kmixup.lab.checks import check_whole
from kmixup.lab.data import ENTRIES, Holdout, load
from kmixup.lab.data.targets import Task
from kmixup.lab.evaluate.scores import Measure
from kmixup.lab.experiments.rows import Done, Row, measure_of
from kmixup.lab.league.entrants import Entrant, make_entrants
from kmixup.lab.paper.presets import PRESETS
from kmixup.lab.paper.tables import CLEAN
from kmixup.lab.train.config import Method, Protocol, Trial
from kmixup.lab.train.defaults import defaults_for
from kmixup.lab.train.methods import METHODS
from kmixup.measured import Measured

SMALL = ("mnist-1000", "mnist-5000", "cifar10-5000")  # experiments with small training sets
DIGITS = 12  # errors that agree so far are equal

Run = Callable[[Sequence[Trial]], Iterable[Row]]  # the rows of trials, in any order


@dataclass(frozen=True)
class Contest:
    """The league on one data set.

    Attributes:
        name: of the data set.
        base: the trial whose method, seed and validation are replaced.
        entrants: the methods that can be trained on the data.
        trials: their number.
        validation: the share of the training samples that is held out to tune on.
        task: "classes" or "regression".
    """

    name: str
    base: Trial
    entrants: tuple[Entrant, ...]
    trials: int
    validation: float
    task: Task = "classes"

    def __post_init__(self) -> None:
        check_whole("trials", self.trials)

    def test(self, method: Method, number: int) -> Trial:
        """The trial that tests a setting."""
        return replace(self.base, method=method, seed=number)

    def tuning(self, entrant: Entrant, number: int) -> list[Trial]:
        """The trials in which a method tunes, none where there is nothing to choose."""
        if len(entrant.settings) == 1:
            return []
        return [
            replace(self.test(method, number), validation=self.validation)
            for method in entrant.settings
        ]

    @cached_property
    def tuning_trials(self) -> list[Trial]:
        """All trials that tune, each once."""
        return list(
            dict.fromkeys(
                trial
                for entrant in self.entrants
                for number in range(self.trials)
                for trial in self.tuning(entrant, number)
            )
        )

    @property
    def possible_trials(self) -> list[Trial]:
        """All trials that may be run: those that tune, and the tests of all settings."""
        tests = (
            self.test(method, number)
            for entrant in self.entrants
            for number in range(self.trials)
            for method in entrant.settings
        )
        return [*self.tuning_trials, *dict.fromkeys(tests)]

    def winner(self, entrant: Entrant, number: int, rows: Mapping[str, Row]) -> Method | None:
        """The setting with the least validation error in a trial.

        Of equal settings the first wins. None where all have failed, or some have not ended.
        """
        if len(entrant.settings) == 1:
            return entrant.settings[0]
        tried = [rows.get(trial.id) for trial in self.tuning(entrant, number)]
        done = [row for row in tried if isinstance(row, Done)]
        if None in tried or not done:
            return None
        return min(done, key=lambda row: round(row.error, DIGITS)).trial.method

    def test_trials(self, rows: Mapping[str, Row]) -> list[Trial]:
        """The trials that test the winners, each once."""
        winners = (
            (self.winner(entrant, number, rows), number)
            for entrant in self.entrants
            for number in range(self.trials)
        )
        return list(
            dict.fromkeys(
                self.test(method, number) for method, number in winners if method is not None
            )
        )


@dataclass(frozen=True)
class Score:
    """What a method reached on one data set.

    Attributes:
        entrant: the method.
        chosen: the setting that won in each trial.
        errors: test errors by trial, in the unit of `measure`.
        trials: how many there should be.
    """

    entrant: Entrant
    chosen: Mapping[int, Method]
    errors: Mapping[int, float]
    trials: int

    @property
    def complete(self) -> bool:
        return len(self.errors) == self.trials

    @property
    def figure(self) -> Measured | None:
        """The mean test error and its standard error; None without any trial."""
        return Measured.of(list(self.errors.values())) if self.errors else None


@dataclass(frozen=True)
class Result:
    """What came of the league on one data set.

    Attributes:
        contest: what was run.
        scores: one for each method, in the order of the contest.
        rows: of all its trials.
    """

    contest: Contest
    scores: tuple[Score, ...]
    rows: tuple[Row, ...]

    @property
    def measure(self) -> Measure:
        """How the errors are called and written."""
        return measure_of(self.rows)

    @property
    def tested(self) -> list[Row]:
        """The rows of tests."""
        return [row for row in self.rows if row.trial.validation is None]

    def score(self, name: str) -> Score | None:
        """That of a method by its name, if it has ended well in all trials."""
        for score in self.scores:
            if score.entrant.name == name and score.complete:
                return score
        return None


def play(
    contest: Contest, run: Run, told: Callable[[str], object] = lambda sentence: None
) -> Result:
    """Tune on validation samples, then test.

    Args:
        contest: what to run.
        run: trains the trials that have no row yet, and returns the rows of all.
        told: called with a sentence before each part.
    """
    rows: dict[str, Row] = {}
    told(f"{contest.name}: tuning on validation samples")
    rows.update((row.id, row) for row in run(contest.tuning_trials))
    told(f"{contest.name}: the test")
    rows.update((row.id, row) for row in run(contest.test_trials(rows)))
    return result_of(contest, rows)


def result_of(contest: Contest, rows: Mapping[str, Row]) -> Result:
    """What rows say of a contest; `rows` may hold others, too."""
    scores = tuple(_score(contest, entrant, rows) for entrant in contest.entrants)
    trials = (*contest.tuning_trials, *contest.test_trials(rows))
    return Result(contest, scores, tuple(rows[t.id] for t in trials if t.id in rows))


def _score(contest: Contest, entrant: Entrant, rows: Mapping[str, Row]) -> Score:
    winners = {n: contest.winner(entrant, n, rows) for n in range(contest.trials)}
    chosen = {number: method for number, method in winners.items() if method is not None}
    errors = {}
    for number, method in chosen.items():
        row = rows.get(contest.test(method, number).id)
        if isinstance(row, Done):
            errors[number] = row.measure.factor * row.error
    return Score(entrant, chosen, errors, contest.trials)


def make_contests(
    data: Sequence[str],
    *,
    methods: Sequence[str] | None = None,
    settings: int = 6,
    trials: int = 10,
    validation: float = 0.2,
    samples: int | None = None,
    epochs: int | None = None,
) -> tuple[Contest, ...]:
    """The contests of a league, one for each data set.

    Args:
        data: names or paths as `kmixup.lab.data.load` takes them, or one of `SMALL`.
        methods: names of the registry, by default all that a data set allows.
        settings: tried by each method.
        trials: of each method.
        validation: the share of the training samples that is held out to tune on.
        samples: draw so many training samples in each trial.
        epochs: in the place of the data set's own.
    """
    entrants = make_entrants(methods or tuple(METHODS), settings)
    made = []
    for name in dict.fromkeys(data):
        base, shape, train, task = _subject(name, validation)
        if samples is not None:
            base, train = replace(base, samples=samples), min(samples, train)
        if epochs is not None:
            base = replace(base, protocol=replace(base.protocol, epochs=epochs))
        fitting = tuple(e for e in entrants if e.settings[0].entry.suits(shape, task))
        for method in methods or ():
            if method not in [entrant.name for entrant in fitting]:
                raise ValueError(
                    f"methods must apply to every data set, {method} does not apply to {name}: "
                    "leave it out, or run that data set apart"
                )
        contest = Contest(name, base, fitting, trials, validation, task)
        _check_size(contest, Holdout(validation).left(train))
        made.append(contest)
    return tuple(made)


def _subject(name: str, validation: float) -> tuple[Trial, tuple[int, ...], int, Task]:
    """A trial without mixing, the shape of an input, the training samples and the task."""
    plain = Method("erm")
    if name in SMALL:
        tables = PRESETS[name].tables
        table, clean = tables[0], any(other.measure == CLEAN for other in tables)
        entry, protocol = ENTRIES[table.data], table.protocol or Protocol()
        base = Trial(table.data, table.model, plain, protocol, samples=table.samples)
        base = replace(base, clean_statistics=clean)
        return base, entry.shape, table.samples or entry.train, "classes"
    if name in ENTRIES:
        entry, usual = ENTRIES[name], defaults_for(name)
        scaling = None if entry.paper is None else "paper"
        base = Trial(name, usual.model, plain, usual.protocol, scaling=scaling)
        return base, entry.shape, entry.train, "classes"
    own = load(name, holdout=Holdout(validation))  # leaves the test part alone
    usual, train = defaults_for(name, own), len(own.x_train) + len(own.x_test)
    return Trial(name, usual.model, plain, usual.protocol), own.shape, train, own.task


def _check_size(contest: Contest, left: int) -> None:
    """Refuse data with too few samples for the largest k, before anything is trained."""
    for trial in contest.tuning_trials:
        if trial.method.smallest > left:
            raise ValueError(
                f"{contest.name} must leave {trial.method.smallest} training samples for "
                f"{trial.method.label}, beside those held out it has {left}: take a larger data "
                "set, or leave the method out"
            )
