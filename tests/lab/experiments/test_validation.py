"""Settings are chosen on validation samples: nothing of the test set is seen before."""

from dataclasses import replace

import pytest
from sealing import Sealed, own
from sweeping import inline

from kmixup.lab.experiments.compare import compare, make_contests
from kmixup.lab.experiments.estimate import estimate
from kmixup.lab.experiments.rows import Failed, failed_of
from kmixup.lab.experiments.search import ERM
from kmixup.lab.experiments.tuning import make_plan, tune_plan

FEW = {"k": [1, 4], "alpha": [0.25, 1.0], "trials": 1, "protocol": {"epochs": 2}}


def judge(data, folder, on_status=print):
    methods, protocol = ["erm", "mixup", "kmixup", "regmixup"], {"epochs": 2}
    (contest,) = make_contests([data], methods=methods, settings=2, trials=2, protocol=protocol)
    return compare(contest, inline(folder), on_status)


def scores_of(result, *, tested):
    """The scores of all trials of a kind, without the digests of their data."""
    return {
        replace(row.trial, digest=None): row.scores
        for row in result.rows
        if (row.trial.validation is None) == tested
    }


@pytest.mark.slow
def test_other_test_samples_change_nothing_but_the_test(tmp_path, monkeypatch):
    results = []
    for number, shift in enumerate((0.0, 50.0)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        results.append(judge(own("own.npz", shift=shift), "rows"))
    first, second = (scores_of(result, tested=False) for result in results)
    assert first == second
    first, second = (scores_of(result, tested=True) for result in results)
    assert first.keys() == second.keys()
    assert all(first[trial] != second[trial] for trial in first)


@pytest.mark.slow
def test_a_search_reads_no_test_sample(sealed, tmp_path):
    plan = make_plan(sealed, strategy="grid", **FEW)
    tuned = tune_plan(plan, inline(tmp_path / "rows"))
    assert failed_of(tuned.rows) == []
    assert {row.trial.validation for row in tuned.rows} == {0.2}


@pytest.mark.slow
def test_no_test_sample_is_read_before_the_final_test(sealed, tmp_path, monkeypatch):
    def open_in_the_end(sentence):
        if "the test" in sentence:
            monkeypatch.setattr(Sealed, "opened", True)

    result = judge(sealed, tmp_path / "rows", open_in_the_end)
    assert failed_of(result.rows) == []
    assert scores_of(result, tested=True)


def test_the_seal_holds(sealed, tmp_path):
    plan = make_plan(sealed, **FEW)
    assert estimate([plan.trial(ERM, 0)]).seconds > 0
    (row, *_) = inline(tmp_path / "rows")([plan.final(ERM)])
    assert isinstance(row, Failed)
    assert "a test sample was read" in row.reason
