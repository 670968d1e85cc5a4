"""`kmixup predict`, after `kmixup train` in the same folder."""

import csv
import io

import pytest
from own_tables import mixed, regression

import kmixup.lab

QUICK = ("--epochs", 2, "--batch-size", 32, "--k", 4, "--quiet")


@pytest.fixture
def run(kmixup, here):
    """A run on a table of clients, in the folder `run`."""
    mixed(here / "clients.csv", rows=90)
    code, out, err = kmixup("train", "clients.csv", "--out", "run", *QUICK)
    assert code == 0, err
    assert "model: kmixup predict run NEW" in out
    return here / "run"


@pytest.mark.slow
def test_predictions_are_a_csv_with_a_line_for_every_sample(kmixup, here, run):
    mixed(here / "new.csv", rows=20, seed=1)
    code, out, err = kmixup("predict", "run", "new.csv")
    assert code == 0, err
    assert "new.csv has columns that the network ignores: churn" in err
    lines = list(csv.DictReader(io.StringIO(out)))
    assert [line["sample"] for line in lines] == [str(i) for i in range(1, 21)]
    for line in lines:
        leaves, stays = (float(line[f"probability of {name}"]) for name in ("leaves", "stays"))
        assert leaves + stays == pytest.approx(1, abs=1e-5)
        assert line["prediction"] == ("leaves" if leaves > stays else "stays")
    code, said, _ = kmixup("predict", "run", "new.csv", "--out", "answers.csv")
    assert (code, said) == (0, "20 predictions: answers.csv\n")
    assert (here / "answers.csv").read_text() == out
    predicted = kmixup_predictions(run, here / "new.csv")
    assert [line["prediction"] for line in lines] == predicted


def kmixup_predictions(run, path):
    return kmixup.lab.load(run).predict(path).tolist()


@pytest.mark.slow
def test_numbers_are_predicted_without_probabilities(kmixup, here):
    regression(here / "rents.csv", rows=90)
    code, out, err = kmixup("train", "rents.csv", "--out", "run", *QUICK)
    assert (code, "test RMSE " in out, "%" in out) == (0, True, False), err
    code, out, _ = kmixup("predict", "run", "rents.csv")
    header, *lines = csv.reader(io.StringIO(out))
    assert (code, header, len(lines)) == (0, ["sample", "prediction"], 90)


def test_what_cannot_be_predicted_is_said_in_a_sentence(kmixup, here):
    mixed(here / "new.csv", rows=5)
    code, _, err = kmixup("predict", "run", "new.csv")
    assert (code, "run must be the folder of a run that has ended" in err) == (2, True)
