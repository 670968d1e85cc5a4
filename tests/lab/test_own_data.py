"""Tables as people have them, the whole way: inspected, searched, trained and predicted."""

import csv
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from own_tables import imbalanced, mixed, regression, wide

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/own-data.md").read_text()
QUICK = ("--epochs", 2, "--batch-size", 16, "--quiet")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "rows", "classes", "words"),
    [
        (mixed, 90, ["leaves", "stays"], ("--drop", "row", "--drop", "currency")),
        (imbalanced, 213, ["fails", "fine"], ("--class-weights", "balanced")),
        (wide, 48, ["A", "B", "C"], ()),
        (regression, 90, [], ()),
    ],
)
def test_a_table_is_inspected_searched_trained_and_predicted(
    kmixup, here, write, rows, classes, words
):
    write(here / "own.csv", rows=rows)
    reading = words if words[:1] == ("--drop",) else ()
    code, out, err = kmixup("inspect", "own.csv", *reading, "--largest-k", 4)
    assert code == 0, err
    search = ("--strategy", "simple", "--k", 1, "--k", 4, "--trials", 1)
    code, out, err = kmixup(
        "tune", "--data", "own.csv", *words, *search, *QUICK, "--workers", 1, "--out", "search"
    )
    assert code == 0, err
    unit = "error in per cent" if classes else "RMSE in the unit of the target"
    assert "Chosen: " in out
    assert ("RMSE" in out) != bool(classes)
    page = (here / "search/tune.html").read_text()
    assert (f"Validation {unit}" in page, "per cent" in page) == (True, bool(classes))
    code, out, err = kmixup("train", "--data", "own.csv", *words, "--k", 4, *QUICK, "--out", "run")
    assert code == 0, err
    assert re.search("test error .*%" if classes else r"test RMSE [\d.]+ on \d+ samples, R² ", out)
    assert "Always predicting" in out
    result = json.loads((here / "run/record.json").read_text())["result"]
    assert {"error", "baseline", "balanced_accuracy" if classes else "r2"} <= result.keys()
    code, out, err = kmixup("predict", "run", "own.csv", "--out", "answers.csv")
    assert code == 0, err
    header, *lines = csv.reader((here / "answers.csv").read_text().splitlines())
    assert header == ["sample", "prediction", *(f"probability of {name}" for name in classes)]
    assert len(lines) == rows
    assert all(line[1] in classes for line in lines) or not classes


def swept(kmixup, here, grid):
    """What a sweep of this grid prints; its report is in out/grid."""
    (here / "grid.toml").write_text(grid)
    code, out, err = kmixup("sweep", "grid.toml", "--quiet", "--workers", 1)
    assert code == 0, err
    return out


@pytest.mark.slow
def test_a_sweep_of_a_regression_has_no_per_cent(kmixup, here):
    regression(here / "rents.csv", rows=60)
    out = swept(
        kmixup, here,
        'data = "rents.csv"\nmethod = ["erm", "kmixup"]\nk = [2, 4]\ntrials = 2\n'
        'target = "rent"\n[protocol]\nepochs = 2\nbatch_size = 16\n',
    )  # fmt: skip
    assert ("RMSE" in out, "per cent" in out) == (True, False)
    assert "Always predicting the mean has the RMSE" in " ".join(out.split())
    page = (here / "out/grid/report.html").read_text()
    assert "in per cent" not in page
    assert "Always predicting the mean has the RMSE" in page


@pytest.mark.slow
def test_differences_on_ones_own_table_have_an_interval_for_new_data(kmixup, here):
    mixed(here / "clients.csv", rows=90)
    swept(
        kmixup, here,
        'data = "clients.csv"\nmethod = ["mixup", "kmixup"]\nk = 4\nalpha = 1.0\ntrials = 6\n'
        "[protocol]\nepochs = 4\nbatch_size = 16\n",
    )  # fmt: skip
    report = (here / "out/grid/report.md").read_text().splitlines()
    column = next(
        line.split("|").index(" for new data [95 %] ") for line in report if "new data [" in line
    )
    row = next(line for line in report if line.startswith("| clients.csv"))
    assert re.search(r"\[.*\]", row.split("|")[column])


@pytest.mark.slow
def test_the_commands_and_the_code_of_the_page_run(kmixup, here):
    for name in ("wine.csv", "wine-new.csv"):
        (here / "examples").mkdir(exist_ok=True)
        shutil.copy(ROOT / "examples" / name, here / "examples")
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.S):
        for line in block.splitlines():
            _, *words = shlex.split(line)
            quick = QUICK if words[0] in ("tune", "train") else ()
            few = ("--k", 1, "--k", 2, "--trials", 1, "--workers", 1) if words[0] == "tune" else ()
            code, _, err = kmixup(*words, *quick, *few)
            assert code == 0, err
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.S):
        exec(compile(block, "docs/own-data.md", "exec"), names)
    assert len(names["cultivars"]) == 28
    assert names["probabilities"].shape == (2, 3)
    assert set(names["means"]) == {"ERM", "mixup alpha=0.2", "k=8 alpha=0.2"}
    assert names["again"].shape == (5,)
    assert 0 < names["rmse"] < 1.5 * names["constant"]
