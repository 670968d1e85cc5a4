"""What is published follows from the rows that are published with it."""

from pathlib import Path
from statistics import fmean, stdev

import pytest

from kmixup.lab.paper import PRESETS
from kmixup.lab.report.account import account_of
from kmixup.lab.report.table_csv import cells_csv
from kmixup.lab.store import read

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
TABLES = {
    "toy": PRESETS["toy"].tables,
    "uci": PRESETS["uci"].tables,
    "mnist": PRESETS["mnist"].tables,
    "fgsm-mnist": PRESETS["fgsm-mnist"].tables,
}


def errors(name):
    """Test errors in per cent by data set, k, alpha and rule."""
    found = {}
    for row in read(RESULTS / name):
        trial, method = row["trial"], row["trial"]["method"]
        cell = (trial["data"], method["k"], method["alpha"], method["alpha_rule"])
        found.setdefault(cell, []).append(100 * row["result"]["error"])
    return found


@pytest.mark.parametrize("name", TABLES)
def test_the_cells_follow_from_the_rows(name):
    wanted = {table.data for table in TABLES[name]}
    rows = [row for row in read(RESULTS / name) if row["trial"]["data"] in wanted]
    assert cells_csv(account_of(rows, TABLES[name])) == (RESULTS / name / "cells.csv").read_text()


@pytest.mark.parametrize(
    ("page", "name", "ks"),
    [
        ("README.md", "toy", (1, 16)),
        ("docs/results.md", "toy", (1, 16)),
        ("docs/results.md", "uci", (1, 2, 4, 8, 16)),
    ],
)
def test_the_tables_on_the_pages_follow_from_the_rows(page, name, ks):
    text, found = (ROOT / page).read_text(), errors(name)
    for table in TABLES[name]:
        for k in ks:
            for column in table.columns:
                trials = found[table.data, k, column.alpha, "same"]
                assert len(trials) == table.trials
                error = f"{fmean(trials):.2f} ± {stdev(trials) / len(trials) ** 0.5:.2f}"
                assert f"{error} ({table.error_at(k, column):.2f})" in text


def test_the_tables_of_mnist_on_the_page_follow_from_the_rows():
    text, found, attacked = (ROOT / "docs/results.md").read_text(), errors("mnist"), {}
    for row in read(RESULTS / "mnist"):
        method = row["trial"]["method"]
        for one in row["fgsm"]:
            cell = (method["k"], method["alpha"], one["eps"])
            attacked.setdefault(cell, []).append(100 * one["error"])
    (table,), (attack,) = PRESETS["mnist"].tables, PRESETS["fgsm-mnist"].tables
    shown = {
        (k, column.alpha): (found["mnist", k, column.alpha, "same"], table.error_at(k, column))
        for k in (1, 4, 16, 64)
        for column in table.columns
        if column.alpha in (0.2, 1, 10, 100)
    } | {
        (k, column.eps): (attacked[k, 10.0, column.eps], attack.error_at(k, column))
        for k in (1, 4, 16)
        for column in attack.columns
    }
    for trials, paper in shown.values():
        error = f"{fmean(trials):.2f} ± {stdev(trials) / len(trials) ** 0.5:.2f}"
        assert len(trials) == 3
        assert f"{error} ({paper:.2f})" in text
