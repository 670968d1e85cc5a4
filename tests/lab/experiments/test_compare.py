"""Tuning happens inside each trial, on validation samples, and the test comes after it."""

import json
from dataclasses import replace

import pytest
from sweeping import Fake, done_row, failed_row

from kmixup.lab.experiments.compare import (
    ALPHAS,
    BUDGETS,
    KS,
    compare,
    compared_in,
    make_contests,
    settings_of,
)
from kmixup.lab.experiments.driver import sweep
from kmixup.lab.experiments.rows import NAME, read
from kmixup.lab.methods import METHODS
from kmixup.lab.paper.presets import PRESETS, SMALL, small_experiments
from kmixup.lab.trial import Method

SMALLEST = {"methods": ["erm", "mixup", "kmixup", "regmixup"], "settings": 2, "trials": 2}


def contest_of(name="iris", **changes):
    (contest,) = make_contests([name], experiments=small_experiments(), **{**SMALLEST, **changes})
    return contest


def rows_with(contest, error):
    """Rows of all trials; `error` gives that of a trial, None for one that fails."""

    def run(trials):
        return [
            failed_row(trial) if (figure := error(trial)) is None else done_row(trial, figure)
            for trial in trials
        ]

    return compare(contest, run)


# settings


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", METHODS)
def test_every_method_but_erm_has_the_whole_budget(name, budget):
    settings = settings_of(name, budget)
    assert len(set(settings)) == len(settings) == (1 if name == "erm" else budget)
    assert [(m.k, m.alpha) for m in settings] == sorted((m.k, m.alpha) for m in settings)
    assert {method.name for method in settings} == {name}


def test_the_settings_are_those_of_the_protocol():
    def grid(name):
        settings = settings_of(name, 6)
        return sorted({m.k for m in settings}), sorted({m.alpha for m in settings})

    assert grid("mixup") == ([1], sorted(ALPHAS))
    assert grid("kmixup") == grid("nearest") == ([4, 16], [0.2, 1.0, 4.0])
    assert grid("manifold") == grid("regmixup") == ([1, 16], [0.2, 1.0, 4.0])
    assert grid("stackmix") == (sorted(KS), [1.0])
    assert settings_of("erm", 6) == (Method("erm"),)


# what is run


def test_methods_share_the_trials_and_each_trial_is_tuned_by_itself():
    contest = contest_of(settings=4)
    assert {trial.validation for trial in contest.tuning_trials} == {0.2}
    assert {trial.split for trial in contest.tuning_trials} == {None}
    seeds = {trial.method: set() for trial in contest.tuning_trials}
    for trial in contest.tuning_trials:
        seeds[trial.method].add(trial.seed)
    assert set(map(frozenset, seeds.values())) == {frozenset({0, 1})}
    assert Method("erm") not in seeds  # there is nothing to choose

    def error(trial):  # another alpha is best in each trial
        return abs(trial.method.alpha - (0.2, 1.0)[trial.seed])

    result = rows_with(contest, error)
    for score in result.scores[1:]:
        assert [score.chosen[t].rpartition("α ")[2] for t in (0, 1)] == ["0.2", "1"]
        assert score.complete
    for row in result.tested:
        assert row.trial == replace(contest.base, method=row.trial.method, seed=row.trial.seed)


def test_failed_settings_cannot_win_and_a_method_without_any_is_incomplete():
    contest = contest_of()

    def error(trial):
        if trial.method.name == "regmixup" or trial.method.alpha == 0.2:
            return None
        return 0.1

    scores = {score.name: score for score in rows_with(contest, error).scores}
    assert scores["mixup"].chosen[0] == "α 1"
    assert scores["mixup"].complete
    assert not scores["regmixup"].complete
    assert (scores["regmixup"].chosen, scores["regmixup"].mean) == ({}, None)
    assert scores["erm"].mean == pytest.approx(10.0)


def test_no_setting_wins_before_all_have_ended():
    contest = contest_of(settings=4)
    (mixup,) = (contender for contender in contest.contenders if contender.name == "mixup")
    rows = {trial.id: done_row(trial, 0.1) for trial in contest.tuning(mixup, 0)}
    assert contest.chosen(mixup, rows) == {0: mixup.settings[0]}
    for trial in contest.tuning(mixup, 0):
        others = {id: row for id, row in rows.items() if id != trial.id}
        assert contest.chosen(mixup, others) == {}


def test_data_and_protocol_are_those_of_the_published_tables():
    for name in SMALL:
        contest = contest_of(name, methods=["erm", "mixup"])
        published = PRESETS[name].trials(trials=1)
        plain = next(trial for trial in published if trial.method == Method("erm"))
        assert replace(plain, shifts=()) == contest.base


def test_methods_that_need_images_take_part_where_there_are_any():
    def names(data):
        (contest,) = make_contests([data], methods=None, experiments=small_experiments())
        return {contender.name for contender in contest.contenders}

    on_images = {name for name, entry in METHODS.items() if entry.needs_images}
    assert {"cutmix", "puzzlemix"} < on_images
    assert names("mnist-1000") - names("iris") == on_images
    assert "cmixup" not in names("mnist-1000")


def test_an_invalid_comparison_raises():
    with pytest.raises(ValueError, match="trials must be a whole number, at least 1, got 0"):
        contest_of(trials=0)


# going on


def run_on(folder, engine):
    return lambda trials: sweep(trials, folder, engine=engine).rows


def test_a_stopped_comparison_resumes(tmp_path):
    contest, engine = contest_of(), Fake()

    class Stopping(Fake):
        def rows(self, units, **more):
            yield next(super().rows(units, **more))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(contest, run_on(tmp_path, Stopping()))
    before = {row.id for row in read(tmp_path)}
    assert before
    resumed = compare(contest, run_on(tmp_path, engine))
    assert before.isdisjoint(engine.ran)
    assert resumed == compare(contest, run_on(tmp_path, Fake()))
    assert compared_in(contest, {row.id: row for row in read(tmp_path)}) == resumed
    lines = (tmp_path / NAME).read_text().splitlines()[1:]
    assert len({json.loads(line)["id"] for line in lines}) == len(lines)


def test_more_methods_train_what_is_new(tmp_path):
    first, second = Fake(), Fake()

    compare(contest_of(methods=["erm", "mixup"]), run_on(tmp_path, first))
    compare(contest_of(), run_on(tmp_path, second))
    names = {row.id: row.trial.method.name for row in read(tmp_path)}
    assert {names[ran] for ran in second.ran} == {"kmixup", "regmixup"}
