import pytest
import torch

from kmixup.lab.data.dataset import Dataset, Parts, Samples, split


def numbered(n):
    return Samples(torch.arange(n).float().unsqueeze(1), torch.arange(n) % 2, ("a", "b"))


def images(**changes):
    x, y = torch.tensor([[[[0, 255]]]], dtype=torch.uint8), torch.tensor([0])
    fields = {"mean": torch.tensor(51.0), "std": torch.tensor(102.0), "scaling": "standard"}
    return Dataset("some", x, y, x, y, ("a",), **{**fields, "pixel_range": (0, 255), **changes})


def test_split_uses_every_sample_once_with_its_own_label():
    parts = split(numbered(31), seed=0)
    x, y = torch.cat([parts.x_train, parts.x_test]), torch.cat([parts.y_train, parts.y_test])
    assert sorted(x.flatten().tolist()) == list(range(31))
    assert torch.equal(x.flatten().long() % 2, y)


@pytest.mark.parametrize(("n", "sizes"), [(150, (100, 50)), (569, (379, 190)), (2, (1, 1))])
def test_a_third_rounded_up_is_for_testing(n, sizes):
    parts = split(numbered(n), seed=0)
    assert (len(parts.x_train), len(parts.x_test)) == sizes


def test_split_depends_on_its_seed_alone():
    torch.manual_seed(1)
    first = split(numbered(30), seed=4)
    torch.manual_seed(2)
    assert torch.equal(first.x_train, split(numbered(30), seed=4).x_train)
    assert not torch.equal(first.x_train, split(numbered(30), seed=5).x_train)


def test_a_single_sample_cannot_be_split():
    with pytest.raises(ValueError, match="at least 2 samples to be split, got 1"):
        split(numbered(1), seed=0)


def test_first_cuts_each_part_to_the_limit():
    x = torch.arange(5)
    parts = Parts(x, x, x[:2], x[:2], ("a",)).first(3)
    assert [len(parts.x_train), len(parts.y_train), len(parts.x_test)] == [3, 3, 2]


def test_normalise_maps_raw_pixels_and_raw_floats_alike():
    data = images()
    assert data.normalise(data.x_train).flatten().tolist() == [-0.5, 2.0]
    assert torch.equal(data.normalise(data.x_train.double()), data.normalise(data.x_train))
    assert data.x_train.dtype == torch.uint8


def test_normalise_lets_gradients_through_to_the_pixels():
    x = torch.zeros(1, 1, 1, 2, requires_grad=True)
    images().normalise(x).sum().backward()
    assert torch.allclose(x.grad, torch.tensor(1 / 102))


def test_pixel_step_is_a_share_of_the_pixel_range():
    assert images().pixel_step(8) == 8
    assert images(pixel_range=(0.0, 1.0)).pixel_step(51) == pytest.approx(0.2)


def test_pixel_step_needs_pixels():
    with pytest.raises(ValueError, match="some has no pixels"):
        images(pixel_range=None).pixel_step(8)


def test_title_names_the_part():
    assert images().title == "some"
    assert images(part="the first 5 of 9").title == "some (the first 5 of 9)"


def test_shape_and_number_of_classes_describe_one_input():
    assert images().shape == (1, 1, 2)
    assert images().num_classes == 1
