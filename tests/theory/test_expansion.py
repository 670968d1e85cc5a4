"""The expansion of the k-mixup loss (Theorem 4.1)."""

from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.optimize import linear_sum_assignment
from scipy.special import expit
from scipy.stats import beta
from torch import nn
from torch.nn.functional import softplus

from kmixup.coefficient import Beta
from kmixup.theory import (
    expand,
    fitted_slope,
    kmixup_loss,
    matching_distributions,
    relative_remainder,
    remainder,
)

N, K = 40, 8


@pytest.fixture(scope="module")
def problem():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, 3, generator=generator, dtype=torch.float64)
    y = (x[:, 0] + 0.5 * x[:, 1] > 0).double()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        f = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1)).double()
    optimizer = torch.optim.Adam(f.parameters(), lr=0.05)
    for _ in range(100):  # fitted, so that mixing changes the loss visibly
        optimizer.zero_grad()
        value = f(x).squeeze(1)
        (softplus(value) - y * value).mean().backward()
        optimizer.step()
    return f, x, y, matching_distributions(x, K, 2000, generator=generator)


def test_the_terms_are_those_of_gradients_and_hessians(problem):
    f, x, y, D = problem
    P, n = D.probability.toarray(), len(x)
    standard = r1 = r2 = r3 = 0.0
    for i in range(n):
        at = x[i].clone().requires_grad_()
        value = f(at).squeeze()
        (gradient,) = torch.autograd.grad(value, at)
        hessian = torch.autograd.functional.hessian(lambda p: f(p).squeeze(), x[i]).numpy()
        u, g = float(value.detach()), gradient.numpy()
        v = x.numpy() - x[i].numpy()
        s = expit(u)
        pull, curve = s - float(y[i]), s * (1 - s)
        second = (P[i][:, None] * v).T @ v
        standard += (np.logaddexp(0, u) - float(y[i]) * u) / n
        r1 += pull * g @ (P[i] @ v) / n
        r2 += curve * g @ second @ g / 2 / n
        r3 += pull * np.trace(hessian @ second) / 2 / n
    expansion = expand(f, x, y, D)
    assert [expansion.standard, expansion.r1, expansion.r2, expansion.r3] == pytest.approx(
        [standard, r1, r2, r3], rel=1e-9
    )


def test_at_a_fixed_step_the_remainder_is_of_third_order(problem):
    a = np.geomspace(1e-4, 5e-3, 8)
    left = remainder(*problem, a)
    slope = fitted_slope(a, abs(left))
    ratio = abs(left) / a**2
    assert slope.value >= 2.8
    assert (np.diff(ratio) > 0).all()
    assert ratio[0] < 0.05 * ratio[-1]


def test_averaged_over_lam_the_ratio_tends_to_a_constant(problem):
    alphas = np.array([1.0, 0.3, 0.1, 0.03, 0.01])
    ratio = np.array([relative_remainder(*problem, alpha) for alpha in alphas])
    limit = 2 * quad(lambda a: float(remainder(*problem, a)) / a, 0, 1, epsabs=1e-7)[0]
    assert relative_remainder(*problem, 0.0) == pytest.approx(limit, abs=1e-6)
    assert (np.diff(abs(ratio - limit)) < 0).all()
    assert ratio[-1] == pytest.approx(limit, rel=0.05)
    assert abs(limit) > 0.1 * abs(expand(*problem).r2)  # a constant that is not zero


def test_the_average_is_that_of_adaptive_quadrature(problem):
    alpha = 0.5

    def weighted(a: float) -> float:
        return float(remainder(*problem, a)) * beta.pdf(a, alpha, alpha + 1)

    mean = quad(weighted, 0, 1, epsabs=1e-9, limit=200)[0]
    expected = mean / Beta(alpha).tilted_mean_square_step
    assert relative_remainder(*problem, alpha) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("alpha", [0.2, 2.0])
