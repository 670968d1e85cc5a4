import pytest
import torch
from scipy.ndimage import gaussian_filter

from kmixup import GuidedMixup, Optimal, spectral_residual
from kmixup.interpolation import Pair
from kmixup.methods.guided import Guided


def batch(n=8, side=6, dtype=torch.float32):
    torch.manual_seed(0)
    x = torch.randn(n, 3, side, side).to(dtype)
    return x, torch.randint(5, (n,)), torch.rand(n, side, side) ** 3


def scaled(importance):
    """Blurred by 7 x 7 pixels as by scipy, then with total 1 for every image."""
    blurred = gaussian_filter(importance.numpy(), (0, 3, 3), radius=(0, 3, 3), mode="mirror")
    importance = torch.from_numpy(blurred)
    return importance / importance.sum((1, 2), keepdim=True)


@pytest.mark.parametrize("paired", [False, True])
def test_a_pixel_is_weighted_by_its_share_of_the_blurred_importance(paired):
    x, y, importance = batch()
    x2, importance2 = (x.flip(0) + 1, importance.flip(0)) if paired else (x, importance)
    more = {"other": (x2, y), "importance": (importance, importance2)}
    more = more if paired else {"importance": importance}
    mixed = GuidedMixup(2, num_classes=5).mix(x, y, **more)
    s, theirs = scaled(importance), scaled(importance2)[mixed.partner]
    weight = s / (s + theirs)
    by_hand = weight[:, None] * x + (1 - weight[:, None]) * x2[mixed.partner]
    assert torch.allclose(mixed.x, by_hand, atol=1e-5)
    assert torch.allclose(mixed.lam, weight.mean((1, 2)), atol=1e-6)


def test_pixels_that_matter_to_nobody_are_averaged():
    x, _, importance = batch()
    importance[:, 0] = 0
    pair = Pair([x], [x], torch.arange(8).roll(1), (importance, importance))
    _, mask = Guided().settle(torch.tensor(0.5), None, pair)
    assert (mask.weight[:, 0] == 0.5).all()


def test_partners_are_the_farthest_in_scaled_importance_whatever_its_size():
    x, y, importance = batch(16)
    importance = importance * torch.logspace(-3, 3, 16)[:, None, None]  # some gradients are large
    mix = GuidedMixup(8, num_classes=5, generator=torch.Generator().manual_seed(0))
    draw, rows = mix.draw(16), [scaled(importance).flatten(1)]
    expected = Optimal(8, farthest=True).partners(rows, rows, draw.blocks)
    assert torch.equal(mix.mix(x, y, draw, importance=importance).partner, expected)
    features = torch.randn(16, 2)
    by_features = mix.mix(x, y, draw, importance=importance, features=features).partner
    assert torch.equal(by_features, mix.pairing.partners([features], [features], draw.blocks))


def test_without_importance_saliency_is_the_spectral_residual():
    x, y, _ = batch(side=12)
    draws = [
        GuidedMixup(4, num_classes=5, generator=torch.Generator().manual_seed(0)).mix(x, y, **more)
        for more in ({}, {"importance": spectral_residual(x)})
    ]
    assert torch.equal(draws[0].x, draws[1].x)


def test_farthest_partners_overlap_less_than_random_ones():
    torch.manual_seed(0)
    place = torch.rand(64, 2)
    axis = torch.linspace(0, 1, 16)
    gap = (axis[:, None] - place[:, :1, None]) ** 2 + (axis - place[:, 1:, None]) ** 2
    s = (-gap / 0.05).exp()
    s = s / s.sum((1, 2), keepdim=True)

    def overlap(k):
        partner = GuidedMixup(k).mix(s[:, None], None, importance=s).partner
        return float(torch.minimum(s, s[partner]).sum((1, 2)).mean())

    assert overlap(32) < 0.8 * overlap(1)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.bool])
def test_importance_may_be_integers(dtype):
    x, y, importance = batch()
    importance = (4 * importance).to(dtype)
    lams = [
        GuidedMixup(k=1, num_classes=5, generator=torch.Generator().manual_seed(0))
        .mix(x, y, importance=given)
        .lam
        for given in (importance, importance.float())
    ]
    assert torch.equal(*lams)
