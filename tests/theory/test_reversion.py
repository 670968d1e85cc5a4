"""Mean reversion: the loss identity and the covariances of the appendix."""

from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment
from scipy.special import roots_jacobi
from torch import nn
from torch.nn.functional import mse_loss

from kmixup.theory import local_means, matching_distribution, mean_reversion

N, K, ALPHA = 6, 2, 0.8
SUBSETS = np.array(list(combinations(range(N), K)))


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(N, 2))
    return x, np.eye(2)[rng.integers(0, 2, N)]


def over_theta(function):
    """Mean over θ, the larger of lam and 1 - lam: Gauss-Jacobi in s = 2 (1 - θ)."""
    node, weight = roots_jacobi(40, 0, ALPHA - 1)
    theta = 1 - (1 + node) / 4
    weight = weight * theta ** (ALPHA - 1)
    return sum(
        w * np.asarray(function(t)) for t, w in zip(theta, weight / weight.sum(), strict=True)
    )


def over_lam(function):
    """Mean over lam from Beta(alpha, alpha)."""
    node, weight = roots_jacobi(40, ALPHA - 1, ALPHA - 1)
    return sum(w * function((1 + t) / 2) for t, w in zip(node, weight / weight.sum(), strict=True))


def test_the_point_and_its_perturbation_make_the_mixed_point(data):
    x, y = data
    reversion = mean_reversion(x, y, [1, 4], alpha=ALPHA, samples=50)
    theta = np.linspace(0.5, 1, 50)
    for centre, noise, own, partner in zip(
        reversion.reverted,
        reversion.perturbations(theta),
        (reversion.x, reversion.y),
        (reversion.partner_x, reversion.partner_y),
        strict=True,
    ):
        t = theta[:, None, None]
        assert centre + noise == pytest.approx(t * own + (1 - t) * partner)


def test_perturbations_have_mean_zero_over_theta_and_all_subsets(data):
    reversion = mean_reversion(*data, [0, 3], alpha=ALPHA, others=SUBSETS)
    for part in (0, 1):
        mean = over_theta(lambda t, part=part: reversion.perturbations(t)[part].mean(0))
        assert abs(mean).max() < 1e-12
    assert reversion.theta == pytest.approx(float(over_theta(lambda t: t)), abs=1e-12)


def test_the_loss_is_that_of_mixup_over_all_subsets(data):
    x, y = data
    f = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    reverted = [mean_reversion(x, y, s, alpha=ALPHA, others=SUBSETS) for s in SUBSETS]

    def by_theorem(t: float) -> float:
        losses = []
        for r in reverted:
            points, targets = (
                torch.from_numpy(centre + noise).flatten(0, 1)
                for centre, noise in zip(r.reverted, r.perturbations(t), strict=True)
            )
            with torch.no_grad():
                losses.append(float(mse_loss(f(points), targets)))
        return float(np.mean(losses))

    own, partner = [], []
    for first in SUBSETS:
        for second in SUBSETS:
            cost = np.square(x[first][:, None] - x[second][None]).sum(2)
            own += first.tolist()
            partner += second[linear_sum_assignment(cost)[1]].tolist()

    def as_defined(lam: float) -> float:
        points, targets = (torch.from_numpy(lam * v[own] + (1 - lam) * v[partner]) for v in data)
        with torch.no_grad():
            return float(mse_loss(f(points), targets))

    theorem, mixup = float(over_theta(by_theorem)), over_lam(as_defined)
    other_half = float(over_theta(lambda t: by_theorem(1 - t)))
    with torch.no_grad():
        bare = [tuple(map(torch.from_numpy, r.reverted)) for r in reverted]
        without_noise = np.mean([float(mse_loss(f(x), y)) for x, y in bare])
    assert theorem == pytest.approx(mixup, abs=1e-9)
    assert abs(without_noise - mixup) > 1e-3
    assert other_half == pytest.approx(theorem, abs=1e-9)  # the two halves of lam are alike


def test_the_covariances_of_the_lemma_are_exact_over_all_subsets(data):
    worst = wrong = 0.0
    for subset in SUBSETS:
        reversion = mean_reversion(*data, subset, alpha=ALPHA, others=SUBSETS)
        right = zip(((0, 0), (1, 1), (0, 1)), reversion.covariances(), strict=True)
        for (a, b), side in right:

            def products(t: float, a: int = a, b: int = b, reversion=reversion) -> np.ndarray:
                noise = reversion.perturbations(t)
                return np.einsum("ski,skj->kij", noise[a], noise[b]) / len(SUBSETS)

            worst = max(worst, abs(over_theta(products) - side).max())
        x_tilde = reversion.reverted[0]
        as_printed = np.cov(x_tilde.T, ddof=0)  # the covariance of the reverted points themselves
        partners = reversion.partner_x - reversion.means[0]
        meant = reversion.theta**2 * np.einsum("ski,skj->kij", partners, partners) / len(SUBSETS)
        wrong = max(wrong, abs(meant - as_printed).max())
    assert worst < 1e-12
    assert wrong > 0.1


def test_the_mean_of_partners_depends_on_the_subset_and_averages_to_that_of_the_distribution(data):
    x, y = data
    exact = np.stack(
        [
            mean_reversion(x, y, s, others=SUBSETS).means[0][list(s).index(0)]
            for s in SUBSETS
            if 0 in s
        ]
    )
    D = matching_distribution(x, 0, K, 40_000)
    error = np.sqrt(np.diag(D.covariance()) / D.samples)
    spread = exact.std(0)
    assert (abs(exact.mean(0) - D.mean()) < 4.5 * error).all()
    assert (spread > 20 * error).all()  # x̄ is not the mean of D_i

    mean, error = local_means(x, 0, K, subsets=60, samples=300)
    nearest = abs(mean[:, None] - exact[None]).max(2).argmin(1)
    off = abs(mean - exact[nearest]) / error
    assert mean.shape == error.shape == (60, 2)
    assert off.max() < 5
    assert len(set(nearest.tolist())) > 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: mean_reversion(x, x[:2], [0, 1]), "X and Y must have the same length"),
        (
            lambda x: mean_reversion(x, x, [1, 1]),
            r"subset must hold different points, got \[1, 1\]",
        ),
        (lambda x: local_means(x, 6, 2), "i must be below and k at most 6"),
    ],
)
def test_impossible_subsets_are_refused(data, call, message):
    with pytest.raises(ValueError, match=message):
        call(data[0])
