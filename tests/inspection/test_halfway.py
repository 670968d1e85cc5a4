"""Midpoints against a search written out in full."""

import math

import numpy as np
import pytest
import torch

from kmixup.inspection.readings import Halfway
from kmixup.theory.matching import matched_subsets


def points_of(n, d, seed=0):
    x = torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return x - x.mean(0)


def pairs_of(points, k, blocks, seed=0):
    generator = torch.Generator().manual_seed(seed)
    drawn = list(matched_subsets(points, k, blocks, disjoint=True, generator=generator))
    return np.concatenate([a for a, _ in drawn]), np.concatenate([b for _, b in drawn])


def written_out(points, labels, left, right):
    """Per block: distances of midpoints and of samples, and how often classes differ."""
    x = points.numpy()
    rows = []
    for first, second in zip(left, right, strict=True):
        outside = [i for i in range(len(x)) if i not in first and i not in second]
        figures = []
        for a, b in zip(first, second, strict=True):
            to_mixed = {i: np.linalg.norm(x[i] - (x[a] + x[b]) / 2) for i in outside}
            to_own = {i: np.linalg.norm(x[i] - x[a]) for i in outside}
            mixed, own = min(to_mixed, key=to_mixed.get), min(to_own, key=to_own.get)
            figures.append(
                (
                    to_mixed[mixed],
                    to_own[own],
                    labels[mixed] not in (labels[a], labels[b]),
                    labels[own] != labels[a],
                )
            )
        rows.append(np.mean(figures, 0))
    return np.array(rows).T


@pytest.mark.parametrize("k", [1, 4, 8])
def test_the_figures_are_those_of_a_search_written_out(k):
    points = points_of(40, 3)
    labels = np.arange(40) % 3
    left, right = pairs_of(points, k, 24)
    halfway = Halfway.of(points, labels, left, right)
    mixed, own, contradicted, disagreeing = written_out(points, labels, left, right)
    assert halfway.distance.value == pytest.approx(mixed.mean() / own.mean())
    assert halfway.contradiction.value == pytest.approx(contradicted.mean())
    assert halfway.contradiction.error == pytest.approx(contradicted.std(ddof=1) / math.sqrt(24))
    assert halfway.disagreement.value == pytest.approx(disagreeing.mean())


def test_many_samples_are_looked_at_in_parts(monkeypatch):
    points, labels = points_of(60, 2), np.arange(60) % 2
    left, right = pairs_of(points, 4, 20)
    whole = Halfway.of(points, labels, left, right)
    monkeypatch.setattr("kmixup.inspection.readings.CELLS", 500)
    assert Halfway.of(points, labels, left, right) == whole


def test_far_clusters_keep_their_digits():
    near = points_of(60, 2)
    far = near + 1e6 * (torch.arange(60) % 2)[:, None]
    far = far - far.mean(0)
    labels = (torch.arange(60) % 2).numpy()
    left, right = pairs_of(far, 4, 20)
    mixed, own, *_ = written_out(far, labels, left, right)
    halfway = Halfway.of(far, labels, left, right)
    assert halfway.distance.value == pytest.approx(mixed.mean() / own.mean(), rel=1e-6)


def test_without_labels_there_are_distances_only():
    points = points_of(40, 2)
    halfway = Halfway.of(points, None, *pairs_of(points, 2, 16))
    assert halfway.contradiction is None
    assert halfway.disagreement is None
    assert halfway.distance.value > 0


def test_too_few_samples_to_look_from_give_nothing():
    points = points_of(15, 2)
    assert Halfway.of(points, None, *pairs_of(points, 4, 16)) is None


def test_samples_that_come_in_copies_give_no_ratio():
    points = torch.cat([points_of(2, 2)] * 20)
    assert Halfway.of(points, None, *pairs_of(points, 1, 16)) is None
