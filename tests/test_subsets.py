import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from kmixup._measured import Measured
from kmixup._subsets import matched_blocks, subset_pairs, subsets
from oracles import scipy_optimum, squared_differences


@given(n=st.integers(1, 200), data=st.data())
def test_subsets_are_distinct_indices(n, data):
    k = data.draw(st.integers(1, n))
    rows = subsets(n, k, 20)
    assert rows.shape == (20, k)
    assert all(len(set(row)) == k and set(row) <= set(range(n)) for row in rows.tolist())


@pytest.mark.parametrize(("n", "k"), [(5, 3), (9, 3)], ids=["sorted", "drawn again"])
def test_every_subset_is_equally_likely(n, k):
    draws = subsets(n, k, 20_000, torch.Generator().manual_seed(0))
    seen = Counter(tuple(sorted(row)) for row in draws.tolist())
    every = list(itertools.combinations(range(n), k))
    assert chisquare([seen[subset] for subset in every]).pvalue > 1e-3


@given(k=st.integers(1, 10))
def test_disjoint_pairs_share_no_element_and_independent_ones_may(k):
    first, second = subset_pairs(20, k, 50, disjoint=True)
    assert all(not set(a) & set(b) for a, b in zip(first.tolist(), second.tolist(), strict=True))
    first, second = subset_pairs(20, k, 200)
    assert any(set(a) & set(b) for a, b in zip(first.tolist(), second.tolist(), strict=True))


def normal(n: int, d: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n, d, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("disjoint", [False, True])
def test_matched_blocks_are_optimal_and_know_their_distance(disjoint):
    points = normal(40, 3)
    parts = list(matched_blocks(points, 8, 10, most=4, disjoint=disjoint))
    assert [len(part.first) for part in parts] == [4, 4, 2]
    for part in parts:
        for first, second, mean in zip(part.first, part.second, part.square_distance, strict=True):
            cost = squared_differences(points[first], points[second])
            assert np.trace(cost) / 8 == pytest.approx(mean)
            assert scipy_optimum(cost) / 8 == pytest.approx(mean)
            assert len({*first, *second}) == 16 or not disjoint


def test_blocks_are_drawn_until_the_error_is_reached():
    points = normal(200, 2)

    def measured(relative_error):
        generator = torch.Generator().manual_seed(0)
        parts = matched_blocks(
            points, 4, most=50, relative_error=relative_error, generator=generator
        )
        return np.concatenate([part.square_distance for part in parts])

    coarse, fine = measured(1.0), measured(0.02)
    assert len(coarse) == 64
    assert (fine[:64] == coarse).all()
    mean = Measured.of(fine)
    assert mean.error <= 0.02 * mean.value
    before = Measured.of(fine[: len(fine) // 4])
    assert before.error > 0.02 * before.value
