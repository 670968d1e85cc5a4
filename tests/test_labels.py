"""Matching that looks at the targets as well: `Optimal(k, labels=c)`."""

from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from kmixup import KMixup, Optimal

CLASSES = 3


def batch(n, d=2, *, seed=0, scale=1.0, shift=0.0):
    generator = torch.Generator().manual_seed(seed)
    x = scale * torch.randn(n, d, dtype=torch.float64, generator=generator) + shift
    return x, torch.randint(CLASSES, (n,), generator=generator)


def cost_of(x1, x2, y1, y2, labels, *, metric="sqeuclidean"):
    """The cost of every pair, written out."""
    distance = (x1[:, None] - x2[None]).square().sum(2)
    if metric == "euclidean":
        distance = distance.sqrt()
    if y1.is_floating_point():
        differ = (y1[:, None] - y2[None]).reshape(len(y1), len(y2), -1).square().sum(2) / 2
    else:
        differ = (y1[:, None] != y2[None]).double()
    return distance + labels * distance.mean() * differ


def total(cost, partner):
    return float(cost[torch.arange(len(cost)), torch.as_tensor(partner)].sum())


def crossings(y1, y2, partner):
    return int((y1 != y2[partner]).sum())


@settings(max_examples=40, deadline=None)
@given(
    k=st.integers(2, 6),
    labels=st.floats(-5, 5),
    seed=st.integers(0, 1000),
    metric=st.sampled_from(["sqeuclidean", "euclidean"]),
    farthest=st.booleans(),
    targets=st.sampled_from(["classes", "one-hot", "numbers"]),
)
def test_no_one_to_one_match_costs_less(k, labels, seed, metric, farthest, targets):
    """One-hot targets are classes, and numbers cost half their squared distance."""
    (x1, y1), (x2, y2) = batch(k, seed=seed), batch(k, seed=seed + 5000)
    if targets == "one-hot":
        y1, y2 = (torch.nn.functional.one_hot(side, CLASSES).double() for side in (y1, y2))
    elif targets == "numbers":
        y1, y2 = (x[:, 0].sin() for x in (x1, x2))
    pairing = Optimal(k, metric, farthest=farthest, labels=labels)
    partner = pairing(x1, x2, targets=(y1, y2))
    cost = cost_of(x1, x2, y1, y2, labels, metric=metric)
    every = [total(cost, p) for p in permutations(range(k))]
    best = max(every) if farthest else min(every)
    assert total(cost, partner) == pytest.approx(best, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e20, 1e150])
def test_the_unit_of_the_inputs_does_not_matter(scale):
    x, y = batch(40)
    other, y2 = batch(40, seed=1)
    plain = Optimal(8, labels=0.7)(x, other, targets=(y, y2))
    assert torch.equal(Optimal(8, labels=0.7)(scale * x, scale * other, targets=(y, y2)), plain)


def test_far_clusters_are_matched_from_true_distances():
    x, y = batch(16, shift=1e8)
    other, y2 = batch(16, seed=1, shift=1e8)
    partner = Optimal(16, labels=0.5)(x, other, targets=(y, y2))
    cost = cost_of(x, other, y, y2, 0.5)
    rows, columns = linear_sum_assignment(cost.numpy())
    assert total(cost, partner) == pytest.approx(float(cost[rows, columns].sum()), rel=1e-6)


@pytest.mark.parametrize("n", [32, 37, 9])
def test_without_labels_it_is_plain_matching(n):
    x, y = batch(n)
    matches = [
        Optimal(4, labels=labels)(x, targets=(y, y), generator=torch.Generator().manual_seed(3))
        for labels in (0.0, 1e-12)
    ]
    assert torch.equal(*matches)


@given(seed=st.integers(0, 1000), k=st.integers(2, 12))
@settings(max_examples=30, deadline=None)
def test_a_large_weight_crosses_classes_as_often_as_the_counts_force_it(seed, k):
    (x1, y1), (x2, y2) = batch(k, seed=seed), batch(k, seed=seed + 5000)
    forced = int((y1.bincount(minlength=3) - y2.bincount(minlength=3)).clamp(min=0).sum())
    seldom = Optimal(k, labels=1e6)(x1, x2, targets=(y1, y2))
    assert crossings(y1, y2, seldom) == forced
    often = Optimal(k, labels=-1e6)(x1, x2, targets=(y1, y2))
    differ = (y1[:, None] != y2[None]).numpy()
    assert crossings(y1, y2, often) == differ[linear_sum_assignment(~differ)].sum()


def test_within_a_batch_blocks_and_rest_are_matched_one_to_one():
    x, y = batch(37)
    generator = torch.Generator().manual_seed(0)
    partner = Optimal(8, labels=2.0)(x, targets=(y, y), generator=generator)
    assert sorted(partner.tolist()) == list(range(37))
    assert (partner != torch.arange(37)).all()


def test_a_mixer_hands_its_targets_to_the_pairing():
    x, y = batch(64)
    x = x.float()
    mixers = [
        KMixup(8, 1.0, CLASSES, labels=c, generator=torch.Generator().manual_seed(1))
        for c in (0.0, 1e6)
    ]
    plain, seldom = (mixer.mix(x, y) for mixer in mixers)
    assert crossings(y, y, seldom.partner) < crossings(y, y, plain.partner)
    again = mixers[1].mix(x, y, mixers[1].draw(64))
    assert sorted(again.partner.tolist()) == list(range(64))


def test_what_cannot_be_compared_is_refused():
    x, _ = batch(8)
    with pytest.raises(ValueError, match="labels must be a finite number, got nan"):
        Optimal(4, labels=float("nan"))
    for labels in (None, "1"):
        with pytest.raises(ValueError, match="labels must be a finite number, got"):
            Optimal(4, labels=labels)
    with pytest.raises(TypeError, match="labels=1. compares targets.*got none"):
        Optimal(4, labels=1.0)(x)
    with pytest.raises(ValueError, match="labels compares one class for each sample"):
        Optimal(4, labels=1.0)(x, targets=(torch.zeros(8, 2).long(),) * 2)
    with pytest.raises(TypeError, match="compares targets, so y must be one tensor, got NoneType"):
        KMixup(4, labels=1.0)(x, None)
    numbers = torch.arange(8.0)
    for second in (numbers[:5], numbers.long(), numbers[:, None]):
        with pytest.raises(
            ValueError, match="targets must be two tensors of the same dtype .* 8 samples, got"
        ):
            Optimal(4, labels=1.0)(x, x, targets=(numbers, second))
    for value in (torch.nan, torch.inf):
        y = numbers.index_fill(0, torch.tensor(3), value)
        with pytest.raises(ValueError, match="targets must be finite .*sample 3 has a NaN"):
            KMixup(4, labels=1.0)(x, y)
    with pytest.raises(ValueError, match=r"labels=1e\+308 makes the cost .* up to 24.5 apart"):
        Optimal(8, labels=1e308)(x, x, targets=(numbers, numbers))
    with pytest.raises(ValueError, match="labels=2 makes the cost .* or scale the targets"):
        KMixup(4, labels=2.0)(x, 1e160 * numbers.double())
    assert "labels=1" in repr(Optimal(4, labels=1.0))
