"""`kmixup compare` as its users meet it: what it prints, and one sentence for each mistake."""

import re

import pytest
from sweeping import Fake, done_row, failed_row

from kmixup.lab.experiments.rows import Store, read

SMALLEST = ["--settings", "2", "--trials", "3", "--epochs", "1"]
ALL = ["--methods", "all"]


pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.slow
def test_all_methods_end_with_a_page_and_are_not_run_twice(kmixup, here):
    code, out, err = kmixup("compare", "iris", "cancer", *ALL, *SMALLEST)
    assert code == 0
    assert "mean rank" in out
    assert re.search(r"^Best mean rank on 2 data sets: .*\.$", out, re.M)
    total = len(read(here / "out" / "compare"))
    assert out.splitlines()[-2:] == [
        f"{total} trials, {total} of them run now: out/compare",
        "page: out/compare/compare.html",
    ]
    assert err.startswith("iris: tuning on validation samples\n")
    assert "cancer: the test\n" in err
    report = (here / "out/compare/report.md").read_text()
    again, out, err = kmixup("compare", "iris", "cancer", *ALL, *SMALLEST)
    assert again == 0
    assert f"{total} trials, 0 of them run now" in out
    assert "gradient boosting" in out
    assert "gradient boosting" not in err  # its scores are stored
    assert (here / "out/compare/report.md").read_text() == report
    assert (
        "kmixup compare iris cancer --methods all"
        in (here / "out/compare/compare.html").read_text()
    )


def test_what_has_ended_so_far_is_reported_without_any_training(kmixup, here, engine):
    words = SMALLEST
    engine(Fake())
    kmixup("compare", "iris", *words, "--quiet")
    references = (here / "out/compare/references.json").read_bytes()
    code, _, err = kmixup("compare", "cancer", *words, "--so-far")
    assert code == 2
    assert "--out must hold rows of these trials, out/compare has none: run them without" in err
    rows = (here / "out/compare/rows.jsonl").read_bytes()
    with Store(here / "out/compare"):  # as if another process were at it
        code, out, err = kmixup("compare", "iris", "cancer", *words, "--so-far")
    total = len(read(here / "out" / "compare"))
    assert code == 0
    assert "tuning" not in err
    assert "linear model, trial" not in err  # reference models are not fitted either
    assert (here / "out/compare/references.json").read_bytes() == references
    assert "Not ranked, trials are missing: ERM, mixup and k-mixup." in out
    assert f"{total} trials, 0 of them run now: out/compare\n" in out
    assert (here / "out/compare/rows.jsonl").read_bytes() == rows
    report = (here / "out/compare/report.md").read_text()
    assert f"```\n{' '.join(['kmixup compare iris cancer', *words])}\n```" in report


def test_failed_trials_are_counted_and_the_rest_is_shown(kmixup, here, engine):
    class Failing(Fake):
        def row(self, trial):
            fails = trial.method.name == "kmixup" and trial.validation is not None
            return failed_row(trial) if fails else done_row(trial, 0.1 + trial.seed / 100)

    engine(Failing())
    code, out, err = kmixup("compare", "iris", *SMALLEST, "--quiet")
    assert code == 1
    assert "Not ranked, trials are missing: k-mixup." in out
    assert "6 trials failed:\n  6 × ValueError: no\n" in err
    assert "ValueError: no" in (here / "out/compare/compare.html").read_text()


def test_an_unknown_method_names_the_option(kmixup):
    code, _, err = kmixup("compare", "iris", "--methods", "erm,mixupp")
    assert code == 2
    assert "--methods must be a known name or package.module:name, got 'mixupp'" in err
    assert "did you mean 'mixup'" in err
