"""ResizeMix, FMix and SaliencyMix: what is pasted, where, and how much of it."""

import pytest
import torch
from torch.nn import functional as F

from kmixup import FMix, ResizeMix, SaliencyMix, spectral_residual
from kmixup.methods.fmix import LowFrequency
from oracles import seeded

KINDS = (ResizeMix, FMix, SaliencyMix)


def batch(n=12, height=16, width=24):
    return torch.rand(n, 3, height, width, generator=seeded(5)), torch.arange(n) % 4


def taken(mixed, x):
    """Which pixels changed."""
    return (mixed.x != x).any(1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lam_per", ["batch", "sample"])
def test_lam_is_the_share_of_the_image_that_stays(kind, lam_per):
    x, y = batch()
    mixed = kind(6, num_classes=4, lam_per=lam_per, generator=seeded()).mix(x, y)
    share = taken(mixed, x).float().mean((1, 2))
    assert torch.allclose(1 - share, mixed.lam.float().expand(12), atol=1e-6)
    assert lam_per == "sample" or kind is SaliencyMix or len(share.unique()) == 1


@pytest.mark.parametrize("lam_per", ["batch", "sample"])
def test_resizemix_pastes_the_whole_partner_made_smaller(lam_per):
    x, y = batch()
    mixed = ResizeMix(1, 4, lam_per=lam_per, generator=seeded()).mix(x, y)
    for i, (top, left, bottom, right) in enumerate(mixed.region.expand(12, 4).tolist()):
        size = bottom - top, right - left
        partner = x[mixed.partner[i]][None]
        small = F.interpolate(partner, size, mode="bilinear", antialias=True)[0]
        torch.testing.assert_close(mixed.x[i, :, top:bottom, left:right], small)
        assert abs(size[0] / 16 - size[1] / 24) < 1 / 16  # the same scale both ways
        assert 0.1 * 16 - 1 < size[0] <= 0.8 * 16


def test_resizemix_resizes_masks_by_the_nearest_pixel():
    x, _ = batch()
    classes = torch.randint(3, (12, 16, 24), generator=seeded()) * 7
    mixed = ResizeMix(1, generator=seeded()).mix(x, classes.float())
    assert set(mixed.y.unique().tolist()) != {0.0, 7.0, 14.0}  # floats are interpolated
    images = {"image": x, "mask": classes[:, None]}
    mixed = ResizeMix(1, generator=seeded()).mix(images, None, features="image")
    assert set(mixed.x["mask"].unique().tolist()) == {0, 7, 14}
    assert not torch.equal(mixed.x["mask"], images["mask"])


def test_the_sides_of_resizemix_are_uniform():
    mix = ResizeMix(1, lam_per="sample", generator=seeded())
    mixed = mix.mix(torch.zeros(4000, 1, 100, 100), None)
    side = (1 - mixed.lam).sqrt()
    assert float(side.min()) >= 0.0999
    assert float(side.max()) < 0.8
    assert float(side.mean()) == pytest.approx(0.445, abs=0.01)  # 0.45 less half a pixel
    assert float(side.std()) == pytest.approx(0.7 / 12**0.5, abs=0.01)


def test_the_masks_of_fmix_are_smooth_and_depend_on_the_draw_alone():
    x, y = batch()
    mix = FMix(1, num_classes=4, lam_per="sample", generator=seeded())
    draw = mix.draw(12)
    first, again = (mix.mix(x, y, draw) for _ in range(2))
    assert torch.equal(first.x, again.x)
    weight = first.region.weight
    assert len({tuple(mask.flatten().tolist()) for mask in weight}) > 8
    assert torch.equal(first.x, torch.where(weight[:, None] == 1, x, x[first.partner]))

    def borders(decay):
        image = LowFrequency(decay).image((64, 64), 0.3)
        return float((image > image.median()).int().diff(dim=1).abs().float().mean())

    assert borders(3.0) < 0.05 < 0.4 < borders(0.0)


def test_fmix_amplitudes_fall_with_the_frequency():
    images = torch.stack([LowFrequency(2.0).image((32, 32), i / 400) for i in range(400)])
    power = torch.fft.rfft2(images).abs().square().mean(0)
    frequency = torch.fft.rfftfreq(32)[1:16]
    slope = torch.log(power[0, 1:16][-1] / power[0, 1]) / torch.log(frequency[-1] / frequency[0])
    assert float(slope) == pytest.approx(-4.0, abs=0.3)


def test_saliencymix_cuts_around_the_most_salient_pixel_of_the_partner():
    x, y = batch()
    importance = torch.rand(12, 16, 24, generator=seeded(2))
    mixed = SaliencyMix(1, num_classes=4, generator=seeded()).mix(x, y, importance=importance)
    for i, (top, left, bottom, right) in enumerate(mixed.region.tolist()):
        row, column = divmod(int(importance[mixed.partner[i]].argmax()), 24)
        assert top <= row < bottom
        assert left <= column < right
        pasted = mixed.x[i, :, top:bottom, left:right]
        assert torch.equal(pasted, x[mixed.partner[i], :, top:bottom, left:right])
    own = SaliencyMix(1, num_classes=4, generator=seeded()).mix(x, y)
    given = SaliencyMix(1, num_classes=4, generator=seeded()).mix(
        x, y, importance=spectral_residual(x)
    )
    assert torch.equal(own.x, given.x)


def test_the_spectral_residual_finds_what_stands_out():
    """A square in noise; large images are seen at 64 pixels."""
    for side in (32, 64, 128):
        x = 0.2 * torch.rand(20, 3, side, side, generator=seeded())
        spot = slice(side // 2, side // 2 + side // 8)
        x[:, :, spot, spot] += 1
        found = spectral_residual(x)
        assert found.shape == (20, side, side)
        row, column = divmod(found.flatten(1).argmax(1).numpy(), side)
        for place in (row, column):
            assert (abs(place - side / 2 - side / 16) <= side / 8).mean() > 0.9
    assert spectral_residual(torch.zeros(1, 1, 8, 8)).isfinite().all()
    with pytest.raises(TypeError, match=r"needs a tensor of images .* got shape \(8, 8\): .* grey"):
        spectral_residual(torch.zeros(8, 8))
    assert spectral_residual(torch.zeros(1, 1, 8, 8, dtype=torch.uint8)).dtype == torch.float32
