import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kmixup.matching._assignment import match_blocks, pair_distances, solve, squared_distances
from oracles import brute_force_optimum, exact_costs, scipy_optimum, squared_differences


def cost_of(cost: np.ndarray, columns: np.ndarray) -> float:
    return float(cost[np.arange(len(cost)), columns].sum())


def matched(a: torch.Tensor, b: torch.Tensor, dtype=torch.float64, seen: list | None = None):
    """Columns and squared distances of blocks `(blocks, k, d)`, and how many were solved."""

    def choose(cost, differ):
        if seen is not None:
            seen.append(len(cost))
        return solve(cost)

    rows = np.arange(a.shape[0] * a.shape[1]).reshape(a.shape[:2])
    return match_blocks([a.flatten(0, 1)], [b.flatten(0, 1)], rows, rows, choose, dtype=dtype)


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
    a, b = torch.randn(2, 2, 5, 3).double() + 1e8
    for distances, *sides in zip(squared_distances(a, b), a, b, strict=True):
        np.testing.assert_allclose(distances, squared_differences(*sides), rtol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_pair_distances_come_from_differences_over_all_parts_of_the_points(dtype):
    first, second = ([torch.randn(9, d).to(dtype) + 1000 for d in (3, 70_000)] for _ in range(2))
    partner = torch.randperm(9)[:7]
    squares = sum(
        (a[:7].double() - b[partner].double()).square().sum(1)
        for a, b in zip(first, second, strict=True)
    )
    distances = pair_distances(first, second, partner)
    assert distances.dtype == torch.promote_types(dtype, torch.float32)
    torch.testing.assert_close(distances.double(), squares.sqrt(), rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("blocks", "k", "d"), [(4, 9, 7), (3, 40, 5000), (2, 64, 1)])
def test_a_match_is_optimal_and_comes_with_its_squared_distances(blocks, k, d, dtype):
    a, b = torch.randn(2, blocks, k, d)
    for block, (columns, distance) in enumerate(zip(*matched(a, b, dtype), strict=True)):
        cost = squared_differences(a[block], b[block])
        np.testing.assert_allclose(distance, cost[np.arange(k), columns], rtol=1e-5)
        assert distance.sum() == pytest.approx(scipy_optimum(cost), rel=1e-5)


def test_only_blocks_that_lost_digits_are_matched_again():
    a, b = torch.randn(2, 5, 8, 30)
    seen = []
    matched(a, b, torch.float32, seen)
    assert seen == [5]
    a[2] += 1e4
    b[2] += 1e4
    matched(a, b, torch.float32, seen)
    assert seen == [5, 5, 1]


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("k", "d", "gap", "spread"),
    [(16, 2, 1e4, 1), (64, 20, 1e6, 100), (64, 200, 1e6, 100), (64, 20, 1e7, 100)],
)
def test_matches_inside_clusters_are_optimal_beside_a_long_cross_match(
    k, d, gap, spread, dtype, whole
):
    # the total is dominated by one pair, beside which the others are lost to rounding
    sides = []
    for near in (k // 2 - 1, k // 2):
        side = spread * torch.randn(1, k, d)
        side[:, near:, 0] += gap
        sides.append(side.round() if whole else side)
    columns = matched(*sides, dtype)[0][0]
    cost = squared_differences(sides[0][0], sides[1][0])
    inside = np.array([i for i in range(k) if cost[i, columns[i]] < gap**2 / 4])
    assert len(inside) == k - 1
    for cluster in (inside[inside < k // 2 - 1], inside[inside >= k // 2 - 1]):
        block = cost[np.ix_(cluster, columns[cluster])]
        assert np.trace(block) == pytest.approx(scipy_optimum(block), rel=1e-9)


def test_clusters_beyond_the_digits_of_products_are_matched_from_differences():
    centre = torch.tensor([[0.0, 0.0, 0.0], [3e8, 0.0, 0.0]]).double()
    a, b = torch.randn(2, 1, 6, 3).double() + centre[[0, 0, 0, 1, 1, 1]]
    exact = exact_costs(a[0], b[0])
    columns, distance = matched(a, b)
    assert cost_of(exact, columns[0]) == pytest.approx(scipy_optimum(exact), rel=1e-12)
    picked = exact[np.arange(6), columns[0]]
    np.testing.assert_allclose(distance[0] / distance[0, 0], picked / picked[0], rtol=1e-12)
    products = squared_distances(a, b)[0]  # why differences are needed
    assert abs(products / products.max() / exact - 1).max() > 0.01


@pytest.mark.parametrize("scale", [2.0**-600, 2.0**-300, 2.0**300, 2.0**600])
def test_distances_of_an_extreme_block_come_back_in_its_own_unit(scale):
    a, b = torch.randn(2, 3, 9, 7).double()
    columns, distance = matched(a, b)
    a[1], b[1] = scale * a[1], scale * b[1]
    again, scaled = matched(a, b)
    np.testing.assert_array_equal(again, columns)
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_allclose(scaled[1], distance[1] * scale * scale, rtol=1e-9)
    np.testing.assert_array_equal(scaled[[0, 2]], distance[[0, 2]])


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_points_that_are_not_finite_raise(value):
    a, b = torch.randn(2, 3, 4, 5)
    b[1, 2, 3] = value
    with pytest.raises(FloatingPointError, match="NaN or an infinity"):
        matched(a, b)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_parts_of_any_size_and_dtype_are_matched_as_one(order):
    parts = [torch.randn(64, 3000), torch.randn(64, 700, dtype=torch.float64)]
    parts = [parts[i] for i in order]
    whole = torch.cat([part.double() for part in parts], 1)
    rows = torch.randperm(64).numpy().reshape(4, 16)
    sides = rows[:2], rows[2:]
    columns, distance = match_blocks(parts, parts, *sides, lambda cost, _: solve(cost))
    expected, exact = match_blocks([whole], [whole], *sides, lambda cost, _: solve(cost))
    assert (columns == expected).all()
    assert distance == pytest.approx(exact)
