"""The presets beyond the paper, and how reports compare their variants."""

from dataclasses import replace

import pytest
from report_rows import row

from kmixup.lab.evaluate.scores import Scores
from kmixup.lab.paper.presets import PRESETS
from kmixup.lab.report.frame import results_of, tables_of, unplaced
from kmixup.lab.report.side_by_side import side_by_side
from kmixup.lab.train.config import Method

PRESET = PRESETS["beyond-mnist-1000"]


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
def rows():
    return [row(trial.method, error_of(trial), trial.seed, base=trial) for trial in PRESET.trials()]


def test_all_networks_take_as_many_steps_and_share_their_seeds():
    for name in ("beyond-mnist-1000", "beyond-mnist-5000", "beyond-cifar10-5000"):
        for trial in PRESETS[name].trials():
            protocol = trial.protocol
            steps = protocol.epochs * -(-trial.samples // protocol.batch_size)
            assert 3000 <= steps < 3200
            assert protocol.rate / protocol.batch_size == pytest.approx(
                {"mnist": 0.05, "cifar10": 0.1}[trial.data] / 64
            )
    cells = {(trial.method, trial.protocol) for trial in PRESET.trials()}
    assert len(cells) == 12
    assert {trial.seed for trial in PRESET.trials()} == set(range(5))


def test_plain_networks_are_those_of_the_small_images():
    small = {trial.id for trial in PRESETS["mnist-1000"].trials(trials=5)}
    shared = [trial for trial in PRESET.trials() if trial.id in small]
    assert {trial.method for trial in shared} == {
        Method("erm"),
        Method("mixup"),
        Method("kmixup", 16),
    }


def test_every_variant_is_compared_with_plain_kmixup(rows):
    shown = side_by_side(results_of(rows, PRESET.tables))
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
    network, _ = boxes["k-mixup matched on network:5, k = 16"]
    assert network.side == 0
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
    shown = side_by_side(results_of(rows, preset.tables))
    assert [under for _, under in shown.head] == [
        "α = 1, batch_size 64, epochs 38, rate 0.1",
        "α = 1, batch_size 16, epochs 10, rate 0.025",
        "α = 1, batch_size 64, epochs 38, rate 0.1, statistics clean",
        "α = 1, batch_size 16, epochs 10, rate 0.025, statistics clean",
    ]
    as_trained, _, clean, _ = dict(shown.rows)["k-mixup with labels=1, k = 16"]
    assert float(clean.text) == pytest.approx(float(as_trained.text) - 1)
    assert "−1.0" in ", ".join(clean.small)  # from k-mixup with clean statistics too


def test_a_variant_is_in_no_plain_cell(rows):
    for result in results_of(rows, PRESET.tables):
        table = result.table
        for cell in result.cells:
            for entry in cell.done:
                if cell.k > 1:
                    assert (entry.trial.method.labels, entry.trial.method.memory) == (
                        table.labels,
                        table.memory,
                    )
    plain = results_of(rows, PRESETS["mnist-1000"].tables)
    assert len(unplaced(rows, plain)) == 45


def test_your_own_sweep_has_a_table_for_each_variant(rows):
    tables = [table for table in tables_of(rows) if table.measure == "error"]
    assert sorted(table.title for table in tables) == [
        "mnist, lenet, kmixup",
        "mnist, lenet, kmixup matched on ema:5",
        "mnist, lenet, kmixup matched on network:5",
        "mnist, lenet, kmixup matched on pca:50",
        "mnist, lenet, kmixup with labels=-0.2",
        "mnist, lenet, kmixup with labels=1",
        "mnist, lenet, kmixup with memory=512",
    ]
    assert not unplaced(rows, results_of(rows, tables_of(rows)))


def test_notes_name_a_data_set_once():
    for name, preset in PRESETS.items():
        for note in preset.deviations:
            assert note.count("training images") <= 2 * len({t.data for t in preset.tables}), name
