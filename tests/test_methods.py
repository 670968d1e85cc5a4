"""The named methods: k-nearest-neighbour mixup, local mixup, and a choice among mixers."""

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.optimize import linear_sum_assignment
from scipy.special import betaincinv
from torch import nn
from torch.nn import functional as F

from kmixup import (
    AdaMixup,
    Beta,
    Choice,
    CMixup,
    CutMix,
    FMix,
    GuidedMixup,
    KMixup,
    Linear,
    LocalMixup,
    Mixer,
    Nearest,
    Optimal,
    ResizeMix,
    StackMix,
)
from oracles import seeded

EACH = nn.CrossEntropyLoss(reduction="none")


def batch(n: int = 32, *shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(n, *(shape or (4,))), torch.randint(5, (n,))


# mixup and k-mixup


@pytest.mark.parametrize("k", [1, 4, 6, 12])
def test_mixup_and_kmixup_are_those_of_plain_numpy_for_the_same_seed(k):
    """A coin, a permutation whose blocks face the next k places, SciPy's matching and quantile."""
    n, alpha, drawn = 30, 0.7, seeded(3)
    x, y = batch(n, 3, 2)
    layer = nn.Linear(6, 5)
    mixer = KMixup(k, alpha, 5, generator=seeded(3))
    for _ in range(3):
        mixed = mixer.mix(x, y)
        loss = mixed.loss(F.cross_entropy, layer(mixed.x.flatten(1)))
        torch.rand((), generator=drawn)
        order = torch.randperm(n, generator=drawn).numpy()
        lam = betaincinv(alpha, alpha, float(torch.rand((), generator=drawn, dtype=torch.float64)))
        facing, rows = np.roll(order, -k), x.flatten(1).double().numpy()
        partner = np.empty(n, dtype=int)
        for start in range(0, n, k):
            own, their = order[start : start + k], facing[start : start + k]
            cost = ((rows[own][:, None] - rows[their]) ** 2).sum(2)
            partner[own] = their[linear_sum_assignment(cost)[1]]
        soft, inputs = (
            lam * a + (1 - lam) * a[partner] for a in (np.eye(5)[y], x.double().numpy())
        )
        np.testing.assert_array_equal(mixed.partner, partner)
        assert float(mixed.lam) == pytest.approx(lam, rel=1e-6)
        np.testing.assert_allclose(mixed.x, inputs, atol=1e-6)
        np.testing.assert_allclose(mixed.y, soft, atol=1e-6)
        logits = layer(torch.from_numpy(inputs).float().flatten(1))
        expected = -(torch.from_numpy(soft).float() * logits.log_softmax(1)).sum(1).mean()
        torch.testing.assert_close(loss, expected)
        torch.testing.assert_close(
            *(torch.autograd.grad(value, layer.weight)[0] for value in (loss, expected))
        )


# the counter-example of the paper: nearest neighbours


def test_nearest_pairing_leaves_a_cluster_less_often_than_optimal_pairing():
    k, blocks = 16, 500
    side, side2 = torch.randint(2, (2, k * blocks))
    x, x2 = (torch.randn(k * blocks, 2) + 50 * s[:, None] for s in (side, side2))
    crossing = {}
    for pairing in (Optimal(k), Nearest(k)):
        mix = Mixer(pairing, Beta(1.0), Linear(), num_classes=2)
        m = mix.mix(x, side, other=(x2, side2))
        crossing[type(pairing)] = float((m.targets[0] != m.targets[1]).float().mean())
    # Of two blocks with a and b samples in one cluster, an optimal match has |a - b|
    # pairs between the clusters, the fewest that a one-to-one match can have; nearest
    # neighbours cross only where a block has no sample of the cluster at all.
    a_less_b = stats.binom(2 * k, 0.5)
    expected = sum(abs(i - k) * a_less_b.pmf(i) for i in range(2 * k + 1)) / k
    assert expected == pytest.approx(0.14, abs=0.001)
    assert crossing[Optimal] == pytest.approx(expected, abs=0.02)
    assert crossing[Nearest] < 0.001


# local mixup


@pytest.mark.parametrize("k", [1, 8])
@pytest.mark.parametrize("lam_per", ["batch", "sample"])
@pytest.mark.parametrize("settings", [{"scale": 2.0}, {}])
def test_the_loss_is_the_published_weighted_mean(k, lam_per, settings):
    x, y = batch()
    m = LocalMixup(k, 1.0, 5, lam_per=lam_per, **settings).mix(x, y)
    logits = torch.randn(32, 5, requires_grad=True)
    distance = (x - x[m.partner]).norm(dim=1)
    w = torch.exp(-distance / settings.get("scale", distance.mean()))
    each = m.lam * F.cross_entropy(logits, y, reduction="none") + (1 - m.lam) * F.cross_entropy(
        logits, y[m.partner], reduction="none"
    )
    loss = m.loss(EACH, logits)
    assert loss.shape == (32,)
    torch.testing.assert_close(loss.mean(), (w * each).sum() / w.sum())
    torch.testing.assert_close(m.weight.mean(), torch.tensor(1.0))


def test_a_batch_without_close_pairs_has_no_loss():
    m = LocalMixup(1, num_classes=5, scale=1e-9).mix(*batch())
    assert not m.weight.any()
    assert not m.loss(EACH, torch.randn(32, 5)).any()
    equal = LocalMixup(1, num_classes=5).mix(torch.ones(8, 2), torch.zeros(8).long())
    assert equal.weight.tolist() == [1.0] * 8


def test_the_weights_of_pixels_are_those_of_their_samples():
    x, y = torch.randn(8, 3, 4, 4), torch.randint(5, (8, 4, 4))
    local, plain = (
        mix.mix(x, y)
        for mix in (LocalMixup(generator=seeded()), KMixup(1, alpha=1.0, generator=seeded()))
    )
    logits = torch.randn(8, 5, 4, 4)
    expected = local.weight.view(-1, 1, 1) * plain.loss(EACH, logits)
    torch.testing.assert_close(local.loss(EACH, logits), expected)


def test_weights_need_a_loss_for_every_sample():
    m = LocalMixup(1, num_classes=5).mix(*batch())
    with pytest.raises(ValueError, match="the weight of the loss differs .* got shape ()"):
        m.loss(F.cross_entropy, torch.randn(32, 5))


# a choice among mixers


def test_mixers_are_drawn_with_the_given_odds():
    x, y = batch(4)
    mixers = [KMixup(1, 0.0, 5), LocalMixup(1, 1.0, 5), KMixup(1, 1.0, 5)]
    mix = Choice(mixers, weights=[1, 2, 5], generator=seeded())
    drawn = [0, 0, 0]
    for _ in range(2000):
        m = mix.mix(x, y)
        drawn[0 if m.x is x else 1 if m.weight is not None else 2] += 1
    assert stats.chisquare(drawn, [250, 500, 1250]).pvalue > 1e-3


def test_the_drawn_mixer_does_what_it_does_alone():
    x, y = batch(16, 3, 4, 4)
    mix = Choice([KMixup(4, 1.0, 5), CutMix(4, 1.0, 5)], [0, 1], generator=seeded())
    generator = seeded()
    torch.tensor([0.0, 1.0]).multinomial(1, generator=generator)
    alone = CutMix(4, 1.0, 5, generator=generator)
    for _ in range(2):
        mixed = mix(x, y, other=(x + 1, y), features=(x[:, 0], x[:, 1]))
        expected = alone(x, y, other=(x + 1, y), features=(x[:, 0], x[:, 1]))
        torch.tensor([0.0, 1.0]).multinomial(1, generator=generator)
        assert all(torch.equal(a, b) for a, b in zip(mixed, expected, strict=True))


def test_one_generator_serves_all_mixers_that_have_none():
    generator, own = seeded(), seeded(5)
    inner = Choice([KMixup(), CutMix(generator=own)])
    mix = Choice([inner, LocalMixup()], generator=generator)
    assert [m.generator for m in (mix, inner, *inner.mixers, *mix.mixers)] == [
        generator, generator, generator, own, generator, generator,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("mixers", "weights", "message"),
    [
        ([], None, "mixers must have at least one entry"),
        ([KMixup()], [1, 2], "weights must have one number for each of the 1 mixers"),
        ([KMixup(), CutMix()], [0, 0], r"0 or more and not all 0, got \[0.0, 0"),
        ([KMixup(), CutMix()], [2, -1], "weights must .* 0 or more"),
        ([KMixup(), CutMix()], [1, float("nan")], "weights must .* 0 or more"),
    ],
)
def test_bad_choices_are_refused(mixers, weights, message):
    with pytest.raises(ValueError, match=message):
        Choice(mixers, weights)


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: ResizeMix(alpha=1.0), "ResizeMix has no option 'alpha': scale is the range of"),
        (lambda: StackMix(alpha=1.0), "StackMix has no option 'alpha': lam is always 1/2"),
        (lambda: AdaMixup(nn.Linear(2, 3), (2,), alpha=1.0), "AdaMixup has no option 'alpha': a p"),
        (lambda: GuidedMixup(metric="cosine"), "GuidedMixup has no option 'metric': partners are"),
        (lambda: CMixup(num_classes=3), "CMixup has no option 'num_classes': targets are floats"),
        (lambda: CutMix(labels=1.0), "CutMix has no option 'labels': use Mixer.Optimal.k, labels="),
        (lambda: FMix(lamper="block"), "FMix has no option 'lamper': did you mean 'lam_per'"),
    ],
)
def test_an_option_that_a_method_lacks_is_named_with_what_to_use(build, problem):
    with pytest.raises(TypeError, match=problem):
        build()
