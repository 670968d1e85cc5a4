import itertools
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from kmixup.sampling import subset_pairs, subsets


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
