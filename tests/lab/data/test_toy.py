import math

import pytest
import torch

from kmixup.lab.data import toy

TOYS = sorted(toy.DRAW)


@pytest.mark.parametrize("name", TOYS)
def test_classes_are_balanced_at_any_size(name):
    parts = toy.draw(name, size=102, seed=0)
    assert parts.x.shape == parts.x_test.shape == (102, 2)
    assert parts.x.dtype == torch.float32
    assert parts.y.bincount().tolist() in ([51, 51], [52, 50])


@pytest.mark.parametrize("name", TOYS)
def test_seed_decides_and_test_points_are_new(name):
    first, same, other = (toy.draw(name, size=50, seed=s) for s in (1, 1, 2))
    assert torch.equal(first.x, same.x)
    assert not torch.equal(first.x, other.x)
    assert not torch.equal(first.x, first.x_test)


@pytest.mark.parametrize(
    ("name", "paper"), [("one-ring", 1.13), ("four-bars", 28.0), ("swiss-roll", 164.0)]
)
def test_mean_squared_distance_is_near_what_the_papers_xi_imply(name, paper):
    x = toy.draw(name, size=20_000, seed=0).x.double()
    assert float(2 * x.var(0).sum()) == pytest.approx(paper, rel=0.03)


def test_a_radius_between_disc_and_ring_separates_them():
    parts = toy.draw("one-ring", size=2000, seed=0)
    outside = parts.x.norm(dim=1) > (toy.DISC + toy.RING[0]) / 2
    assert torch.equal(outside.long(), parts.y)


def test_the_midpoint_of_every_other_bar_lies_on_a_bar_of_the_other_class():
    parts = toy.draw("four-bars", size=400, seed=0)
    bar = (parts.x[:, 0] / toy.BAR_DISTANCE + 1.5).round().long()
    assert torch.equal(bar % 2, parts.y)
    assert set(bar.tolist()) == {0, 1, 2, 3}


def test_arms_keep_apart_by_several_times_the_noise():
    parts = toy.draw("swiss-roll", size=2000, seed=0)
    first, second = (parts.x[parts.y == label] for label in (0, 1))
    gap = torch.cdist(first, second).min()
    assert gap > math.pi * toy.ARM - 8 * toy.NOISE - 0.5


def test_too_few_points_are_refused():
    with pytest.raises(ValueError, match="size must be a whole number, at least 4, got 3"):
        toy.draw("one-ring", size=3)
