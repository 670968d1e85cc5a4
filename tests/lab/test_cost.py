"""What is measured, and what is made of it; never how long it took."""

import pytest
import torch

from kmixup.lab import cost
from kmixup.lab.cost import Cost, cost_document, measure
from kmixup.lab.timing import Timings, interleaved


@pytest.fixture
def quick(monkeypatch):
    """Small blocks only."""
    monkeypatch.setattr(cost, "KS", (1, 2, 4))


def test_every_k_up_to_the_batch_is_measured_on_one_thread(monkeypatch):
    threads = []

    def timed(calls, seconds):
        threads.append(torch.get_num_threads())
        return interleaved(calls, seconds=seconds)

    monkeypatch.setattr(cost, "interleaved", timed)
    torch.set_num_threads(2)
    costs = measure("iris", batch_size=20, steps=2, seconds=0)
    assert list(costs.added) == [1, 2, 4, 8, 16]
    assert (costs.samples, costs.batch_size, costs.steps) == (100, 20, 2)
    assert costs.turns >= 3
    assert costs.erm > 0
    assert (threads, torch.get_num_threads()) == ([1], 2)


def test_mixing_adds_the_difference_to_an_unmixed_batch_over_an_epoch(monkeypatch, quick):
    turns = {"ERM": [10.0, 8.0], "unmixed": [0.6, 0.5], "k=1": [0.7, 0.9], "k=2": [0.7, 1.0],
             "k=4": [2.0, 1.5]}  # fmt: skip
    monkeypatch.setattr(cost, "interleaved", lambda calls, seconds: Timings(turns))
    costs = measure("iris", batch_size=20, steps=1)  # a fifth of an epoch
    assert costs.erm == pytest.approx(40)
    assert costs.added == pytest.approx({1: 1.0, 2: 1.0, 4: 5.0})
    assert [costs.matching(k) for k in (1, 2, 4)] == pytest.approx([0, 0, 4])


def test_the_conclusion_and_the_table_are_what_was_measured():
    costs = Cost("mnist", "lenet", 60000, 128, 20, 5, 10.0, {1: 0.1, 32: 0.5, 64: 0.6})
    headline, _, methods, *_ = cost_document(costs, "kmixup reproduce cost").blocks
    assert headline.text == "k-mixup at k = 32 adds 5.0% to an epoch of ERM, mixup adds 1.0%."
    assert "Matching at k = 32 takes 0.40 s of an epoch of 10.5 s." in headline.sentences[0]
    assert [line[0] for line in methods.rows] == ["ERM", "mixup", "k = 32", "k = 64"]
    assert methods.rows[2] == ("k = 32", "10.5 s", "5.00%", "4.00%")


def test_data_that_are_not_at_hand_are_replaced_by_noise_of_their_shape(kmixup, quick):
    code, out, _ = kmixup("reproduce", "cost", "--steps", 1, "--seconds", 0, "--batch-size", 8)
    assert code == 0
    said = " ".join(out.split())
    assert "k-mixup at k = 4 adds" in said
    assert "noise of the shape of MNIST, lenet, batches of 8" in said
    assert "an epoch of 60,000 samples" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--steps 0", "--steps must be a whole number, at least 1, got 0"),
        ("--seconds -1", "--seconds must be a finite number, 0 or more, got -1"),
        ("--batch-size 0", "--batch-size must be a whole number, at least 2, got 0"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(kmixup, words, message):
    code, out, err = kmixup("reproduce", "cost", "iris", *words.split())
    assert (code, out) == (2, "")
    assert message in err
