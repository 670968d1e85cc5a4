"""Cross-cluster matches begin and end near the gap (Theorem 3.5)."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kmixup.theory import cross_endpoints, islands, matched_subsets


@pytest.fixture(scope="module")
def discs() -> tuple[np.ndarray, np.ndarray]:
    """Two discs of radius 1 with a gap of 1.5: A_ε is about a quarter of A."""
    rng = np.random.default_rng(0)
    angle, radius = rng.uniform(0, 2 * np.pi, 8000), rng.random(8000) ** 0.5
    labels = np.arange(8000) % 2
    x = np.stack([radius * np.cos(angle) + 3.5 * labels, radius * np.sin(angle)], 1)
    return x, labels


def test_cross_matches_come_to_run_between_the_near_parts_as_k_grows(discs):
    held, inside, longest = [], [], []
    for k, samples in ((16, 300), (64, 200), (320, 40)):
        endpoints = cross_endpoints(*discs, k, samples)
        held.append(endpoints.held)
        inside.append(endpoints.inside.mean())
        longest.append(endpoints.length.max() / endpoints.gap)
    assert endpoints.gap == pytest.approx(1.5, abs=0.05)
    assert endpoints.epsilon == pytest.approx(1 / 1.5**2, rel=0.1)
    assert all(0.15 < share < 0.4 for share in endpoints.share)  # A_ε is not all of A
    assert held[0] < held[1] < held[2]
    assert held[2] >= 0.95
    assert inside[2] > 0.99
    assert longest[0] > longest[2]


def test_endpoints_are_told_by_their_cluster():
    x = torch.tensor([[0.0], [1.0], [5.0], [8.0]])
    endpoints = cross_endpoints(x, ["a", "a", "b", "b"], 1, 400, epsilon=0.5)
    assert endpoints.gap == 4
    assert endpoints.share == (1.0, 0.5)
    pairs = {tuple(row) for row in np.column_stack([endpoints.distance, endpoints.length]).tolist()}
    assert pairs == {(5, 4, 5), (5, 7, 8), (4, 4, 4), (4, 7, 7)}
    assert endpoints.inside.tolist() == (endpoints.distance[:, 1] < 6).tolist()
    assert endpoints.held == pytest.approx(1 - (~endpoints.inside).sum() / 400)


# the counter-example, and what holds in its place


@pytest.fixture(scope="module")
def far_island() -> tuple[np.ndarray, np.ndarray]:
    return islands(9000, generator=torch.Generator().manual_seed(0))


def test_a_far_island_is_matched_across_however_large_k_is(far_island):
    x, island = far_island
    broken = []
    for k, samples in ((16, 400), (64, 200), (256, 60)):
        endpoints = cross_endpoints(x, island == 2, k, samples, generator=torch.Generator())
        broken.append(1 - endpoints.held)
    assert endpoints.gap == pytest.approx(1, abs=0.01)
    assert endpoints.share == pytest.approx((0.5, 1.0), abs=0.01)  # A2 is outside of A_ε, A1 inside
    # in the limit 2/3; two standard errors of 60 batches are 0.12
    assert all(0.42 < share < 0.82 for share in broken)
    assert endpoints.proven == pytest.approx(4, abs=0.1)
    everywhere = cross_endpoints(x, island == 2, 16, 100, epsilon=endpoints.proven)
    assert everywhere.share == (1.0, 1.0)  # says nothing here, so that it cannot be wrong
    assert everywhere.held == 1


def test_the_far_island_meets_the_other_cluster_exactly_where_their_counts_ask_for_it(far_island):
    x, island = far_island
    for first, second in matched_subsets(x, 40, 300, generator=torch.Generator()):
        ends = np.sort(np.stack([island[first], island[second]]), 0)
        meets = ((ends[0] == 1) & (ends[1] == 2)).any(1)
        surplus = [(island[first] == i).sum(1) - (island[second] == i).sum(1) for i in (1, 2)]
        assert (meets == (surplus[0] * surplus[1] < 0)).all()


def test_with_four_squared_radii_the_theorem_holds_for_clusters_in_pieces():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [-0.6, 0.0], [1.0, 0.0], [1.5, 0.3]])  # A1, A2, B1, B2
    piece = rng.integers(0, 4, 4000)
    x = centres[piece] + rng.uniform(-0.01, 0.01, (4000, 2))
    cluster = piece >= 2
    proven = cross_endpoints(x, cluster, 1, 1).proven
    endpoints = {k: cross_endpoints(x, cluster, k, 60, epsilon=proven) for k in (1, 200)}
    assert max(endpoints[200].share) < 0.6  # it says something
    assert endpoints[1].held < 0.9
    assert endpoints[200].held == 1


def test_the_corrected_theorem_says_something_from_two_radii_on_and_nothing_of_two_points():
    cluster = np.arange(80) >= 40
    pair = np.array([[0.0], [2.0]] * 20 + [[-2.0]] * 40)
    proven = cross_endpoints(pair, cluster, 1, 1).proven
    endpoints = cross_endpoints(pair, cluster, 8, 50, epsilon=proven)
    assert endpoints.gap == 2 * endpoints.radius
    assert endpoints.share == (0.5, 1.0)
    single = np.array([[0.0]] * 40 + [[-2.0]] * 40)
    endpoints = cross_endpoints(single, cluster, 8, 50)
    assert (endpoints.proven, endpoints.share) == (0.0, (0.0, 0.0))
    assert endpoints.held < 1


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(4, 40), apart=st.floats(0.5, 3.0))
def test_a_cross_match_is_no_longer_than_three_exchanged_matches_allow(seed, k, apart):
    """The step of the proof, exactly, in every batch: clusters in three random pieces each."""
    rng = np.random.default_rng(seed)
    pieces = rng.uniform(-1, 1, (6, 3))
    pieces[3:, 0] += 2 + apart  # those of B
    piece = rng.integers(0, 6, 200)
    x, in_b = pieces[piece] + rng.uniform(-0.1, 0.1, (200, 3)), piece >= 3
    diameters = [np.linalg.norm(c[:, None] - c[None], axis=2).max() for c in (x[in_b], x[~in_b])]
    generator = torch.Generator().manual_seed(seed)
    for first, second in matched_subsets(x, k, 20, generator=generator):
        for start, end in zip(first, second, strict=True):
            p = x[start[~in_b[start] & ~in_b[end]]]  # in A and matched there
            q = x[end[in_b[start] & in_b[end]]]  # in B and matched there
            cross = ~in_b[start] & in_b[end]
            if not (len(p) and len(q) and cross.any()):
                continue
            length = np.linalg.norm(x[start[cross]] - x[end[cross]], axis=1).max()
            nearest = np.linalg.norm(p[:, None] - q[None], axis=2).min()
            assert length**2 <= (nearest**2 + np.square(diameters).sum()) * (1 + 1e-6)


def test_other_than_two_separate_clusters_are_refused():
    with pytest.raises(ValueError, match="labels must name two clusters, got 3"):
        cross_endpoints(np.zeros((3, 1)), [0, 1, 2], 1)
    with pytest.raises(ValueError, match="no point in common"):
        cross_endpoints(np.zeros((4, 1)), [0, 0, 1, 1], 1)
