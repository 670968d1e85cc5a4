"""Crossings against the weight of labels, as an inspection reads them."""

import pytest
import torch
from scipy.optimize import linear_sum_assignment

from kmixup import inspect
from kmixup._subsets import subset_pairs
from kmixup.inspection.readings import WEIGHTS, read_labels


def samples(n=300, seed=0):
    drawn = torch.Generator().manual_seed(seed)
    y = torch.randint(3, (n,), generator=drawn)
    return torch.randn(n, 2, dtype=torch.float64, generator=drawn) + y[:, None], y


def generator():
    return torch.Generator().manual_seed(3)


def test_shares_and_distances_are_those_of_the_optimum_by_scipy():
    x, y = samples()
    k = 8
    taken = read_labels(x, y.numpy(), k, generator=generator())
    first, second = subset_pairs(300, k, 2048 // k, disjoint=True, generator=generator())
    for reading in taken[::3]:
        crossings, squares = 0.0, 0.0
        for own, facing in zip(first, second, strict=True):
            distance = torch.cdist(x[own], x[facing]).square()
            differ = (y[own][:, None] != y[facing]).double()
            cost = distance + reading.labels * distance.mean() * differ
            match = linear_sum_assignment(cost.numpy())
            crossings += float(differ[match].sum())
            squares += float(distance[match].sum())
        assert reading.crossing.value == pytest.approx(crossings / first.numel())
        random = float(2 * x.var(0).sum())
        assert reading.ratio.value == pytest.approx(squares / first.numel() / random)


def test_crossings_fall_and_distances_are_least_without_labels():
    x, y = samples()
    inspection = inspect(x, y, largest_k=32, generator=generator())
    readings = inspection.by_labels
    assert [reading.labels for reading in readings] == list(WEIGHTS)
    assert len({reading.k for reading in readings}) == 1
    crossings = [reading.crossing.value for reading in readings]
    assert crossings == sorted(crossings, reverse=True)
    nearest = min(readings, key=lambda reading: reading.ratio.value)
    assert nearest.labels == 0
    plain = inspection.at(nearest.k)
    error = 4 * (nearest.crossing.error + plain.crossing.error)
    assert abs(nearest.crossing.value - plain.crossing.value) < error
    assert readings[-1].crossing.value == pytest.approx(plain.least, abs=error + 0.05)


def test_without_labels_there_is_nothing_to_read():
    x, _ = samples()
    assert inspect(x, largest_k=8).by_labels == ()
    assert inspect(x, torch.zeros(300).long(), largest_k=8).by_labels == ()
