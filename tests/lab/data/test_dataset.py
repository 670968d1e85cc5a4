"""Samples and their division: splits, limits, draws and validation parts."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kmixup.lab.data import Holdout, load
from kmixup.lab.data.dataset import Dataset, Samples, split


def numbered(n):
    return Samples(torch.arange(n).float().unsqueeze(1), torch.arange(n) % 2, ("a", "b"))


def images(**changes):
    x, y = torch.tensor([[[[0, 255]]]], dtype=torch.uint8), torch.tensor([0])
    fields = {"mean": torch.tensor(51.0), "std": torch.tensor(102.0), "scaling": "standard"}
    return Dataset("some", x, y, x, y, ("a",), **{**fields, "pixel_range": (0, 255), **changes})


def test_split_uses_every_sample_once_with_its_own_label():
    parts = split(numbered(31), seed=0)
    x, y = torch.cat([parts.x, parts.x_test]), torch.cat([parts.y, parts.y_test])
    assert sorted(x.flatten().tolist()) == list(range(31))
    assert torch.equal(x.flatten().long() % 2, y)


@pytest.mark.parametrize(("n", "sizes"), [(150, (100, 50)), (569, (379, 190)), (2, (1, 1))])
def test_a_third_rounded_up_is_for_testing(n, sizes):
    parts = split(numbered(n), seed=0)
    assert (len(parts.x), len(parts.x_test)) == sizes


def test_split_depends_on_its_seed_alone():
    torch.manual_seed(1)
    first = split(numbered(30), seed=4)
    torch.manual_seed(2)
    assert torch.equal(first.x, split(numbered(30), seed=4).x)
    assert not torch.equal(first.x, split(numbered(30), seed=5).x)


@pytest.mark.parametrize("test_size", [None, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("sizes", [(50, 50, 50), (90, 7, 3), (59, 71, 48), (20, 1, 1)])
def test_a_stratified_split_has_the_same_share_of_each_class(sizes, test_size):
    y = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    samples = Samples(torch.arange(len(y)), y, tuple("abc"))
    parts = split(samples, seed=1, test_size=test_size, stratify=True)
    assert sorted(torch.cat([parts.x, parts.x_test]).tolist()) == list(range(len(y)))
    assert torch.equal(parts.y_test, y[parts.x_test])
    for size, tested in zip(sizes, parts.y_test.bincount(minlength=3).tolist(), strict=True):
        assert tested <= size - 1
        assert size == 1 or abs(tested - (test_size or 1 / 3) * size) <= 1
    again = split(samples, seed=1, test_size=test_size, stratify=True)
    assert torch.equal(parts.x_test, again.x_test)


def test_one_sample_or_classes_of_one_sample_each_cannot_be_split():
    with pytest.raises(ValueError, match="needs at least two samples to be split .*, got 1"):
        split(numbered(1), seed=0)
    samples = Samples(torch.arange(3), torch.arange(3), tuple("abc"))
    with pytest.raises(ValueError, match="two samples .* of one class if stratified"):
        split(samples, seed=0, stratify=True)


def test_normalise_maps_raw_pixels_and_raw_floats_alike():
    data = images()
    assert data.normalise(data.x_train).flatten().tolist() == [-0.5, 2.0]
    assert torch.equal(data.normalise(data.x_train.double()), data.normalise(data.x_train))
    assert data.x_train.dtype == torch.uint8


def test_normalise_lets_gradients_through_to_the_pixels():
    x = torch.zeros(1, 1, 1, 2, requires_grad=True)
    images().normalise(x).sum().backward()
    assert torch.allclose(x.grad, torch.tensor(1 / 102))


def test_pixel_step_is_a_share_of_the_pixel_range():
    assert images().pixel_step(8) == 8
    assert images(pixel_range=(0.0, 1.0)).pixel_step(51) == pytest.approx(0.2)
    with pytest.raises(ValueError, match="some has no pixels"):
        images(pixel_range=None).pixel_step(8)


def numbered_parts(n):
    x, y = torch.arange(float(n))[:, None], torch.arange(n)
    return Samples(x, y, ("a",), -x, -y)


@given(st.integers(2, 200), st.floats(0.01, 0.99), st.integers(0, 10**6))
def test_training_and_validation_divide_the_training_part(n, share, seed):
    holdout = Holdout(share, seed)
    try:
        left = holdout.left(n)
    except ValueError:
        assert round(share * n) >= n
        return
    parts = holdout.of(numbered_parts(n))
    assert len(parts.x) == left
    assert len(parts.x_test) == n - left >= 1
    assert sorted([*parts.y.tolist(), *parts.y_test.tolist()]) == list(range(n))
    assert torch.equal(parts.x[:, 0].long(), parts.y)
    assert torch.equal(parts.x_test[:, 0].long(), parts.y_test)


def test_the_seed_alone_decides_what_is_held_out():
    first, again, other = (Holdout(0.3, seed).of(numbered_parts(50)) for seed in (1, 1, 2))
    assert torch.equal(first.y_test, again.y_test)
    assert not torch.equal(first.y_test, other.y_test)


def test_a_limit_counts_before_samples_are_held_out():
    parts = Holdout(0.25).of(numbered_parts(100), limit=8)
    assert (len(parts.x), len(parts.x_test)) == (6, 2)
    assert max(*parts.y.tolist(), *parts.y_test.tolist()) == 7


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
        "20 of 40 training samples, and 20 others of them in the place of the test set"
    )


@pytest.mark.parametrize("share", [0, 1, -0.2, 1.5, float("nan")])
def test_a_share_lies_between_0_and_1_and_leaves_a_sample_to_train_on(share):
    with pytest.raises(ValueError, match="validation must be a fraction between 0 and 1, e.g. 0.2"):
        Holdout(share)
    with pytest.raises(
        ValueError, match="validation must leave a sample to train on, 0.9 of 2 leaves none"
    ):
        Holdout(0.9).of(numbered_parts(2))


def parts(counts, test=5):
    y = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    x = torch.arange(len(y)).float()[:, None]
    return Samples(x, y, tuple("abcdef"[: len(counts)]), x[:test], y[:test])


@pytest.mark.parametrize(
    ("sizes", "samples", "expected"),
    [
        ([50, 10, 200], 9, [3, 3, 3]),
        ([50, 10, 200], 30, [10, 10, 10]),
        ([50, 2, 200], 32, [15, 2, 15]),  # a class with too few samples gives all
    ],
)
def test_all_classes_get_alike_many_as_far_as_they_have_them(sizes, samples, expected):
    assert parts(sizes).drawn(samples, seed=0).y.bincount().tolist() == expected


def test_a_remainder_goes_to_some_classes_by_chance():
    counts = [parts([40, 40, 40]).drawn(4, seed=seed).y.bincount(minlength=3).tolist()
              for seed in range(20)]  # fmt: skip
    assert all(sorted(some) == [1, 1, 2] for some in counts)
    assert len({tuple(some) for some in counts}) == 3


def test_samples_are_drawn_by_the_seed_without_repetition_and_keep_their_targets():
    whole = parts([50, 60, 70])
    first, again, other = (whole.drawn(60, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first.x, again.x)
    assert not torch.equal(first.x, other.x)
    assert len(first.x.unique()) == 60
    assert torch.equal(whole.y[first.x[:, 0].long()], first.y)
    assert torch.equal(first.x_test, whole.x_test)


def test_numbers_are_drawn_without_regard_to_their_values():
    x = torch.arange(100.0)[:, None]
    whole = Samples(x, torch.arange(100.0) // 50, (), x, x[:, 0])
    assert len(whole.drawn(10, seed=0).y) == 10


def test_a_data_set_says_what_was_drawn_and_scales_by_it():
    iris, few = load("iris", seed=3), load("iris", seed=3, samples=30)
    assert few.part == "30 of 100 training samples, drawn at random"
    assert few.y_train.bincount().tolist() == [10, 10, 10]
    assert torch.equal(few.x_test, iris.x_test)
    torch.testing.assert_close(few.normalise(few.x_train).amax(0), torch.ones(4))


def test_validation_samples_are_held_out_of_the_drawn_ones():
    few = load("iris", samples=30, holdout=Holdout(0.2))
    assert (len(few.x_train), len(few.x_test)) == (24, 6)


def test_too_many_samples_and_samples_with_a_limit_are_refused():
    with pytest.raises(ValueError, match="samples must be a number from 1 to 100, .* got 101"):
        load("iris", samples=101)
    with pytest.raises(ValueError, match="samples must be a number from 1"):
        load("iris", samples=0)
    with pytest.raises(ValueError, match="samples and limit must not be given both"):
        load("iris", samples=10, limit=10)


def test_the_first_samples_of_a_stratified_test_part_have_all_classes():
    samples = Samples(torch.arange(150), torch.arange(150) // 50, tuple("abc"))
    parts = split(samples, seed=0, stratify=True)
    assert set(parts.y_test[:16].tolist()) == {0, 1, 2}


def test_label_noise_redraws_a_fraction_of_the_training_labels_and_no_test_label():
    classes = tuple("abcde")
    clean = Samples(torch.zeros(1000, 1), torch.zeros(1000).long(), classes)
    parts = replace(clean, x_test=clean.x, y_test=clean.y)
    noisy, noisier = (parts.with_label_noise(fraction, seed=3) for fraction in (0.2, 0.4))
    # a fifth of the labels that are redrawn come out as they were
    assert (noisy.y != 0).sum() == pytest.approx(160, abs=25)
    assert (noisier.y != 0).sum() == pytest.approx(320, abs=35)
    changed = noisy.y != 0
    assert torch.equal(noisier.y[changed], noisy.y[changed])
    assert torch.equal(noisy.y_test, clean.y)
    assert torch.equal(clean.y, torch.zeros(1000).long())
    assert not torch.equal(parts.with_label_noise(0.2, seed=4).y, noisy.y)


def test_validation_labels_are_as_noisy_as_training_labels():
    plain = load("cancer", seed=1, holdout=Holdout(0.2, 1))
    noisy = load("cancer", seed=1, holdout=Holdout(0.2, 1, keep_test=True), label_noise=1.0)
    assert torch.equal(noisy.x_test, plain.x_test)
    assert (noisy.y_test != plain.y_test).float().mean() == pytest.approx(0.5, abs=0.2)
    whole = load("cancer", seed=1)
    assert torch.equal(noisy.x_final, whole.x_test)
    assert torch.equal(noisy.y_final, whole.y_test)
    assert noisy.part.endswith("with 100 % random labels")


def test_the_labels_of_a_regression_cannot_be_redrawn():
    numbers = Samples(torch.zeros(3, 1), torch.zeros(3), ())
    with pytest.raises(ValueError, match="label_noise must be left out of a regression"):
        numbers.with_label_noise(0.2, seed=0)


def test_a_table_keeps_its_test_part_beside_validation_samples(tmp_path):
    path = tmp_path / "own.csv"
    words = ["red", "green", "blue"]
    rows = [f"{i % 7},{words[i % 3]},{'yes' if i % 2 else 'no'}" for i in range(60)]
    path.write_text("size,colour,label\n" + "\n".join(rows))
    whole, kept = load(str(path)), load(str(path), holdout=Holdout(0.25, keep_test=True))
    assert len(kept.x_final) == len(whole.x_test) == 20
    assert torch.equal(kept.y_final, whole.y_test)
    assert torch.equal(kept.x_final[:, 1:], whole.x_test[:, 1:])
    assert len(load(str(path), holdout=Holdout(0.25)).x_final) == 0
