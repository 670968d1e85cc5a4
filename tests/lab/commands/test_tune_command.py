"""`kmixup tune` as its users meet it: what it prints, and one sentence for each mistake."""

import re

import pytest
from sweeping import Fake, Inline, done_row, failed_row

from kmixup.lab.commands import running as command
from kmixup.lab.experiments.rows import read

OPTIONS = "--strategy simple --k 1 --k 4 --trials 2 --tests 2 --epochs 2"
WORDS = ["--data", "iris", *OPTIONS.split()]


@pytest.fixture(autouse=True)
def _here(monkeypatch):
    monkeypatch.setattr(command, "Local", lambda *workers: Inline())


def test_help_teaches_by_example(kmixup):
    code, out, _ = kmixup("tune", "--help")
    assert code == 0
    for name in ("simple", "two-step", "grid", "halving", "tpe"):
        assert f"  {name} " in out
    assert "kmixup tune --data mnist --epochs 10 --budget 30m" in out
    assert "kmixup tune --data table.csv --target species --model my_package.nets:small" in out
    assert "kmixup tune --data iris " in kmixup("--help")[1]


@pytest.mark.slow
def test_a_search_ends_with_a_test_and_a_page_and_the_next_has_nothing_to_do(kmixup, here):
    code, out, err = kmixup("tune", *WORDS)
    folder = here / "out" / "tune-iris-simple"
    assert code == 0
    assert "k-mixup: validation error in per cent\n" in out
    assert "It ran 4 trials of k-mixup and as many of mixup, the whole strategy." in " ".join(
        out.split()
    )
    assert "k-mixup − mixup" in out
    assert "mixup − ERM" in out
    summary, page = out.splitlines()[-2:]
    total = len(read(folder))
    assert summary == f"{total} trials, {total} of them run now: out/tune-iris-simple"
    assert page == "page: out/tune-iris-simple/tune.html"
    assert err.startswith("the search of k-mixup, on validation samples\n4 of 4 trials, ")
    assert "best so far: " in err
    again, out, _ = kmixup("tune", *WORDS, "--quiet")
    assert again == 0
    assert f"{total} trials, 0 of them run now" in out
    text = (folder / "tune.html").read_text()
    assert "kmixup tune --data iris --strategy simple" in text


@pytest.mark.slow
def test_a_table_of_ones_own_is_searched(kmixup, here):
    rows = [f"{x},{-x},{'up' if x > 0 else 'down'}" for x in range(-30, 30)]
    (here / "table.csv").write_text("\n".join(["a,b,way", *rows]))
    code, out, _ = kmixup("tune", "--data", "table.csv", "--target", "way", *WORDS[2:], "--quiet")
    assert code == 0
    assert "page: out/tune-table.csv-simple/tune.html" in out
    line = out.partition("To train a network with it:\n  kmixup ")[2].partition("\n")[0]
    assert line.startswith("train --data table.csv --target way ")
    assert kmixup(*line.split(), "--out", "run")[0] == 0  # what is printed works


def test_a_dry_run_prints_the_stages_and_an_estimate_and_writes_nothing(kmixup, here):
    words = "--data iris --k 1 --k 2 --k 4 --budget 29 --tests 3 --epochs 2 --dry-run"
    code, out, err = kmixup("tune", *words.split())
    assert (code, err) == (0, "")
    *lines, last = out.splitlines()
    assert lines == [
        "iris  mlp-iris  two-step",
        "alpha of mixup: 5 settings × 5 of 5 seeds",
        "k at that xi: 2 settings × 2 of 5 seeds",
        "mixup: as many trials, 29, some of which may be the same",
        "ERM: 2 seeds",
        "test: 3 methods × 3 seeds",
        "about 44 trials, as the search goes",
    ]
    assert re.fullmatch(
        r"about [\d.]+ (s|min) on 1 worker \(from a few steps on this machine\)", last
    )
    assert not (here / "out").exists()


