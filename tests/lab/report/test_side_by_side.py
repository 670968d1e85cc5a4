"""Several methods in one table, on the page, in Markdown and on the terminal."""

from io import StringIO
from statistics import fmean

import pytest
from report_rows import method, row, sweep, table
from rich.console import Console

from kmixup.lab.paper.presets import PRESETS
from kmixup.lab.paper.tables import PaperColumn
from kmixup.lab.report.cells import partition_of
from kmixup.lab.report.frame import results_of, tables_of, unplaced
from kmixup.lab.report.render_terminal import show
from kmixup.lab.report.side_by_side import side_by_side
from kmixup.lab.report.stats import interval
from kmixup.lab.report.sweep import Preface, sweep_document, write_sweep
from kmixup.lab.train.config import Method
from kmixup.lab.train.methods import METHODS

LABELS = [
    "ERM",
    "mixup",
    "k-mixup, k = 16",
    "nearest neighbours, k = 16",
    *(
        f"{entry.title}, k = {k}"
        for images in (False, True)  # the first setting has none
        for entry in METHODS.values()
        for k in (1, 16)
        if entry.has_k and not entry.needs_numbers and entry.baseline is None
        if bool(entry.needs_images) is images
    ),
]


def error_of(trial):
    return 5.0 + 0.1 * trial.method.k + len(trial.method.name) + 0.01 * (trial.seed**2)


@pytest.fixture(scope="module")
def family():
    """A row for each trial of the preset."""
    return [
        row(trial.method, error_of(trial), trial.seed, base=trial)
        for trial in PRESETS["family"].trials(trials=4)
    ]


def of(rows, tables):
    return side_by_side(results_of(rows, tables))


def test_the_family_is_one_table_with_every_method_once(family):
    shown = of(family, PRESETS["family"].tables)
    assert [label for label, _ in shown.rows] == LABELS
    assert shown.head == [
        ("four-bars, mlp-toy", "α = 1"),
        ("four-bars, mlp-toy", "α = 16"),
        ("mnist, lenet", "α = 1"),
    ]
    missing = {label for label, boxes in shown.rows if any(box.text == "–" for box in boxes)}
    needs = {"StackMix, k = 1": 2, "CutMix, k = 16": 1}  # columns with a figure
    for label, figures in needs.items():
        assert sum(box.text != "–" for box in dict(shown.rows)[label]) == figures
        assert label in missing
    assert "local mixup, k = 1" not in missing


def test_a_cell_has_the_mean_and_the_paired_difference_from_mixup(family):
    rows = dict(of(family, PRESETS["family"].tables).rows)
    mnist = [entry for entry in family if entry.trial.data == "mnist"]
    errors = {
        name: fmean(
            100 * entry.error for entry in mnist
            if (entry.trial.method.name, entry.trial.method.k) == (name, k)
        )
        for name, k in (("mixup", 1), ("cutmix", 16))
    }  # fmt: skip
    assert rows["CutMix, k = 16"][2].text == f"{errors['cutmix']:.2f}"
    difference = errors["cutmix"] - errors["mixup"]
    # the same in every trial, but for rounding
    seeds = {entry.trial.seed for entry in mnist}
    expected = interval([difference] * len(seeds), partition=partition_of(mnist))
    assert expected.text in rows["CutMix, k = 16"][2].small
    assert expected.low < 0 < expected.high
    assert not any("[" in line for line in rows["mixup"][2].small)
    assert rows["ERM"][2].best
    assert not rows["mixup"][2].best


def test_tables_of_one_method_need_no_such_table():
    assert of(sweep(lambda *_: 5.0), [table()]) is None


def test_layers_are_rows_of_their_own_and_never_averaged():
    rows = []
    for layers, error in (("input+first-block", 5.0), ("all-blocks", 7.0)):
        for k in (1, 16):
            rows.append(row(Method("manifold", k, layers=layers), error + k / 16))
    rows.append(row(Method("erm"), 4.0))
    own = tables_of(rows)
    found = dict(of(rows, own).rows)
    assert {label: boxes[0].text for label, boxes in found.items()} == {
        "ERM": "4.00",
        "manifold mixup, k = 1": "5.06",
        "manifold mixup, k = 16": "6.00",
        "manifold mixup, k = 1, all-blocks": "7.06",
        "manifold mixup, k = 16, all-blocks": "8.00",
    }
    manifold = table(
        method="manifold", errors=None, layers="all-blocks", columns=(PaperColumn(1.0),)
    )
    (found,) = results_of(rows, [manifold])
    assert [cell.mean for cell in found.grids[0]] == pytest.approx([7.0625, 8.0])
    assert found.baseline == "manifold with k = 1"
    assert found.erm[0].mean == pytest.approx(4.0)


def test_pairings_and_both_readings_of_alpha_have_rows_of_their_own():
    batch = [row(Method("kmixup", 16, 1.0, pairing="batch"), 3.0)]
    others = [row(method(16, 1.0, rule), 2.0) for rule in ("same", "xi")]
    nearest = [row(Method("nearest", 16), 6.0), row(Method("mixup"), 5.0)]
    rows = [*batch, *others, *nearest]
    labels = [label for label, _ in of(rows, tables_of(rows)).rows]
    assert len(labels) == len(set(labels))
    assert "k-mixup, k = 16, pairing batch" in labels
    assert "k-mixup, k = 16, pairing loaders, equal ξ" in labels
    assert "nearest neighbours, k = 16" in labels


def test_it_is_in_every_form_of_the_report(tmp_path, family):
    results, preface = results_of(family, PRESETS["family"].tables), Preface("family", "kmixup")
    page = write_sweep(family, results, tmp_path, preface).read_text()
    text, cells = ((tmp_path / name).read_text() for name in ("report.md", "cells.csv"))
    console = Console(record=True, width=120, file=StringIO())
    show(sweep_document(family, results, preface), console)
    for shown in (page, text):
        assert all(label in shown for label in LABELS)
    assert text.index("All methods") < text.index("Verdicts")
    assert "cutmix,same,16" in cells
    assert "cutmix,,1" in cells
    assert "local mixup, k = 16" in console.export_text()


def test_mixup_has_a_place_beside_methods_of_their_own_at_k_1():
    rows = [row(Method(name, 1), error) for name, error in (("mixup", 5.0), ("cutmix", 4.0))]
    results = results_of(rows, tables_of(rows))
    assert unplaced(rows, results) == ()
    texts = {label: boxes[0].text for label, boxes in side_by_side(results).rows}
    assert texts == {"ERM": "not run", "CutMix, k = 1": "4.00", "mixup": "5.00"}
