"""Several methods in one table, and the presets beyond the paper that it compares."""

from dataclasses import replace
from statistics import fmean

import pytest
from report_rows import (
    method,
    partition_of,
    results_of,
    row,
    sweep,
    sweep_document,
    table,
    tables_of,
    unplaced,
)

from kmixup.lab.evaluate.scores import Scores
from kmixup.lab.paper.presets import PRESETS
from kmixup.lab.report.side_by_side import side_by_side
from kmixup.lab.report.stats import interval
from kmixup.lab.report.sweep import Preface
from kmixup.lab.trial import Method

FAMILY, BEYOND = PRESETS["family"], PRESETS["beyond-mnist-1000"]


@pytest.fixture(scope="module")
def family():
    def error(trial):
        return 5.0 + 0.1 * trial.method.k + len(trial.method.name) + 0.01 * (trial.seed**2)

    return [row(t.method, error(t), t.seed, base=t) for t in FAMILY.trials(trials=4)]


def error_of(trial):
    """Labels are 1 better than plain, the network is as good, a memory is 4 worse."""
    method, noise = trial.method, 0.01 * trial.seed
    if method.memory is not None:
        return 9.0 + noise
    if method.labels == 1.0:
        return 4.0 + noise**2
    if method.match_on == "network:5":
        return 5.0 + (-1) ** trial.seed * noise
    return 5.0 + noise if method.name == "kmixup" else 6.0 + noise


@pytest.fixture(scope="module")
def beyond():
    return [row(trial.method, error_of(trial), trial.seed, base=trial) for trial in BEYOND.trials()]


def of(rows, tables):
    shown, _, _ = side_by_side(results_of(rows, tables))
    return shown


def test_the_family_is_one_table_with_every_method_once(family):
    shown = of(family, FAMILY.tables)
    labels = [label for label, _ in shown.rows]
    assert labels[:4] == ["ERM", "mixup", "k-mixup, k = 16", "nearest neighbours, k = 16"]
    methods = {trial.method.entry.title for trial in FAMILY.trials()}
    assert {label.partition(", k")[0] for label in labels} == methods
    assert len(labels) == len(set(labels))
    assert shown.head == [
        ("four-bars, mlp-toy", "α = 1"),
        ("four-bars, mlp-toy", "α = 16"),
        ("mnist, lenet", "α = 1"),
    ]
    counts = {label: sum(box.text != "–" for box in boxes) for label, boxes in shown.rows}
    assert (counts["local mixup, k = 1"], counts["StackMix, k = 1"]) == (3, 2)
    assert counts["CutMix, k = 16"] == 1


def test_a_cell_has_the_mean_and_the_paired_difference_from_mixup(family):
    rows = dict(of(family, FAMILY.tables).rows)
    mnist = [entry for entry in family if entry.trial.data == "mnist"]
    errors = {}
    for entry in mnist:
        errors.setdefault((entry.trial.method.name, entry.trial.method.k), []).append(entry.error)
    mixup, cutmix = (100 * fmean(errors[place]) for place in (("mixup", 1), ("cutmix", 16)))
    box = rows["CutMix, k = 16"][2]
    assert box.text == f"{cutmix:.2f}"
    # the same in every trial, but for rounding
    differences = [cutmix - mixup] * len({entry.trial.seed for entry in mnist})
    assert interval(differences, partition=partition_of(mnist)).text in box.small
    assert not any("[" in line for line in rows["mixup"][2].small)
    assert [rows[label][2].best for label in ("ERM", "mixup")] == [True, False]


def test_the_headline_counts_the_comparisons_of_the_map(family):
    assert side_by_side(results_of(sweep(lambda *_: 5.0), [table()])) is None  # one method
    results = results_of(family, FAMILY.tables)
    shown, figures, compared = side_by_side(results)
    assert len(figures) == len(shown.head)
    document = sweep_document(family, results, Preface("", ""))
    assert document.blocks[0].text.startswith(f"All methods against mixup, {len(compared)} comp")
    worse = sum(box.side == 1 for _, boxes in shown.rows for box in boxes)
    assert f"worse in {worse}; no significant difference in" in document.blocks[0].text


def test_layers_are_rows_of_their_own_and_never_averaged():
    rows = [row(Method("erm"), 4.0)]
    for layers, error in (("input+first-block", 5.0), ("all-blocks", 7.0)):
        rows += [row(Method("manifold", k, layers=layers), error + k / 16) for k in (1, 16)]
    assert {label: boxes[0].text for label, boxes in of(rows, tables_of(rows)).rows} == {
        "ERM": "4.00",
        "manifold mixup, k = 1": "5.06",
        "manifold mixup, k = 16": "6.00",
        "manifold mixup, k = 1, all-blocks": "7.06",
        "manifold mixup, k = 16, all-blocks": "8.00",
    }


def test_pairings_and_readings_of_alpha_have_rows_of_their_own():
    rows = [row(Method("kmixup", 16, 1.0, pairing="batch"), 3.0)]
    rows += [row(method(16, 1.0, rule), 2.0) for rule in ("same", "xi")]
    rows += [row(Method("nearest", 16), 6.0), row(Method("mixup", alpha=1.0), 5.0)]
    labels = [label for label, _ in of(rows, tables_of(rows)).rows]
    assert len(labels) == len(set(labels)) == 8
    assert "k-mixup, k = 16, pairing loaders, alpha calibrated to keep ξ" in labels


