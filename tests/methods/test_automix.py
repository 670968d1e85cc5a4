"""AutoMix: masks from a block that learns through a slow copy of the network."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from kmixup import AutoMix
from kmixup._networks import passing
from kmixup.lab.models import build
from kmixup.methods import automix
from kmixup.methods.automix import deepest_layer
from oracles import seeded

EACH = nn.CrossEntropyLoss(reduction="none")
SHAPE = (2, 8, 6)


def network(classes=3):
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Conv2d(4, 6, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, classes),
    )


def batch(n=12, classes=3):
    return torch.randn(n, *SHAPE), torch.randint(classes, (n,))


def roughened(mix, std=0.5):
    """The mixer with a block far from its first weights."""
    for parameter in mix.block.parameters():
        nn.init.normal_(parameter, std=std)
    return mix


def at_zero(mix):
    for parameter in mix.block.parameters():
        nn.init.zeros_(parameter)
    return mix


@pytest.mark.parametrize("paired", [False, True])
def test_a_block_at_zero_gives_mixup_at_one_half(paired):
    x, y = batch()
    other = batch() if paired else None
    mix = at_zero(AutoMix(network(), SHAPE, 4, 100.0, 3, generator=seeded()))
    m = mix.mix(x, y, other=other)
    theirs = (x if other is None else other[0])[m.partner[:12]]
    torch.testing.assert_close(m.x, torch.cat([(x + theirs) / 2, x]))
    assert torch.equal(m.region.weight, torch.full((12, 8, 6), 0.5))


def explicit(mix, x, y, m):
    """The mask, the loss of the block and its gradients, by hand."""
    n = len(x)
    h = mix.teacher[:6](x).detach()
    own, their = h, h[m.partner[:n]]
    lam = m.lam[:n]
    plane = lam[:, None, None, None].expand(n, 1, *h.shape[-2:])
    own, their = torch.cat([own, plane], 1), torch.cat([their, 1 - plane], 1)
    mask = torch.zeros(n, *h.shape[-2:])
    for i in range(n):
        q = torch.einsum("oc,chw->ohw", mix.block.query.weight[:, :, 0, 0], own[i])
        key = torch.einsum("oc,chw->ohw", mix.block.query.weight[:, :, 0, 0], their[i])
        q, key = (side + mix.block.query.bias[:, None, None] for side in (q, key))
        value = torch.einsum("c,chw->hw", mix.block.value.weight[0, :, 0, 0], their[i])
        value = value + mix.block.value.bias
        scores = torch.einsum("chw,cij->hwij", q, key) / q.shape[0] ** 0.5
        attention = scores.flatten(2).softmax(-1)
        mask = mask.index_put((torch.tensor(i),), attention @ value.flatten())
    theirs = mask.repeat_interleave(2, 1).repeat_interleave(2, 2).sigmoid()
    mixed = (1 - theirs)[:, None] * x + theirs[:, None] * x[m.partner[:n]]
    logits = mix.teacher(mixed)
    loss = (lam * EACH(logits, y) + (1 - lam) * EACH(logits, y[m.partner[:n]])).mean()
    off = ((1 - theirs).mean() - lam[0]).abs()
    return mixed, loss + 0.1 * (off - 0.1).clamp(min=0)


@pytest.mark.parametrize("k", [1, 4])
def test_gradients_reach_the_block_through_the_copy_as_in_a_forward_by_hand(k):
    torch.manual_seed(1)
    x, y = batch()
    net = network()
    mix = roughened(AutoMix(net, SHAPE, k, 2.0, 3, generator=seeded(3)))
    m = mix.mix(x, y)
    assert 0.08 < m.lam[0] < 0.92
    mixed, by_hand = explicit(mix, x, y, m)
    torch.testing.assert_close(m.x[:12], mixed.detach())
    torch.testing.assert_close(m.penalty, by_hand / 2)
    learned = list(mix.block.parameters())
    wanted = torch.autograd.grad(by_hand / 2, learned)
    loss = m.loss(EACH, net(m.x)).mean()
    found = torch.autograd.grad(loss, learned, retain_graph=True)
    for one, two in zip(wanted, found, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-6)
    assert all(one.abs().sum() > 0 for one in wanted[:1] + wanted[2:])  # the key's bias cancels

    # the network learns from the mixed images as they are, and from nothing else
    halves = net(torch.cat([mixed.detach(), x]))
    plain = (m.loss(EACH, halves) - m.penalty).mean()
    for one, two in zip(
        torch.autograd.grad(plain, list(net.parameters())),
        torch.autograd.grad(loss, list(net.parameters())),
        strict=True,
    ):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-6)
    assert all(parameter.grad is None for parameter in mix.teacher.parameters())
    assert not any(parameter.requires_grad for parameter in mix.teacher.parameters())


def test_the_mask_never_sees_labels():
    x, y = batch()
    mix = roughened(AutoMix(network(), SHAPE, 4, 2.0, 3))
    draw = mix.draw(12)
    masks = [mix.mix(x, labels, draw).region.weight for labels in (y, (y + 1) % 3)]
    assert torch.equal(*masks)
    assert masks[0].std() > 0


def test_near_zero_and_one_lam_is_that_of_plain_mixup():
    x, y = batch(64)
    mix = roughened(AutoMix(network(), SHAPE, 1, 0.3, 3, lam_per="sample", generator=seeded()))
    m = mix.mix(x, y)
    lam = m.lam[:64]
    plain = torch.minimum(lam, 1 - lam) <= 0.08
    assert 10 < plain.sum() < 54
    weight = m.region.weight
    torch.testing.assert_close(weight[plain], lam[plain, None, None].expand(-1, 8, 6))
    assert (weight[~plain].flatten(1).std(1) > 0).all()


def test_the_copy_follows_the_network_after_each_backward_pass():
    x, y = batch()
    net = network()
    mix = AutoMix(net, SHAPE, 1, 2.0, 3)
    before = [parameter.clone() for parameter in mix.teacher.parameters()]
    draw = mix.draw(12)
    once, twice = (mix.mix(x, y, draw) for _ in range(2))
    assert torch.equal(once.penalty, twice.penalty)  # nothing has been learned in between
    once.loss(EACH, net(once.x)).mean().backward()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(1.0)
    assert torch.equal(before[0], mix.teacher[0].weight)  # the step is due, and not yet made
    mix.mix(x, y)
    for old, slow, new in zip(before, mix.teacher.parameters(), net.parameters(), strict=True):
        torch.testing.assert_close(slow, 0.1 * old + 0.9 * new)  # the first momentum is 1/10
    assert torch.equal(mix.teacher[1].running_mean, net[1].running_mean)
    mix.mix(x, y)
    assert int(mix.steps) == 1


def test_the_momentum_rises_to_its_value(monkeypatch):
    monkeypatch.setattr(automix, "MOMENTUM", 0.5)
    net = network()
    mix = AutoMix(net, SHAPE)
    start = mix.teacher[0].weight.clone()
    with torch.no_grad():
        net[0].weight.add_(1.0)
    left = 1.0
    for step in range(12):
        mix._follow()
        left *= min(0.5, (step + 1) / (step + 10))
        torch.testing.assert_close(mix.teacher[0].weight, start + 1 - left)


def test_the_copy_stays_in_eval_mode_and_the_network_outside():
    net = network()
    mix = AutoMix(net, SHAPE).train()
    assert not mix.teacher.training
    assert not set(net.parameters()) & set(mix.parameters())
    mix.eval()
    assert net.training


def test_the_block_learns_what_the_copy_recognises():
    """One class is told by a bright left half, the other by a bright right half."""
    torch.manual_seed(0)
    y = torch.arange(64) % 2
    x = torch.zeros(64, 1, 8, 8)
    x[y == 0, :, :, :4] = 2.0
    x[y == 1, :, :, 4:] = 2.0
    x += 0.1 * torch.randn_like(x)
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(128, 2)
    )
    mix = AutoMix(net, (1, 8, 8), 1, 2.0, 2, generator=seeded())
    learned = [*net.parameters(), *mix.block.parameters()]
    optimiser = torch.optim.Adam(learned, lr=0.02)
    for _ in range(60):
        m = mix.mix(x, y)
        optimiser.zero_grad()
        m.loss(EACH, net(m.x)).mean().backward()
        optimiser.step()
    draws = [mix.draw(64) for _ in range(10)]
    with torch.no_grad():
        trained, plain = (
            sum(float(one.mix(x, y, draw).penalty) for draw in draws)
            for one in (mix, at_zero(copy.deepcopy(mix)))
        )
    assert trained < 0.97 * plain


@pytest.mark.parametrize(
    ("model", "shape", "layer", "features"),
    [
        ("lenet", (1, 28, 28), "5", (16, 10, 10)),
        ("preact-resnet18", (3, 32, 32), "layer4.0.act1", (256, 8, 8)),  # what layer3 gives
    ],
)
def test_features_come_from_the_deepest_layer_at_a_quarter_of_the_image(
    model, shape, layer, features
):
    net = build(model, in_shape=shape, num_classes=10).eval()
    assert deepest_layer(net, shape) == (layer, features[0])
    _, output = passing(net, net.get_submodule(layer), torch.zeros(1, *shape))
    assert output.shape[1:] == features


def test_to_draw_is_to_sample_and_then_to_mix_in_copies_and_resumed_ones():
    x, y = batch()
    net = network()
    mix = roughened(AutoMix(net, SHAPE, 4, 2.0, 3, generator=seeded()))
    mix.mix(x, y).penalty.backward()
    with torch.no_grad():
        net[0].weight.add_(1.0)
    resumed = AutoMix(net, SHAPE, 4, 2.0, 3, generator=seeded(5))
    resumed.load_state_dict(mix.state_dict())
    others = [copy.deepcopy(mix), pickle.loads(pickle.dumps(mix)), resumed]
    assert mix.due
    wanted = [mix.mix(x, y) for _ in range(2)]
    assert not mix.due
    for other in others:
        assert other.interpolation.net is other.teacher
        for m in wanted:
            found = other.mix(x, y, other.draw(12))
            assert torch.equal(found.x, m.x)
            assert torch.equal(found.penalty, m.penalty)


def test_without_gradients_nothing_is_learned():
    x, y = batch()
    with torch.no_grad():
        mixed = AutoMix(network(), SHAPE).mix(x, y.float()[:, None].expand(12, 3))
    assert not mixed.penalty.requires_grad


def test_numbers_have_a_criterion_of_their_own():
    x, _ = batch()
    y = torch.randn(12, 1)
    mix = AutoMix(network(1), SHAPE, 4, criterion=F.mse_loss)
    m = mix.mix(x, y)
    off = (m.region.weight.mean() - m.lam[0]).abs()
    wanted = F.mse_loss(mix.teacher(m.x[:12]), m.y[:12]) + 0.1 * (off - 0.1).clamp(0)
    torch.testing.assert_close(m.penalty.detach(), wanted / 2)


@pytest.mark.parametrize(
    ("net", "shape", "message"),
    [
        (nn.Linear(2, 3), (2,), r"shape must be that of an image.*got \(2,\)"),
        (nn.Flatten(), SHAPE, "at least a quarter of the image's height and width"),
    ],
)
def test_networks_without_feature_maps_raise(net, shape, message):
    with pytest.raises(ValueError, match=message):
        AutoMix(net, shape)


def test_a_batch_without_targets_raises():
    with pytest.raises(TypeError, match="one of targets, got Tensor and NoneType"):
        AutoMix(network(), SHAPE).mix(torch.randn(12, *SHAPE), None)
