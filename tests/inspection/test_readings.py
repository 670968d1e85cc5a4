"""Readings against enumeration, a second solver and the theory."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from kmixup import Beta, inspect
from kmixup.inspection.readings import CAP, decay_of, read
from kmixup.theory import expected_fraction
from oracles import seeded

DRAWS = 4.5  # standard errors that a mean may be off


def points_of(x):
    points = torch.as_tensor(x).double()
    return points - points.mean(0)


def normal(n, d, seed=0):
    return points_of(torch.randn(n, d, generator=seeded(seed)))


def reading(points, labels=None, k=4, alpha=1.0, disjoint=True):
    return read(points, labels, k, alpha=alpha, disjoint=disjoint, generator=seeded())


def decay(points, powers=8):
    return decay_of({2**i: reading(points, k=2**i).square_distance for i in range(powers)})


@pytest.mark.parametrize("disjoint", [True, False])
def test_distances_and_labels_agree_with_the_enumeration_of_all_sets(disjoint):
    points, labels = normal(7, 2), np.array([0, 0, 1, 1, 2, 2, 2])
    cost = cdist(points, points, "sqeuclidean")
    distance, crossing = [], []
    for first in combinations(range(7), 2):
        others = set(range(7)) - set(first) if disjoint else range(7)
        for second in combinations(others, 2):
            best = min(permutations(second), key=lambda p, f=first: sum(cost[f, p]))
            distance.append(np.mean(cost[first, best]))
            crossing.append(np.mean(labels[list(first)] != labels[list(best)]))
    taken = reading(points, labels, k=2, disjoint=disjoint)
    assert (
        abs(taken.square_distance.value - np.mean(distance)) < DRAWS * taken.square_distance.error
    )
    assert abs(taken.crossing.value - np.mean(crossing)) < DRAWS * taken.crossing.error


def test_at_k_1_distances_are_exact_and_labels_are_those_of_random_pairs():
    points, labels = normal(30, 3), np.arange(30) % 4
    taken = reading(points, labels, k=1)
    apart = cdist(points, points, "sqeuclidean").sum() / (30 * 29)
    differ = np.mean([labels[i] != labels[j] for i in range(30) for j in range(30) if i != j])
    assert taken.square_distance.value == pytest.approx(apart)
    assert taken.square_distance.error == 0
    assert (taken.ratio.value, taken.alpha, taken.reachable) == (1, 1, True)
    assert taken.crossing.value == taken.least  # nothing to choose
    assert abs(taken.crossing.value - differ) < DRAWS * taken.crossing.error


@pytest.mark.parametrize(
    "draw",
    [lambda n: np.random.default_rng(n).random((n, 50)), lambda n: normal(n, 2).numpy()],
    ids=["a cube of 50 dimensions", "one Gaussian"],
)
def test_the_ratio_is_that_of_another_solver_on_fresh_points(draw):
    k, batches = 32, 150
    fresh = draw(2 * k * batches).reshape(batches, 2 * k, -1)
    means = []
    for batch in fresh:
        cost = cdist(batch[:k], batch[k:], "sqeuclidean")
        means.append(cost[linear_sum_assignment(cost)].mean())
    taken = reading(points_of(draw(4000)), k=k)
    error = math.hypot(taken.square_distance.error, np.std(means, ddof=1) / batches**0.5)
    # the samples of the data set have a spread of their own as well
    assert abs(taken.square_distance.value - np.mean(means)) < DRAWS * error + 0.02 * np.mean(means)


@pytest.mark.parametrize("k", [2, 8, 32])
def test_classes_far_apart_cross_as_seldom_as_any_matching_can(k):
    labels = (np.arange(400) % 4 == 0).astype(np.int64)  # a quarter and three quarters
    taken = reading(points_of(normal(400, 2) + 50.0 * torch.from_numpy(labels)[:, None]), labels, k)
    assert taken.crossing.value == pytest.approx(taken.least)
    expected = expected_fraction([0.25, 0.75], k).most  # of fresh draws, which 2k of 400 nearly are
    assert taken.least == pytest.approx(expected, abs=DRAWS * taken.crossing.error + 0.01)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.sampled_from([2, 4, 8]))
def test_no_labels_cross_more_seldom_than_their_counts_force(seed, classes, k):
    labels = np.random.default_rng(seed).integers(classes, size=60)
    taken = reading(normal(60, 2, seed), labels, k)
    assert taken.crossing.value >= taken.least - 1e-9


def test_alpha_keeps_the_strength_or_is_the_cap():
    points = normal(500, 10)
    for alpha in (0.2, 1.0):
        taken = reading(points, k=8, alpha=alpha)
        at_one = Beta(alpha).mean_square_step * 2 * points.var(0).sum()
        here = Beta(taken.alpha).mean_square_step * taken.square_distance.value
        assert taken.reachable
        assert here == pytest.approx(float(at_one), rel=1e-6)
    out_of_reach = reading(normal(500, 1), k=32)
    assert (out_of_reach.alpha, out_of_reach.reachable) == (CAP, False)


@pytest.mark.parametrize(("d", "low", "high"), [(1, 1, 1), (2, 2, 3.5), (3, 2, 3.8)])
def test_the_decay_tells_the_dimension(d, low, high):
    found = decay(points_of(np.random.default_rng(0).random((3000, d))))
    assert low <= found.low <= found.high <= high
    assert found.low <= d <= found.high


def test_the_decay_reads_low_in_high_dimensions_but_rises_with_them():
    cube = np.random.default_rng(0).random((3000, 50))
    eight, fifty = (decay(points_of(cube[:, :d])) for d in (8, 50))
    assert 5 < eight.low < eight.high < 8
    assert 20 < fifty.low < fifty.high < 50


def test_clusters_far_apart_fall_like_four_dimensions():
    cluster = 1000.0 * (torch.arange(2000) % 2)[:, None]
    found = decay(points_of(normal(2000, 1) + cluster))
    assert found.slope.value == pytest.approx(-0.5, abs=DRAWS * found.slope.error + 0.02)
    assert found.low <= 4 <= found.high


def test_too_few_k_show_no_decay():
    assert decay(normal(40, 2), powers=4) is None


def test_the_decay_is_that_of_disjoint_sets_whatever_the_pairing():
    x = np.random.default_rng(0).random((400, 1))
    found = [inspect(x, disjoint=disjoint, generator=seeded()) for disjoint in (True, False)]
    slopes = [inspection.decay.slope for inspection in found]
    error = math.hypot(*(slope.error for slope in slopes))
    assert abs(slopes[0].value - slopes[1].value) < DRAWS * error
    # at large k, many samples of independent sets are their own partners
    assert found[1].at(128).ratio.value < 0.8 * found[0].at(128).ratio.value
