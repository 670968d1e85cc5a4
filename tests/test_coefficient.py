import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from kmixup import Beta
from kmixup.coefficient import per_sample

ALPHAS = [1e-3, 0.05, 0.2, 0.5, 1.0, 2.0, 10.0, 100.0, 1e4]


def expectation(value, a: float, b: float) -> float:
    """E[value(lam)] under Beta(a, b) by quadrature over quantiles, cut at the middle."""
    law = stats.beta(a, b)
    middle = float(law.cdf(0.5))
    return sum(
        quad(lambda u: value(law.ppf(u)), low, high, limit=500, epsabs=1e-11)[0]
        for low, high in ((0, middle), (middle, 1))
    )


@pytest.mark.parametrize("alpha", ALPHAS)
def test_moments_agree_with_quadrature(alpha):
    beta = Beta(alpha)
    fold = lambda lam: max(lam, 1 - lam)  # noqa: E731
    mean = expectation(fold, alpha, alpha)
    for moment, expected in (
        (beta.mean_square_step, expectation(lambda lam: min(lam, 1 - lam) ** 2, alpha, alpha)),
        (beta.folded_mean, mean),
        (beta.folded_variance, expectation(lambda lam: (fold(lam) - mean) ** 2, alpha, alpha)),
        (beta.tilted_mean_step, expectation(lambda lam: 1 - lam, alpha + 1, alpha)),
        (beta.tilted_mean_square_step, expectation(lambda lam: (1 - lam) ** 2, alpha + 1, alpha)),
    ):
        assert moment == pytest.approx(expected, rel=1e-5, abs=1e-9)


@given(st.floats(1e-3, 1e4), st.floats(1e-3, 1e4))
def test_mean_square_step_grows_with_alpha(a, b):
    low, high = sorted((a, b))
    assert Beta(low).mean_square_step <= Beta(high).mean_square_step <= 0.25


def test_no_mixing_at_alpha_zero():
    beta = Beta(0)
    assert torch.equal(beta.draw((5,)), torch.ones(5, dtype=torch.float64))
    assert (beta.folded_mean, beta.folded_variance) == pytest.approx((1, 0))
    assert (beta.tilted_mean_step, beta.tilted_mean_square_step) == (0, 0)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_samples_follow_the_law(alpha):
    lam = Beta(alpha).draw((20_000,), torch.Generator().manual_seed(0)).numpy()
    assert np.isfinite(lam).all()
    assert 0 <= lam.min() <= lam.max() <= 1
    assert (lam < 0.5).mean() == pytest.approx(0.5, abs=0.015)
    if alpha > 1e-3:  # where the lower half is not all rounded to zero
        lower = stats.beta(alpha, alpha).cdf(lam[lam < 0.5])
        assert stats.kstest(2 * lower, "uniform").pvalue > 1e-3


def test_the_same_state_gives_the_same_quantile_at_every_alpha():
    draws = [Beta(a).draw((9,), torch.Generator().manual_seed(7)).numpy() for a in (0.3, 3.0)]
    quantiles = [stats.beta(a, a).cdf(lam) for a, lam in zip((0.3, 3.0), draws, strict=True)]
    np.testing.assert_allclose(*quantiles, rtol=1e-9)


@pytest.mark.parametrize("alpha", [-1, math.inf, math.nan])
def test_impossible_alpha_is_refused(alpha):
    with pytest.raises(ValueError, match=r"alpha must be a finite number, 0 .* or more, got"):
        Beta(alpha)


def test_per_sample_broadcasts_over_the_sample_shape():
    assert per_sample(torch.ones(4), torch.ones(4, 3, 2)).shape == (4, 1, 1)
    assert per_sample(torch.tensor(0.5), torch.ones(4, 3)).shape == ()


def test_moments_at_the_largest_alpha_are_those_of_one_half():
    beta = Beta(1e308)
    assert (beta.mean_square_step, beta.folded_mean) == (0.25, 0.5)
    assert (beta.folded_variance, beta.tilted_mean_step) == (0, 0.5)
    assert beta.tilted_mean_square_step == 0.25
