"""`kmixup tune` as its users meet it: what it prints, and one sentence for each mistake."""

import re

import pytest
from sweeping import Fake, done_row, failed_row

from kmixup.lab.experiments.rows import read

OPTIONS = "--strategy simple --k 1 --k 4 --trials 2 --tests 2 --epochs 2"
WORDS = ["iris", *OPTIONS.split()]


pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.slow
def test_a_search_ends_with_a_test_and_a_page_and_the_next_has_nothing_to_do(kmixup, here):
    code, out, err = kmixup("tune", *WORDS)
    folder = here / "out" / "tune-iris-simple"
    assert code == 0
    assert "k-mixup: validation error in per cent\n" in out
    assert "Strategy simple: 4 trials of k-mixup, 4 of mixup." in out
    assert "k-mixup − mixup" in out
    assert "mixup − ERM" in out
    summary, page = out.splitlines()[-2:]
    total = len(read(folder))
    assert summary == f"{total} trials, {total} of them run now: out/tune-iris-simple"
    assert page == "page: out/tune-iris-simple/tune.html"
    assert err.startswith("the search of k-mixup, on validation samples\n4 of 4 trials, ")
    again, out, _ = kmixup("tune", *WORDS, "--quiet")
    assert again == 0
    assert f"{total} trials, 0 of them run now" in out
    text = (folder / "tune.html").read_text()
    assert "kmixup tune iris --strategy simple" in text


@pytest.mark.slow
def test_your_own_table_is_searched(kmixup, here):
    rows = [f"{x},{-x},{'up' if x > 0 else 'down'}" for x in range(-30, 30)]
    (here / "table.csv").write_text("\n".join(["a,b,way", *rows]))
    code, out, _ = kmixup("tune", "table.csv", "--target", "way", *WORDS[1:], "--quiet")
    assert code == 0
    assert "page: out/tune-table.csv-simple/tune.html" in out
    line = out.partition("To train a network with it:\n  kmixup ")[2].partition("\n")[0]
    assert line.startswith("train table.csv --epochs 2 --target way ")
    assert kmixup(*line.split(), "--out", "run")[0] == 0  # what is printed works


class Failing(Fake):
    """Rows as of a training, failed where `fails` says so of a trial."""

    def __init__(self, fails):
        super().__init__()
        self.fails = fails

    def row(self, trial):
        return failed_row(trial) if self.fails(trial) else done_row(trial, seconds=1.0, alpha=1.0)


def test_failed_trials_are_counted_and_the_rest_is_shown(kmixup, here, engine):
    engine(Failing(lambda trial: trial.method.k == 4 and trial.validation is not None))
    code, out, err = kmixup("tune", *WORDS, "--quiet")
    assert code == 1
    assert "2 trials failed:\n  2 × ValueError: no\n" in err
    assert re.search(r"^\W*k-mixup\W+k=1 alpha=1\b", out, re.M)  # a failed setting cannot win
    text = (here / "out" / "tune-iris-simple" / "tune.html").read_text()
    assert "2 failed" in text
    assert "kmixup k=4 alpha=1, seed 0: ValueError: no" in text


def test_a_search_that_fails_altogether_has_no_page(kmixup, here, engine):
    engine(Failing(lambda trial: True))
    code, out, err = kmixup("tune", *WORDS, "--quiet")
    assert code == 1
    assert out == "4 trials, 4 of them run now: out/tune-iris-simple\n"
    assert err.startswith("no setting can win: every one had a trial that failed\n4 trials failed")
    assert not (here / "out" / "tune-iris-simple" / "tune.html").exists()
