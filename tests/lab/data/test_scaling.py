import pytest
import torch

from kmixup.lab.data.preparation import CHUNK, fit


def scaled(scaling, x, pixel_range=None):
    mean, std = fit(scaling, x, pixel_range)
    return (x.float() - mean) / std


def test_standard_gives_every_column_zero_mean_and_unit_variance():
    x = 1e4 + torch.randn(2 * CHUNK + 7, 3) * torch.tensor([1.0, 10.0, 0.1])
    z = scaled("standard", x).double()
    assert torch.allclose(z.mean(0), torch.zeros(3).double(), atol=1e-2)
    assert torch.allclose(z.std(0), torch.ones(3).double(), atol=1e-2)


def test_standard_agrees_with_the_moments_of_every_channel():
    x = torch.randint(256, (CHUNK + 5, 3, 2, 2), dtype=torch.uint8)
    mean, std = fit("standard", x, (0, 255))
    assert mean.shape == (3, 1, 1)
    assert torch.allclose(mean.flatten(), x.double().mean((0, 2, 3)).float())
    assert torch.allclose(std.flatten(), x.double().std((0, 2, 3), correction=0).float())


def test_minmax_and_symmetric_reach_both_ends_of_every_column():
    x = torch.tensor([[0.0, 5.0], [2.0, 7.0], [4.0, 6.0]])
    assert scaled("minmax", x).aminmax(dim=0).min.tolist() == [0, 0]
    assert scaled("minmax", x).aminmax(dim=0).max.tolist() == [1, 1]
    assert scaled("symmetric", x).aminmax(dim=0).min.tolist() == [-1, -1]


def test_pixels_are_scaled_from_their_range_not_from_the_values_that_occur():
    x = torch.full((2, 1, 1, 1), 51, dtype=torch.uint8)
    assert scaled("minmax", x, (0.0, 255.0)).flatten().tolist() == pytest.approx([0.2, 0.2])
    assert scaled("symmetric", x, (0.0, 255.0)).flatten().tolist() == pytest.approx([-0.6, -0.6])


def test_global_has_one_mean_and_one_deviation_for_all_columns():
    x = torch.randn(2 * CHUNK + 7, 3) * torch.tensor([1.0, 10.0, 0.1]) + torch.tensor([0, 50, 9])
    mean, std = fit("global", x)
    assert mean.shape == std.shape == ()
    assert float(mean) == pytest.approx(float(x.double().mean()))
    assert float(std) == pytest.approx(float(x.double().std(correction=0)))


@pytest.mark.parametrize("scaling", ["standard", "minmax", "symmetric", "global"])
def test_a_constant_column_becomes_zero(scaling):
    assert scaled(scaling, torch.full((4, 1), 7.0)).tolist() == [[0.0]] * 4


def test_none_changes_nothing():
    x = torch.randn(5, 2)
    assert torch.equal(scaled("none", x), x)
