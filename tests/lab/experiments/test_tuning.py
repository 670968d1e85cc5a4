"""Searches on data sets of the lab: nothing of the test part is seen before their end."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import optuna
import pytest
from sweeping import done_row, failed_row, inline, table

from kmixup.lab.experiments.budget import Budget
from kmixup.lab.experiments.rows import NAME, read
from kmixup.lab.experiments.search import Setting, url_of
from kmixup.lab.experiments.tuning import STUDY, Leader, make_plan, seconds_of, tune_plan
from kmixup.lab.train.config import Method, Trial

SMALL = {"k": [1, 4], "alpha": [0.25, 1.0], "trials": 1, "tests": 2, "protocol": {"epochs": 2}}


COMMAND = (
    "tune --data iris --strategy halving --k 1 --k 4 --alpha 0.25 --alpha 1 --trials 1 "
    "--tests 2 --epochs 2 --workers 1 --quiet --out killed"
)


@pytest.mark.slow
def test_killed_and_resumed_a_search_ends_with_the_same_rows_and_winner(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    driver = subprocess.Popen(
        [sys.executable, "-m", "kmixup", *COMMAND.split()], stdout=subprocess.DEVNULL
    )
    rows = tmp_path / "killed" / NAME
    while not (rows.exists() and '"status"' in rows.read_text()):
        assert driver.poll() is None
        time.sleep(0.01)
    os.kill(driver.pid, signal.SIGKILL)
    assert driver.wait() == -signal.SIGKILL

    plan = make_plan("iris", strategy="halving", **SMALL)
    whole = tune_plan(plan, inline("whole"))
    before = {row.id for row in read("killed")}
    assert before < {row.id for row in whole.rows}  # it was killed on the way
    resumed = tune_plan(plan, inline("killed"), study=tmp_path / "killed" / STUDY)
    assert (resumed.kmixup.winner, resumed.mixup.winner) == (
        whole.kmixup.winner,
        whole.mixup.winner,
    )
    assert table(resumed.rows) == table(whole.rows)
    lines = [json.loads(line) for line in rows.read_text().splitlines()[1:]]
    assert len({row["id"] for row in lines}) == len(lines)  # none was run twice
    for name, searched in (("k-mixup", resumed.kmixup), ("mixup", resumed.mixup)):
        study = optuna.load_study(study_name=name, storage=url_of(tmp_path / "killed" / STUDY))
        stored = {(trial.params["k"], trial.params["alpha"]): trial.value for trial in study.trials}
        assert len(stored) == len(study.trials)
        assert stored == {(t.setting.k, t.setting.alpha): t.mean for t in searched.table}


# plans


def test_trials_of_a_search_share_the_division_and_differ_in_the_rest():
    plan = make_plan("iris", seed=3)
    first, second = (plan.trial(Setting(4, 1.0, "xi"), seed) for seed in (3, 4))
    assert first == Trial(
        "iris", "mlp-iris", Method("kmixup", 4, 1.0, "xi"), plan.base.protocol, 3,
        validation=0.2, split=3,
    )  # fmt: skip
    assert second == replace(first, seed=4)
    tests = plan.test_trials(Setting(4, 1.0, "xi"))
    assert tests[0] == replace(first, seed=10_003, validation=None)
    assert [trial.seed for trial in tests] == list(range(10_003, 10_013))
    assert plan.test_trials(None)[0].method == Method("erm")


def test_the_usual_ks_are_those_that_batches_and_samples_allow():
    def ks(data, **more):
        return list(make_plan(data, **more).strategy.ks)

    assert ks("iris") == [1, 2, 4, 8, 16, 32]
    assert ks("iris", protocol={"batch_size": 10}) == [1, 2, 4, 8]
    assert ks("iris", limit=12) == [1, 2, 4, 8]
    assert ks("four-bars", size=20) == [1, 2, 4, 8, 16]
    assert ks("four-bars") == [1, 2, 4, 8, 16, 32]


def test_an_invalid_plan_raises():
    with pytest.raises(ValueError, match="protocol.lr is not a setting"):
        make_plan("iris", protocol={"lr": 1})
    with pytest.raises(ValueError, match="split must be a whole number, at least 0, got -1"):
        Trial("iris", "mlp-iris", split=-1)


# what rows say


def rows_of(trials, error=0.1, seconds=1.0):
    return [done_row(trial, error, seconds=seconds) for trial in trials]


def test_the_time_of_a_stage_is_that_of_its_workers():
    trials = [Trial("iris", "mlp-iris", seed=seed) for seed in range(30)]
    rows = {row.id: row for row in rows_of(trials)}
    assert seconds_of(trials, rows, 1) == 30
    assert seconds_of(trials, rows, 2) == 20  # a fleet of twenty is not divided
    single = [Trial("mnist", "lenet", seed=seed) for seed in range(4)]
    rows = {row.id: row for row in rows_of(single)}
    assert seconds_of(single, rows, 2) == 2
    rows[single[0].id] = failed_row(single[0])
    assert seconds_of(single, rows, 1) == 3


def test_a_budget_of_minutes_counts_the_seconds_in_rows():
    plan = make_plan("iris", strategy="simple", k=[1, 2], tests=1)
    stages = []

    def run(trials):
        stages.append(len(trials))
        return rows_of(trials, seconds=10.0)

    first = tune_plan(plan, run, budget=Budget.read("1m"), guess=lambda: 5.0)
    again = tune_plan(plan, run, budget=Budget.read("1m"), guess=lambda: 0.0)
    assert first.kmixup == again.kmixup
    assert stages[:3] == [2, 2, 2]  # three seeds of two settings, at 10 seconds each
    assert first.kmixup.seconds == 60
    assert first.mixup.trials == 6


def test_the_leader_is_the_best_of_those_with_the_most_seeds():
    plan = make_plan("iris")
    leader = Leader(plan)

    def trial(k, seed, **more):
        return replace(plan.trial(Setting(k, 1.0), seed), **more)

    assert leader([]) == "none has ended well so far"
    assert leader([failed_row(trial(8, 0))]) == "none has ended well so far"
    leader(rows_of([trial(2, 0), trial(2, 1)], 0.2))
    leader(rows_of([trial(4, 0)], 0.0))
    best = "best so far: kmixup k=2 alpha=1 20.00% over 2 seeds"
    assert leader(rows_of([trial(4, 0, validation=None)], 0.0)) == best
    assert leader(rows_of([trial(4, 5, limit=50)], 0.0)) == best
    assert leader(rows_of([trial(4, 1)], 0.1)) == (
        "best so far: kmixup k=4 alpha=1 5.00% over 2 seeds"
    )
