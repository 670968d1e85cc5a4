"""Reference models: the same splits, held-out samples and budget as the networks."""

import json
from dataclasses import replace

import pytest
from own_tables import regression
from sklearn.linear_model import LogisticRegression

from kmixup.lab.experiments import references as module
from kmixup.lab.experiments.compare import make_contests
from kmixup.lab.experiments.references import MODELS, NAME, references
from kmixup.lab.train.setup import load_data


def contest_of(data="iris", **more):
    (contest,) = make_contests([data], **{"settings": 2, "trials": 2, **more})
    return contest


def test_a_linear_model_is_tuned_on_held_out_samples_and_tested_on_the_test_set(tmp_path):
    contest = contest_of()
    linear, boosting = references(contest, tmp_path)
    assert (linear.settings, boosting.settings) == (2, 2)
    for seed in range(2):
        trial = replace(contest.base, seed=seed)

        def score(trial, strength):
            data = load_data(trial)
            model = LogisticRegression(C=strength, max_iter=1000)
            model.fit(data.normalise(data.x_train), data.y_train)
            return 1 - model.score(data.normalise(data.x_test), data.y_test)

        held = replace(trial, validation=contest.validation)
        best = min((0.01, 1.0), key=lambda strength: score(held, strength))
        assert linear.chosen[seed] == f"strength {best:g}"
        assert linear.scores[seed] == pytest.approx(score(trial, best))


def test_scores_are_stored_and_not_computed_again(tmp_path, monkeypatch):
    contest = contest_of(trials=1)
    first = references(contest, tmp_path)
    monkeypatch.setattr(module, "load_data", None)
    assert references(contest, tmp_path) == first
    assert len(json.loads((tmp_path / NAME).read_text())) == len(MODELS)


def test_log_losses_and_regressions_have_references(here):
    found = references(contest_of(metric="log-loss", trials=1), here / "iris")
    assert all(0 < one.scores[0] < 2 for one in found)
    regression(here / "rents.csv", rows=90)
    contest = contest_of("rents.csv", trials=1)
    spread = load_data(contest.base).target_std
    assert all(0 < one.scores[0] < spread for one in references(contest, here / "rents"))


def test_images_have_none(tmp_path):
    contest = replace(contest_of(), is_table=False)
    assert references(contest, tmp_path) == ()
