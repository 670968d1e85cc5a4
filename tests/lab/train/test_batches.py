"""The random streams of a trial and the batches made of them."""

from dataclasses import replace

import pytest
import torch

from kmixup.coefficient import Beta
from kmixup.lab.data import load
from kmixup.lab.evaluate.tasks import Classes
from kmixup.lab.train.setup import network
from kmixup.lab.train.step import Step, crop_and_flip
from kmixup.lab.train.streams import Streams, batch_lengths, drawing_from, epoch
from kmixup.lab.trial import Method, Protocol, Trial
from kmixup.targets import agreement, mix_targets


def trial(method="kmixup", *, k=4, seed=0, batch_size=32, **settings):
    protocol = Protocol(epochs=2, batch_size=batch_size)
    return Trial("iris", "mlp-iris", Method(method, k, **settings), protocol, seed=seed)


@pytest.fixture(scope="module")
def iris():
    return load("iris")


def steps_of(trial, streams=None):
    return epoch(trial, 100, trial.method.alpha, streams or Streams(trial.seed))


SIDES = ("first", "second", "u")


def lam_of(step, alpha=1.0):
    return Beta(alpha).lam(step.u).float()


def batch_of(step, data, this):
    """Mixed inputs and soft targets of a step."""
    forward = Step(torch.nn.Identity(), this, data, Streams(0), this.method.alpha)
    return forward(step)


# the streams


def test_every_method_of_a_trial_sees_the_same_order_and_first_weights(iris):
    orders, weights = [], []
    for method in ("erm", "mixup", "kmixup", "nearest", "manifold", "cutmix", "local"):
        for pairing in ("loaders", "batch"):
            this = trial(method, pairing=pairing)
            orders.append(torch.cat([step.first for step in steps_of(this)]))
            weights.append(network(this, iris, Streams(0))[1].weight)
    assert all(torch.equal(orders[0], order) for order in orders)
    assert all(torch.equal(weights[0], weight) for weight in weights)


def test_streams_are_all_different():
    states = [*Streams(0).state(), *Streams(1).state()]
    assert len({tuple(state.tolist()) for state in states}) == 18


def test_a_state_that_lacks_a_stream_is_refused():
    with pytest.raises(ValueError, match="shorter"):
        Streams(3).restore(Streams(9).state()[:-1])


def test_restored_streams_go_on_as_they_would_have():
    streams = Streams(3)
    steps_of(trial(), streams)
    state = streams.state()
    expected = steps_of(trial(), streams)
    later = Streams(9)
    later.restore(state)
    again = steps_of(trial(), later)
    for a, b in zip(expected, again, strict=True):
        assert all(torch.equal(getattr(a, name), getattr(b, name)) for name in SIDES)


def test_an_epoch_uses_every_sample_once_on_each_side():
    steps = steps_of(trial())
    assert [len(step.first) for step in steps] == [32, 32, 32, 4]
    for side in ("first", "second"):
        rows = torch.cat([getattr(step, side) for step in steps])
        assert torch.equal(rows.sort().values, torch.arange(100))
    assert not torch.equal(steps[0].first, steps[0].second)


@pytest.mark.parametrize("n", range(2, 40))
def test_batches_cover_the_data_and_none_has_a_single_sample(n):
    lengths = batch_lengths(n, 8)
    assert sum(lengths) == n
    assert min(lengths) >= 2


def test_the_global_generator_is_left_alone_inside_and_repeatable():
    before = torch.get_rng_state()
    with drawing_from(torch.Generator().manual_seed(1)):
        first = torch.rand(3)
    with drawing_from(torch.Generator().manual_seed(1)):
        assert torch.equal(torch.rand(3), first)
    assert torch.equal(torch.get_rng_state(), before)


# the batches


def test_without_mixing_a_batch_is_the_data(iris):
    this = trial("erm")
    step = steps_of(this)[0]
    x, y = batch_of(step, iris, this)
    assert torch.equal(x, iris.normalise(iris.x_train[step.first]))
    assert torch.equal(y.argmax(1), iris.y_train[step.first])
    assert torch.equal(y.sum(1), torch.ones(32))


@pytest.mark.parametrize("length", [2, 5, 8, 9, 32])
def test_inside_a_batch_no_sample_meets_itself(length):
    x, y = torch.arange(length, dtype=torch.float32)[:, None], torch.zeros(length).long()
    mean, std = torch.tensor(0.0), torch.tensor(1.0)
    data = replace(load("iris"), x_train=x, y_train=y, mean=mean, std=std)
    this = trial(pairing="batch", alpha=1.0)
    (step,) = epoch(this, length, 1.0, Streams(0))
    mixed, _ = batch_of(step, data, this)
    partner = (mixed - lam_of(step) * x[step.first]) / (1 - lam_of(step))
    assert (partner - x[step.first]).abs().min() > 0.5
    assert torch.allclose(partner.sort(0).values, x, atol=1e-3)


def test_the_agreement_is_the_accuracy_of_mixed_pairs():
    logits, lam = torch.randn(2, 9, 3), torch.rand(9)
    y_a, y_b = torch.randint(3, (2, 2, 9))
    soft = torch.stack([mix_targets(*y, lam, 3) for y in zip(y_a, y_b, strict=True)])
    expected = [
        9 * agreement(*answers, lam).mean() for answers in zip(logits, y_a, y_b, strict=True)
    ]
    assert torch.allclose(Classes(3, 0).fit(logits, soft)[0], torch.stack(expected))


def test_crops_are_windows_of_the_padded_image_and_flips_mirror_them():
    images = torch.randint(1, 256, (64, 3, 8, 8), dtype=torch.uint8)
    moved = crop_and_flip(images, torch.Generator().manual_seed(0))
    assert moved.dtype == torch.uint8
    seen = set()
    for image, crop in zip(images, moved, strict=True):
        padded = torch.nn.functional.pad(image, [4] * 4)
        windows = {
            (flip, top, left): window.flip(2) if flip else window
            for flip in (False, True)
            for top in range(9)
            for left in range(9)
            for window in [padded[:, top : top + 8, left : left + 8]]
        }
        places = [key for key, window in windows.items() if torch.equal(window, crop)]
        assert places
        seen.add(places[0])
    assert {flip for flip, *_ in seen} == {False, True}
    assert {top for _, top, _ in seen} == {left for *_, left in seen} == set(range(9))


def test_the_two_sides_of_a_pair_are_augmented_apart():
    images = torch.arange(1, 65).view(1, 1, 8, 8).expand(32, 1, 8, 8).to(torch.uint8)
    generator = torch.Generator().manual_seed(0)
    assert not torch.equal(crop_and_flip(images, generator), crop_and_flip(images, generator))
