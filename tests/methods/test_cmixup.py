"""C-Mixup: partners by their targets."""

import math

import pytest
import torch
from scipy import stats

from kmixup import CMixup, KMixup, Optimal
from kmixup.matching import Blocks
from kmixup.methods.cmixup import Kernel
from oracles import seeded


@pytest.mark.parametrize("sigma", [0.5, 2.0, math.inf])
@pytest.mark.parametrize("paired", [False, True])
def test_partners_follow_the_published_law(sigma, paired):
    """Five different targets, many times each; a partner is counted by its target."""
    copies, generator = 60, seeded()
    y = torch.tensor([0.0, 0.3, 1.0, 1.1, 2.5]).repeat(copies)
    y2 = torch.tensor([0.2, 0.9, 1.0, 2.0, 3.0]).repeat(copies) if paired else None
    facing = y if y2 is None else y2
    odds = torch.exp(-(y[:5, None] - facing).double().square() / (2 * sigma**2))
    law = odds.view(5, copies, 5).sum(1)
    law = law / law.sum(1, keepdim=True)
    if sigma == math.inf:  # random pairs: all samples alike
        assert law[0, 1] == pytest.approx(1 / 5)
    counts = torch.zeros(5, 5)
    for _ in range(8):
        partner = Kernel(1, sigma=sigma)(y, y2, generator=generator)
        counts.index_put_((torch.arange(len(y)) % 5, partner % 5), torch.ones(()), accumulate=True)
    for row, expected in zip(counts, law, strict=True):
        seldom = expected * row.sum() < 5
        assert row[seldom].sum() < 20
        met, chance = row[~seldom], expected[~seldom]
        assert stats.chisquare(met, chance / chance.sum() * met.sum()).pvalue > 1e-3


def test_an_outlier_keeps_itself_and_others_meet_their_neighbours_and_themselves():
    y = torch.tensor([3.0, 0.0, 3.01, 0.01, 9.0])
    partners = [CMixup(1, sigma=0.1).mix(torch.randn(5, 2), y).partner for _ in range(40)]
    met = [set(column.tolist()) for column in torch.stack(partners).T]
    assert met == [{0, 2}, {1, 3}, {0, 2}, {1, 3}, {4}]


def test_the_optimal_analogue_matches_targets():
    x, y = torch.randn(16, 3), torch.randn(16)
    m = CMixup(4, generator=seeded()).mix(x, y)
    torch.manual_seed(0)
    assert torch.equal(m.partner, KMixup(4, generator=seeded()).mix(x, y, features=y).partner)
    torch.testing.assert_close(m.distance, (y - y[m.partner]).abs())
    plain = KMixup(4, generator=seeded()).mix(x, y)
    assert m.distance.square().sum() < (y - y[plain.partner]).square().sum()


def test_targets_of_several_numbers_and_features_in_their_place():
    x, y = torch.randn(12, 3), torch.randn(12, 2)
    m = CMixup().mix(x, y)
    torch.testing.assert_close(m.distance, (y - y[m.partner]).norm(dim=1))
    code = torch.randn(12, 5)
    m = CMixup().mix(x, torch.arange(12.0), features=code)
    torch.testing.assert_close(m.distance, (code - code[m.partner]).norm(dim=1))


def test_k_can_be_set_and_small_batches_are_whole():
    x, y = torch.randn(8, 3), torch.randn(8)
    mix = CMixup()
    assert mix.draw(8).blocks.u.shape == (8,)
    mix.k = 4
    assert mix.pairing == Kernel(4, sigma=0.5)
    assert type(mix.draw(8).blocks) is Blocks
    assert torch.equal(CMixup().mix(x[:1], y[:1]).x, x[:1])
    assert Kernel(1)(x[:1]).tolist() == [0]
    assert isinstance(Kernel(2), Optimal)


@pytest.mark.parametrize("y", [torch.arange(8), None, {"a": torch.randn(8)}])
def test_targets_that_are_no_numbers_are_refused(y):
    with pytest.raises(TypeError, match="y must be one tensor of floats, got"):
        CMixup().mix(torch.randn(8, 2), y)


def test_bad_batches_raise():
    with pytest.raises(ValueError, match="x1 must be finite to be matched, sample 1 has a NaN"):
        CMixup().mix(torch.randn(3, 2), torch.tensor([0.0, math.nan, 1.0]))
    with pytest.raises(TypeError, match="other must be a pair"):
        CMixup().mix(torch.randn(3, 2), torch.randn(3), other=torch.randn(3, 2))


def test_in_eval_mode_targets_may_be_of_any_kind():
    x = torch.randn(6, 2)
    assert torch.equal(CMixup().eval().mix(x, torch.arange(6)).x, x)
