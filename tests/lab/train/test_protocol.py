"""Settings of a protocol beyond the paper's: what each changes, and what it leaves alone."""

from dataclasses import replace

import pytest
import torch
from training import run, same, stopped_after

from kmixup.coefficient import Beta
from kmixup.lab import load
from kmixup.lab.experiments.units import done
from kmixup.lab.train import checkpoint, loop
from kmixup.lab.train.fleet import train_fleet
from kmixup.lab.train.setup import network, optimiser_of, strengths
from kmixup.lab.train.step import Step, gather
from kmixup.lab.train.streams import Streams, epoch
from kmixup.lab.trial import Method, Protocol, Trial

FAST = Protocol(epochs=4, rate=0.05, batch_size=16)


def photo_trial(method=None, protocol=FAST, model="preact-resnet14", **settings):
    return Trial("photos", model, method or Method("kmixup", 4), protocol, **settings)


# ids and rates


def test_the_new_settings_at_their_defaults_leave_the_id_as_it_was():
    plain = Trial("iris", "mlp-iris")
    off = Protocol(warmup=0, drop_last=False, schedule="step", nesterov=False)
    assert Trial("iris", "mlp-iris", protocol=off, clean_statistics=False).id == plain.id
    for setting in (
        {"warmup": 0.1}, {"test_every": 2}, {"layout": "channels_last"}, {"drop_last": True},
        {"clean_pass": "matched"}, {"schedule": "cosine"}, {"nesterov": True},
    ):  # fmt: skip
        assert Trial("iris", "mlp-iris", protocol=Protocol(**setting)).id != plain.id


def test_the_rate_rises_in_equal_steps_and_then_falls_at_its_milestones():
    warm, plain = Protocol(epochs=20, rate=0.1, warmup=0.2), Protocol(epochs=20, rate=0.1)
    assert [warm.rate_at(i) for i in range(5)] == pytest.approx((0.025, 0.05, 0.075, 0.1, 0.1))
    assert all(warm.rate_at(i) == plain.rate_at(i) for i in range(4, 20))
    # within an epoch the learning rate is constant
    assert [warm.rate_at(i, steps=3) for i in range(60)] == [
        warm.rate_at(i // 3) for i in range(60)
    ]


def test_a_warmup_of_whole_steps_rises_within_the_epoch():
    protocol = Protocol(epochs=2, rate=0.1, warmup=4, milestones=())
    rising = [protocol.rate_at(i, steps=5) for i in range(10)]
    assert rising == pytest.approx([0.025, 0.05, 0.075] + [0.1] * 7)
    assert Protocol(warmup=4) == Protocol(warmup=4.0)


def test_the_cosine_schedule_is_that_of_torch_and_has_no_milestones():
    protocol = Protocol(epochs=3, rate=0.2, schedule="cosine")
    assert protocol.milestones == ()
    optimiser = optimiser_of([torch.zeros(1, requires_grad=True)], protocol)
    annealing = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=12)
    for step in range(12):
        assert protocol.rate_at(step, steps=4) == pytest.approx(annealing.get_last_lr()[0])
        optimiser.step()
        annealing.step()


@pytest.mark.parametrize(
    "setting", [{"schedule": "cosine", "warmup": 3}, {"nesterov": True}, {"test_every": 3}]
)
def test_a_fleet_trains_by_the_protocol_of_its_members_alone(setting):
    trial = Trial("iris", "mlp-iris", protocol=replace(FAST, **setting))
    (member,), alone = train_fleet([trial]), run(trial)
    torch.testing.assert_close(member.net.state_dict(), alone.net.state_dict())
    assert same(alone, run(replace(trial, protocol=FAST))) is ("test_every" in setting)
    for first, second in zip(member.record["epochs"], alone.record["epochs"], strict=True):
        assert (first["rate"], first["error"]) == (second["rate"], second["error"])
    assert (alone.record["epochs"][0]["error"] is None) is ("test_every" in setting)


