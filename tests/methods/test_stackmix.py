"""StackMix: two samples in one, and what unmixed samples look like."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from kmixup import Choice, CutMix, HiddenMixup, KMixup, StackMix


@pytest.mark.parametrize("axis", [-2, -1, 1, 2])
@pytest.mark.parametrize("paired", [False, True])
def test_a_sample_stands_before_its_partner_and_labels_are_half_and_half(axis, paired):
    x, y = torch.randn(12, 2, 3, 5), torch.randint(3, (12,))
    x2, y2 = (torch.randn(12, 2, 3, 5), torch.randint(3, (12,))) if paired else (x, y)
    mix = StackMix(4, 3, axis=axis)
    m = mix.mix(x, y, other=(x2, y2) if paired else None)
    assert torch.equal(m.x, torch.cat([x, x2[m.partner]], axis))
    torch.testing.assert_close(m.y, (F.one_hot(y, 3) + F.one_hot(y2[m.partner], 3)) / 2)


def test_an_unmixed_sample_is_itself_twice_in_evaluation_too():
    x, y = torch.randn(6, 1, 4, 4), torch.randint(3, (6,))
    twice = torch.cat([x, x], 2)
    mix = StackMix(2, 3)
    assert torch.equal(mix.encode_clean(x), twice)
    seldom = StackMix(2, 3, prob=0.0).mix(x, y)
    assert torch.equal(seldom.x, twice)
    assert torch.equal(seldom.y, F.one_hot(y, 3).float())
    assert torch.equal(mix.eval()(x, y)[0], twice)


def test_images_of_integers_are_stacked():
    x = torch.randint(255, (8, 1, 4, 4), dtype=torch.uint8)
    m = StackMix(2).mix(x, torch.randn(8))
    assert m.x.dtype == torch.uint8
    assert torch.equal(m.x, torch.cat([x, x[m.partner]], 2))


def test_entries_of_a_nest_are_stacked_and_the_others_follow():
    x = {"image": torch.randn(8, 1, 4, 4), "ids": torch.arange(8), "name": list("abcdefgh")}
    mix = StackMix(2)
    for shown in (mix.mix(x, torch.randn(8)).x, mix.encode_clean(x)):
        assert shown["image"].shape == (8, 1, 8, 4)
        assert torch.equal(shown["ids"], x["ids"])
        assert shown["name"] == x["name"]


def test_tables_are_stacked_along_their_features():
    x, y = torch.randn(8, 3), torch.randn(8)
    m = StackMix(2, axis=-1).mix(x, y)
    assert torch.equal(m.x, torch.cat([x, x[m.partner]], 1))
    for axis in (-2, 0, 2, 1.5):
        with pytest.raises(ValueError, match=rf"got {axis} for inputs of the shape \(8, 3\): use"):
            StackMix(2, axis=axis).mix(x, y)


def test_mixers_that_show_samples_differently_are_no_choice():
    x = torch.randn(4, 1, 2, 2)
    for other in (CutMix(1, 1.0, 3), Choice([StackMix(1, 3, axis=-1)])):
        with pytest.raises(ValueError, match="must encode clean inputs in the same way, got"):
            Choice([StackMix(1, 3), other]).encode_clean(x)
    choice = Choice([StackMix(1, 3), StackMix(2, 3)])
    assert torch.equal(choice.eval()(x, None)[0], torch.cat([x, x], 2))
    assert KMixup().encode_clean(x) is x


def test_inside_of_a_network_there_is_no_stacking():
    with pytest.raises(ValueError, match="must mix the outputs of a layer as they are .* StackMix"):
        HiddenMixup(nn.Linear(2, 2), [""], mixer=StackMix())


def test_there_is_no_alpha():
    with pytest.raises(AttributeError, match=r"this mixer has Half\(\)"):
        StackMix().alpha = 1.0
