"""Cut: the box, its law, and what it refuses. Linear is tested with the mixer."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kmixup import Beta, Cut, CutMix, Linear, Mixer, Nearest, match
from kmixup.interpolation import Pair
from tests.oracles import cut_area_law


def images(n: int = 12, height: int = 6, width: int = 9) -> torch.Tensor:
    """Every pixel of image i is i, so that a mixed pixel tells where it comes from."""
    return torch.arange(1.0, n + 1).view(-1, 1, 1, 1).expand(n, 2, height, width).clone()


def targets(n: int = 12) -> torch.Tensor:
    return torch.randint(5, (n,))


@given(
    k=st.integers(1, 6),
    height=st.integers(1, 9),
    width=st.integers(1, 9),
    alpha=st.sampled_from([0.1, 1.0, 10.0]),
    lam_per=st.sampled_from(["batch", "block", "sample"]),
    across=st.booleans(),
)
def test_a_box_of_the_partner_is_pasted_and_lam_is_the_share_of_the_rest(
    k, height, width, alpha, lam_per, across
):
    x = images(12, height, width)
    x2 = x + 100 if across else x
    y = targets()
    m = CutMix(k, alpha, 5, lam_per=lam_per).mix(x, y, other=(x2, y) if across else None)
    pasted = m.x != x
    assert torch.equal(m.x[pasted], x2[m.partner][pasted])
    assert torch.equal(pasted[:, 0], pasted[:, 1])  # the channels share the box
    share = pasted.double().mean((1, 2, 3))
    torch.testing.assert_close(1 - m.lam.double().expand(12), share, atol=1e-6, rtol=0)
    rows, columns = pasted[:, 0].any(2), pasted[:, 0].any(1)
    assert torch.equal(pasted[:, 0], rows[:, :, None] & columns[:, None, :])
    for line in (rows, columns):  # without gaps
        starts = line.int().diff(prepend=torch.zeros(12, 1).int(), dim=1) == 1
        assert (starts.sum(1) <= 1).all()
    expected = (
        m.lam.view(-1, 1) * torch.eye(5)[y] + (1 - m.lam.view(-1, 1)) * torch.eye(5)[m.targets[1]]
    )
    torch.testing.assert_close(m.y, expected)


def test_one_box_per_batch_block_or_sample():
    x = images(12, 32, 32)
    for lam_per, boxes in (("batch", 1), ("block", 3), ("sample", 12)):
        m = CutMix(4, 1.0, 5, lam_per=lam_per).mix(x, targets())
        assert len((m.x != x)[:, 0].flatten(1).unique(dim=0)) == boxes
        assert m.lam.dim() == (lam_per != "batch")
        assert len(m.lam.unique()) <= boxes


def test_partners_are_matched_on_the_images():
    x, x2 = torch.rand(2, 16, 3, 5, 5)
    y = targets(16)
    m = CutMix(8, num_classes=5).mix(x, y, other=(x2, y))
    assert torch.equal(m.partner, match(x, x2, k=8))
    nearest = Mixer(Nearest(8), Beta(1.0), Cut(), num_classes=5).mix(x, y, other=(x2, y))
    assert torch.equal(nearest.partner, Nearest(8)(x, x2))


@pytest.mark.parametrize("lam_per", ["batch", "sample"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.float16, torch.float64])
def test_pasting_keeps_every_dtype_exactly(dtype, lam_per):
    x = torch.randint(2, (8, 3, 7, 7)).to(dtype)
    m = CutMix(4, 1.0, 5, lam_per=lam_per).mix(x, targets(8))
    assert m.x.dtype == dtype
    assert ((m.x == x) | (m.x == x[m.partner])).all()
    assert m.lam.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


def test_integers_are_matched_as_their_values():
    x = torch.randint(256, (16, 1, 4, 4), dtype=torch.uint8)
    draws = [
        CutMix(8, num_classes=5, generator=torch.Generator().manual_seed(3)).mix(a, targets(16))
        for a in (x, x.double())
    ]
    assert torch.equal(draws[0].partner, draws[1].partner)
    torch.testing.assert_close(draws[0].distance.double(), draws[1].distance)


def test_a_mask_is_cut_with_its_image():
    x = {"image": torch.rand(8, 3, 6, 6), "mask": torch.randint(4, (8, 1, 6, 6))}
    x["image"][:, 0] = x["mask"][:, 0]
    m = CutMix(4, lam_per="sample").mix(x, torch.zeros(8), features="image")
    assert torch.equal(m.x["image"][:, 0], m.x["mask"][:, 0].float())
    assert not torch.equal(m.x["mask"], x["mask"])


@pytest.mark.parametrize("lam_per", ["batch", "sample"])
def test_gradients_go_where_the_pixels_come_from(lam_per):
    x = torch.rand(6, 1, 8, 8, requires_grad=True)
    m = CutMix(1, lam_per=lam_per).mix(x, torch.zeros(6))
    m.x[2].sum().backward()
    lam = float(m.lam.expand(6)[2])
    assert float(x.grad[2].mean()) == pytest.approx(lam)
    assert float(x.grad[m.partner[2]].mean()) == pytest.approx(1 - lam)


def test_nothing_is_changed_in_place_and_nothing_is_mixed_at_alpha_zero():
    x, y = images(), targets()
    copy = x.clone()
    for lam_per in ("batch", "sample"):
        CutMix(2, 1.0, 5, lam_per=lam_per)(x, y)
    assert torch.equal(x, copy)
    assert torch.equal(CutMix(2, 0.0, 5)(x, y)[0], x)
    assert CutMix(2, 1.0, 5).eval()(x, y)[1] is y


# the law


@pytest.mark.parametrize(("height", "width", "alpha"), [(5, 7, 1.0), (8, 8, 0.3), (4, 6, 5.0)])
def test_the_area_has_the_law_of_the_formula(height, width, alpha):
    law = cut_area_law(height, width, alpha)
    assert law.sum() == pytest.approx(1)
    draws = 40_000
    generator = torch.Generator().manual_seed(1)
    lam = Beta(alpha).draw((draws,), generator)
    spot = Cut().draw(len(lam), generator=generator)
    left, _ = Cut().settle(lam, spot, Pair.of([torch.empty(1, 1, height, width)]))
    area = ((1 - left) * height * width).round().long()
    counts = torch.bincount(area, minlength=len(law)).numpy()
    often = law * draws > 5
    observed = np.append(counts[often], counts[~often].sum())
    expected = np.append(law[often], law[~often].sum()) * draws
    if expected[-1] == 0:
        assert observed[-1] == 0
        observed, expected = observed[:-1], expected[:-1]
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def authors_box(height, width, lam, centre):
    """The box of the authors' code: half a side, rounded down, on both sides of the centre."""
    half = [int(size * np.sqrt(1 - lam)) // 2 for size in (height, width)]
    start = [max(c - h, 0) for c, h in zip(centre, half, strict=True)]
    stop = [min(c + h, size) for c, h, size in zip(centre, half, (height, width), strict=True)]
    return start + stop


def test_the_box_is_that_of_the_authors_given_lam_and_centre():
    height, width = 11, 8
    lam = Beta(1.0).draw((500,), torch.Generator().manual_seed(0))
    spot = Cut().draw(len(lam), generator=torch.Generator().manual_seed(1))
    left, box = Cut().settle(lam, spot, Pair.of([torch.empty(1, 3, height, width)]))
    for i, centre in enumerate((spot * torch.tensor([height, width])).long().tolist()):
        top, start, bottom, stop = expected = authors_box(height, width, float(lam[i]), centre)
        assert box[i].tolist() == expected
        assert float(left[i]) == pytest.approx(1 - (bottom - top) * (stop - start) / 88)


# refusals


@pytest.mark.parametrize("shape", [(8, 5), (8, 6, 6)])
def test_inputs_without_two_spatial_dimensions_are_refused(shape):
    with pytest.raises(ValueError, match=r"CutMix needs images of shape \(n, channels, height"):
        CutMix(2)(torch.rand(shape), torch.zeros(8))


def test_images_of_different_sizes_cannot_share_a_box():
    x = torch.rand(8, 3, 6, 6), torch.rand(8, 1, 3, 3)
    with pytest.raises(ValueError, match=r"same height and width, got \(3, 3\), \(6, 6\)"):
        CutMix(2)(x, torch.zeros(8))


@pytest.mark.parametrize("k", [1, 4])
def test_images_of_16_bit_can_be_cut(k):
    x = torch.randint(60_000, (8, 1, 6, 6)).to(torch.uint16)
    mixed = CutMix(k).mix(x, torch.rand(8))
    assert mixed.x.dtype == torch.uint16
    assert ((mixed.x == x) | (mixed.x == x[mixed.partner])).all()


def test_small_floats_behind_bytes_decide_the_match():
    depth = torch.arange(8)[:, None, None, None] / 100 + torch.zeros(8, 1, 4, 4)
    x = {"rgb": torch.full((8, 3, 4, 4), 200, dtype=torch.uint8), "depth": depth}
    order = torch.randperm(8)
    other = {"rgb": x["rgb"], "depth": depth[order]}
    y = torch.zeros(8)
    partner = CutMix(8).mix(x, y, other=(other, y)).partner
    assert torch.equal(order[partner], torch.arange(8))


def test_a_learned_lam_of_a_batch_has_a_gradient():
    w = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    x = torch.randn(6, 4)
    partner = torch.arange(6).roll(1)
    mixed = Linear()(x, x, partner, w.sigmoid())
    (gradient,) = torch.autograd.grad(mixed.sum() + mixed.square().sum(), w)
    (expected,) = torch.autograd.grad(
        (z := w.sigmoid() * x + (1 - w.sigmoid()) * x[partner]).sum() + z.square().sum(), w
    )
    assert torch.allclose(gradient, expected, rtol=1e-5)


def test_a_range_of_sides_gives_boxes_inside_the_image_with_lam_their_outside():
    cut, n = Cut(sides=(0.25, 0.5)), 2000
    spot = cut.draw(n, generator=torch.Generator().manual_seed(0))
    assert spot.shape == (n, 4)
    lam, box = cut.settle(torch.zeros(n), spot, Pair.of([torch.empty(1, 3, 16, 32)]))
    top, left, bottom, right = box.unbind(1)
    height, width = bottom - top, right - left
    assert set(height.tolist()) == set(range(4, 8))
    assert set(width.tolist()) == set(range(8, 16))
    assert (box >= 0).all()
    assert (bottom <= 16).all()
    assert (right <= 32).all()
    assert {0, 9} <= set(top[height == 7].tolist())
    torch.testing.assert_close(lam, 1 - (height * width).double() / (16 * 32))
    with pytest.raises(ValueError, match=r"sides must be two rising fractions .*\(0.5, 0.2\)"):
        Cut(sides=(0.5, 0.2))


def test_cutmix_takes_a_range_of_sides():
    x, y = torch.rand(12, 3, 16, 16), torch.arange(12)
    for lam_per in ("batch", "sample"):
        m = CutMix(4, 1.0, 12, sides=(0.25, 0.5), lam_per=lam_per).mix(x, y)
        boxes = m.region.view(-1, 4)
        assert ((boxes[:, 2:] - boxes[:, :2]) >= 4).all()
        assert ((boxes[:, 2:] - boxes[:, :2]) < 8).all()
        taken = (m.x == x[m.partner]).all(1).float().mean((1, 2))
        torch.testing.assert_close(taken, 1 - m.lam.expand(12).float(), atol=1e-2, rtol=0)