def test_the_loss_of_mixed_labels_is_that_of_partners_with_own_labels(problem, alpha):
    f, x, y, _ = problem
    D = matching_distributions(x, K, 20_000)
    mixed = kmixup_loss(f, x, y, K, alpha, 20_000)
    expansion = expand(f, x, y, D)
    rest = relative_remainder(f, x, y, D, alpha) * Beta(alpha).tilted_mean_square_step
    whole = expansion.standard + sum(expansion.terms(alpha)) + rest
    off = (mixed.value - whole) / (2**0.5 * mixed.error)  # D is from as many matchings
    assert abs(off) < 4.5
    assert abs(mixed.value - expansion.standard) > 10 * mixed.error  # mixing is visible


def test_the_theorem_holds_exactly_over_all_subsets():
    rng = np.random.default_rng(0)
    n, k, alpha = 6, 2, 0.7
    x, y = torch.from_numpy(rng.normal(size=(n, 2))), torch.tensor([0, 1, 0, 1, 1, 0.0])
    f = nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 1)).double()
    own, partner = [], []
    for first in combinations(range(n), k):
        for second in combinations(range(n), k):
            cost = torch.cdist(x[list(first)], x[list(second)]).square().numpy()
            own += first
            partner += [second[c] for c in linear_sum_assignment(cost)[1]]
    i, j = torch.tensor(own), torch.tensor(partner)

    def loss(lam: float, *, mixed: bool) -> float:
        with torch.no_grad():
            u = f(lam * x[i] + (1 - lam) * x[j]).squeeze(1)
            label = lam * y[i] + (1 - lam) * y[j] if mixed else y[i]
            return float((softplus(u) - label * u).mean())

    def average(a: float, b: float, *, mixed: bool) -> float:
        return quad(lambda t: loss(t, mixed=mixed) * beta.pdf(t, a, b), 0, 1, epsabs=1e-8)[0]

    as_defined = average(alpha, alpha, mixed=True)
    as_rewritten = average(alpha + 1, alpha, mixed=False)
    untilted = average(alpha, alpha, mixed=False)
    assert as_rewritten == pytest.approx(as_defined, abs=1e-6)
    assert abs(untilted - as_defined) > 1e-3


def test_convolutions_and_another_link_work_and_images_keep_their_shape():
    x = torch.randn(12, 1, 6, 6, dtype=torch.float64)
    y = torch.rand(12, dtype=torch.float64)
    f = nn.Sequential(nn.Conv2d(1, 2, 3), nn.GELU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, 1))
    D = matching_distributions(x, 3, 200)
    square = {"h": lambda u: u.square() / 2}  # least squares, up to y²/2
    left = remainder(f.double(), x, y, D, [0.01, 0.02, 0.04], **square)
    assert fitted_slope([0.01, 0.02, 0.04], abs(left)).value > 2.7
    with torch.no_grad():
        u = f(x).squeeze(1)
    assert expand(f, x, y, D, **square).standard == pytest.approx(float((u**2 / 2 - y * u).mean()))
    assert np.isfinite(kmixup_loss(f, x, y, 3, 1.0, 50).value)


def test_wrong_shapes_are_refused(problem):
    f, x, y, D = problem
    with pytest.raises(TypeError, match=r"X must be floating point, got torch.int64: use X.double"):
        expand(f, x.long(), y, D)
    with pytest.raises(ValueError, match="y must be one number for each of the 40 samples"):
        expand(f, x, y[:3], D)
    with pytest.raises(ValueError, match="f must give one number for each sample, got .* 3"):
        expand(lambda p: p, x, y, D)
    with pytest.raises(ValueError, match="D must be that of the 39 samples of X, got one of 40"):
        expand(f, x[1:], y[1:], D)
    with pytest.raises(ValueError, match="D must cover every point, .* were never matched"):
        expand(f, x, y, matching_distributions(x, 2, 3))
