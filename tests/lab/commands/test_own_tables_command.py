"""The commands on tables and images as people have them."""

import json
import os

import pytest
from own_tables import mixed, regression, twenty, write_csv
from PIL import Image

from kmixup.lab.experiments.grid import expand, read_config
from kmixup.lab.train.setup import load_data
from kmixup.lab.trial import Trial

QUICK = ("--epochs", 1, "--batch-size", 32, "--quiet")


@pytest.fixture
def clients(here):
    return mixed(here / "clients.csv", rows=90)


def test_inspect_says_what_became_of_every_column(kmixup, clients):
    code, out, err = kmixup("inspect", "clients.csv", "--largest-k", 1, "--no-page")
    assert (code, out.startswith("clients.csv: 60 training samples of 14 numbers")) == (0, True)
    assert "the target is the column 'churn': --target names another" in err
    for line in (
        "customer | ignore | left out |",
        "row | number | number | looks like an id: --drop row",
        "city | category of 4 | 4 columns of 0 and 1, blank |",
        "since | date like YYYY-MM-DD | days, month, weekday |",
        "currency | category of 1 | 1 column of 0 and 1 | constant: --drop currency",
        "1 other column is a number",
    ):
        assert line in " ".join(err.split())


@pytest.mark.slow
def test_train_leaves_columns_out_and_writes_them_down(kmixup, here, clients):
    words = ("--target", "churn", "--drop", "row", "--drop", "currency")
    code, _, err = kmixup("train", "clients.csv", *words, "--out", "run", *QUICK)
    assert code == 0, err
    assert "looks like an id" not in err
    written = json.loads((here / "run" / "record.json").read_text())
    assert written["trial"]["drop"] == ["row", "currency"]
    trial = Trial.from_dict(written["trial"])
    assert trial.drop == ("row", "currency")
    assert load_data(trial).shape == (12,)


def test_a_regression_is_inspected_by_thirds_of_its_target(kmixup, here):
    regression(here / "rent.csv")
    code, out, err = kmixup("inspect", "rent.csv", "--largest-k", 16)
    assert code == 0, err
    assert "with a numeric target, whose thirds serve as classes" in " ".join(out.split())
    assert "num_classes" not in out
    assert "lowest third: 5" in (here / "out/inspect/rent.csv/inspect.html").read_text()


def test_a_task_takes_whole_numbers_for_classes(kmixup, here):
    rows = [[i % 7, i % 60] for i in range(240)]
    write_csv(here / "own.csv", ["a", "y"], rows)
    words = ("inspect", "own.csv", "--largest-k", 1, "--no-page")
    assert "with a numeric target" in kmixup(*words)[1]
    code, out, _ = kmixup(*words, "--task", "classes")
    assert (code, "in 60 classes" in out) == (0, True)


def test_images_of_several_sizes_are_stretched_on_request(kmixup, here):
    for label in ("cat", "dog"):
        (here / "photos" / label).mkdir(parents=True)
        for i in range(6):
            picture = Image.effect_noise((8 + i % 2, 8), 50)
            picture.save(here / "photos" / label / f"{i}.png")
    words = ("inspect", "photos", "--largest-k", 1, "--no-page")
    code, _, err = kmixup(*words)
    assert (code, "--resize 8 8" in err) == (2, True)
    code, out, _ = kmixup(*words, "--resize", 6, 5)
    assert (code, "training samples of 30 numbers" in out) == (0, True)
    assert kmixup(*words, "--resize", "6x5")[0] == 2


def test_a_grid_has_the_settings_of_reading(here, clients):
    (here / "grid.toml").write_text(
        'data = "clients.csv"\ntarget = "churn"\ndrop = ["row", "customer"]\ntask = "classes"\n'
    )
    (trial,) = read_config(here / "grid.toml")
    assert (trial.drop, trial.task, trial.resize) == (("row", "customer"), "classes", None)
    assert Trial.from_dict(json.loads(json.dumps(trial.to_dict()))) == trial
    assert Trial.from_dict(json.loads(json.dumps(trial.to_dict()))).id == trial.id
    (alone,) = expand(data="clients.csv", drop="row")
    assert alone.drop == ("row",)


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", "[/b].csv", "--largest-k", 2),
        pytest.param(("train", "[/b].csv", "--k", 2, *QUICK), marks=pytest.mark.slow),
    ],
)
def test_a_file_whose_name_looks_like_markup_is_a_file(kmixup, here, words):
    os.mkdir(here / "[")
    rows = [[i / 3, i % 5, "xy"[i % 2]] for i in range(60)]
    write_csv(here / "[" / "b].csv", ["[red]", "[/b]", "target"], rows)
    code, out, err = kmixup(*words)
    assert code == 0, err
    assert "b].csv" in out


@pytest.mark.slow
def test_twenty_rows_train_with_a_lower_k(kmixup, here):
    twenty(here / "twenty.csv")
    code, out, err = kmixup("train", "twenty.csv", *QUICK)
    assert code == 0, err
    assert "k = 16 needs 16 training samples, there are 13: k = 13 is used" in err
    assert "k=13" in out


def test_a_table_is_read_once_for_all_seeds_and_again_after_a_change(here, clients, monkeypatch):
    from kmixup.lab.data import load, tables

    read = []
    original = tables.read_table
    monkeypatch.setattr(tables, "read_table", lambda path: read.append(path) or original(path))
    first, second = (load("clients.csv", seed=seed) for seed in (0, 1))
    assert len(read) == 1
    assert not first.x_train.equal(second.x_train)
    mixed(here / "clients.csv", rows=60)
    assert len(load("clients.csv").x_train) == 40
    assert len(read) == 2


def test_options_of_tables_reach_the_reader(kmixup, here):
    rows = [
        [f"0{i % 9 + 1}/05/2021", -999 if i % 7 == 0 else i % 5, "xy"[i % 2]] for i in range(60)
    ]
    write_csv(here / "own.csv", ["day", "a", "target"], rows)
    words = ("inspect", "own.csv", "--largest-k", 1, "--no-page")
    code, _, err = kmixup(*words)
    assert (code, "--dayfirst must be given" in err) == (2, True), err
    code, _, err = kmixup(*words, "--dayfirst")
    assert (code, "use --missing -999" in err, "date like DD/MM/YYYY" in err) == (0, True, True), (
        err
    )
    code, _, err = kmixup(*words, "--no-dayfirst", "--missing", "-999")
    assert (code, "number, blank" in err) == (0, True), err
    code, _, err = kmixup(*words, "--dayfirst", "--decimal", "x")
    assert (code, err) == (2, "kmixup: --decimal must be . or , got 'x'\n")
