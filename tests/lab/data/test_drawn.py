"""Training samples that are drawn, beside a whole test part."""

import pytest
import torch

from kmixup.lab.data import load
from kmixup.lab.data.dataset import Parts


def parts(counts, test=5):
    y = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    x = torch.arange(len(y)).float()[:, None]
    return Parts(x, y, x[:test], y[:test], tuple("abcdef"[: len(counts)]))


@pytest.mark.parametrize(("samples", "expected"), [(9, [3, 3, 3]), (30, [10, 10, 10])])
def test_all_classes_get_alike_many(samples, expected):
    drawn = parts([50, 10, 200]).drawn(samples, seed=0)
    assert drawn.y_train.bincount().tolist() == expected


def test_a_class_with_too_few_samples_gives_all_and_the_others_fill_up():
    drawn = parts([50, 2, 200]).drawn(32, seed=0)
    assert drawn.y_train.bincount().tolist() == [15, 2, 15]


def test_a_remainder_goes_to_some_classes_by_chance():
    counts = [parts([40, 40, 40]).drawn(4, seed=seed).y_train.bincount(minlength=3).tolist()
              for seed in range(20)]  # fmt: skip
    assert all(sorted(some) == [1, 1, 2] for some in counts)
    assert len({tuple(some) for some in counts}) == 3


def test_samples_are_drawn_by_the_seed_without_repetition_and_keep_their_targets():
    whole = parts([50, 60, 70])
    first, again, other = (whole.drawn(60, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first.x_train, again.x_train)
    assert not torch.equal(first.x_train, other.x_train)
    assert len(first.x_train.unique()) == 60
    assert torch.equal(whole.y_train[first.x_train[:, 0].long()], first.y_train)
    assert torch.equal(first.x_test, whole.x_test)


def test_numbers_are_drawn_without_regard_to_their_values():
    x = torch.arange(100.0)[:, None]
    whole = Parts(x, torch.arange(100.0) // 50, x, x[:, 0], ())
    assert len(whole.drawn(10, seed=0).y_train) == 10


def test_a_data_set_says_what_was_drawn_and_scales_by_it():
    iris, few = load("iris", seed=3), load("iris", seed=3, samples=30)
    assert few.part == "30 of 100 training samples, drawn at random"
    assert few.y_train.bincount().tolist() == [10, 10, 10]
    assert torch.equal(few.x_test, iris.x_test)
    torch.testing.assert_close(few.normalise(few.x_train).amax(0), torch.ones(4))


def test_validation_samples_are_held_out_of_the_drawn_ones():
    from kmixup.lab.data import Holdout

    few = load("iris", samples=30, holdout=Holdout(0.2))
    assert (len(few.x_train), len(few.x_test)) == (24, 6)


def test_too_many_samples_and_samples_with_a_limit_are_refused():
    with pytest.raises(ValueError, match="samples must be a number from 1 to 100, .* got 101"):
        load("iris", samples=101)
    with pytest.raises(ValueError, match="samples must be a number from 1"):
        load("iris", samples=0)
    with pytest.raises(ValueError, match="samples and limit must not be given both"):
        load("iris", samples=10, limit=10)