def test_methods_are_compared_with_mixup_of_their_pairing():
    rows = [
        row(Method(name, k, 1.0, pairing=pairing), error + seed**2 / 100, seed)
        for pairing, better in (("loaders", 0.0), ("batch", 1.0))
        for name, k, error in (("mixup", 1, 5.0), ("cutmix", 16, 4.0 - better))
        for seed in range(4)
    ]
    _, _, compared = side_by_side(results_of(rows, tables_of(rows)))
    found = {c.new: round(c.difference.mean, 6) for c in compared if c.new != "ERM"}
    assert found == {
        "CutMix, k = 16, pairing loaders": -1.0,
        "CutMix, k = 16, pairing batch": -2.0,
    }


def test_tables_without_rows_do_not_change_the_heads(beyond):
    large = [entry for entry in beyond if entry.trial.protocol.batch_size == 64]
    assert [alpha for _, alpha in of(large, BEYOND.tables).head] == ["α = 1"]


def test_a_limit_replaces_the_subset_of_small_training_sets():
    trials = BEYOND.trials(quick=True)
    rows = [row(trial.method, error_of(trial), trial.seed, base=trial) for trial in trials]
    results = results_of(rows, BEYOND.tables)
    assert unplaced(rows, results) == set()
    assert side_by_side(results)[2]


def test_mixup_has_a_place_beside_methods_of_their_own_at_k_1():
    rows = [row(Method(name, 1, 1.0), error) for name, error in (("mixup", 5.0), ("cutmix", 4.0))]
    assert unplaced(rows, results_of(rows, tables_of(rows))) == set()
    texts = {label: boxes[0].text for label, boxes in of(rows, tables_of(rows)).rows}
    assert texts == {"ERM": "not run", "CutMix, k = 1": "4.00", "mixup": "5.00"}


def test_all_networks_of_a_preset_take_as_many_steps_and_share_their_seeds():
    for name in ("beyond-mnist-1000", "beyond-mnist-5000", "beyond-cifar10-5000"):
        for trial in PRESETS[name].trials():
            protocol = trial.protocol
            steps = protocol.epochs * -(-trial.samples // protocol.batch_size)
            assert 3000 <= steps < 3200
            rate = {"mnist": 0.05, "cifar10": 0.1}[trial.data]
            assert protocol.rate / protocol.batch_size == pytest.approx(rate / 64)
    assert len({(trial.method, trial.protocol) for trial in BEYOND.trials()}) == 12
    assert {trial.seed for trial in BEYOND.trials()} == set(range(5))


def test_plain_networks_are_those_of_the_small_images():
    small = {trial.id for trial in PRESETS["mnist-1000"].trials(trials=5)}
    shared = {trial.method for trial in BEYOND.trials() if trial.id in small}
    assert shared == {Method("erm"), Method("mixup", alpha=1.0), Method("kmixup", 16, alpha=1.0)}


def test_every_variant_is_compared_with_plain_kmixup(beyond):
    shown = of(beyond, BEYOND.tables)
    assert [under for _, under in shown.head] == [
        "α = 1, batch_size 64, epochs 188, rate 0.05",
        "α = 1, batch_size 16, epochs 48, rate 0.0125",
    ]
    boxes = dict(shown.rows)
    labels, nothing = boxes["k-mixup with labels=1, k = 16"]
    assert labels.side == -1
    assert labels.small[-1].startswith("−1.0")
    assert labels.small[-1].endswith("from k = 16")
    assert (nothing.text, nothing.side) == ("–", 0)
    assert boxes["k-mixup matched on network:5, k = 16"][0].side == 0
    _, memory = boxes["k-mixup with memory=512, k = 64"]
    assert memory.side == 1
    assert memory.small[-1].startswith("+4.00")
    plain, _ = boxes["k-mixup, k = 16"]
    assert plain.small[-1].startswith("−1.00")  # from mixup
    assert "from k" not in plain.small[-1]


def test_networks_with_batch_norm_have_a_column_for_clean_statistics():
    preset = PRESETS["beyond-cifar10-5000"]
    rows = [row(trial.method, error_of(trial), trial.seed, base=trial) for trial in preset.trials()]
    rows = [replace(done, clean=Scores(done.error - 0.01, 1.0, 0.1)) for done in rows]
    shown = of(rows, preset.tables)
    settings = ["batch_size 64, epochs 38, rate 0.1", "batch_size 16, epochs 10, rate 0.025"]
    settings += [f"{setting}, statistics clean" for setting in settings]
    assert [under for _, under in shown.head] == [f"α = 1, {setting}" for setting in settings]
    as_trained, _, clean, _ = dict(shown.rows)["k-mixup with labels=1, k = 16"]
    assert float(clean.text) == pytest.approx(float(as_trained.text) - 1)
    assert "−1.0" in ", ".join(clean.small)  # from k-mixup with clean statistics too


def test_your_own_sweep_has_a_table_for_each_variant(beyond):
    tables = tables_of(beyond)
    titles = sorted(table.title for table in tables if table.measure == "error")
    variants = ["", " matched on ema:5", " matched on network:5", " matched on pca:50",
                " with labels=-0.2", " with labels=1", " with memory=512"]  # fmt: skip
    assert titles == [f"mnist, lenet, kmixup{variant}" for variant in variants]
    assert not unplaced(beyond, results_of(beyond, tables))
