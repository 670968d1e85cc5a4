"""The table of the estimators follows from the folds that are published with it."""

import sys
from pathlib import Path

from sklearn.dummy import DummyClassifier

from benchmarks import estimators as bench

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results/estimators"


def test_the_report_and_the_page_follow_from_the_folds():
    text = (RESULTS / "folds.csv").read_text()
    folds = bench.read(text)
    assert bench.csv_of(folds) == text
    assert len(folds) == len(bench.DATA) * len(bench.estimators()) * bench.FOLDS
    assert {fold.estimator for fold in folds} == set(bench.estimators())
    table = bench.table_of(folds)
    assert (RESULTS / "report.md").read_text() == bench.report_of(folds)
    assert table in (ROOT / "docs/frameworks.md").read_text()


def test_the_command_writes_folds_and_a_report(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        bench,
        "estimators",
        lambda: {"guess": DummyClassifier(strategy="stratified", random_state=0)},
    )
    monkeypatch.setattr(
        sys, "argv", ["estimators", "--data", "wine", "--out", str(tmp_path / "deep")]
    )
    bench.main()
    folds = bench.read((tmp_path / "deep/folds.csv").read_text())
    assert [fold.fold for fold in folds] == [0, 1, 2, 3, 4]
    assert {fold.data for fold in folds} == {"wine"}
    assert (tmp_path / "deep/report.md").read_text() == bench.report_of(folds)
    assert "| guess |" in capsys.readouterr().out
