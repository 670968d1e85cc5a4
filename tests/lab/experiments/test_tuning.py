"""Searches on data sets of the lab: nothing of the test set is seen before their end."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace

import optuna
import pytest
from own_tables import mixed, regression
from sweeping import done_row, inline, table

from kmixup.lab.commands.tune import train_command
from kmixup.lab.evaluate.scores import Scores
from kmixup.lab.experiments.rows import NAME, read
from kmixup.lab.experiments.search import ERM, Setting, url_of
from kmixup.lab.experiments.tuning import STUDY, make_plan, tune_plan
from kmixup.lab.trial import Method, Trial

SMALL = {"k": [1, 4], "alpha": [0.25, 1.0], "trials": 1, "protocol": {"epochs": 2}}


COMMAND = (
    "tune --data iris --strategy grid --k 1 --k 4 --alpha 0.25 --alpha 1 --trials 1 "
    "--epochs 2 --workers 1 --quiet --out killed"
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

    plan = make_plan("iris", strategy="grid", **SMALL)
    whole = tune_plan(plan, inline("whole"))
    before = {row.id for row in read("killed")}
    assert before < {row.id for row in whole.rows}  # it was killed on the way
    resumed = tune_plan(plan, inline("killed"), study=tmp_path / "killed" / STUDY)
    assert resumed.search == whole.search
    assert table(resumed.rows) == table(whole.rows)
    lines = [json.loads(line) for line in rows.read_text().splitlines()[1:]]
    assert len({row["id"] for row in lines}) == len(lines)  # none was run twice
    study = optuna.load_study(study_name="k-mixup", storage=url_of(tmp_path / "killed" / STUDY))
    stored = {(trial.params["k"], trial.params["alpha"]): trial.value for trial in study.trials}
    assert len(stored) == len(study.trials)
    tried = {(t.setting.k, t.setting.alpha): t.mean for t in resumed.search.table}
    assert stored | {(1, 0.0): tried[1, 0.0]} == tried


# plans


def test_trials_of_a_search_share_the_division_and_differ_in_the_rest():
    plan = make_plan("iris", seed=3)
    first, second = (plan.trial(Setting(4, 1.0, "xi"), seed) for seed in (3, 4))
    assert first == Trial(
        "iris", "mlp-iris", Method("kmixup", 4, 1.0, "xi"), plan.base.protocol, 3,
        validation=0.2, split=3,
    )  # fmt: skip
    assert second == replace(first, seed=4)
    assert plan.trial(ERM, 3) == replace(first, method=Method("erm"))


@pytest.mark.parametrize(
    ("data", "setting", "more"),
    [
        ("iris", ERM, {}),
        ("iris", Setting(1, 0.25), {"seed": 3, "protocol": {"epochs": 7, "nesterov": True}}),
        ("iris", Setting(16, 4.0, "xi"), {"model": "mlp-cancer", "limit": 90, "scaling": "none"}),
        ("own.csv", Setting(8, 0.1234567), {"target": "churn", "drop": ("row", "city")}),
    ],
)
def test_the_printed_command_trains_exactly_the_chosen_setting(
    kmixup, here, monkeypatch, data, setting, more
):
    mixed(here / "own.csv", rows=90)
    plan = make_plan(data, k=[4], **more)
    trained = []
    monkeypatch.setattr("kmixup.lab.train.loop.train", lambda trial, **rest: trained.append(trial))
    with pytest.raises(AttributeError):  # there is no record
        kmixup(*shlex.split(train_command(plan.final(setting)))[1:])
    assert trained == [replace(plan.final(setting), digest=None)]
    assert trained[0].method == plan.trial(setting, 0).method


def test_the_usual_ks_are_those_that_batches_and_samples_allow():
    def ks(data, **more):
        return list(make_plan(data, **more).strategy.ks)

    assert ks("iris") == [1, 2, 4, 8, 16, 32]
    assert ks("iris", protocol={"batch_size": 10}) == [1, 2, 4, 8]
    assert ks("iris", limit=12) == [1, 2, 4, 8]
    assert ks("four-bars", size=20) == [1, 2, 4, 8, 16]
    assert ks("four-bars") == [1, 2, 4, 8, 16, 32]


def test_a_plan_may_choose_by_log_loss(here):
    plan = make_plan("iris", metric="log-loss", strategy="grid", k=[1, 4], alpha=[1], trials=2)

    def run(trials):
        """k = 4 has the lowest log-loss and the highest error."""
        for trial in trials:
            error, loss = (0.5, 0.1) if trial.method.k == 4 else (0.1, 0.5)
            yield done_row(trial, scores=Scores(error, loss + trial.seed / 100, 0.1))

    assert tune_plan(plan, run).search.winner == Setting(4, 1.0)
    assert tune_plan(replace(plan, metric="error"), run).search.winner == ERM
    regression(here / "rents.csv", rows=60)
    with pytest.raises(ValueError, match="metric must be error, as rents.csv has numbers to pre"):
        make_plan("rents.csv", metric="log-loss")


def test_an_invalid_plan_raises():
    with pytest.raises(ValueError, match="protocol.lr is not a setting"):
        make_plan("iris", protocol={"lr": 1})
    with pytest.raises(ValueError, match="split must be a whole number, at least 0, got -1"):
        Trial("iris", "mlp-iris", split=-1)
