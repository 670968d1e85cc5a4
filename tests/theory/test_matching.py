"""The matching distribution against all pairs of subsets, enumerated."""

from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

from kmixup import Nearest, Optimal
from kmixup.theory import matched_subsets, matching_distribution, matching_distributions

N, K = 6, 2


def enumerated(x: np.ndarray, k: int) -> np.ndarray:
    """Every D_i exactly: row i has the fraction of pairs of subsets in which j is its partner."""
    n = len(x)
    count = np.zeros((n, n))
    for first in combinations(range(n), k):
        for second in combinations(range(n), k):
            cost = np.square(x[list(first)][:, None] - x[list(second)][None]).sum(2)
            for row, column in zip(*linear_sum_assignment(cost), strict=True):
                count[first[row], second[column]] += 1
    return count / count.sum(1, keepdims=True)


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(N, 2))


def deviations(sampled: np.ndarray, exact: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Differences in units of the exact standard error."""
    error = np.sqrt(exact * (1 - exact) / samples)
    assert (sampled[exact == 0] == 0).all()
    return (sampled - exact)[exact > 0] / np.maximum(error[exact > 0], 1e-12)


def test_all_distributions_are_those_of_enumeration(x):
    D = matching_distributions(x, K, 20_000)
    off = deviations(D.probability.toarray(), enumerated(x, K), D.samples[:, None])
    assert abs(off).max() < 4.5
    assert 0.5 < off.std() < 1.5


@pytest.mark.parametrize("k", [1, 2, 3])
def test_one_distribution_is_that_of_enumeration(x, k):
    D = matching_distribution(x, 4, k, 20_000)
    off = deviations(D.probability, enumerated(x, k)[4], np.asarray(20_000))
    assert abs(off).max() < 4.5


def test_the_stated_error_covers_the_truth_as_often_as_it_should(x):
    exact = enumerated(x, K)[0]
    hits = []
    for _ in range(200):
        D = matching_distribution(x, 0, K, 500)
        hits.append(abs(D.probability - exact)[exact > 0.05] < 1.96 * D.error[exact > 0.05])
    cover = np.mean(np.concatenate(hits))
    assert 0.92 < cover < 0.98


def test_mean_and_covariance_are_the_weighted_ones(x):
    D = matching_distributions(x, K, 5000)
    row = D[2]
    assert row.mean() == pytest.approx(np.average(x, axis=0, weights=row.probability))
    expected = np.cov(x.T, aweights=row.probability, ddof=0)
    assert row.covariance() == pytest.approx(expected)


def test_larger_subsets_give_more_local_partners():
    x = torch.randn(100, 2)
    spread = [np.trace(matching_distribution(x, 0, k, 2000).covariance()) for k in (1, 8, 64)]
    assert spread[0] > 1.5 * spread[1] > 2 * spread[2]


def test_nearest_neighbours_leave_the_cluster_less_often_than_optimal_partners():
    x = torch.cat([torch.randn(40, 2), torch.randn(40, 2) + torch.tensor([8.0, 0.0])])
    optimal, nearest = (
        [matching_distribution(x, i, 16, 200, pairing=pairing).probability for i in range(9)]
        for pairing in (Optimal, Nearest)
    )
    assert np.sum(optimal, 0)[40:].sum() / 9 > 0.05
    assert np.sum(nearest, 0)[40:].sum() / 9 < 0.005


def test_numpy_and_torch_give_the_same_bits(x):
    results = [
        matching_distributions(data, K, 500, generator=torch.Generator().manual_seed(1))
        for data in (x, torch.from_numpy(x), x.tolist())
    ]
    for other in results[1:]:
        assert (results[0].probability != other.probability).nnz == 0


def test_memory_holds_only_the_pairs_that_were_met():
    D = matching_distributions(torch.randn(20_000, 1), 4, 50)
    assert D.probability.nnz <= 200
    assert D.probability.sum() == pytest.approx((D.samples > 0).sum())
    missing = int((D.samples == 0).argmax())
    with pytest.raises(ValueError, match=f"point {missing} took part in no matching"):
        D[missing]


def test_matched_subsets_are_subsets_and_as_many_as_asked():
    parts = list(matched_subsets(torch.randn(3000, 700), 8, 700, disjoint=True))
    first, second = (np.concatenate(side) for side in zip(*parts, strict=True))
    assert len(parts) > 1
    assert first.shape == second.shape == (700, 8)
    assert all(len({*a, *b}) == 16 for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: matching_distribution(x, 6, 2), "i must be the index of a point, from 0 to 5"),
        (lambda x: matching_distribution(x, 0, 7), "k must be from 1 to 6 for 6 samples, got 7"),
        (lambda x: matched_subsets(x, 4, 1, disjoint=True), "from 1 to 3 for 6 .* disjoint"),
        (
            lambda x: matching_distributions(x, 2, 0),
            "samples must be a whole number, at least 1, got 0",
        ),
        (lambda x: matching_distributions(x[:0], 2), "X must hold at least one sample"),
    ],
)
def test_impossible_settings_are_refused(x, call, message):
    with pytest.raises(ValueError, match=message):
        call(x)
