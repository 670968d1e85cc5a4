"""CutMix, local and manifold mixup in the lab are those of the library on what was drawn."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from training import StopError, own_network, run, same, stopped_after

from kmixup.coefficient import Beta
from kmixup.importance import saliency
from kmixup.interpolation import Cut, Linear, Pair
from kmixup.lab.evaluate.tasks import soft_cross_entropy
from kmixup.lab.experiments.grid import expand
from kmixup.lab.experiments.units import units
from kmixup.lab.models import build, layers_of
from kmixup.lab.train import checkpoint
from kmixup.lab.train.loop import train
from kmixup.lab.train.step import Step, StreamSource, draw_of, gather, mixer_of
from kmixup.lab.train.streams import Streams, epoch
from kmixup.lab.trial import Method, Protocol, Trial
from kmixup.matching import Blocks, Optimal
from kmixup.targets import mix_targets

FAST = Protocol(epochs=2, rate=0.05, batch_size=32)


def trial(name, k=4, **settings):
    return Trial("photos", "lenet", Method(name, k, **settings), FAST)


def lam_of(step, alpha=1.0):
    return Beta(alpha).lam(step.u).float()


def matched(own, facing, k):
    sides = ([side.detach().flatten(1)] for side in (own, facing))
    return Optimal(k).partners(*sides, Blocks(len(own), k))


def forward_of(this, data, streams, net=None):
    return Step(net or nn.Identity(), this, data, streams, this.method.alpha)


def first_step(this, data, streams):
    return epoch(this, len(data.x_train), this.method.alpha, streams)[0]


@pytest.mark.parametrize("pairing", ["loaders", "batch"])
@pytest.mark.parametrize("k", [1, 4])
def test_cutmix_pastes_the_box_of_the_stream_of_places(photos, k, pairing):
    this, streams = trial("cutmix", k, pairing=pairing), Streams(0)
    step = first_step(this, photos, streams)
    x, y = forward_of(this, photos, streams)(step)
    images, classes = gather(step.first, photos, None)
    facing, others = (
        (images.roll(-k, 0), classes.roll(-k)) if step.second is None
        else gather(step.second, photos, None)
    )  # fmt: skip
    partner = matched(images, facing, k)
    (spot,) = Cut().draw(1, generator=Streams(0).place)
    lam, region = Cut().settle(lam_of(step), spot, Pair.of([images]))
    assert torch.equal(x, Cut()(images, facing, partner, lam, region))
    assert y.dtype == torch.float32
    assert torch.allclose(y, mix_targets(classes, others[partner], lam.float(), 2))


@pytest.mark.parametrize("name", ["puzzlemix", "guided", "comixup"])
def test_saliency_is_that_of_the_network_before_the_step(photos, name):
    this, streams = trial(name), Streams(0)
    net = build("lenet", in_shape=photos.shape, num_classes=2).train()
    before = [value.clone() for value in net.state_dict().values()]
    step = first_step(this, photos, streams)
    assert step.second is None
    mixed = forward_of(this, photos, streams, net).mix(step)
    x, y = gather(step.first, photos, None)
    mixer = mixer_of(this.method, 1.0, 2)
    draw = draw_of(step, mixer, Streams(0).place)
    by_hand = mixer.mix(x, y, draw, importance=saliency(net, x, y))
    assert torch.equal(mixed.x, by_hand.x)
    assert torch.equal(mixed.y, by_hand.y)
    assert all(map(torch.equal, before, net.state_dict().values()))
    assert all(parameter.grad is None for parameter in net.parameters())


def test_boxes_do_not_shift_what_else_is_drawn(photos):
    drawn = {}
    for name in ("mixup", "cutmix"):
        streams = Streams(0)
        forward = forward_of(trial(name), photos, streams)
        for _ in range(2):
            steps = epoch(trial(name), len(photos.x_train), 1.0, streams)
            for step in steps:
                forward(step)
        drawn[name] = steps
    for first, second in zip(*drawn.values(), strict=True):
        assert torch.equal(first.first, second.first)
        assert torch.equal(first.second, second.second)
        assert torch.equal(first.u, second.u)


@pytest.mark.parametrize("k", [1, 4])
def test_the_loss_of_local_mixup_is_weighted_by_distance(photos, k):
    this = trial("local", k)
    step = first_step(this, photos, Streams(0))
    x, y = forward_of(this, photos, Streams(0))(step)
    images, classes = gather(step.first, photos, None)
    facing, others = gather(step.second, photos, None)
    partner = matched(images, facing, k)
    assert torch.equal(x, Linear()(images, facing, partner, lam_of(step)))
    distance = (images - facing[partner]).flatten(1).norm(dim=1)
    weight = (-distance / distance.mean()).exp()
    weight = weight / weight.mean()
    logits = torch.randn(len(x), 2)
    losses = F.cross_entropy(
        logits, mix_targets(classes, others[partner], lam_of(step), 2), reduction="none"
    )
    expected = (weight * losses).mean()
    assert soft_cross_entropy(logits, y, len(x)) == pytest.approx(float(expected), rel=1e-5)
    assert y.sum(1).std() > 0


def explicit(net, x, y, step, k, layer):
    """The forward pass of a Sequential by hand, mixed after `layer`, "" for the input."""

    def mixed(h):
        other = h.roll(-k, 0)
        partner = matched(h, other, k)
        soft = mix_targets(y, y.roll(-k)[partner], lam_of(step), 2)
        return lam_of(step) * h + (1 - lam_of(step)) * other[partner], soft

    h, soft = (x, None) if layer else mixed(x)
    for name, part in net.named_children():
        h = part(h)
        if name == layer:
            h, soft = mixed(h)
    return h, soft


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("layer", ["input", "3", "8"])
def test_manifold_mixup_is_that_of_a_forward_by_hand(photos, k, layer):
    torch.manual_seed(0)
    net = build("lenet", in_shape=(3, 8, 8), num_classes=2)
    this, streams = trial("manifold", k, layers=layer), Streams(0)
    step = first_step(this, photos, streams)
    logits, y = forward_of(this, photos, streams, net)(step)
    x, classes = gather(step.first, photos, None)
    (name,) = layers_of("lenet", layer)
    expected, soft = explicit(net, x, classes, step, k, name)
    assert torch.allclose(logits, expected, atol=1e-5)
    assert torch.allclose(y, soft)
    weight = next(net.parameters())
    grads = [
        torch.autograd.grad(soft_cross_entropy(out, t, 32), weight)[0]
        for out, t in ((logits, y), (expected, soft))
    ]
    assert torch.allclose(*grads, atol=1e-6)


def test_the_layer_is_a_fair_coin_from_the_stream_of_places(photos):
    net = build("lenet", in_shape=(3, 8, 8), num_classes=2)
    this, streams = trial("manifold"), Streams(0)
    forward = forward_of(this, photos, streams, net)
    step = first_step(this, photos, Streams(0))
    hidden = forward.hidden
    source = StreamSource(step.u, forward.streams.place)
    drawn = [hidden.layers[hidden.draw(32, source=source).layer] for _ in range(400)]
    assert set(drawn) == {"", "3"}
    assert 150 < drawn.count("3") < 250
    assert torch.equal(streams.mix.get_state(), Streams(0).mix.get_state())


def test_without_alpha_manifold_mixup_is_plain_training(photos):
    net = build("lenet", in_shape=(3, 8, 8), num_classes=2)
    this = trial("manifold", alpha=0.0)
    step = first_step(this, photos, Streams(0))
    logits, y = forward_of(this, photos, Streams(0), net)(step)
    x, classes = gather(step.first, photos, None)
    assert torch.equal(logits, net(x))
    assert torch.equal(y.argmax(1), classes)


@pytest.mark.parametrize("name", ["cutmix", "manifold"])
def test_a_resumed_run_draws_the_same_places(photos, tmp_path, monkeypatch, name):
    whole = run(trial(name), photos)
    stopped_after(monkeypatch, 1, trial(name), photos, out=tmp_path)
    assert same(whole, run(trial(name), photos, out=tmp_path, resume=True))
    assert whole.record["xi"] is None


@pytest.mark.parametrize(("name", "most"), [("adamixup", 6), ("automix", 20)])
def test_a_resumed_run_has_the_weights_that_its_mixer_had_learned(
    photos, tmp_path, monkeypatch, name, most
):
    states, save = {"whole": [], "parts": []}, checkpoint.save

    def save_and_keep(path, state):
        save(path, state)
        kept = states[path.parent.name]
        kept.append({key: value.clone() for key, value in state["mixer"].items()})
        if path.parent.name == "parts" and len(kept) == 1:
            raise StopError

    monkeypatch.setattr(checkpoint, "save", save_and_keep)
    whole = run(trial(name), photos, out=tmp_path / "whole")
    with pytest.raises(StopError):
        run(trial(name), photos, out=tmp_path / "parts")
    again = run(trial(name), photos, out=tmp_path / "parts", resume=True)
    assert same(whole, again)
    for left, right in zip(states["whole"], states["parts"], strict=True):
        assert left.keys() == right.keys()
        assert all(torch.equal(left[key], right[key]) for key in left)
    first, last = states["whole"]
    changed = [key for key in first if not torch.equal(first[key], last[key])]
    assert 0 < len(changed) <= most


@pytest.mark.parametrize("name", ["adamixup", "automix"])
def test_the_loss_of_a_step_reaches_what_the_mixer_learns(photos, name):
    net = build("lenet", in_shape=photos.shape, num_classes=2)
    this, streams = trial(name), Streams(0)
    forward = forward_of(this, photos, streams, net)
    outputs, mixed = forward.run(first_step(this, photos, streams))
    assert len(outputs) == 2 * 32
    loss = forward.objective.loss(outputs, forward.weighted(mixed), 64) + mixed.penalty
    by_hand = mixed.loss(nn.CrossEntropyLoss(reduction="none"), outputs).mean()
    torch.testing.assert_close(loss, by_hand)
    grads = torch.autograd.grad(loss, forward.learned)
    assert all(grad.isfinite().all() for grad in grads)
    assert sum(grad.abs().sum() for grad in grads) > 0


@pytest.mark.parametrize("name", ["local", "manifold", "adamixup"])
def test_small_networks_run_alone_with_methods_that_fleets_do_not_know(name):
    trials = [Trial("iris", "mlp-iris", Method(name, 4), seed=seed) for seed in range(3)]
    plain = [replace(trial, method=Method("kmixup", 4)) for trial in trials]
    assert sorted(map(len, units([*trials, *plain]))) == [1, 1, 1, 3]


def test_a_model_of_ones_own_must_name_its_layers(photos, tmp_path, monkeypatch):
    layers = "nn.Sequential(nn.Flatten(), nn.Linear(192, 8), nn.Linear(8, num_classes))"
    this = replace(trial("manifold"), model=own_network(tmp_path, monkeypatch, layers))
    with pytest.raises(ValueError, match="the model 'own:net', whose blocks are not known"):
        run(this, photos)
    named = replace(this, method=Method("manifold", 4, layers="input,1"))
    assert isinstance(run(named, photos).net, nn.Sequential)


def test_cutmix_is_for_images():
    with pytest.raises(ValueError, match="cutmix needs images to cut boxes from, iris has none"):
        train(Trial("iris", "mlp-iris", Method("cutmix", 4)), device="cpu")


def test_grids_take_the_methods_and_sweep_layers_of_manifold_alone():
    grid = expand(
        data="mnist",
        method=["cutmix", "manifold", "local"],
        k=[1, 16],
        layers=["input+first-block", "all-blocks"],
    )
    methods = {trial.method for trial in grid}
    assert len(grid) == len(methods) == 2 + 4 + 2
    assert Method("manifold", 16, layers="all-blocks") in methods
