from itertools import permutations, product
from math import log

import numpy as np
import pytest
import torch

from kmixup import PuzzleMix
from kmixup.interpolation import Pair
from kmixup.methods.puzzle import Puzzle, least_masks, squared_moves
from oracles import energy, puzzles, swap_moves

EVERY_3X3 = np.array(list(product((0.0, 0.5, 1.0), repeat=9))).reshape(-1, 3, 3)


def batch(n=6, side=8, channels=3, dtype=torch.float32, seed=0):
    torch.manual_seed(seed)
    x = torch.rand(n, channels, side, side).to(dtype)
    return x, torch.randint(5, (n,)), torch.rand(n, side, side) ** 4


def mixer(**settings):
    mix = PuzzleMix(1, 1.0, 5, generator=torch.Generator().manual_seed(1))
    mix.interpolation = Puzzle(**settings)
    return mix


def literal_energy(z, s, other, x, partner, lam, *, beta, gamma, eta):
    """The sum of the docstring, cell by cell, for images whose cells are `side / b` pixels."""
    b, side = len(z), x.shape[-1]
    cell = side // b

    def pooled(image):
        return image.reshape(b, cell, b, cell).sum((1, 3)) / image.sum()

    s, other = pooled(s), pooled(other)
    chance = {0.0: (1 - lam) ** 2, 0.5: 2 * lam * (1 - lam), 1.0: lam**2}
    total = 0.0
    for i, j in product(range(b), repeat=2):
        total += (1 - z[i, j]) * s[i, j] + z[i, j] * other[i, j]
        total -= eta / b**2 * log(chance[float(z[i, j])])
        for down, right in ((1, 0), (0, 1)):
            if i + down == b or j + right == b:
                continue
            a, c = z[i, j], z[i + down, j + right]
            rows, columns = (slice(t * cell, (t + 1) * cell) for t in (i, j))
            if down:
                near, far = (slice(None), (i + 1) * cell - 1, columns), (i + 1) * cell
                far = (slice(None), far, columns)
            else:
                near, far = (slice(None), rows, (j + 1) * cell - 1), (j + 1) * cell
                far = (slice(None), rows, far)
            images = {1: x, 0: partner}
            step = {
                (u, v): abs(images[u][near] - images[v][far]).mean() for u in (0, 1) for v in (0, 1)
            }
            bend = (step[1, 0] + step[0, 1] - step[0, 0] - step[1, 1]) / 2
            phi = step[0, 0] + a * (step[1, 0] - step[0, 0] - bend)
            phi += c * (step[0, 1] - step[0, 0] - bend) + bend * (a - c) ** 2
            total += beta / (16 * b) * ((a - c) ** 2 + gamma * phi)
    return total


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_the_mask_has_the_least_energy_of_all_masks_by_the_formula(gamma):
    settings = {"beta": 4.0, "gamma": gamma, "eta": 0.2}
    x, _, importance = batch(4, side=4)
    partner, lam = torch.tensor([1, 2, 3, 0]), 0.4
    pair = Pair([x], [x], partner, (importance, importance))
    puzzle = Puzzle(**settings, grids=(2,))
    share, mask = puzzle.settle(torch.tensor(lam), torch.tensor(0.5), pair)
    # colours are measured in the range of the batch
    colours = ((x - x.min()) / (x.max() - x.min())).double().numpy()
    s = importance.double().numpy()
    assert torch.allclose(share, mask.weight.mean((1, 2)))
    for i in range(4):
        energies = {}
        for values in product((0.0, 0.5, 1.0), repeat=4):
            z, j = np.array(values).reshape(2, 2), int(partner[i])
            images = colours[i], colours[j]
            energies[values] = literal_energy(z, s[i], s[j], *images, lam, **settings)
        reached = tuple(mask.weight[i, ::2, ::2].flatten().tolist())
        assert energies[reached] == pytest.approx(min(energies.values()), abs=1e-7)


def test_moves_have_the_least_cost_of_all_permutations():
    rng = np.random.default_rng(0)
    importance, seen = rng.dirichlet(np.ones(6), 8), rng.integers(0, 2, (8, 6)).astype(float)
    images = (torch.from_numpy(side).view(8, 2, 3) for side in (importance, seen))
    sources = Puzzle(epsilon=0.1, patch=1)._move(1, *images)
    for i in range(8):
        cost = 0.1 * squared_moves(2, 3) - importance[i][:, None] * seen[i]
        reached = cost[sources[i], np.arange(6)].sum()
        every = (cost[np.arange(6), list(order)].sum() for order in permutations(range(6)))
        assert reached == pytest.approx(min(every))


