import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kmixup import Nearest, Optimal, match
from kmixup.pairing import _warn_short
from oracles import brute_force_optimum, scipy_optimum, squared_differences


def blocks_of(n: int, k: int) -> list[range]:
    return [range(start, min(start + k, n)) for start in range(0, n, k)]


def clusters(n: int, d: int, apart: float) -> torch.Tensor:
    x = torch.randn(n, d)
    x[:, 0] += apart * (torch.rand(n) < 0.5)
    return x


def shuffled_blocks(x: torch.Tensor, k: int) -> torch.Tensor:
    return torch.cat([block[torch.randperm(len(block))] for block in x.split(k)])


DATA = {
    "gaussian": lambda n, d, k: (torch.randn(n, d), torch.randn(n, d)),
    "uniform": lambda n, d, k: (torch.rand(n, d), torch.rand(n, d)),
    "tied integers": lambda n, d, k: tuple(
        torch.randint(-2, 3, (2, n, d)).float().unbind(),
    ),
    "duplicated": lambda n, d, k: (x := torch.randn(n, d), shuffled_blocks(x, k)),
    "far from the origin": lambda n, d, k: (torch.randn(n, d) + 1e4, torch.randn(n, d) + 1e4),
    "clusters 1e3 apart": lambda n, d, k: (clusters(n, d, 1e3), clusters(n, d, 1e3)),
    "clusters 1e4 apart": lambda n, d, k: (clusters(n, d, 1e4), clusters(n, d, 1e4)),
}


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("d", [1, 2, 30, 784, 3072])
@pytest.mark.parametrize("k", [1, 2, 3, 7, 16, 33, 64, 128])
def test_match_is_optimal(k, d, kind):
    n = 2 * k + k // 2  # two full blocks and a smaller one
    x1, x2 = DATA[kind](n, d, k)
    partner = match(x1, x2, k=k)
    for block in blocks_of(n, k):
        cost = squared_differences(x1[block], x2[block])
        found = cost[np.arange(len(block)), partner[block].numpy() - block.start].sum()
        best = scipy_optimum(cost)
        assert found == 0 if best == 0 else found <= best * (1 + 1e-5)


@given(k=st.integers(1, 6), d=st.integers(1, 4), seed=st.integers(0, 2**31))
def test_no_permutation_of_a_block_is_cheaper(k, d, seed):
    generator = torch.Generator().manual_seed(seed)
    x1, x2 = torch.randn(2, 2 * k, d, generator=generator)
    partner = match(x1, x2, k=k).numpy()
    for block in blocks_of(2 * k, k):
        cost = squared_differences(x1[block], x2[block])
        found = cost[np.arange(k), partner[block] - block.start].sum()
        assert found == pytest.approx(brute_force_optimum(cost), rel=1e-5)


@given(n=st.integers(1, 70), k=st.integers(1, 20))
def test_partner_is_a_permutation_of_each_block_of_two_batches(n, k):
    partner = match(torch.randn(n, 3), torch.randn(n, 3), k=k).tolist()
    for block in blocks_of(n, k):
        assert sorted(partner[i] for i in block) == list(block)


@pytest.mark.filterwarnings("ignore:a batch of")
@given(n=st.integers(2, 199), k=st.integers(1, 99))
def test_within_a_batch_nobody_meets_itself_and_everybody_is_used_once(n, k):
    partner = match(torch.randn(n, 2), k=k).tolist()
    assert sorted(partner) == list(range(n))
    assert all(i != p for i, p in enumerate(partner))


def test_within_a_batch_each_block_is_matched_optimally():
    x = torch.randn(50, 5)
    pairing = Optimal(k=8)
    blocks = pairing.draw(50, within=True)
    partner = pairing.partners(x, None, blocks).numpy()
    for number in range(blocks.count):
        first = np.flatnonzero(blocks.index() == number)
        cost = squared_differences(x[first], x[partner[first]])
        assert np.trace(cost) == pytest.approx(scipy_optimum(cost), rel=1e-5)


def test_a_full_block_faces_a_uniformly_random_disjoint_subset():
    met = np.zeros((12, 12))
    for _ in range(3000):
        partner = match(torch.zeros(12, 1), k=1)
        met[np.arange(12), partner] += 1
    off = met[~np.eye(12, dtype=bool)]
    assert np.trace(met) == 0
    assert off.min() > 180  # 3000 / 11 = 273 expected, standard deviation 16
    assert off.max() < 366


def test_at_two_blocks_the_second_match_is_the_inverse_of_the_first():
    partner = match(torch.randn(32, 4), k=16)
    assert torch.equal(partner[partner], torch.arange(32))


def test_a_short_batch_cuts_k_and_says_so_once():
    _warn_short.cache_clear()
    with pytest.warns(UserWarning, match=r"a batch of 9 is too small for k=16.*using k=4") as seen:
        drawn = [Optimal(16).draw(9, within=True).k for _ in range(3)]
    assert drawn == [4, 4, 4]
    assert len(seen) == 1


def test_one_sample_or_none_is_left_alone():
    assert match(torch.randn(1, 3), k=16).tolist() == [0]
    assert match(torch.randn(0, 3), k=16).tolist() == []


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_float_dtype_is_matched_at_least_in_float32(dtype):
    x1, x2 = torch.randn(2, 32, 20).to(dtype)
    assert torch.equal(match(x1, x2, k=8), match(x1.double(), x2.double(), k=8))


