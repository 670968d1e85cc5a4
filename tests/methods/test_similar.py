"""Similarity-kernel mixup: tau follows the distance of the pair."""

import math

import pytest
import torch
from scipy import stats

from kmixup import Beta, Cut, KMixup, Mixer, Optimal, SimilarMixup
from kmixup.methods.similar import Similarity
from oracles import seeded


@pytest.mark.parametrize("lam_per", ["batch", "block", "sample"])
def test_a_wide_kernel_gives_mixup_with_lam_of_beta(lam_per):
    x, y = torch.randn(12, 3), torch.randint(3, (12,))
    similar, plain = (
        mix.mix(x, y)
        for mix in (
            SimilarMixup(4, 0.7, 3, tau_std=math.inf, lam_per=lam_per, generator=seeded()),
            KMixup(4, 0.7, 3, lam_per=lam_per, generator=seeded()),
        )
    )
    assert torch.equal(similar.lam, plain.lam.expand(12))
    torch.testing.assert_close(similar.x, plain.x)


def test_lam_is_the_quantile_of_the_law_of_its_pair():
    x, y = torch.randn(20, 3), torch.randint(3, (20,))
    mix = SimilarMixup(1, 2.0, 3, tau_std=0.8)
    draw = mix.draw(20)
    m = mix.mix(x, y, draw)
    square = (x - x[m.partner]).double().square().sum(1)
    tau = 2.0 * torch.exp(-(square / square.mean() - 1) / (2 * 0.8**2))
    lam = stats.beta.ppf(draw.u.numpy(), tau.numpy(), tau.numpy())
    torch.testing.assert_close(m.lam, torch.from_numpy(lam).float(), atol=1e-5, rtol=1e-5)
    weight = m.lam[:, None]
    torch.testing.assert_close(m.x, weight * x + (1 - weight) * x[m.partner])


def test_near_pairs_are_mixed_more_than_far_ones():
    m = SimilarMixup(1, 1.0, 3, lam_per="batch").mix(torch.randn(64, 2), torch.randint(3, (64,)))
    # with one quantile for all, lam is further from 1/2 the further apart the pair
    order = m.distance.argsort()
    assert ((m.lam[order] - 0.5).abs().diff() >= -1e-6).all()


def test_extreme_taus_are_no_mixing_and_halves():
    law, u = Similarity(1.0, 0.01), torch.tensor([0.2, 0.7, 0.3], dtype=torch.float64)
    lam = law.lam(u, torch.tensor([10.0, 10.0, 0.1]))
    assert lam.tolist() == pytest.approx([0.0, 1.0, 0.5], abs=1e-6)


def test_equal_samples_have_the_law_of_the_mean_distance():
    u = torch.rand(5, dtype=torch.float64)
    assert torch.equal(Similarity(0.6).lam(u, torch.zeros(5)), Beta(0.6).lam(u))


def test_similarity_may_be_measured_in_features_and_with_any_interpolation():
    x, y = torch.randn(12, 1, 5, 5), torch.randint(3, (12,))
    features = torch.randn(12, 2)
    m = SimilarMixup(1, 1.0, 3).mix(x, y, features=features)
    torch.testing.assert_close(m.distance, (features - features[m.partner]).norm(dim=1))
    for lam_per in ("batch", "block", "sample"):
        mix = Mixer(Optimal(4), Similarity(), Cut(), num_classes=3, lam_per=lam_per)
        assert mix.mix(x, y).region.shape == (12, 4)


def test_alpha_can_be_set_and_at_zero_nothing_is_mixed():
    x = torch.randn(8, 2)
    mix = SimilarMixup(2, 0.0)
    assert mix.mix(x, None).x is x
    mix.alpha = 1.0
    assert mix.alpha == 1.0
    assert mix.mix(x, None).x is not x
    assert "Similarity(alpha=1.0, tau_std=0.25)" in repr(mix)


def test_lam_needs_distances():
    with pytest.raises(ValueError, match="Similarity needs the distances of the pairs"):
        Similarity().lam(torch.rand(3, dtype=torch.float64))
