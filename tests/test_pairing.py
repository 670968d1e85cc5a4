from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from kmixup import KMixup, Nearest, Optimal, match
from kmixup.matching._points import as_rows
from kmixup.matching.pairing import _warned
from oracles import exact_costs, scipy_optimum, squared_differences


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
        reached = cost[np.arange(len(block)), partner[block].numpy() - block.start].sum()
        best = scipy_optimum(cost)
        assert reached == 0 if best == 0 else reached <= best * (1 + 1e-5)


@pytest.mark.filterwarnings("ignore:a batch of .* is too small")
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
    rows = [as_rows(x)]
    partner = pairing.partners(rows, rows, blocks).numpy()
    for number in range(blocks.count):
        first = np.flatnonzero(blocks.index() == number)
        cost = squared_differences(x[first], x[partner[first]])
        assert np.trace(cost) == pytest.approx(scipy_optimum(cost), rel=1e-5)


def test_at_two_blocks_the_second_match_is_the_inverse_of_the_first():
    partner = match(torch.randn(32, 4), k=16)
    assert torch.equal(partner[partner], torch.arange(32))


def test_a_short_batch_cuts_k_and_says_so_once():
    _warned[:] = bytes(len(_warned))
    with pytest.warns(
        UserWarning, match=r"a batch of 9 .* k=16.*using k=4.*Memory\(mixer, 128\)"
    ) as seen:
        [match(torch.randn(n, 2), k=16) for n in (9, 9, 5)]
    assert Optimal(16).draw(9).k == 4
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


METRICS = ["sqeuclidean", "euclidean", "cosine"]


def excess(x1: torch.Tensor, x2: torch.Tensor, metric: str) -> float:
    """Cost of the match of two blocks above the optimum, as a share of it."""
    k = len(x1)
    if metric == "nearest":
        cost, partner = exact_costs(x1, x2), Nearest(k)(x1, x2).numpy()
        best, chosen = cost.min(1), cost[np.arange(k), partner]
        return float(np.max((chosen - best) / np.where(best > 0, best, 1)))
    cost, partner = exact_costs(x1, x2, metric), match(x1, x2, k=k, metric=metric).numpy()
    best = scipy_optimum(cost)
    return float((cost[np.arange(k), partner].sum() - best) / (best or 1))


EXPONENTS = {torch.float32: st.integers(-140, 120), torch.float64: st.integers(-1060, 1015)}


@settings(max_examples=25)
@pytest.mark.parametrize("metric", [*METRICS, "nearest"])
@pytest.mark.parametrize("dtype", EXPONENTS)
@given(data=st.data(), k=st.integers(2, 9), d=st.sampled_from([1, 2, 5, 20]))
def test_the_match_is_optimal_at_every_scale_that_a_float_has(metric, dtype, data, k, d):
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 2**31)))
    x1, x2 = torch.randn(2, k, d, generator=generator, dtype=torch.float64)
    scale = data.draw(EXPONENTS[dtype])
    a, b = (torch.from_numpy(np.ldexp(x.numpy(), scale)).to(dtype) for x in (x1, x2))
    if not (metric == "cosine" and d == 1):  # there are two directions only, and all is a tie
        assert excess(a, b, metric) < 1e-5


@settings(max_examples=25)
@pytest.mark.parametrize("metric", [*METRICS, "nearest"])
@given(
    k=st.integers(2, 12),
    d=st.sampled_from([2, 3, 20]),
    clusters=st.integers(1, 4),
    apart=st.floats(0, 11),
    offset=st.floats(0, 7),
    scale=st.integers(-400, 400),
    seed=st.integers(0, 2**31),
)
def test_the_match_is_optimal_inside_clusters_however_far_apart(
    metric, k, d, clusters, apart, offset, scale, seed
):
    if metric == "cosine":
        apart, offset = min(apart, 7), 0  # further out a unit vector has too few digits left
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(clusters, d, generator=generator).double() * 10**apart + 10**offset
    cluster = torch.randint(clusters, (k,), generator=generator)
    x1, x2 = torch.randn(2, k, d, generator=generator).double() + centres[cluster]
    x2 = x2[torch.randperm(k, generator=generator)]
    assert excess(x1 * 2.0**scale, x2 * 2.0**scale, metric) < 1e-5


@pytest.mark.parametrize("spread", [1e-6, 1e-8])
def test_directions_that_nearly_agree_are_matched_by_what_sets_them_apart(spread):
    direction = torch.randn(3, 6).double()[torch.arange(15) % 3]
    x1, x2 = (direction + spread * torch.randn(2, 15, 6).double()) * (1 + torch.rand(2, 15, 1))
    assert excess(x1, x2, "cosine") < 1e-5


@pytest.mark.parametrize("metric", [*METRICS, "nearest"])
@pytest.mark.parametrize(
    ("dtype", "huge"), [(torch.float32, 3e19), (torch.float32, 1e38), (torch.float64, 1e300)]
)
def test_one_huge_value_concerns_its_own_block_only(metric, dtype, huge):
    x1, x2 = torch.randn(2, 40, 3).to(dtype)
    pairing = Nearest(8) if metric == "nearest" else Optimal(8, metric)
    expected = pairing(x1, x2)
    x2[19, 1] = huge
    partner = pairing(x1, x2)
    assert torch.equal(partner[:16], expected[:16])
    assert torch.equal(partner[24:], expected[24:])
    assert excess(x1[16:24], x2[16:24], metric) < 1e-5


