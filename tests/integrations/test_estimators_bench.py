"""The table of the estimators follows from the folds that are published with it."""

import sys
from pathlib import Path

import pandas as pd
from sklearn.dummy import DummyClassifier

from benchmarks import estimators as bench

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results/estimators"


def test_the_report_follows_from_the_folds():
    folds = pd.read_csv(RESULTS / "folds.csv")
    names = set(bench.estimators("wine"))
    assert set(folds["estimator"]) == names
    assert len(folds) == len(bench.LOADERS) * len(names) * bench.FOLDS
    assert (RESULTS / "report.md").read_text() == bench.report_of(folds)


def test_the_command_writes_folds_and_a_report(tmp_path, monkeypatch, capsys):
    guess = DummyClassifier(strategy="stratified", random_state=0)
    monkeypatch.setattr(bench, "estimators", lambda data: {"guess": guess})
    monkeypatch.setattr(
        sys, "argv", ["estimators", "--data", "wine", "--out", str(tmp_path / "deep")]
    )
    bench.main()
    folds = pd.read_csv(tmp_path / "deep/folds.csv")
    assert folds["fold"].tolist() == [0, 1, 2, 3, 4]
    assert (tmp_path / "deep/report.md").read_text() == bench.report_of(folds)
    assert "| guess |" in capsys.readouterr().out
