"""Independent and slow: what the library is checked against."""

from decimal import Decimal, localcontext
from itertools import pairwise, permutations

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from scipy.special import betainc
from torch import Tensor
from torch.nn import functional as F

from kmixup.methods.puzzle import Puzzle, least_masks


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def squared_differences(x1: Tensor, x2: Tensor) -> np.ndarray:
    """|x1[i] - x2[j]|² from differences in float64, with no product that could cancel."""
    a, b = x1.double().flatten(1), x2.double().flatten(1)
    mode = "donot_use_mm_for_euclid_dist"
    return torch.cdist(a, b, compute_mode=mode).square().numpy()


def exact_costs(x1: Tensor, x2: Tensor, metric: str = "sqeuclidean") -> np.ndarray:
    """Costs of all pairs in 60 decimal digits, as shares of the largest, of data of any scale."""
    with localcontext() as context:
        context.prec = 60
        a, b = (np.vectorize(Decimal)(x.double().numpy()) for x in (x1, x2))
        root = np.vectorize(Decimal.sqrt, otypes=[object])
        if metric == "cosine":
            a, b = (x / root((x**2).sum(1, keepdims=True)) for x in (a, b))
        cost = ((a[:, None] - b[None]) ** 2).sum(2)
        if metric == "euclidean":
            cost = root(cost)
        shares: np.ndarray = (cost / max(cost.max(), Decimal("1e-9999"))).astype(float)
        return shares


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


def cut_area_law(height: int, width: int, alpha: float) -> np.ndarray:
    """Probability of every number of pixels in CutMix's box, from the formula.

    The side of the box is a step function of lam, whose steps have probabilities by the
    distribution function of Beta(alpha, alpha); every pixel is the centre as often.
    """
    steps = np.unique(np.concatenate([np.arange(h + 1) / h for h in (height, width)]))
    law = np.zeros(height * width + 1)
    for low, high in pairwise(steps):
        chance = betainc(alpha, alpha, high**2) - betainc(alpha, alpha, low**2)
        middle = (low + high) / 2
        rows, columns = (_clipped(size, int(size * middle)) for size in (height, width))
        np.add.at(law, np.outer(rows, columns).ravel(), chance / (height * width))
    return law


def _clipped(size: int, side: int) -> np.ndarray:
    """Lengths inside of 0 … size of intervals that reach `side // 2` to both sides of a pixel."""
    centre = np.arange(size)
    return np.minimum(centre + side // 2, size) - np.maximum(centre - side // 2, 0)


def energy(mask: np.ndarray, unary: np.ndarray, down: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Σ unary[z] + Σ down · (z - z below)² + Σ right · (z - z right)², of every grid `(n,)`.

    `mask` is `(n, rows, columns)`; the rest is as in `least_masks`.
    """
    level = (2 * mask).astype(np.int64)[..., None]
    total = np.take_along_axis(unary, level, -1).sum((1, 2, 3))
    total = total + (down * np.diff(mask, axis=1) ** 2).sum((1, 2))
    return np.asarray(total + (right * np.diff(mask, axis=2) ** 2).sum((1, 2)))


def swap_moves(unary: np.ndarray, down: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Masks by swap moves, the published heuristic for PuzzleMix, from a mask of ones.

    A move lets the cells of two values exchange them at the least energy, with all other cells
    held (Boykov, Veksler and Zabih 2001). It ends where no move gains.
    """
    mask = np.ones(unary.shape[:3])
    best = energy(mask, unary, down, right)
    forbidden = 4 * (np.abs(unary).sum((1, 2, 3)) + down.sum((1, 2)) + right.sum((1, 2)))
    gains = np.ones(len(mask), dtype=bool)
    while gains.any():
        gains[:] = False
        for values in ((0.0, 0.5), (0.0, 1.0), (0.5, 1.0)):
            level = np.array([0.0, 0.5, 1.0])
            free = np.isin(mask, values)[..., None] & np.isin(level, values)
            allowed = free | (mask[..., None] == level)
            held = np.where(allowed, unary, forbidden[:, None, None, None])
            moved = least_masks(held, down, right)
            total = energy(moved, unary, down, right)
            gained = total < best - 1e-9
            mask[gained], best[gained] = moved[gained], total[gained]
            gains |= gained
    return mask


def puzzles(grid: int, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Energies of PuzzleMix for random smooth images of 32 × 32 pixels and smooth saliencies."""
    generator = torch.Generator().manual_seed(seed)

    def smooth(channels: int, side: int) -> Tensor:
        coarse = torch.rand(count, channels, side, side, generator=generator, dtype=torch.float64)
        image = F.interpolate(coarse, size=32, mode="bicubic")
        low, high = (
            bound(image, dim=(1, 2, 3), keepdim=True) for bound in (torch.amin, torch.amax)
        )
        return (image - low) / (high - low)

    images = smooth(3, 8), smooth(3, 8)
    noise = torch.rand(2, count, 32, 32, generator=generator, dtype=torch.float64)
    important = [smooth(1, 6)[:, 0] ** 3 * fine for fine in noise]
    first, second = (s / s.sum((1, 2), keepdim=True) for s in important)
    lam = torch.rand(count, generator=generator, dtype=torch.float64)
    return Puzzle().costs(grid, lam, (first, second), images)