def test_samples_of_any_rank_are_flattened():
    x1, x2 = torch.randn(2, 24, 3, 4, 5)
    flat = match(x1.flatten(1), x2.flatten(1), k=8)
    assert torch.equal(match(x1, x2, k=8), flat)
    assert torch.equal(match(x1.mT, x2.mT, k=8), flat)  # not contiguous
    assert torch.equal(match(x1[:, 0, 0, 0], x2[:, 0, 0, 0], k=8).sort().values, torch.arange(24))


def test_values_whose_squares_overflow_float32_are_matched():
    x1, x2 = torch.randn(2, 8, 3)
    assert torch.equal(match(x1 * 1e25, x2 * 1e25, k=8), match(x1, x2, k=8))


def test_products_of_low_precision_are_not_used():
    x1, x2 = torch.randn(2, 64, 200)
    expected = match(x1, x2, k=32)
    torch.set_float32_matmul_precision("medium")
    try:
        assert torch.equal(match(x1, x2, k=32), expected)
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize(
    ("metric", "cost"),
    [
        ("euclidean", lambda a, b: np.sqrt(squared_differences(a, b))),
        ("cosine", lambda a, b: 1 - (a / a.norm(dim=1, keepdim=True)).numpy()
         @ (b / b.norm(dim=1, keepdim=True)).numpy().T),
    ],
)  # fmt: skip
def test_other_metrics_are_optimal_too(metric, cost):
    x1, x2 = torch.randn(2, 33, 6).double() + 0.5
    matrix = cost(x1, x2)
    found = matrix[np.arange(33), match(x1, x2, k=33, metric=metric).numpy()].sum()
    assert found == pytest.approx(scipy_optimum(matrix), rel=1e-9)


def test_squared_and_unsquared_distances_can_choose_differently():
    x1, x2 = torch.tensor([[0.0, 0.3], [1.0, 0.0]]), torch.tensor([[1.0, 0.0], [2.0, 0.0]])
    assert match(x1, x2, k=2).tolist() == [0, 1]
    assert match(x1, x2, k=2, metric="euclidean").tolist() == [1, 0]


def test_zero_vectors_have_no_direction_but_are_matched():
    x = torch.randn(6, 3)
    x[2] = 0
    assert sorted(match(x, x.flip(0), k=6, metric="cosine").tolist()) == list(range(6))


def test_nearest_takes_the_closest_of_the_other_block():
    x1, x2 = torch.randn(2, 24, 3) + 100
    partner = Nearest(k=8)(x1, x2)
    for block in blocks_of(24, 8):
        closest = squared_differences(x1[block], x2[block]).argmin(1) + block.start
        assert partner[block].tolist() == closest.tolist()


def test_nearest_may_share_a_partner_and_never_meets_itself():
    x = torch.randn(64, 2)
    partner = Nearest(k=16)(x)
    assert len(set(partner.tolist())) < 64
    assert (partner != torch.arange(64)).all()


def test_a_generator_decides_everything():
    x = torch.randn(40, 3)
    draws = [match(x, k=8, generator=torch.Generator().manual_seed(s)) for s in (1, 1, 2)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_the_first_sample_that_is_not_finite_is_named(bad, dtype):
    x = torch.randn(40, 5).to(dtype)
    x[[17, 31], 2] = bad
    with pytest.raises(ValueError, match="x must be finite.*sample 17 has a NaN or an infinity"):
        match(x, k=8)
    with pytest.raises(ValueError, match="x2 must be finite.*sample 17"):
        match(torch.zeros_like(x), x, k=8)


@pytest.mark.parametrize("k", [0, -3, 2.5, "4"])
def test_k_must_be_a_positive_whole_number(k):
    with pytest.raises(ValueError, match="k must be a whole number, at least 1, got"):
        Optimal(k)


def test_k_may_come_from_a_numpy_grid():
    assert Optimal(np.int64(4)).k == 4


def test_an_unknown_metric_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="metric must be one of .*sqeuclidean.*got 'manhattan'"):
        Optimal(4, metric="manhattan")


@pytest.mark.parametrize(
    ("x2", "what"),
    [
        (torch.zeros(6, 3), "same length, got 8 and 6"),
        (torch.zeros(8, 4), r"same sample shape, got \(3,\) and \(4,\)"),
        (torch.zeros(8, 3, dtype=torch.float64), "same dtype, got torch.float32 and torch.float64"),
        (torch.zeros(8, 3, device="meta"), "same device, got cpu and meta"),
    ],
)
def test_batches_that_cannot_be_matched_are_refused_with_both_named(x2, what):
    with pytest.raises(ValueError, match=f"x1 and x2 must have the {what}"):
        match(torch.zeros(8, 3), x2, k=2)


def test_integers_are_not_matched():
    with pytest.raises(
        TypeError, match=r"must be floating point, got torch.int64: use x.float\(\)"
    ):
        match(torch.arange(8)[:, None], k=2)


def test_blocks_across_two_batches_need_the_second():
    with pytest.raises(ValueError, match="blocks drawn across two batches need x2"):
        Optimal(2).partners(torch.zeros(8, 3), None, Optimal(2).draw(8, within=False))
