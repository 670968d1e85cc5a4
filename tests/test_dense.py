"""Dense targets: maps of classes, of which some pixels do not count."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy, log_softmax

from kmixup import Choice, CutMix, KMixup, Memory, RegMixup, SimilarMixup

CLASSES, IGNORED = 4, 255


def images(n=12, side=6, *, seed=0, ignored=0.2, ignore_index=IGNORED):
    """Images, and masks of which a share is ignored."""
    drawn = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, side, side, generator=drawn)
    y = torch.randint(CLASSES, (n, side, side), generator=drawn)
    hidden = torch.rand(y.shape, generator=drawn) < ignored
    return x, y.masked_fill(hidden, ignore_index)


def mixer(kind=KMixup, seed=1, **options):
    options = {"ignore_index": IGNORED} | options
    return kind(4, 1.0, CLASSES, generator=torch.Generator().manual_seed(seed), **options)


@pytest.mark.parametrize("ignore_index", [IGNORED, -100])
@pytest.mark.parametrize("lam_per", ["batch", "sample"])
@pytest.mark.parametrize("kind", [KMixup, SimilarMixup])
def test_masks_become_soft_maps_pixel_by_pixel(kind, ignore_index, lam_per):
    x, y = images(ignore_index=ignore_index)
    m = mixer(kind, ignore_index=ignore_index, lam_per=lam_per).mix(x, y)
    assert m.y.shape == (12, CLASSES, 6, 6)
    lam = m.lam.expand(12)
    for i in range(12):
        for row in range(6):
            for column in range(6):
                own, partner = int(y[i, row, column]), int(y[m.partner[i], row, column])
                expected = torch.zeros(CLASSES)
                if ignore_index not in (own, partner):
                    expected[own] += lam[i]
                    expected[partner] += 1 - lam[i]
                assert torch.allclose(m.y[i, :, row, column], expected)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 999), ignored=st.floats(0, 0.9))
def test_what_is_ignored_drops_out_of_loss_and_accuracy(seed, ignored):
    x, y = images(seed=seed, ignored=ignored)
    m = mixer(seed=seed).mix(x, y)
    logits = torch.randn(12, CLASSES, 6, 6, generator=torch.Generator().manual_seed(seed))
    own, partner, lam = y, y[m.partner], float(m.lam)
    known = (own != IGNORED) & (partner != IGNORED)
    if not known.any():
        return
    log, chosen = log_softmax(logits, 1), logits.argmax(1)

    def mean(value):
        sides = (share * value(side[known]) for share, side in ((lam, own), (1 - lam, partner)))
        return float(sum(sides).mean())

    rows = log.movedim(1, -1)[known]
    loss = m.loss(partial(cross_entropy, ignore_index=IGNORED), logits)
    expected = mean(lambda classes: -rows.gather(1, classes[:, None])[:, 0])
    assert float(loss) == pytest.approx(expected, rel=1e-4)
    assert float(m.accuracy(logits)) == pytest.approx(
        mean(lambda classes: (chosen[known] == classes).float()), rel=1e-4
    )
    # what is ignored cannot matter
    changed = logits + 100 * torch.rand(logits.shape) * ~known[:, None]
    assert torch.equal(m.loss(partial(cross_entropy, ignore_index=IGNORED), changed), loss)
    assert torch.equal(m.accuracy(changed), m.accuracy(logits))
    # the loss of the soft maps, over the pixels that count
    soft = -(m.y * log).sum() / known.sum()
    assert float(soft) == pytest.approx(float(loss), rel=1e-4)


@pytest.mark.parametrize("lam_per", ["batch", "sample"])
def test_cutmix_pastes_the_mask_with_its_box_and_ignores_no_more(lam_per):
    x, y = images()
    m = mixer(CutMix, lam_per=lam_per).mix(x, y)
    boxes = m.region.expand(12, 4)
    expected = y.clone()
    for i in range(12):
        top, left, bottom, right = boxes[i].tolist()
        place = (slice(top, bottom), slice(left, right))
        expected[i][place] = y[m.partner[i]][place]
        assert torch.equal(m.x[i][:, *place], x[m.partner[i]][:, *place])
    assert torch.equal(m.targets[0], expected)
    assert torch.equal(m.targets[1], expected)
    assert torch.equal(m.y.sum(1) > 0, expected != IGNORED)


def test_unmixed_masks_are_ignored_as_they_are():
    x, y = images()
    for mix in (KMixup(4, 0, CLASSES, ignore_index=IGNORED), mixer().eval()):
        m = mix.mix(x, y)
        assert torch.equal(m.targets[0], y)
        assert torch.equal(m.y.sum(1) > 0, y != IGNORED)
    _, mixed_y = mixer().eval()(x, y)
    assert torch.equal(mixed_y, y)


def test_samples_without_a_label_are_ignored_too():
    x, y = torch.randn(16, 2), torch.arange(16) % CLASSES
    y[3] = IGNORED
    m = mixer().mix(x, y)
    lost = (torch.arange(16) == 3) | (m.partner == 3)
    assert torch.equal(m.y.sum(1) == 0, lost)


def test_clean_batches_choices_and_memories_keep_it():
    x, y = images()
    assert mixer(RegMixup).mix(x, y).y.shape == (24, CLASSES, 6, 6)
    assert Choice([mixer(), mixer(CutMix)]).mix(x, y).y.shape == (12, CLASSES, 6, 6)
    small = Memory(mixer(), 16)
    for start in range(0, 12, 3):
        m = small.mix(x[start : start + 3], y[start : start + 3])
    assert m.y.shape == (3, CLASSES, 6, 6)
    assert "ignore_index=255" in repr(small)


def test_a_class_that_is_none_is_refused_unless_it_is_ignored():
    x, y = images()
    with pytest.raises(ValueError, match="class indices must lie .* got 255: .* ignore_index"):
        KMixup(4, 1.0, CLASSES)(x, y)
    y[0, 0, 0] = 9
    with pytest.raises(ValueError, match="class indices must lie in 0 … 3 .* got 9"):
        mixer()(x, y)


def test_an_index_beyond_the_dtype_of_the_masks_ignores_nothing():
    """-100 as uint8 is 156, which may be a class."""
    x, y = images(ignored=0)
    y = (y + 153).byte()
    m = KMixup(4, 1.0, 160, ignore_index=-100).mix(x, y)
    assert torch.equal(m.targets[0], y)
    assert (m.y.sum(1) - 1).abs().max() < 1e-6
    logits = torch.randn(12, 160, 6, 6)
    plain = KMixup(4, 1.0, 160).mix(x, y, KMixup(4).draw(12))
    assert m.accuracy(m.y) > 0.5
    marked = replace(plain, ignore_index=-100)
    assert torch.equal(plain.accuracy(logits), marked.accuracy(logits))
    with pytest.raises(ValueError, match="class indices must lie in 0 … 3 .* got 156"):
        mixer(ignore_index=-100)(x, y)


def test_an_index_must_be_a_whole_number():
    for index in ("255", 2.5, 0.0, True):
        with pytest.raises(ValueError, match="ignore_index must be a whole number, got"):
            mixer(ignore_index=index)
    assert mixer(ignore_index=np.int64(255)).ignore_index == 255