def test_mixed_images_are_moved_and_masked_as_the_account_says():
    x, y, importance = batch(6, side=8)
    mixed = mixer(epsilon=0.01, patch=2, grids=(4,)).mix(x, y, importance=importance)
    own, their = mixed.region.moves
    assert not torch.equal(own, torch.arange(64).expand(6, 64))
    assert (own.sort(1).values == torch.arange(64)).all()
    for i in range(6):
        first = x[i].flatten(1)[:, own[i]].view(3, 8, 8)
        second = x[mixed.partner[i]].flatten(1)[:, their[i]].view(3, 8, 8)
        weight = mixed.region.weight[i].float()
        assert torch.allclose(mixed.x[i], weight * first + (1 - weight) * second)
        # patches move as wholes: neighbours inside of one stay neighbours
        assert (own[i].view(8, 8)[:, 1::2] - own[i].view(8, 8)[:, ::2] == 1).all()
        assert (own[i].view(8, 8)[1::2] - own[i].view(8, 8)[::2] == 8).all()
    assert torch.allclose(mixed.lam, mixed.region.weight.mean((1, 2)).float())


def test_a_patch_that_matters_moves_to_where_it_is_seen():
    x = torch.rand(2, 1, 8, 8)
    importance = torch.full((2, 8, 8), 0.01)
    importance[0, :4, :4], importance[0, :4, 4:] = 0.6, 0.4
    importance[1, :4, :4] = 1.0  # where the partner matters more
    puzzle = Puzzle(beta=0.0, eta=0.0, epsilon=1e-4, grids=(2,))
    pair = Pair([x], [x], torch.tensor([1, 0]), (importance, importance))
    _, mask = puzzle.settle(torch.tensor(0.5), torch.tensor(0.0), pair)
    seen = mask.weight[0] > 0
    assert not seen[:4, :4].any()
    assert seen[:4, 4:].all()
    after = importance[0].flatten()[mask.moves[0][0]].view(8, 8)
    assert float(after[seen].sum()) == pytest.approx(float(importance[0].sum()) - 16 * 0.01)


def test_costly_moves_are_not_made():
    x, y, importance = batch()
    mixed = mixer(epsilon=1e6).mix(x, y, importance=importance)
    assert all((move == torch.arange(64)).all() for move in mixed.region.moves)


def test_a_strong_prior_gives_the_most_likely_level():
    x, _, importance = batch()
    pair = Pair([x], [x], torch.arange(6).roll(1), (importance, importance))
    for lam, level in ((0.05, 0.0), (0.5, 0.5), (0.95, 1.0)):
        share, _ = Puzzle(eta=1e6).settle(torch.tensor(lam), torch.tensor(0.5), pair)
        assert (share == level).all()


def test_images_without_importance_have_the_same_everywhere():
    x, y, _ = batch()
    nothing, all_alike = (
        mixer().mix(x, y, importance=torch.full((6, 8, 8), value)) for value in (0.0, 1.0)
    )
    assert torch.equal(nothing.x, all_alike.x)


def test_gradients_flow_to_the_images_through_mask_and_moves():
    x, y, importance = batch()
    x.requires_grad_()
    mixed = mixer(epsilon=0.01).mix(x, y, importance=importance)
    weights = torch.randn_like(mixed.x)
    (gradient,) = torch.autograd.grad((weights * mixed.x).sum(), x)
    own, their = mixed.region.moves
    expected = torch.zeros_like(x).flatten(2)
    mask = mixed.region.weight.float().flatten(1)
    for i in range(6):
        flat = weights[i].flatten(1)
        expected[i].index_add_(1, own[i], mask[i] * flat)
        expected[mixed.partner[i]].index_add_(1, their[i], (1 - mask[i]) * flat)
    assert torch.allclose(gradient.flatten(2), expected, atol=1e-6)


def test_images_without_a_grid_raise():
    x, y, importance = batch(side=7)
    with pytest.raises(ValueError, match=r"one of \(2, 4, 8, 16\) divides, got 7 x 7: resize"):
        mixer().mix(x, y, importance=importance)


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