# rarer tests


def test_rarer_tests_change_the_curve_and_nothing_else(photos):
    often, rarely = photo_trial(), photo_trial(protocol=replace(FAST, test_every=3))
    first, second = (run(trial, photos) for trial in (often, rarely))
    assert same(first, second)
    assert first.record["result"] == second.record["result"]
    tested = [entry["epoch"] for entry in second.record["epochs"] if entry["error"] is not None]
    assert tested == [3, 4]
    assert done(rarely, second.record).curve.epoch == (3, 4)
    assert done(often, first.record).curve.epoch == (1, 2, 3, 4)


def test_a_run_with_rare_tests_goes_on_from_its_last_checkpoint(photos, tmp_path, monkeypatch):
    trial = photo_trial(protocol=replace(FAST, test_every=2))
    whole = run(trial, photos)
    stopped_after(monkeypatch, 1, trial, photos, out=tmp_path)
    assert checkpoint.completed_epochs(tmp_path / checkpoint.NAME) == 2
    resumed = run(trial, photos, out=tmp_path, resume=True)
    assert same(whole, resumed)
    assert len(resumed.record["epochs"]) == 4


# memory layout


def test_channels_last_gives_the_same_network_up_to_rounding(photos):
    last = replace(FAST, epochs=1, layout="channels_last")
    trained = run(photo_trial(protocol=replace(FAST, epochs=1)), photos)
    laid_out = run(photo_trial(protocol=last), photos)
    assert laid_out.record["epochs"][0]["loss"] == pytest.approx(
        trained.record["epochs"][0]["loss"], rel=1e-3
    )
    x = Step(
        network(photo_trial(protocol=last), photos, Streams(0)),
        photo_trial(protocol=last), photos, Streams(0), 1.0,
    ).mix(epoch(photo_trial(), 72, 1.0, Streams(0))[0]).x  # fmt: skip
    assert x.is_contiguous(memory_format=torch.channels_last)


def test_a_network_in_channels_last_can_be_saved_and_loaded(photos, tmp_path):
    trial = photo_trial(protocol=replace(FAST, epochs=1, layout="channels_last"))
    trained = run(trial, photos, out=tmp_path)
    assert same(load(tmp_path), trained)


# the last batch, and the batch that meets itself


def test_drop_last_leaves_out_the_short_batch():
    trial = photo_trial(protocol=replace(FAST, drop_last=True))
    assert [len(step.first) for step in epoch(trial, 72, 1.0, Streams(0))] == [16] * 4
    assert [len(step.first) for step in epoch(photo_trial(), 72, 1.0, Streams(0))] == [16] * 4 + [8]


def test_a_reshuffled_batch_meets_itself_and_a_sample_may_meet_itself(photos):
    trial = photo_trial(Method("kmixup", 16, pairing="reshuffle"))
    forward = Step(torch.nn.Flatten(), trial, photos, Streams(0), 1.0)
    for step in epoch(trial, 72, 1.0, Streams(0))[:4]:
        assert sorted(step.again.tolist()) == list(range(16))
        # at k = batch the optimal match of a batch with itself is every sample with itself
        x, _ = forward.gather(step.first)
        assert torch.equal(forward.mix(step).x, x)


def test_at_k_one_a_reshuffled_batch_is_mixed_with_its_own_samples(photos):
    trial = photo_trial(Method("mixup", pairing="reshuffle"))
    step = epoch(trial, 72, 1.0, Streams(0))[0]
    forward = Step(torch.nn.Flatten(), trial, photos, Streams(0), 1.0)
    mixed, (x, _) = forward.mix(step), forward.gather(step.first)
    torch.testing.assert_close(mixed.x, mixed.lam * x + (1 - mixed.lam) * x[step.again])


