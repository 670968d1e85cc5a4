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
from sweeping import inline, table

from kmixup.lab.experiments.rows import NAME, read
from kmixup.lab.experiments.search import Setting, url_of
from kmixup.lab.experiments.tuning import STUDY, make_plan, tune_plan
from kmixup.lab.train.config import Method, Trial

SMALL = {"k": [1, 4], "alpha": [0.25, 1.0], "trials": 1, "tests": 2, "protocol": {"epochs": 2}}


COMMAND = (
    "tune --data iris --strategy grid --k 1 --k 4 --alpha 0.25 --alpha 1 --trials 1 "
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

    plan = make_plan("iris", strategy="grid", **SMALL)
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