def test_products_of_low_precision_are_not_used():
    x1, x2 = torch.randn(2, 64, 200)
    expected = match(x1, x2, k=32)
    torch.set_float32_matmul_precision("medium")
    try:
        assert torch.equal(match(x1, x2, k=32), expected)
    finally:
        torch.set_float32_matmul_precision("highest")


def test_squared_and_unsquared_distances_can_choose_differently():
    x1, x2 = torch.tensor([[0.0, 0.3], [1.0, 0.0]]), torch.tensor([[1.0, 0.0], [2.0, 0.0]])
    assert match(x1, x2, k=2).tolist() == [0, 1]
    assert match(x1, x2, k=2, metric="euclidean").tolist() == [1, 0]


def test_zero_vectors_have_no_direction_but_are_matched():
    x = torch.randn(6, 3)
    x[2] = 0
    assert sorted(match(x, x.flip(0), k=6, metric="cosine").tolist()) == list(range(6))


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


def test_an_unknown_metric_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="metric must be one of .*sqeuclidean.*got 'manhattan'"):
        Optimal(4, metric="manhattan")


@pytest.mark.parametrize(
    ("x2", "what"),
    [
        (torch.zeros(6, 3), "same length, got 8 and 6"),
        (torch.zeros(8, 4), r"same sample shape, got \(3,\) and \(4,\)"),
        (torch.zeros(8, 3, dtype=torch.float64), "same dtype, got torch.float32 and torch.float64"),
    ],
)
def test_batches_that_cannot_be_matched_are_refused_with_both_named(x2, what):
    with pytest.raises(ValueError, match=f"x1 and x2 must have the {what}"):
        match(torch.zeros(8, 3), x2, k=2)


@pytest.mark.parametrize(
    ("convert", "sentence"),
    [
        (torch.Tensor.long, r"must be floating point.*got torch.int64: use {}.float\(\)"),
        (lambda x: x.to(torch.float8_e4m3fn), r"must be .*float16 or wider, got torch.float8_e4m3"),
        (torch.Tensor.to_sparse, r"must be a dense .*got torch.sparse_coo: use .to_dense\(\)"),
    ],
)
def test_tensors_that_cannot_be_matched_are_refused_with_the_way_out(convert, sentence):
    x = torch.randn(8, 3)
    with pytest.raises(TypeError, match="^x " + sentence.format("x")):
        match(convert(x), k=2)
    with pytest.raises(TypeError, match="^x2 " + sentence.format("x2")):
        match(x, convert(x), k=2)


def test_samples_without_features_are_refused():
    with pytest.raises(
        ValueError, match="x must have at least one feature.*got none: pass features .*k=1"
    ):
        match(torch.empty(8, 0, 4), k=2)
    assert sorted(match(torch.empty(8, 0), k=1).tolist()) == list(range(8))


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cosine"])
def test_the_farthest_pairs_have_the_greatest_total_cost(metric):
    generator = torch.Generator().manual_seed(0)
    x1, x2 = torch.randn(2, 15, 4, dtype=torch.float64, generator=generator)
    partner = Optimal(5, metric, farthest=True)(x1, x2)
    cost = {
        "sqeuclidean": torch.cdist(x1, x2).square(),
        "euclidean": torch.cdist(x1, x2),
        "cosine": 1 - F.normalize(x1) @ F.normalize(x2).T,
    }[metric]
    for start in range(0, 15, 5):
        block = cost[start : start + 5, start : start + 5]
        best = max(
            sum(float(block[i, j]) for i, j in enumerate(order)) for order in permutations(range(5))
        )
        rows = torch.arange(start, start + 5)
        assert float(cost[rows, partner[rows]].sum()) == pytest.approx(best)
        assert sorted(partner[rows].tolist()) == rows.tolist()
    assert repr(Optimal(5, metric, farthest=True)).endswith(", farthest=True)")


@pytest.mark.parametrize("last", [0, 1])
def test_partners_do_not_depend_on_the_memory_format_of_either_batch(last):
    x = torch.randn(8, 3, 4, 4)
    sides = [x, x[torch.randperm(8)] + 0.01 * torch.randn(8, 3, 4, 4)]
    expected = match(*sides, k=8)
    sides[last] = sides[last].to(memory_format=torch.channels_last)
    assert torch.equal(match(*sides, k=8), expected)


@pytest.mark.parametrize("pairing", [Optimal(2, farthest=True), Optimal(2, labels=-5)])
def test_equal_points_far_from_the_origin_are_no_partners_where_others_are_better(pairing):
    x = 1e8 + torch.randn(400, 5).double()
    targets = (torch.arange(400) % 2,) * 2 if pairing.labels else None
    partner = pairing(x, x, targets=targets)
    assert not (partner == torch.arange(400)).any()


def test_large_integers_are_matched_exactly():
    seconds = 1_700_000_000 + torch.tensor([0, 40, 20, 60])
    x, features = torch.randn(4, 2), (seconds[:, None], (seconds + 1)[[3, 1, 0, 2]][:, None])
    mixed = KMixup(4).mix(x, torch.zeros(4), other=(x, torch.zeros(4)), features=features)
    assert mixed.partner.tolist() == [2, 1, 3, 0]
