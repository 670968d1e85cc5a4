"""RegMixup: the clean batch beside the mixed one."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from kmixup import CutMix, HiddenMixup, KMixup, LocalMixup, RegMixup, WithClean
from oracles import seeded

EACH = nn.CrossEntropyLoss(reduction="none")


def batch(n=16, *shape, classes=5):
    return torch.randn(n, *(shape or (4,))), torch.randint(classes, (n,))


@pytest.mark.parametrize("lam_per", ["batch", "block", "sample"])
@pytest.mark.parametrize("paired", [False, True])
def test_the_mixed_batch_of_kmixup_stands_above_the_clean_one(lam_per, paired):
    x, y = batch()
    other = batch() if paired else None
    reg, plain = (
        kind(4, 10.0, 5, lam_per=lam_per, generator=seeded()).mix(x, y, other=other)
        for kind in (RegMixup, KMixup)
    )
    assert torch.equal(reg.x, torch.cat([plain.x, x]))
    assert torch.equal(reg.y, torch.cat([plain.y, F.one_hot(y, 5).float()]))
    assert torch.equal(reg.partner[:16], plain.partner)
    assert torch.equal(reg.distance, torch.cat([plain.distance, torch.zeros(16)]))
    assert torch.equal(reg.lam[16:], torch.ones(16))


def test_the_mean_loss_and_its_gradient_are_those_of_the_published_code():
    """CE of the concatenated batch, averaged over 2n: half of CE(clean) + CE(mixed)."""
    x, y = batch()
    net = nn.Linear(4, 5)
    m = RegMixup(1, 20.0, 5, generator=seeded()).mix(x, y)
    mixed = KMixup(1, 20.0, 5, generator=seeded()).mix(x, y)
    by_hand = (
        F.cross_entropy(net(x), y)
        + mixed.lam * F.cross_entropy(net(mixed.x), y)
        + (1 - mixed.lam) * F.cross_entropy(net(mixed.x), y[mixed.partner])
    ) / 2
    drop_in = F.cross_entropy(net(m.x), m.y)
    loss = m.loss(EACH, net(m.x)).mean()
    wanted, *found = (
        torch.autograd.grad(value, net.weight)[0] for value in (by_hand, drop_in, loss)
    )
    for gradient in found:
        torch.testing.assert_close(gradient, wanted)
    torch.testing.assert_close(drop_in, by_hand)


def test_dicts_are_doubled_entry_by_entry_and_regression_too():
    x = {"a": torch.randn(8, 3, dtype=torch.float64), "ids": torch.arange(8)}
    m = RegMixup(2, lam_per="sample").mix(x, torch.randn(8, dtype=torch.bfloat16))
    assert m.x["a"].dtype == torch.float64
    assert torch.equal(m.x["ids"], torch.arange(8).repeat(2))
    assert m.y.dtype == torch.bfloat16
    assert m.y.shape == (16,)
    assert RegMixup(2).mix(x["a"], None).y is None


@pytest.mark.parametrize(
    ("entry", "got"), [(list("abcdefgh"), "str"), (torch.arange(3), r"\(3,\)")]
)
def test_entries_that_cannot_be_doubled_are_refused(entry, got):
    with pytest.raises(TypeError, match=f"need tensors with one row for each of the 8 .* {got}"):
        RegMixup(2).mix({"a": torch.randn(8, 3), "b": entry}, torch.randn(8))


def test_clean_images_go_below_those_of_any_mixer():
    x, y = batch(8, 1, 6, 6)
    mix = CutMix(2, 1.0, 5)
    draw = mix.draw(8)
    m, cut = WithClean(mix).mix(x, y, draw), mix.mix(x, y, draw)
    assert torch.equal(m.x, torch.cat([cut.x, x]))
    assert torch.equal(m.y, torch.cat([cut.y, F.one_hot(y, 5).float()]))
    assert torch.equal(m.region, cut.region)


def test_the_clean_batch_goes_with_hidden_layers():
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 5))
    x, y = batch()
    mixer = RegMixup(4, num_classes=5)
    logits, soft = HiddenMixup(net, ["1"], mixer=mixer)(x, y)
    assert logits.shape == soft.shape == (32, 5)
    torch.testing.assert_close(logits[16:], net(x))


def test_pairs_have_weights_of_mean_one_and_clean_rows_weight_one():
    x, y = batch()
    alone = LocalMixup(4, 1.0, 5, generator=seeded()).mix(x, y)
    beside = WithClean(LocalMixup(4, 1.0, 5, generator=seeded())).mix(x, y)
    assert torch.equal(beside.weight, torch.cat([alone.weight, torch.ones(16)]))
    assert float(alone.weight.mean()) == pytest.approx(1, abs=1e-6)
    each = EACH(logits := torch.randn(32, 5), beside.targets[0])
    there = beside.lam * each + (1 - beside.lam) * EACH(logits, beside.targets[1])
    torch.testing.assert_close(beside.loss(EACH, logits), beside.weight * there)
