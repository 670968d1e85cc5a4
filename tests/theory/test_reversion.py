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
    reversion = mean_reversion(*data, [1, 4], alpha=ALPHA, samples=50)
    theta = np.linspace(0.5, 1, 50)
    t, centre = theta[:, None, None], reversion.reverted
    mixed = t * np.concatenate(data, 1)[[1, 4]] + (1 - t) * reversion.partners
    assert centre + reversion.perturbations(theta) == pytest.approx(mixed)
    assert centre == pytest.approx(
        reversion.mean + reversion.theta * (reversion.points - reversion.mean)
    )


def test_perturbations_have_mean_zero_over_theta_and_all_subsets(data):
    reversion = mean_reversion(*data, [0, 3], alpha=ALPHA, others=SUBSETS)
    assert abs(over_theta(lambda t: reversion.perturbations(t).mean(0))).max() < 1e-12
    assert reversion.theta == pytest.approx(float(over_theta(lambda t: t)), abs=1e-12)


def test_the_loss_is_that_of_mixup_over_all_subsets(data):
    x, y = data
    f = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    reverted = [mean_reversion(x, y, s, alpha=ALPHA, others=SUBSETS) for s in SUBSETS]

    def loss(samples: np.ndarray) -> float:
        points = torch.from_numpy(samples).reshape(-1, 4)
        with torch.no_grad():
            return float(mse_loss(f(points[:, :2]), points[:, 2:]))

    def by_theorem(t: float) -> float:
        return float(np.mean([loss(r.reverted + r.perturbations(t)) for r in reverted]))

    own, partner = [], []
    for first in SUBSETS:
        for second in SUBSETS:
            cost = np.square(x[first][:, None] - x[second][None]).sum(2)
            own += first.tolist()
            partner += second[linear_sum_assignment(cost)[1]].tolist()

    both = np.concatenate(data, 1)
    theorem = float(over_theta(by_theorem))
    mixup = over_lam(lambda lam: loss(lam * both[own] + (1 - lam) * both[partner]))
    other_half = float(over_theta(lambda t: by_theorem(1 - t)))
    without_noise = np.mean([loss(r.reverted) for r in reverted])
    assert theorem == pytest.approx(mixup, abs=1e-9)
    assert abs(without_noise - mixup) > 1e-3
    assert other_half == pytest.approx(theorem, abs=1e-9)  # the two halves of lam are alike


def test_the_covariances_of_the_lemma_are_exact_over_all_subsets(data):
    wrong = 0.0
    for subset in SUBSETS:
        reversion = mean_reversion(*data, subset, alpha=ALPHA, others=SUBSETS)

        def products(t: float, reversion=reversion) -> np.ndarray:
            noise = reversion.perturbations(t)
            return np.einsum("ski,skj->kij", noise, noise) / len(SUBSETS)

        assert reversion.covariance() == pytest.approx(over_theta(products), abs=1e-12)
        as_printed = np.cov(reversion.reverted.T, ddof=0)  # that of the reverted points themselves
        partners = reversion.partners - reversion.mean
        meant = reversion.theta**2 * np.einsum("ski,skj->kij", partners, partners) / len(SUBSETS)
        wrong = max(wrong, abs(meant - as_printed).max())
    assert wrong > 0.1


def test_the_mean_of_partners_depends_on_the_subset_and_averages_to_that_of_the_distribution(data):
    x, y = data
    exact = np.stack(
        [
            mean_reversion(x, y, s, others=SUBSETS).mean[list(s).index(0), :2]
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
        (lambda x: mean_reversion(x, x, [-1, 5]), r"indices from 0 to 5, got \[-1, 5\]"),
        (lambda x: mean_reversion(x, x, [1, 60]), r"indices from 0 to 5, got \[1, 60\]"),
        (lambda x: mean_reversion(x, x, [0, 1], others=[[-1, 2]]), "others must hold indices"),
        (lambda x: local_means(x, 6, 2), "i must be below and k at most 6"),
    ],
)
def test_impossible_subsets_are_refused(data, call, message):
    with pytest.raises(ValueError, match=message):
        call(data[0])
