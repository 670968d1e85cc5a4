"""Rounding: its bound, and proofs that it did not change a choice."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kmixup import KMixup
from kmixup.matching import _assignment
from kmixup.matching._assignment import WIDEST, match_blocks, solve
from kmixup.matching._proof import prove, rounding
from oracles import scipy_optimum, squared_differences

K = 8


def exact_lookup(true):
    return lambda block, row, column: true[block, row, column]


def excess(true, columns):
    """Cost of each block above its optimum, as a share of it."""
    rows = np.arange(true.shape[1])
    best = np.array([scipy_optimum(cost) for cost in true])
    return (np.array([c[rows, p].sum() for c, p in zip(true, columns, strict=True)]) - best) / best


@settings(max_examples=60)
@given(seed=st.integers(0, 2**31), k=st.integers(2, 20), size=st.floats(-6, -0.5))
def test_a_proved_choice_is_optimal_whatever_the_errors_within_their_bound(seed, k, size):
    rng = np.random.default_rng(seed)
    true = rng.random((4, k, k))
    error = 10**size * rng.random(true.shape)
    squares = true + error * rng.choice([-1, 0, 1], true.shape)
    columns, proved = prove(squares, error, solve(squares), solve, exact_lookup(true))
    assert (np.sort(columns, 1) == np.arange(k)).all()
    assert excess(true, columns)[proved] == pytest.approx(0, abs=1e-12)


def test_without_errors_everything_is_proved_and_nothing_computed_exactly():
    squares = np.random.default_rng(0).integers(0, 3, (5, K, K)).astype(float)  # many ties
    columns, proved = prove(squares, np.zeros_like(squares), solve(squares), solve, None)
    assert proved.all()
    assert (columns == solve(squares)).all()


def test_only_contested_pairs_are_computed_exactly():
    true = np.full((1, K, K), 9.0)
    true[0, np.arange(K), np.arange(K)] = 1
    true[0, :2, :2] = [[1.0, 1.0], [1.0, 0.999]]  # the identity is best, by less than the errors
    wrong = true.copy()
    wrong[0, [0, 1], [1, 0]] -= 0.01
    asked = []

    def exact(block, row, column):
        asked.extend(zip(row, column, strict=True))
        return true[block, row, column]

    columns, proved = prove(wrong, np.full(true.shape, 0.02), solve(wrong), solve, exact)
    assert proved.all()
    assert columns.tolist() == [[*range(K)]]
    assert sorted(asked) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_too_many_contested_pairs_have_no_proof():
    squares = np.random.default_rng(0).random((1, 20, 20))
    error = np.full(squares.shape, 0.5)
    _, proved = prove(squares, error, solve(squares), solve, exact_lookup(squares))
    assert not proved.any()


def waves(n, d):
    t = torch.linspace(0, 1, d)
    return torch.rand(n, 4) @ torch.stack([torch.ones(d), t, t * t, torch.cos(6 * t)])


IMAGES = {
    "noise": lambda n, d: torch.rand(n, d),
    "normal": lambda n, d: torch.randn(n, d),
    "smooth": waves,
    "smooth and pale": lambda n, d: 0.5 + 0.5 * waves(n, d),
    "constant": lambda n, d: (0.5 + torch.rand(n, 1)).expand(n, d).contiguous(),
    "nearly equal": lambda n, d: waves(1, d) + 1e-3 * torch.randn(n, d),
    "sparse": lambda n, d: torch.rand(n, d) * (torch.rand(n, d) < 0.01),
}


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("d", [65, 784, 4096, 30_000])
@pytest.mark.parametrize("k", [2, 8, 16])
@pytest.mark.parametrize("kind", IMAGES)
def test_squared_distances_err_by_less_than_the_bound(kind, k, d, ordered):
    x, rows = IMAGES[kind](64, d), np.arange(64).reshape(-1, k)
    if ordered:
        squares, a, b = _assignment._squared_distances_in_order([x], [x], rows.shape)
    else:
        squares, a, b = _assignment._squared_distances([x], [x], rows, rows, torch.float32)
    bound = rounding(min(d, WIDEST), torch.float32)
    for i, block in enumerate(x.view(-1, k, d)):
        error = np.abs(squares[i] - squared_differences(block, block))
        assert (error <= bound * (a[i][:, None] + b[i])).all()


def blocks(x, k=K):
    rows = np.random.default_rng(0).permutation(len(x)).reshape(-1, k)
    return [x], [x], rows, np.roll(rows, -1, 0)


def solutions(x, dtype=torch.float32):
    """Matched columns, and how many blocks each call of the solver got."""
    seen = []

    def choose(cost, _):
        seen.append(len(cost))
        return solve(cost)

    first, second, own, facing = blocks(x)
    columns, distance = match_blocks(
        first, second, own, facing, choose, dtype=dtype, least_cost=True
    )
    true = np.stack([squared_differences(x[i], x[j]) for i, j in zip(own, facing, strict=True)])
    chosen = np.take_along_axis(true, columns[..., None], 2)[..., 0]
    np.testing.assert_allclose(distance, chosen, rtol=1e-4)
    return true, columns, seen


def repeated(x, jitter):
    return torch.cat([x, x + jitter * torch.randn_like(x)])


DATA = {
    "plain": (lambda: torch.randn(64, 200), 1),
    "offset": (lambda: torch.randn(64, 200) + 1e3, 1),
    "white": (lambda: 1 - torch.rand(64, 200) * (torch.rand(64, 200) < 0.1), 1),
    "an outlier": (lambda: torch.cat([torch.randn(63, 200), torch.full((1, 200), 1e3)]), None),
    "copies": (lambda: repeated(torch.randn(32, 200), 0), None),
    "jittered copies": (lambda: repeated(torch.randn(32, 200), 0.01), 2),
    "nearly equal": (lambda: waves(1, 200) + 1e-4 * torch.randn(64, 200), None),
    "smooth": (lambda: waves(64, 200), None),
    "constant": (lambda: torch.rand(64, 1).expand(64, 200).contiguous(), None),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("kind", DATA)
def test_the_match_is_optimal_on_every_kind_of_data(kind, dtype):
    build, calls = DATA[kind]
    true, columns, seen = solutions(build().to(dtype))
    assert excess(true, columns).max() < 1e-6
    if calls and dtype != torch.float16:
        assert len(seen) <= calls


def test_an_offset_of_two_batches_in_order_is_found_and_subtracted():
    x1, x2 = torch.randn(2, 64, 200) + 300
    rows, seen = np.arange(64).reshape(-1, K), []

    def choose(cost, _):
        seen.append(len(cost))
        return solve(cost)

    columns, _ = match_blocks(
        [x1], [x2], rows, rows, choose, dtype=torch.float32, least_cost=True, distances=False
    )
    true = np.stack([squared_differences(x1[i], x2[i]) for i in rows])
    assert excess(true, columns).max() < 1e-6
    assert len(seen) <= 3  # in order, the attempt to prove it, and centered


def test_near_pairs_are_exact_in_a_block_whose_other_pairs_cross_clusters():
    x, k = torch.randn(512, 200) + 1e4 * (torch.rand(512, 1) < 0.5), 4
    first, second, own, facing = blocks(x, k)
    columns, _ = match_blocks(
        first, second, own, facing, lambda cost, _: solve(cost), dtype=torch.float32,
        least_cost=True,
    )  # fmt: skip
    true = np.stack([squared_differences(x[i], x[j]) for i, j in zip(own, facing, strict=True)])
    chosen = np.take_along_axis(true, columns[..., None], 2)[..., 0]
    mixed = (chosen < 1e4).any(1) & (chosen > 1e4).any(1)
    above = excess(true, columns)[mixed] * chosen[mixed].sum(1)
    assert mixed.sum() > 50
    assert above.max() < 1e-3


def test_points_are_not_changed_by_centering():
    for x in (
        torch.rand(64, 300) + 5,
        torch.rand(64, 300).double() + 5,
        torch.rand(64, 300).half(),
    ):
        before = x.clone()
        solutions(x)
        assert torch.equal(x, before)


def test_no_output_shares_memory_with_another_one():
    mix = KMixup(8, 1.0, 10)
    x, y = torch.rand(64, 3, 20, 20), torch.randint(10, (64,))
    first = mix.mix(x, y)
    outputs = [first.x, first.y, first.partner, first.distance, first.lam]
    before = [output.clone() for output in outputs]
    second = mix.mix(x, y)
    outputs += [second.x, second.y, second.partner, second.distance, second.lam]
    assert len({output.untyped_storage().data_ptr() for output in (*outputs, x, y)}) == 12
    assert all(map(torch.equal, outputs, before))
