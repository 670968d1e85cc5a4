"""How fast matched points come together, against known constants."""

import numpy as np
import pytest

from kmixup.theory import expected_fraction, expected_rate, fitted_slope, matched_distances


def cube(d: int):
    rng = np.random.default_rng(0)
    return lambda n: rng.random((n, d))


def test_on_a_line_the_mean_is_exact():
    # order statistics: E (x_(i) - y_(i))² = 2 i (k + 1 - i) / ((k + 1)² (k + 2))
    distances = matched_distances(cube(1), (4, 16, 64), 1000)
    expected = 1 / (3 * (distances.k + 1))
    off = (distances.mean - expected) / distances.error
    slope = fitted_slope(distances.k + 1, distances.mean, distances.error)
    assert abs(off).max() < 4.5
    assert abs(slope.value + 1) < 4.5 * slope.error
    assert abs(slope.value + 2) > 20 * slope.error  # the paper's k^(-2/d) at d = 1


def test_in_the_plane_the_logarithm_is_there():
    # k · mean grows by log(4) / (2π) from k to 4k on a unit square (Ambrosio, Stra & Trevisan)
    distances = matched_distances(cube(2), (16, 64, 256), 200)
    steps = np.diff(distances.k * distances.mean)
    errors = np.hypot((distances.k * distances.error)[1:], (distances.k * distances.error)[:-1])
    expected = np.log(4) / (2 * np.pi)
    assert (abs(steps - expected) < 4 * errors + 0.02).all()
    assert (steps > 4 * errors).all()  # a plain 1/k, the paper's k^(-2/d) at d = 2, has growth 0


def test_in_space_the_exponent_is_two_thirds():
    distances = matched_distances(cube(3), (32, 64, 128, 256), 60)
    slope = fitted_slope(distances.k, distances.mean, distances.error)
    relative = fitted_slope(expected_rate(distances.k, 3), distances.mean, distances.error)
    assert slope.value == pytest.approx(-2 / 3, abs=0.06)
    assert relative.value == pytest.approx(1, abs=0.09)


def test_two_clusters_have_the_square_root():
    rng = np.random.default_rng(0)

    def pieces(n: int) -> np.ndarray:
        return rng.random((n, 1)) + 20 * rng.integers(0, 2, (n, 1))

    distances = matched_distances(pieces, (8, 32, 128), 400)
    slope = fitted_slope(distances.k, distances.mean, distances.error)
    crossing = np.array([expected_fraction([0.5, 0.5], int(k)).most for k in distances.k])
    assert abs(slope.value + 0.5) < 3 * slope.error + 0.03
    assert slope.value > -0.7  # far from -1, one piece's, and from -2, the paper's
    # a cross match costs between the squares of the least and the largest distance
    assert (distances.mean > 19**2 * crossing - 4 * distances.error).all()
    assert (distances.mean < 21**2 * crossing + 1 + 4 * distances.error).all()


def test_a_data_set_shows_the_rate_of_its_distribution():
    x = np.random.default_rng(0).random((4000, 1))
    distances = matched_distances(x, (8, 16, 32), 300)
    assert distances.mean == pytest.approx(1 / (3 * (distances.k + 1)), rel=0.2)


def test_rates_by_dimension_and_number_of_clusters():
    k = np.array([16.0, 81.0])
    assert expected_rate(k, 1) == pytest.approx(1 / k)
    assert expected_rate(k, 2) == pytest.approx(np.log(k) / k)
    assert expected_rate(k, 3) == pytest.approx(k ** (-2 / 3))
    assert expected_rate(k, 6, clusters=2) == pytest.approx(k ** (-1 / 3))
    for d in (1, 2, 3, 4):
        assert expected_rate(k, d, clusters=2) == pytest.approx(k**-0.5)
    with pytest.raises(ValueError, match="dimension must be a whole number, at least 1, got 0"):
        expected_rate(k, 0)


def test_a_slope_has_the_error_of_its_points():
    rng = np.random.default_rng(0)
    x = np.array([1.0, 2, 4, 8, 16])
    fits = [
        fitted_slope(x, x**-1.5 * (1 + 0.01 * rng.normal(size=5)), 0.01 * x**-1.5)
        for _ in range(400)
    ]
    values = np.array([fit.value for fit in fits])
    assert values.mean() == pytest.approx(-1.5, abs=0.001)
    assert values.std() == pytest.approx(fits[0].error, rel=0.15)
    with pytest.raises(ValueError, match="a slope needs at least 3 points, got 2"):
        fitted_slope([1, 2], [1, 2])
