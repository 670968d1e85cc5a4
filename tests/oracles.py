"""Independent and slow: what the library is checked against."""

from itertools import permutations

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor


def squared_differences(x1: Tensor, x2: Tensor) -> np.ndarray:
    """|x1[i] - x2[j]|² from differences in float64, with no product that could cancel."""
    one, two = x1.double().flatten(1), x2.double().flatten(1)
    mode = "donot_use_mm_for_euclid_dist"
    return torch.cdist(one, two, compute_mode=mode).square().numpy()


def scipy_optimum(cost: np.ndarray) -> float:
    rows, columns = linear_sum_assignment(cost)
    return float(cost[rows, columns].sum())


def brute_force_optimum(cost: np.ndarray) -> float:
    rows = np.arange(len(cost))
    return min(float(cost[rows, list(p)].sum()) for p in permutations(rows))


def literal_search(
    square_distance_1: float,
    square_distance_k: float,
    alpha: float,
    *,
    trials: int = 10**6,
    c: float = 1.01,
    threshold: float = 1e3,
    seed: int = 0,
) -> float:
    """Steps 3 to 10 of Algorithm 1: raise alpha by factors of c, sampling the step each time."""
    rng = np.random.default_rng(seed)

    def mean_square_step(a: float) -> float:
        lam = rng.beta(a, a, trials)
        return float(np.minimum(lam**2, (1 - lam) ** 2).mean())

    alpha_k, step = alpha, mean_square_step(alpha)
    target = square_distance_1 * step
    while step * square_distance_k < target and alpha_k < threshold:
        alpha_k *= c
        step = mean_square_step(alpha_k)
    return alpha_k


def literal_algorithm_1(x: Tensor, k: int, alpha: float, *, trials: int, seed: int = 0) -> float:
    """Algorithm 1 of the paper as printed: all three expectations are sampled."""
    rng = np.random.default_rng(seed)
    points = x.double().flatten(1)

    def mean_square_match(size: int, times: int) -> float:
        """Mean squared distance of matches between two random subsets."""
        return float(
            np.mean(
                [
                    scipy_optimum(
                        squared_differences(
                            points[rng.choice(len(points), size, replace=False)],
                            points[rng.choice(len(points), size, replace=False)],
                        )
                    )
                    / size
                    for _ in range(times)
                ]
            )
        )

    distances = mean_square_match(1, trials), mean_square_match(k, trials // k)
    return literal_search(*distances, alpha, trials=trials, seed=seed)
