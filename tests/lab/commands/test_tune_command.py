"""`kmixup tune` as its users meet it: what it prints, and one sentence for each mistake."""

import pytest
from sweeping import Fake, done_row, failed_row

from kmixup.lab.commands.tune import train_command
from kmixup.lab.train.defaults import defaults_for
from kmixup.lab.trial import Method, Trial

OPTIONS = "--strategy simple --k 1 --k 4 --trials 2 --epochs 2"
WORDS = ["iris", *OPTIONS.split()]


pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.slow
def test_a_search_ends_with_a_choice_and_a_page_and_the_next_has_nothing_to_do(kmixup, here):
    code, out, _ = kmixup("tune", *WORDS)
    folder = here / "out" / "tune-iris-simple"
    assert code == 0
    assert "Validation error in per cent\n" in out
    assert "Strategy simple: 6 trials with ERM." in out
    assert "Chosen: " in out
    assert "This chooses, and does not show that mixing helps" in out
    assert "kmixup compare iris --epochs 2\n" in out
    summary, page = out.splitlines()[-2:]
    assert summary == "6 trials, 6 of them run now: out/tune-iris-simple"
    assert page == "page: out/tune-iris-simple/tune.html"
    again, out, _ = kmixup("tune", *WORDS, "--quiet")
    assert again == 0
    assert "6 trials, 0 of them run now" in out
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
    assert line.startswith("train table.csv --model mlp-")
    assert " --epochs 2 " in line
    assert " --target way " in line
    assert kmixup(*line.split(), "--out", "run")[0] == 0  # what is printed works


class Failing(Fake):
    """Rows as of a training, failed where `fails` says so of a trial."""

    def __init__(self, fails):
        super().__init__()
        self.fails = fails

    def row(self, trial):
        return failed_row(trial) if self.fails(trial) else done_row(trial, seconds=1.0, alpha=1.0)


def test_failed_trials_are_counted_and_the_rest_is_shown(kmixup, here, engine):
    engine(Failing(lambda trial: trial.method.k == 4))
    code, out, err = kmixup("tune", *WORDS, "--quiet")
    assert code == 1
    assert "2 trials failed:\n  2 × ValueError: no\n" in err
    assert "Chosen: ERM" in out  # a failed setting cannot win
    text = (here / "out" / "tune-iris-simple" / "tune.html").read_text()
    assert "2 failed" in text
    assert "kmixup k=4 alpha=0.2, seed 0: ValueError: no" in text


def test_a_search_that_fails_altogether_has_no_page(kmixup, here, engine):
    engine(Failing(lambda trial: True))
    code, out, err = kmixup("tune", *WORDS, "--quiet")
    assert code == 1
    assert out == "6 trials, 6 of them run now: out/tune-iris-simple\n"
    assert err.startswith("no setting can win: every one had a trial that failed\n6 trials failed")
    assert not (here / "out" / "tune-iris-simple" / "tune.html").exists()


def test_the_printed_command_has_what_depends_on_the_number_of_samples():
    usual = defaults_for("keel-bupa")
    words = train_command(Trial("keel-bupa", usual.model, Method("erm"), usual.protocol)).split()
    assert {"--epochs", "--rate", "--batch-size", "--weight-decay"} <= {*words}
    words = train_command(Trial("iris", "mlp-iris", Method("erm"), defaults_for("iris").protocol))
    assert words == "kmixup train iris --method erm"
