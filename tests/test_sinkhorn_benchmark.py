"""Sinkhorn's plans, against couplings by hand and the exact optimum."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from benchmarks import sinkhorn
from benchmarks.sinkhorn import affinity, compare, coupling, excess

SEEDS = st.integers(0, 2**32 - 1)


def distances(seed, blocks=3, k=6):
    a, b = torch.from_numpy(np.random.default_rng(seed).normal(size=(2, blocks, k, 4)))
    return torch.cdist(a, b).square()


@given(SEEDS, st.sampled_from([1, 2, 7]))
def test_a_coupling_has_even_marginals_and_no_negative_entry(seed, k):
    rng = np.random.default_rng(seed)
    plan = torch.from_numpy(rng.lognormal(sigma=3, size=(4, k, k)) / k**2)
    coupled = coupling(plan)
    assert coupled.min() >= 0
    for side in (1, 2):
        torch.testing.assert_close(coupled.sum(side), torch.full((4, k), 1 / k).double())


def test_a_coupling_stays_as_it_is():
    plan = torch.tensor([[[0.2, 0.3], [0.3, 0.2]]]).double()
    torch.testing.assert_close(coupling(plan), plan)


@given(SEEDS)
def test_no_plan_costs_less_than_the_optimum_and_the_optimum_no_more(seed):
    distance = distances(seed)
    plan = torch.rand(distance.shape, generator=torch.Generator().manual_seed(seed % 2**31))
    assert excess(plan, distance) >= -1e-9
    best = torch.zeros_like(distance)
    for m, block in enumerate(distance):
        best[(m, *linear_sum_assignment(block.numpy()))] = 1 / distance.shape[1]
    assert excess(best, distance) == pytest.approx(0, abs=1e-9)


def test_a_plan_has_even_marginals_within_the_tolerance():
    pytest.importorskip("ot.batch")
    distance = distances(0, blocks=5, k=8)
    for share in sinkhorn.REGULARISATIONS:
        plan = sinkhorn.sinkhorn(affinity(distance, share))
        for side in (1, 2):
            off = (plan.sum(side) - 1 / 8).norm(dim=1) * 8**0.5
            assert off.max() <= sinkhorn.TOLERANCE + 1e-9


def test_identical_points_have_an_even_plan():
    pytest.importorskip("ot.batch")
    plan = sinkhorn.sinkhorn(affinity(torch.zeros(1, 3, 3), 0.1))
    torch.testing.assert_close(plan, torch.full((1, 3, 3), 1 / 9))


def test_less_regularisation_comes_closer_to_the_optimum():
    pytest.importorskip("ot.batch")
    x, x2 = torch.randn(2, 33, 5)
    blurred, sharp = compare([(x, x2)], 8, seconds=0)
    assert (blurred.k, blurred.regularisation, sharp.regularisation) == (8, 0.1, 0.01)
    assert 0 <= sharp.excess < blurred.excess
    assert min(blurred.exact, blurred.ratio) > 0
