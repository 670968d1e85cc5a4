"""`kmixup reproduce` as its users meet it."""

import re

import pytest
from sweeping import Inline

from kmixup.lab.commands import sweep as command
from kmixup.lab.paper import PRESETS
from kmixup.lab.store import read

SHRUNK = ["--trials", 2, "--epochs", 2, "--k", 1, "--k", 16, "--alpha", 1, "--alpha-rule", "same"]


@pytest.fixture
def inline(monkeypatch):
    """Units run in this process."""
    monkeypatch.setattr(command, "Local", lambda *workers: Inline())


def test_help_teaches_and_lists_every_experiment_with_its_size(kmixup):
    code, out, _ = kmixup("reproduce", "--help")
    assert code == 0
    assert "kmixup reproduce toy\n" in out
    for name, preset in PRESETS.items():
        assert re.search(rf"^ +{name} +{preset.networks:,}$", out, re.M)


@pytest.mark.slow
def test_an_experiment_ends_with_tables_a_verdict_and_its_page(kmixup, here, inline):
    code, out, err = kmixup("reproduce", "toy", *SHRUNK)
    assert code == 0
    assert out.startswith(PRESETS["toy"].claim)
    assert "it was shrunk: 2 of 5 trials; 2 of 200 epochs; k = 1, 16 only; alpha = 1 only." in out
    assert "Swiss Roll, the same alpha at every k" in out
    assert out.endswith("18 trials, 18 of them run now: out/toy\npage: out/toy/report.html\n")
    assert "18 of 18 trials" in err
    page = (here / "out/toy/report.html").read_text()
    assert "2 of 200 epochs" in page
    assert f"kmixup reproduce toy {' '.join(map(str, SHRUNK))}" in page
    assert (here / "out/toy/report.md").is_file()
    assert (here / "out/toy/cells.csv").is_file()

    code, again, _ = kmixup("reproduce", "toy", *SHRUNK)  # all is there: it is drawn anew
    assert code == 0
    assert "18 trials, 0 of them run now" in again
    assert (here / "out/toy/report.html").read_text() == page


def test_one_data_set_of_an_experiment(kmixup, here, inline):
    code, out, _ = kmixup("reproduce", "uci", "--data", "iris", *SHRUNK)
    assert code == 0
    assert re.search(r"Iris, the same alpha at every k", out)
    assert {row["trial"]["data"] for row in read(here / "out/uci")} == {"iris"}


def test_a_dry_run_trains_nothing(kmixup, here):
    code, out, _ = kmixup("reproduce", "uci", "--data", "iris", "--dry-run", *SHRUNK)
    assert code == 0
    assert "iris  mlp-iris  kmixup k=16 alpha=1  × 2" in out
    assert re.search(r"about \d+ s on", out)
    assert not (here / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("uic", "there is no experiment 'uic': did you mean uci?"),
        ("toy --alpha-rule best", "alpha-rule must be one of same, xi, both, got 'best'"),
        ("uci --data mnist", "data of uci must be among abalone, .*, got 'mnist'"),
        ("toy --trials 0", "trials must be a whole number, at least 1, got 0"),
        ("toy --k 0", "k must be a whole number, at least 1, got 0"),
        ("toy --k 500", "batch_size must be at least k = 500"),
        ("cifar10 --quick", "cifar10 lacks .*: run `kmixup data fetch cifar10`"),
        ("toy --engine slurm", "engine must be local or ray, got 'slurm'"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_with_2(kmixup, here, words, message):
    code, _, err = kmixup("reproduce", *words.split())
    assert code == 2
    assert re.match(f"kmixup: {message}", err)
    assert err.count("\n") == 1
    assert not list(here.glob("out/*/*.html"))


def test_rows_that_are_there_need_no_data(kmixup, here, inline, monkeypatch):
    words = ("reproduce", "uci", "--data", "iris", *SHRUNK)
    assert kmixup(*words)[0] == 0
    monkeypatch.setattr(command, "at_hand", lambda *name, **limit: False)
    code, out, _ = kmixup(*words)
    assert (code, "6 trials, 0 of them run now" in out) == (0, True)
