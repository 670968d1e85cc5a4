"""Interpolated points stay near the manifold of the data (Proposition 3.2)."""

import numpy as np
import pytest
import torch

from kmixup.theory import manifold_fraction, matched_distances


@pytest.fixture(scope="module")
def circle() -> np.ndarray:
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 3000)
    return np.stack([np.cos(angle), np.sin(angle)], 1)


def to_circle(points: np.ndarray) -> np.ndarray:
    return abs(np.linalg.norm(points, axis=1) - 1)


def test_more_points_stay_near_a_circle_as_k_grows_and_as_many_as_the_proof_says(circle):
    ks, eps = (1, 8, 64), 0.05
    distances = matched_distances(circle, ks, 200)
    away = []
    for k, mean in zip(ks, distances.mean, strict=True):
        near = manifold_fraction(circle, k=k, eps=eps, manifold=to_circle, alpha=2.0, samples=200)
        # a chord of length c stays within 1 - √(1 - c²/4); Markov's inequality for c²
        bound = mean / (4 * (1 - (1 - eps) ** 2))
        away.append(1 - near.features.value)
        assert away[-1] < bound + 4 * near.features.error
        assert near.joint is None
    assert away[0] > 0.5
    assert away[1] < 0.7 * away[0]
    assert away[2] < 0.2 * away[1]


def test_a_chord_leaves_the_circle_as_far_as_geometry_says(circle):
    # k = 1: a chord with angle 2u and lam = t reaches 1 - √(1 - 4 t (1 - t) sin² u)
    rng = np.random.default_rng(1)
    u, t = rng.uniform(0, np.pi, 200_000), rng.beta(2, 2, 200_000)
    expected = (1 - np.sqrt(1 - 4 * t * (1 - t) * np.sin(u) ** 2) < 0.2).mean()
    near = manifold_fraction(circle, k=1, eps=0.2, alpha=2.0, manifold=to_circle, samples=20_000)
    assert abs(near.features.value - expected) < 4.5 * near.features.error


def test_a_dense_sample_stands_for_the_distance_function(circle):
    known, sampled = (
        manifold_fraction(
            circle, k=4, eps=0.1, manifold=manifold, generator=torch.Generator().manual_seed(0)
        )
        for manifold in (to_circle, None)
    )
    assert known.features.value == pytest.approx(sampled.features.value, abs=5e-3)


def test_smooth_targets_keep_points_near_the_joint_manifold(circle):
    near = [
        manifold_fraction(circle, circle[:, 0] ** 2, k=k, eps=0.1, samples=200) for k in (1, 64)
    ]
    assert near[0].joint.value < 0.5
    assert near[1].joint.value > 0.95


def test_two_sheets_over_the_same_features_are_left_whatever_k_is(circle):
    labels = np.arange(len(circle)) % 2
    # half of the matches join the sheets, and are near one if √2 min(lam, 1 - lam) < eps
    limit = 0.5 + 0.5 * (2 * 0.1 / 2**0.5)
    for k in (64, 256):
        near = manifold_fraction(circle, labels, k=k, eps=0.1, samples=300)
        assert near.features.value > 0.99
        assert abs(near.joint.value - limit) < 4.5 * near.joint.error


def test_impossible_settings_are_refused(circle):
    with pytest.raises(ValueError, match="eps must be above 0, got 0"):
        manifold_fraction(circle, k=2, eps=0)
    with pytest.raises(ValueError, match="X and y must have the same length, got 3000 and 2"):
        manifold_fraction(circle, [0, 1], k=2, eps=0.1)
