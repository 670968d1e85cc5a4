"""Cross-cluster matches begin and end near the gap (Theorem 3.5)."""

from functools import partial

import numpy as np
import pytest
import torch

from kmixup.pairing import Pairing
from kmixup.theory import cross_endpoints


class Arbitrary(Pairing):
    """Pairs as they come: what plain mixup does."""

    def _columns(self, a, b, a_square, b_square):
        return np.tile(np.arange(a.shape[1]), (len(a), 1))


@pytest.fixture(scope="module")
def discs() -> tuple[np.ndarray, np.ndarray]:
    """Two discs of radius 1 with a gap of 1.5: A_ε is about a quarter of A."""
    rng = np.random.default_rng(0)
    angle, radius = rng.uniform(0, 2 * np.pi, 8000), rng.random(8000) ** 0.5
    labels = np.arange(8000) % 2
    x = np.stack([radius * np.cos(angle) + 3.5 * labels, radius * np.sin(angle)], 1)
    return x, labels


def test_cross_matches_come_to_run_between_the_near_parts_as_k_grows(discs):
    measure = partial(cross_endpoints, *discs)
    held, inside, longest = [], [], []
    for k, samples in ((16, 300), (64, 200), (320, 40)):
        found = measure(k, samples)
        held.append(found.held)
        inside.append(found.inside.mean())
        longest.append(found.length.max() / found.gap)
        print(
            f"k={k}: A_ε is {found.share[0]:.1%} of A; all matches inside in {found.held:.1%} of "
            f"batches, {found.inside.mean():.1%} of matches, longest {longest[-1]:.2f} D"
        )
    assert found.gap == pytest.approx(1.5, abs=0.05)
    assert found.epsilon == pytest.approx(1 / 1.5**2, rel=0.1)
    assert all(0.15 < share < 0.4 for share in found.share)  # A_ε is not all of A
    assert held[0] < held[1] < held[2]
    assert held[2] >= 0.95
    assert inside[2] > 0.99
    assert longest[0] > longest[2]


def test_pairs_as_they_come_do_not_run_between_the_near_parts(discs):
    found = cross_endpoints(*discs, 320, 40, pairing=Arbitrary)
    print(f"random pairs: {found.inside.mean():.1%} of matches inside, held {found.held:.1%}")
    assert found.inside.mean() == pytest.approx(np.prod(found.share), abs=0.03)
    assert found.held == 0


def test_endpoints_are_told_by_their_cluster():
    x = torch.tensor([[0.0], [1.0], [5.0], [8.0]])
    found = cross_endpoints(x, ["a", "a", "b", "b"], 1, 400, epsilon=0.5)
    assert found.gap == 4
    assert found.share == (1.0, 0.5)
    assert found.batches == 400
    pairs = {tuple(row) for row in np.column_stack([found.distance, found.length]).tolist()}
    assert pairs == {(5, 4, 5), (5, 7, 8), (4, 4, 4), (4, 7, 7)}
    assert found.inside.tolist() == (found.distance[:, 1] < 6).tolist()
    assert len(found.batch) == len(np.unique(found.batch))
    assert found.held == pytest.approx(1 - (~found.inside).sum() / 400)


def test_other_than_two_separate_clusters_are_refused():
    with pytest.raises(ValueError, match="labels must name two clusters for 3 points, got 3 for 3"):
        cross_endpoints(np.zeros((3, 1)), [0, 1, 2], 1)
    with pytest.raises(ValueError, match="no point in common"):
        cross_endpoints(np.zeros((4, 1)), [0, 0, 1, 1], 1)
