"""The expected share of cross-cluster matches: closed sums, sampling, and a bound that holds."""

import numpy as np
import pytest
from scipy.stats import multinomial

from kmixup.theory import (
    cross_matches,
    draw_counts,
    expected_fraction,
    fraction_bound,
    lemma_condition,
    longest_chain,
    transport_count,
)

ROW = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])


def all_counts(k: int, m: int) -> list[tuple[int, ...]]:
    """All ways to share k points among m clusters."""
    if m == 1:
        return [(k,)]
    return [(i, *rest) for i in range(k + 1) for rest in all_counts(k - i, m - 1)]


def enumerated_iid(masses: np.ndarray, k: int, centres: np.ndarray) -> tuple[float, float]:
    """Expected shares, fewest and most, as a sum over all pairs of counts."""
    counts = np.array(all_counts(k, len(masses)))
    p = multinomial.pmf(counts, k, masses)
    first, second = np.repeat(counts, len(counts), 0), np.tile(counts, (len(counts), 1))
    weight = np.outer(p, p).ravel()
    return tuple(float(weight @ c) / k for c in transport_count(first, second, centres))


@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_the_closed_sum_is_the_sum_over_all_counts(k):
    for masses in ([0.5, 0.5], [0.9, 0.1], [0.2, 0.3, 0.5]):
        centres = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.9]])[: len(masses)]
        exact = enumerated_iid(np.array(masses), k, centres)
        fraction = expected_fraction(masses, k, centres=centres)
        assert fraction.error == 0
        assert (fraction.fewest, fraction.most) == pytest.approx(exact, abs=1e-12)


def test_drawn_counts_have_the_mean_and_variance_of_a_multinomial():
    p, k = np.array([0.2, 0.3, 0.5]), 10
    first, second = draw_counts(40 * p, k, 20_000)
    assert (first.sum(1) == k).all()
    assert (second.sum(1) == k).all()
    assert first.mean(0) == pytest.approx(k * p, abs=0.06)
    assert (first - second).var(0) == pytest.approx(2 * k * p * (1 - p), rel=0.05)


def test_three_in_a_row_exceed_the_bound_of_the_paper_but_not_the_corrected_one():
    third = np.full(3, 1 / 3)
    fraction = expected_fraction(third, 32, centres=ROW, samples=20_000)
    paper = fraction_bound(third, 32)
    bound = longest_chain(ROW) * paper
    lemma = expected_fraction(third, 32).most
    assert fraction.fewest == fraction.most
    assert paper == pytest.approx(64**-0.5 * 3 * (2 / 9) ** 0.5)
    assert fraction.most > paper + 5 * fraction.error
    assert fraction.most > lemma + 20 * fraction.error
    assert fraction.most + 5 * fraction.error < bound


def test_sampling_agrees_with_the_sum_over_all_counts():
    square = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    for centres in (ROW, square):
        masses = np.full(len(centres), 1 / len(centres))
        exact = enumerated_iid(masses, 4, centres)
        fraction = expected_fraction(masses, 4, centres=centres, samples=20_000)
        assert abs(fraction.fewest - exact[0]) < 4.5 * fraction.error
        assert abs(fraction.most - exact[1]) < 4.5 * fraction.error
    assert exact[0] < exact[1]  # a square has ties


def test_the_corrected_bound_holds_for_random_clusters():
    rng = np.random.default_rng(2)
    beyond = 0
    for _ in range(60):
        m = int(rng.integers(2, 6))
        centres, k = rng.normal(size=(m, int(rng.integers(1, 4)))), int(rng.integers(2, 33))
        weights = rng.dirichlet(np.ones(m))
        fraction = expected_fraction(weights, k, centres=centres, samples=1000)
        chain, paper = longest_chain(centres), fraction_bound(weights, k)
        assert fraction.most <= chain * paper + 4 * fraction.error
        assert lemma_condition(centres) == (chain == 1)
        beyond += fraction.most > paper + 4 * fraction.error
    assert beyond > 5  # without the chain the bound would not pass


def test_in_every_batch_cross_matches_are_between_the_lemma_and_chain_times_it():
    rng = np.random.default_rng(3)
    used = []
    for _ in range(30):
        m = int(rng.integers(3, 6))
        centres = 40 * rng.normal(size=(m, 2))
        gap = np.sqrt(np.square(centres[:, None] - centres[None]).sum(2))[~np.eye(m, dtype=bool)]
        radius = min(gap.min() / 4, 1.0)  # covering balls 2Δ apart, the lemma's own hypothesis
        labels = np.repeat(np.arange(m), 30)
        u = rng.normal(size=(len(labels), 2))
        x = centres[labels] + radius * u / np.maximum(1, np.linalg.norm(u, axis=1))[:, None]
        matches = cross_matches(x, labels, 12, 100)
        least = np.abs(matches.first - matches.second).sum(1) // 2
        chain = longest_chain(centres, radius)
        assert (matches.cross >= least).all()
        assert (matches.cross <= chain * least).all()
        used.append((matches.cross > least).mean())
    assert np.mean(used) > 0.1


def test_the_measured_share_is_the_expected_one():
    x = np.concatenate([np.random.default_rng(0).normal(size=(3000, 2)) + c for c in 50 * ROW])
    labels = np.repeat([0, 1, 2], 3000)
    for k in (4, 16, 64):
        seen = cross_matches(x, labels, k, 600).fraction
        fraction = expected_fraction([1, 1, 1], k, centres=ROW)
        error = np.hypot(seen.error, fraction.error)
        assert abs(seen.value - fraction.most) < 4.5 * error


@pytest.mark.parametrize(
    ("weights", "k", "message"),
    [
        ([0.5, 0.5], 0, "k must be a whole number, at least 1, got 0"),
        ([-1, 2], 2, "none below 0"),
        ([], 2, "must be a list of masses"),
    ],
)
def test_impossible_settings_are_refused(weights, k, message):
    with pytest.raises(ValueError, match=message):
        fraction_bound(weights, k)


def test_centres_without_weights_raise():
    with pytest.raises(ValueError, match="centres must be one for each of the 3 weights"):
        expected_fraction([0.5, 0.3, 0.2], 4, centres=ROW[:2])
