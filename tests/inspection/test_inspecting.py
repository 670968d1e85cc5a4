"""The X-ray as a whole: what it takes, how it samples, what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kmixup import inspect
from oracles import seeded

X = torch.randn(120, 3, generator=seeded())
Y = (X[:, 0] > 0).long()


def inspected(x=X, y=Y, **settings):
    return inspect(x, y, generator=seeded(), **settings)


def test_every_form_of_the_data_gives_the_same_answer():
    inspection = inspected()
    for x, y in [
        (X.numpy(), Y.numpy()),
        (X.view(120, 1, 3, 1), Y.int()),
        (X.double(), Y.bool()),
        (X.clone().requires_grad_(), Y.tolist()),
    ]:
        again = inspected(x, y)
        assert replace(again, classes=inspection.classes) == inspection


def test_names_of_classes_do_not_matter():
    names = np.array(["right", "left"])[Y.numpy()]
    inspection = inspected(y=names)
    assert inspection.readings == inspected(y=1 - Y).readings
    assert inspection.classes == {"left": int(Y.sum()), "right": int((1 - Y).sum())}


@settings(max_examples=8, deadline=None)
@given(st.floats(-1e4, 1e4), st.sampled_from([1e-3, 1.0, 1e3]))
def test_neither_place_nor_unit_of_the_data_matters(shift, unit):
    inspection = inspected(X.double() * unit + shift, largest_k=8)
    plain = inspected(X.double(), largest_k=8)
    for reading, other in zip(inspection.readings, plain.readings, strict=True):
        assert reading.ratio.value == pytest.approx(other.ratio.value, rel=1e-4)
        assert reading.crossing == other.crossing
        assert reading.halfway.distance.value == pytest.approx(
            other.halfway.distance.value, rel=1e-4
        )


def test_readings_are_at_powers_of_two_that_fit_twice():
    assert [reading.k for reading in inspected().readings] == [1, 2, 4, 8, 16, 32]
    assert [reading.k for reading in inspected(largest_k=20).readings] == [1, 2, 4, 8, 16]
    assert [reading.k for reading in inspected(X[:9], Y[:9]).readings] == [1, 2, 4]
    assert inspected().at(16).halfway is not None
    assert inspected().at(32).halfway is None


def test_large_data_are_sampled_and_the_size_is_said():
    inspection = inspected(size=50)
    assert (inspection.samples, inspection.used, sum(inspection.classes.values())) == (120, 50, 50)
    assert [reading.k for reading in inspection.readings] == [1, 2, 4, 8, 16]


def test_large_samples_are_fewer(monkeypatch):
    monkeypatch.setattr("kmixup.inspection.readings.NUMBERS", 100 * 3)
    assert inspected().used == 100


def test_a_sample_is_drawn_at_random_and_keeps_its_labels():
    x = torch.arange(1000.0)[:, None]
    inspection = inspected(x, (x[:, 0] >= 500).long(), size=200)
    assert 60 < inspection.classes["0"] < 140
    assert inspection.at(64).crossing.value < 0.2  # labels still go with the samples


def test_only_what_is_drawn_is_read():
    class Watched(np.ndarray):
        read = 0

        def __getitem__(self, index):
            rows = super().__getitem__(index)
            Watched.read += len(rows)
            return np.asarray(rows)

    x = np.random.default_rng(0).random((5000, 2)).view(Watched)
    inspected(x, None, size=64, largest_k=2)
    assert Watched.read == 64


def test_every_k_is_announced():
    told = []
    inspected(largest_k=8, watch=told.append)
    assert told == [1, 2, 4, 8]


def test_one_class_is_as_good_as_none():
    single, none = inspected(y=torch.zeros(120, dtype=torch.long)), inspected(y=None)
    assert single.classes == {"0": 120}
    assert none.classes == {}
    assert single.readings == none.readings
    assert single.at(4).crossing is None
    assert single.at(4).halfway.contradiction is None


def test_the_same_generator_gives_the_same_answer_and_another_one_another():
    assert inspected() == inspected()
    assert inspect(X, Y, generator=seeded(1)).readings != inspected().readings


def test_a_k_that_was_not_read_is_refused():
    with pytest.raises(ValueError, match=r"k must be one of 1, 2, 4, 8, 16, 32, got 3"):
        inspected().at(3)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: inspect([[1.0]] * 9), r"x must be a tensor or an array of shape \(n, ...\), got"),
        (lambda: inspect(torch.zeros(9)), r"x must be .* shape \(n, ...\), got \(9,\)"),
        (lambda: inspect(torch.zeros(9, 0)), r"got \(9, 0\)"),
        (lambda: inspect(X[:3], Y[:3]), r"x must have at least 4 samples, got 3"),
        (lambda: inspect(X.log()), r"x must be finite, .* fill or drop it"),
        (lambda: inspect(torch.ones(9, 2)), r"x must have samples that differ"),
        (lambda: inspect(X, Y[:9]), r"y must have the shape \(120,\) .* got int64 \(9,\)"),
        (lambda: inspect(X, X[:, 0]), r"y must .* hold classes.* float32 .* leave it out"),
        (lambda: inspect(X, Y, alpha=0), r"alpha must be above 0"),
        (lambda: inspect(X, Y, alpha=-1), r"alpha must be a finite number"),
        (
            lambda: inspect(X, Y, largest_k=0),
            "largest_k must be a whole number, at least 1",
        ),
        (lambda: inspect(X, Y, size=3), r"size must be a whole number, at least 4, got 3"),
    ],
)
def test_what_cannot_be_inspected_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_samples_at_equal_distances_stay_apart_at_every_k():
    decay = inspect(torch.eye(64), largest_k=32, generator=seeded()).decay
    assert abs(decay.slope.value) < 1e-9


def test_classes_may_be_a_column_of_text():
    names = np.array(["cat", "dog"], dtype=object)[Y]
    assert inspected(y=names) == inspected(y=names.astype(str))
