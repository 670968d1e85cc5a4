"""`kmixup reproduce` as its users meet it."""

import re
from pathlib import Path
from statistics import fmean, stdev

import pytest

from kmixup.lab.commands import execution
from kmixup.lab.experiments.rows import read
from kmixup.lab.paper.presets import PRESETS

ROOT = Path(__file__).parents[3]
SHRUNK = ["--trials", 2, "--epochs", 2, "--k", 1, "--k", 16, "--alpha", 1, "--alpha-rule", "same"]


def test_a_quick_run_has_as_many_trials_as_a_verdict_needs():
    for preset in PRESETS.values():
        assert preset.quick.trials >= 4


@pytest.mark.slow
def test_an_experiment_ends_with_tables_a_verdict_and_its_page(kmixup, here, engine):
    code, out, err = kmixup("reproduce", "toy", *SHRUNK)
    assert code == 0
    assert " ".join(out.split()).count(PRESETS["toy"].claim) == 1
    assert "experiment: 2 of 5 trials; 2 of 200 epochs; k = 1, 16 only; alpha = 1 only.\n" in out
    assert "Ours, same alpha at every k" in out
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


def test_one_data_set_of_an_experiment(kmixup, here, engine):
    code, out, _ = kmixup("reproduce", "uci", "--data", "iris", *SHRUNK)
    assert code == 0
    assert re.search(r"^Iris$", out, re.M)
    assert "Ours, same alpha at every k" in out
    assert {row.trial.data for row in read(here / "out/uci")} == {"iris"}


def test_a_dry_run_trains_nothing(kmixup, here):
    code, out, _ = kmixup("reproduce", "uci", "--data", "iris", "--dry-run", *SHRUNK)
    assert code == 0
    assert out.startswith("6 trials. This is not the full experiment: 2 of 20 trials; ")
    assert re.search(r"about \d+ s on", out)
    assert not (here / "out").exists()


@pytest.mark.parametrize(
    ("name", "extent"),
    [("toy", "Trials, epochs, k and alpha are the paper's."), ("family", "Not in the paper.")],
)
def test_what_is_not_in_the_paper_is_not_called_its_protocol(kmixup, monkeypatch, name, extent):
    monkeypatch.setattr(
        "kmixup.lab.commands.reproduce.preview", lambda headline, *more: print(headline)
    )
    _, out, _ = kmixup("reproduce", name, "--dry-run")
    assert out == f"{len(PRESETS[name].trials())} trials. {extent}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("toy --k 500", "batch_size must be at least 500 for k = 500"),
        ("cifar10 --quick", "cifar10 needs .*: run `kmixup data fetch cifar10`"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_with_2(kmixup, here, words, message):
    code, _, err = kmixup("reproduce", *words.split())
    assert code == 2
    assert re.match(f"kmixup: {message}", err)
    assert err.count("\n") == 1
    assert not list(here.glob("out/*/*.html"))


def test_rows_that_are_there_need_no_data(kmixup, here, engine, monkeypatch):
    words = ("reproduce", "uci", "--data", "iris", *SHRUNK)
    assert kmixup(*words)[0] == 0
    monkeypatch.setattr(execution, "at_hand", lambda *name, **limit: False)
    code, out, _ = kmixup(*words)
    assert (code, "6 trials, 0 of them run now" in out) == (0, True)


def test_the_summary_shows_the_papers_table_and_the_commands_and_trains_nothing(kmixup, here):
    code, out, _ = kmixup("reproduce", "master")
    assert code == 0
    assert out.startswith(PRESETS["master"].claim)
    assert re.search(r"^MNIST, LeNet +0\.95 +0\.76 +0\.66 +0\.74 +0\.02$", out, re.M)
    assert re.search(
        r"^CIFAR-10, WideResNet-101 +11\.60 +11\.53 +11\.25 +11\.25 +0\.09$", out, re.M
    )
    assert "is at alpha = 0" in out  # the footnote of CIFAR-100
    for name in ("mnist", "cifar10", "cifar10-large", "cifar100", "svhn", "tiny-imagenet"):
        assert f"kmixup reproduce {name} " in out
    assert "No rows of ours in out/master, out/mnist, out/cifar10, " in out
    assert "Nothing was trained: kmixup reproduce master --train re-runs all lines" in out
    assert not (here / "out").exists()


@pytest.mark.parametrize(
    ("folder", "used", "reduced"),
    [
        ("results", "mnist-200", "10 of 20 trials; k = 1, 64 only; alpha = 0.2, 10 only."),
        ("results/mnist", "mnist", "3 of 20 trials; 4 of 200 epochs;"),
    ],
)
def test_the_summary_has_our_most_complete_figures(kmixup, folder, used, reduced):
    code, out, _ = kmixup("reproduce", "master", "--out", ROOT / folder, "--data", "mnist")
    assert code == 0
    cells = {}
    for row in read(ROOT / "results" / used):
        method = row.trial.method
        cells.setdefault((method.name, method.k, method.alpha), []).append(100 * row.error)
    figures = []
    for wanted in (
        lambda name, k: name == "erm",
        lambda name, k: name == "mixup",
        lambda name, k: name == "kmixup",
        lambda name, k: name == "kmixup" and k == 16,
    ):
        errors = min((cells[c] for c in cells if wanted(*c[:2])), key=fmean, default=None)
        error = errors and f"{fmean(errors):.2f} ± {stdev(errors) / len(errors) ** 0.5:.2f}"
        figures.append(error or "not run")
    assert re.search(f"^  ours +{' +'.join(figures)} *$", out, re.M)
    assert f"MNIST, LeNet, ours: reduced to {reduced}" in " ".join(out.split())
    assert "CIFAR" not in out


def test_the_summary_trains_when_asked(kmixup):
    code, out, _ = kmixup("reproduce", "master", "--train", "--quick")
    assert code == 2  # the first of its data sets is not at hand
    assert "This is not the full experiment" in out
