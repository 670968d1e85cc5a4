import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kmixup import assignment
from kmixup.matching.assignment import assign, choose, solve, squared_distances, true_distances
from oracles import brute_force_optimum, exact_costs, scipy_optimum, squared_differences


def cost_of(cost: np.ndarray, columns: np.ndarray) -> float:
    return float(cost[np.arange(len(cost)), columns].sum())


@given(k=st.integers(1, 6), seed=st.integers(0, 2**31), ties=st.booleans())
def test_solve_finds_the_minimum_over_all_permutations(k, seed, ties):
    rng = np.random.default_rng(seed)
    cost = rng.integers(0, 4, (3, k, k)).astype(float) if ties else rng.normal(size=(3, k, k))
    for block, columns in zip(cost, solve(cost), strict=True):
        assert sorted(columns) == list(range(k))
        assert cost_of(block, columns) == pytest.approx(brute_force_optimum(block), abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_solve_agrees_with_scipy_on_large_blocks(dtype):
    cost = np.random.default_rng(0).normal(size=(2, 200, 200)).astype(dtype)
    for block, columns in zip(cost, solve(cost), strict=True):
        assert cost_of(block, columns) == pytest.approx(scipy_optimum(block), rel=1e-6)


def test_squared_distances_keep_their_digits_far_from_the_origin():
    a, b = torch.randn(2, 5, 3).double() + 1e8, torch.randn(2, 5, 3).double() + 1e8
    distances = squared_distances(a, b)
    for block in range(2):
        expected = squared_differences(a[block], b[block])
        np.testing.assert_allclose(distances[block], expected, rtol=1e-6)


def squares(x: torch.Tensor) -> np.ndarray:
    return x.double().square().sum(2).numpy()


def test_assign_returns_the_squared_distances_of_the_match():
    a, b = torch.randn(4, 9, 7), torch.randn(4, 9, 7)
    columns, distance = assign(a, b, squares(a), squares(b))
    for block in range(4):
        cost = squared_differences(a[block], b[block])
        np.testing.assert_allclose(distance[block], cost[np.arange(9), columns[block]], rtol=1e-5)
        assert distance[block].sum() == pytest.approx(scipy_optimum(cost), rel=1e-5)


def test_only_blocks_that_lost_digits_are_matched_again(monkeypatch):
    seen = []
    monkeypatch.setattr(
        assignment, "choose", lambda a, b, choice: (seen.append(len(a)), choose(a, b, choice))[1]
    )
    a, b = torch.randn(5, 8, 30), torch.randn(5, 8, 30)
    assign(a, b, squares(a), squares(b))
    assert seen == []
    a[2] += 1e4
    b[2] += 1e4
    assign(a, b, squares(a), squares(b))
    assert seen == [1]


def test_matches_inside_a_far_cluster_are_exact_beside_a_long_cross_match():
    # the total is dominated by one pair, the others are lost in a float32 product
    centre = torch.tensor([[0.0, 0.0], [1e4, 0.0]])
    a = torch.randn(1, 16, 2) + centre[[0] * 7 + [1] * 9]
    b = torch.randn(1, 16, 2) + centre[[0] * 8 + [1] * 8]
    columns, _ = assign(a, b, squares(a), squares(b))
    cost = squared_differences(a[0], b[0])
    inside = [i for i in range(16) if cost[i, columns[0, i]] < 1e6]
    assert len(inside) == 15
    block = cost[np.ix_(inside, columns[0, inside])]
    assert np.trace(block) == pytest.approx(scipy_optimum(block), rel=1e-9)


def test_true_distances_keep_their_digits_inside_clusters_far_apart():
    centre = torch.tensor([[0.0, 0.0, 0.0], [3e8, 0.0, 0.0]]).double()
    a, b = (torch.randn(6, 3).double() + centre[[0, 0, 0, 1, 1, 1]] for _ in range(2))
    exact = exact_costs(a, b)
    distances = true_distances(a[None], b[None])[0].numpy()
    np.testing.assert_allclose(distances / distances.max(), exact, rtol=4e-15)
    products = squared_distances(a[None], b[None])[0].numpy()  # why the others are needed
    assert abs(products / products.max() / exact - 1).max() > 0.01


@pytest.mark.parametrize("scale", [2.0**-300, 2.0**300])
def test_distances_of_an_extreme_block_come_back_in_its_own_unit(scale):
    a, b = torch.randn(2, 3, 9, 7).double()
    columns, distance = assign(a, b, squares(a), squares(b))
    a[1], b[1] = scale * a[1], scale * b[1]
    again, scaled = assign(a, b, squares(a), squares(b))
    np.testing.assert_array_equal(again, columns)
    np.testing.assert_allclose(scaled[1], distance[1] * scale**2, rtol=1e-9)
    np.testing.assert_array_equal(scaled[[0, 2]], distance[[0, 2]])


def costs_solved(monkeypatch, k: int, d: int) -> np.ndarray:
    """The matrices that are handed to the solver for ordinary points."""
    seen = []
    monkeypatch.setattr(
        assignment, "solve", lambda cost: (seen.append(cost.copy()), solve(cost))[1]
    )
    a, b = torch.randn(2, 2, k, d)
    assign(a, b, squares(a), squares(b))
    return seen[0]


@pytest.mark.parametrize(("k", "d"), [(32, 1), (64, 2), (64, 8), (256, 16)])
def test_large_blocks_in_few_dimensions_are_solved_from_distances(monkeypatch, k, d):
    assert (costs_solved(monkeypatch, k, d) >= 0).all()


@pytest.mark.parametrize(("k", "d"), [(2, 2), (16, 2), (16, 30), (16, 279), (64, 784)])
def test_sizes_of_the_published_trials_are_solved_from_products(monkeypatch, k, d):
    # among equally good matches, another matrix could choose another
    assert (costs_solved(monkeypatch, k, d) < 0).any()


@given(k=st.integers(32, 70), d=st.integers(1, 16), seed=st.integers(0, 2**31))
def test_products_and_distances_give_one_match(k, d, seed):
    a, b = torch.randn(2, 1, k, d, generator=torch.Generator().manual_seed(seed)).double()
    columns, distance = assign(a, b, squares(a), squares(b))
    np.testing.assert_array_equal(columns, solve(-torch.bmm(a, b.mT).numpy()))
    assert distance.sum() == pytest.approx(scipy_optimum(squared_differences(a[0], b[0])))