def test_a_dry_run_with_a_budget_of_minutes_measures_first(kmixup, here):
    words = "--data iris --strategy simple --k 1 --k 2 --budget 60m --epochs 2 --dry-run"
    code, out, _ = kmixup("tune", *words.split())
    assert code == 0
    assert "every setting: 2 settings × 5 of 5 seeds" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "--strategy bayes",
            "must be one of simple, two-step, grid, halving, tpe, got 'bayes",
        ),
        ("--budget lots", "budget must be a number of trials or of minutes, e.g. 60 or 30m, got"),
        ("--budget 9", "budget must be at least 10 trials for one seed of 10 settings, got 9 tri"),
        ("--budget 9 --dry-run", "raise it, or use the strategy simple, which needs 6 trials"),
        ("--k 90", "k must be at most 80, the training samples that validation leaves of iris"),
        ("--k 64", "--batch-size must be at least k = 64"),
        ("--validation 0", "validation must be a share between 0 and 1, e.g. 0.2, got 0.0"),
        ("--validation 0.999", "--validation 0.999 must leave a sample to train on, there are 100"),
        ("--trials 0", "trials must be a whole number, at least 1, got 0"),
        ("--tests 0", "tests must be a whole number, at least 1, got 0"),
        ("--alpha-rule same", '--alpha-rule must be "xi" in two steps, got "same"'),
        ("--engine slurm", "engine must be local or ray, got 'slurm'"),
        ("--device tpu --quiet", "device must be one of auto, cpu, cuda, mps, got 'tpu'"),
        ("--seed -1", "seed must be a whole number, 0 or more, got -1"),
        ("--size 5", "size is for toys, iris has a size of its own"),
        (
            "--scaling log",
            "scaling must be one of paper, standard, minmax, symmetric, global, cifar, none",
        ),
        ("--model lenett", "did you mean lenet?"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(kmixup, here, words, message):
    code, out, err = kmixup("tune", "--data", "iris", "--quiet", *words.split())
    assert (code, out) == (2, "")
    assert err.startswith("kmixup: ")
    assert message in err
    assert err.count("\n") == 1


def test_unknown_data_are_a_mistake(kmixup):
    code, _, err = kmixup("tune", "--data", "irsi")
    assert (code, "did you mean iris" in err) == (2, True)


def test_ctrl_c_says_how_to_go_on(kmixup, monkeypatch):
    class Stopped(Fake):
        def rows(self, units, **more):
            raise KeyboardInterrupt
            yield

    monkeypatch.setattr(command, "Local", lambda *workers: Stopped())
    code, _, err = kmixup("tune", "--data", "iris", "--quiet")
    assert code == 130
    assert err == (
        "stopped; what has ended is in out/tune-iris-two-step, go on with\n"
        "  kmixup tune --data iris --quiet\n"
    )


class Failing(Fake):
    """Rows as of a training, failed where `fails` says so of a trial."""

    def __init__(self, fails):
        super().__init__()
        self.fails = fails

    def row(self, trial):
        return failed_row(trial) if self.fails(trial) else done_row(trial, seconds=1.0, alpha=1.0)


def test_failed_trials_are_counted_and_the_rest_is_shown(kmixup, here, monkeypatch):
    engine = Failing(lambda trial: trial.method.k == 4 and trial.validation is not None)
    monkeypatch.setattr(command, "Local", lambda *workers: engine)
    code, out, err = kmixup("tune", *WORDS, "--quiet")
    assert code == 1
    assert "2 trials failed, the same command tries them again:\n  2 × ValueError: no\n" in err
    assert re.search(r"^\W*k-mixup\W+k = 1, alpha 1\b", out, re.M)  # a failed setting cannot win
    text = (here / "out" / "tune-iris-simple" / "tune.html").read_text()
    assert "2 failed" in text
    assert "kmixup k=4 alpha=1, seed 0: ValueError: no" in text


def test_a_search_that_fails_altogether_has_no_page(kmixup, here, monkeypatch):
    monkeypatch.setattr(command, "Local", lambda *workers: Failing(lambda trial: True))
    code, out, err = kmixup("tune", *WORDS, "--quiet")
    assert code == 1
    assert out == "4 trials, 4 of them run now: out/tune-iris-simple\n"
    assert err.startswith("no setting can win: every one had a trial that failed\n4 trials failed")
    assert not (here / "out" / "tune-iris-simple" / "tune.html").exists()
