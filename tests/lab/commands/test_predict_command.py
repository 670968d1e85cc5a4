"""`kmixup predict`, after `kmixup train` in the same folder."""

import csv
import io
import json

import pandas as pd
import pytest
from own_tables import mixed, regression
from sklearn.metrics import confusion_matrix

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
    assert "columns that the network ignores" not in err  # the target is known
    lines = list(csv.DictReader(io.StringIO(out)))
    assert [line["sample"] for line in lines] == [f"C{100000 + 7 * i}" for i in range(20)]
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
    return kmixup.lab.load(run).predictions(path).values.tolist()


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


@pytest.mark.slow
def test_labelled_samples_are_scored_on_request(kmixup, here, run):
    mixed(here / "new.csv", rows=40, seed=1)
    labelled = pd.read_csv(here / "new.csv")
    labelled.insert(0, "shoe", 9)
    labelled.to_csv(here / "new.csv", index=False)
    code, plain, unscored = kmixup("predict", "run", "new.csv")
    assert (code, "error" in unscored) == (0, False)
    code, out, err = kmixup("predict", "run", "new.csv", "--score")
    assert (code, out) == (0, plain), err
    assert "new.csv has columns that the network ignores: shoe\n" in err  # not the target
    truth = labelled["churn"]
    predicted = kmixup_predictions(run, here / "new.csv")
    matrix = confusion_matrix(truth, predicted, labels=["leaves", "stays"])
    error = float((truth != predicted).mean())
    assert f"error {error:.4g}\n" in err
    assert [line.split() for line in err.splitlines()[-2:]] == [
        [name, *map(str, row)] for name, row in zip(["leaves", "stays"], matrix, strict=True)
    ]
    code, out, err = kmixup("predict", "run", "new.csv", "--json", "scores.json")
    assert (code, out, "log-loss" in err) == (0, plain, False)
    scores = json.loads((here / "scores.json").read_text())
    assert scores["scores"]["error"] == pytest.approx(error)
    assert scores["confusion"] == matrix.tolist()


@pytest.mark.slow
def test_scoring_needs_the_target(kmixup, here, run):
    mixed(here / "new.csv", rows=20, seed=1)
    code, _, err = kmixup("predict", "run", "new.csv", "--score", "--target", "city")
    assert (code, "must hold one of the classes leaves, stays" in err) == (2, True)
    pd.read_csv(here / "new.csv").drop(columns="churn").to_csv(here / "bare.csv", index=False)
    code, out, err = kmixup("predict", "run", "bare.csv", "--score")
    assert (code, out, "churn" in err) == (2, "", True)
    code, _, err = kmixup("predict", "run", "bare.csv", "--target", "city")
    assert (code, err) == (
        2, "kmixup: --target has no effect without --score: add it, or leave target out\n"
    )  # fmt: skip
