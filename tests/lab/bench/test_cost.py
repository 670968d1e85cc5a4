"""What is measured, and what is made of it; never how long it took."""

import json

import pytest
import torch

from kmixup.lab.bench import cost
from kmixup.lab.bench.cost import (
    KS,
    PARTS,
    Cost,
    MethodCost,
    block_costs,
    cost_document,
    measure,
    row,
    write,
)
from kmixup.lab.bench.timing import Timings
from kmixup.matching import match
from kmixup.matching.assignment import solve


@pytest.fixture
def quick(monkeypatch):
    """Short blocks, and a data set that needs no download."""
    monkeypatch.setattr(cost, "KS", (1, 2, 4))


def parts(*seconds):
    return dict(zip(PARTS, seconds, strict=True))


def example():
    rows = (
        MethodCost(None, 10.0, 1.0, parts(10.0, 0, 0, 0, 0)),
        MethodCost(1, 10.1, 1.01, parts(10.0, 0.06, 0.04, 0, 0)),
        MethodCost(32, 10.6, 1.06, parts(10.0, 0.06, 0.04, 0.3, 0.1)),
        MethodCost(64, 10.7, 1.07, parts(10.0, 0.06, 0.04, 0.3, 0.2)),
    )
    return Cost("mnist", "lenet", 60000, 784, 128, 20, 5, rows)


def test_every_k_up_to_the_batch_is_measured():
    assert KS == (1, 2, 4, 8, 16, 32, 64)
    costs = measure("iris", batch_size=20, steps=2, seconds=0)
    assert [row.k for row in costs.rows] == [None, 1, 2, 4, 8, 16]
    sizes = (costs.samples, costs.dimensions, costs.batch_size, costs.steps)
    assert sizes == (100, 4, 20, 2)
    assert costs.turns >= 3


def test_shares_sum_to_one_and_nothing_is_matched_at_k_1(quick):
    cost = measure("iris", steps=1, seconds=0)
    for line in cost.rows:
        assert set(line.parts) == set(PARTS)
        assert min(line.shares.values()) >= 0
        assert sum(line.shares.values()) == pytest.approx(1)
        assert line.epoch > 0
        assert (line.parts["assignment"] > 0) == (line.k not in (None, 1))
    assert cost.row(None).added == cost.row(1).parts["distance"] == 0
    assert cost.row(None).over_erm == 1


def test_threads_are_as_before(quick):
    seen = []
    torch.set_num_threads(2)
    measure("iris", steps=1, seconds=0, say=lambda _: seen.append(torch.get_num_threads()))
    assert seen == [1]
    assert torch.get_num_threads() == 2


def test_a_data_set_that_is_not_at_hand_is_replaced_by_noise_of_its_size(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("KMIXUP_DATA", raising=False)
    data, samples = cost.subject("mnist", 16, 3)
    assert data.title == "noise of the size of MNIST"
    assert (data.x_train.shape, data.num_classes, samples) == ((48, 1, 28, 28), 10, 60000)


@pytest.mark.parametrize(("n", "k"), [(24, 8), (21, 8), (5, 5)])
def test_the_solver_is_timed_on_the_costs_that_decide_the_match(n, k):
    x, x2 = torch.randn(2, n, 3, 2)
    partners, start = [], 0
    for block in block_costs(x, x2, k):
        for columns in solve(block):
            partners += (start + columns).tolist()
            start += len(columns)
    assert partners == match(x, x2, k=k).tolist()


def test_parts_of_a_row_come_from_the_times_of_an_epoch():
    timed = Timings(
        {
            "ERM": [10.0, 8.0], "k=4": [11.0, 10.0], "second batch": [0.5, 0.6],
            "mixing": [0.2, 0.1], "matching k=4": [0.7, 0.9], "assignment k=4": [0.3, 0.2],
        }
    )  # fmt: skip
    line = row(4, timed, per_epoch=3.0)
    assert line.parts == pytest.approx(parts(24.0, 1.5, 0.3, 1.5, 0.6))
    assert line.epoch == 30.0
    assert line.over_erm == pytest.approx((1.1 + 1.25) / 2)
    assert line.added == pytest.approx(3.9 / 24)


# the report


def test_the_conclusion_and_the_tables_are_what_was_measured():
    headline, methods, paper, *_ = cost_document(example(), "kmixup bench cost").blocks
    assert headline.text == "k-mixup at k = 32 adds 5.0% to an epoch of ERM, mixup adds 1.0%."
    assert "assignment is 1.0% of a step at k = 32, the distances 2.9%" in headline.sentences[0]
    assert methods.rows[2] == ("k = 32", "10.6 s", "+6.0", "0.60", "0.40", "3.00", "1.00", "5.00")
    assert [line[0] for line in methods.rows] == ["ERM", "mixup", "k = 32", "k = 64"]
    assert paper.rows[0] == ("assignment", "0.69 s", "0.10 s")
    assert paper.rows[3] == ("both, as a share", "below 4%", "3.8%")


def test_the_files_are_complete_and_the_same_each_time(tmp_path):
    paths = write(example(), tmp_path / "deep", "kmixup bench cost")
    assert [path.name for path in paths] == ["cost.md", "cost.json"]
    before = [path.read_bytes() for path in paths]
    page, values = before[0].decode(), json.loads(before[1])
    assert "k-mixup at k = 32 adds 5.0%" in page
    assert "```\nkmixup bench cost\n```" in page
    assert [line["k"] for line in values["rows"]] == [None, 1, 32, 64]
    assert values["rows"][2]["added"] == pytest.approx(0.05)
    assert values["paper"]["assignment"] == "0.69 s"
    assert values["machine"]["threads"] == 1
    again = write(example(), tmp_path / "deep", "kmixup bench cost")
    assert [path.read_bytes() for path in again] == before


# the command


def test_the_command_prints_tables_and_writes_what_is_asked_for(kmixup, quick, tmp_path):
    words = ("bench", "cost", "--data", "iris", "--steps", 1, "--seconds", 0, "--out", "made")
    code, out, err = kmixup(*words)
    assert (code, err) == (0, "")
    for word in ("ERM", "mixup", "k = 4", "assignment", "0.69 s", "k-mixup at k = 4 adds"):
        assert word in out
    assert "written: made/cost.md" in out
    page = (tmp_path / "made" / "cost.md").read_text()
    assert "kmixup bench cost --data iris --steps 1 --seconds 0 --out made" in page


def test_noise_is_called_noise(kmixup, quick):
    code, out, _ = kmixup("bench", "cost", "--steps", 1, "--seconds", 0, "--batch-size", 8)
    assert code == 0
    said = " ".join(out.split())
    assert "noise of the size of MNIST, lenet, batches of 8" in said
    assert "an epoch of 60,000 samples is extrapolated" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--data irsi", "there is no data set or file 'irsi': did you mean iris"),
        ("--data iris --steps 0", "steps must be at least 1, got 0"),
        ("--data iris --steps many", "--steps must be a whole number, got 'many'"),
        ("--data iris --seconds -1", "seconds must be a finite number, 0 or more, got -1"),
        ("--data iris --batch-size 0", "--batch-size must be a whole number, at least 2, got 0"),
        ("--batch-size 0", "--batch-size must be a whole number, at least 2, got 0"),
        ("--data iris --model lenet", "in_shape must be (channels, height, width)"),
        ("--data iris --out taken", "out must be a folder, taken is a file"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(kmixup, tmp_path, words, message):
    (tmp_path / "taken").touch()
    code, out, err = kmixup("bench", "cost", *words.split())
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