def test_augmented_data_are_calibrated_on_augmented_inputs(photos):
    cropped = replace(FAST, augment=True)
    plain, augmented = strengths([photo_trial(), photo_trial(protocol=cropped)], [photos] * 2)
    assert plain.xi != augmented.xi
    assert strengths([photo_trial(protocol=cropped)], [photos]) == [augmented]
    mixup = photo_trial(Method("mixup", alpha=1.0), cropped)
    (strength,) = strengths([mixup], [photos])
    # at k = 1: pairs of samples that are drawn, cropped and flipped apart
    generator = torch.Generator().manual_seed(1)
    first, second = (
        gather(torch.randint(72, (20_000,), generator=generator), photos, generator)[0]
        for _ in range(2)
    )
    square = (first - second).flatten(1).square().sum(1).mean()
    assert strength.xi**2 == pytest.approx(float(square) * Beta(1.0).mean_square_step, rel=0.05)
    assert (
        abs(strengths([photo_trial(Method("mixup", alpha=1.0))], [photos])[0].xi / strength.xi - 1)
        > 0.1
    )


# clean passes and clean statistics


def test_a_clean_pass_moves_the_statistics_and_no_weight(photos):
    trial = photo_trial(protocol=replace(FAST, clean_pass="matched"))
    net = network(trial, photos, Streams(0)).train()
    step = epoch(trial, 72, 1.0, Streams(0))[0]
    before = {name: value.clone() for name, value in net.state_dict().items()}
    Step(net, trial, photos, Streams(0), 1.0).mix(step)
    moved = {
        name for name, value in net.state_dict().items() if not torch.equal(value, before[name])
    }
    assert moved
    assert all("running" in name or "num_batches" in name for name in moved)


@pytest.mark.parametrize(
    ("clean_pass", "method", "passes"),
    [
        ("matched", Method("mixup"), False),
        ("matched", Method("kmixup", 4), True),
        (None, Method("kmixup", 4), False),
    ],
)
def test_the_script_makes_its_clean_pass_for_matched_pairs_alone(
    photos, clean_pass, method, passes
):
    trial = photo_trial(method, replace(FAST, clean_pass=clean_pass))
    forward = Step(torch.nn.Flatten(), trial, photos, Streams(0), 1.0)
    assert forward.clean_pass is passes


def test_clean_statistics_are_scored_beside_those_of_training(photos):
    trial = photo_trial(clean_statistics=True)
    clean, plain = run(trial, photos), run(photo_trial(), photos)
    assert clean.record["result"] == plain.record["result"]
    assert done(trial, clean.record).clean is not None
    assert done(photo_trial(), plain.record).clean is None
    for name, value in clean.net.state_dict().items():
        assert torch.equal(value, plain.net.state_dict()[name]) is not (
            "running" in name or "num_batches" in name
        )


@pytest.mark.parametrize(
    ("method", "augment"), [("kmixup", False), ("kmixup", True), ("stackmix", False)]
)
def test_clean_statistics_are_of_inputs_augmented_and_encoded_as_in_training(
    photos, method, augment
):
    protocol = replace(FAST, augment=augment)
    trial = photo_trial(Method(method, 4), protocol, clean_statistics=True)
    net = run(trial, photos).net
    streams = Streams(trial.seed)
    order = torch.randperm(len(photos.x_train), generator=streams.order)
    x, _ = gather(order, photos, streams.augment if augment else None)
    if method == "stackmix":
        x, net = net.interpolation.twice(x), net.net
    mean = net.stem(x).mean((0, 2, 3))
    torch.testing.assert_close(net.layer1[0].act1[0].running_mean, mean)


def test_no_clean_batch_has_a_single_sample(photos):
    rows = torch.arange(loop.TEST_BATCH + 1) % 72
    more = replace(photos, x_train=photos.x_train[rows], y_train=photos.y_train[rows])
    assert [len(x) for x in loop._clean_batches(more, photo_trial())] == [loop.TEST_BATCH + 1]


def test_a_network_without_batch_norm_has_no_second_score(photos):
    trial = photo_trial(model="lenet", clean_statistics=True)
    assert done(trial, run(trial, photos).record).clean is None
