"""Validation samples: drawn from the training part alone, before anything is fitted."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kmixup.lab.data import Holdout, load
from kmixup.lab.data.dataset import Parts


def numbered(n):
    x, y = torch.arange(float(n))[:, None], torch.arange(n)
    return Parts(x, y, -x, -y, ("a",))


@given(st.integers(2, 200), st.floats(0.01, 0.99), st.integers(0, 10**6))
def test_training_and_validation_divide_the_training_part(n, share, seed):
    holdout = Holdout(share, seed)
    try:
        left = holdout.left(n)
    except ValueError:
        assert round(share * n) >= n
        return
    parts = holdout.of(numbered(n))
    assert len(parts.x_train) == left
    assert len(parts.x_test) == n - left >= 1
    assert sorted([*parts.y_train.tolist(), *parts.y_test.tolist()]) == list(range(n))
    assert torch.equal(parts.x_train[:, 0].long(), parts.y_train)
    assert torch.equal(parts.x_test[:, 0].long(), parts.y_test)


def test_the_seed_alone_decides_what_is_held_out():
    first, again, other = (Holdout(0.3, seed).of(numbered(50)) for seed in (1, 1, 2))
    assert torch.equal(first.y_test, again.y_test)
    assert not torch.equal(first.y_test, other.y_test)


def test_a_limit_counts_before_samples_are_held_out():
    parts = Holdout(0.25).of(numbered(100), limit=8)
    assert (len(parts.x_train), len(parts.x_test)) == (6, 2)
    assert max(*parts.y_train.tolist(), *parts.y_test.tolist()) == 7


def test_the_division_of_the_data_stays_and_its_test_samples_are_nowhere():
    whole = load("iris", seed=3)
    held = [load("iris", seed=3, holdout=Holdout(0.2, seed)) for seed in range(5)]
    tested = {tuple(row) for row in whole.x_test.tolist()}
    for data in held:
        assert (len(data.x_train), len(data.x_test)) == (80, 20)
        rows = torch.cat([data.x_train, data.x_test])
        assert sorted(rows.tolist()) == sorted(whole.x_train.tolist())
    shared = {tuple(row) for row in whole.x_train.tolist()} & tested
    assert {tuple(row) for row in torch.cat([d.x_test for d in held]).tolist()} & tested <= shared


def test_the_scaling_is_fitted_to_what_is_left(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 3))
    np.savez(tmp_path / "own.npz", x=x, y=np.arange(40) % 2, x_test=x + 100, y_test=[0, 1] * 20)
    data = load(str(tmp_path / "own.npz"), holdout=Holdout(0.5))
    assert data.mean == pytest.approx(data.x_train.mean(0), abs=1e-6)
    assert data.part == (
        "20 of 40 training samples, and 20 others of them in the place of the test part"
    )


@pytest.mark.parametrize("share", [0, 1, -0.2, 1.5, float("nan")])
def test_a_share_lies_between_0_and_1(share):
    with pytest.raises(ValueError, match="validation must be a share between 0 and 1, e.g. 0.2"):
        Holdout(share)


def test_a_sample_must_be_left_to_train_on():
    with pytest.raises(ValueError, match="validation=0.9 must leave a sample to train on.* 2: low"):
        Holdout(0.9).of(numbered(2))
