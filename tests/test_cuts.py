from itertools import product

import numpy as np
import pytest

from kmixup.methods.puzzle import least_masks
from oracles import energy, puzzles, swap_moves

EVERY_3X3 = np.array(list(product((0.0, 0.5, 1.0), repeat=9))).reshape(-1, 3, 3)


def problems(n, rows, columns, seed=0, smooth=1.0):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n, rows, columns, 3)),
        smooth * rng.exponential(size=(n, rows - 1, columns)),
        smooth * rng.exponential(size=(n, rows, columns - 1)),
    )


@pytest.mark.parametrize("smooth", [0.0, 0.1, 1.0])
def test_a_mask_has_the_least_energy_of_all_masks(smooth):
    unary, down, right = problems(20, 3, 3, smooth=smooth)
    reached = energy(least_masks(unary, down, right), unary, down, right)
    for i in range(len(unary)):
        whole = np.broadcast_to(unary[i], (len(EVERY_3X3), 3, 3, 3))
        least = energy(EVERY_3X3, whole, down[i : i + 1], right[i : i + 1]).min()
        assert reached[i] == pytest.approx(least, abs=1e-6)


def test_energy_is_the_sum_it_says():
    unary, down, right = problems(1, 2, 3)
    mask = np.array([[[0.0, 0.5, 1.0], [1.0, 1.0, 0.5]]])
    cells = unary[0, 0, 0, 0] + unary[0, 0, 1, 1] + unary[0, 0, 2, 2]
    cells += unary[0, 1, 0, 2] + unary[0, 1, 1, 2] + unary[0, 1, 2, 1]
    steps = down[0, 0] @ [1.0, 0.25, 0.25] + right[0, 0] @ [0.25, 0.25] + right[0, 1] @ [0, 0.25]
    assert energy(mask, unary, down, right)[0] == pytest.approx(cells + steps)


def test_very_smooth_masks_are_constant_at_the_best_value():
    unary, down, right = problems(30, 4, 5)
    mask = least_masks(unary, down + 1e3, right + 1e3)
    value = unary.sum((1, 2)).argmin(1) / 2
    assert (mask == value[:, None, None]).all()


def test_without_smoothness_every_cell_is_at_its_own_best_value():
    unary, down, right = problems(30, 4, 5)
    assert (2 * least_masks(unary, 0 * down, 0 * right) == unary.argmin(-1)).all()


def test_a_problem_is_solved_alike_alone_and_in_a_batch():
    unary, down, right = problems(12, 4, 4, smooth=0.3)
    scale = 10.0 ** np.arange(-6, 6)[:, None, None]  # each has its own unit
    unary, down, right = unary * scale[..., None], down * scale, right * scale
    together = least_masks(unary, down, right)
    alone = [least_masks(unary[i : i + 1], down[i : i + 1], right[i : i + 1]) for i in range(12)]
    assert (together == np.concatenate(alone)).all()


def test_swap_moves_never_beat_the_cut_and_are_worse_for_some():
    costs = puzzles(8, 40)
    cut, swap = energy(least_masks(*costs), *costs), energy(swap_moves(*costs), *costs)
    assert (swap >= cut - 1e-6).all()
    assert (swap > cut + 1e-6).any()
