from itertools import permutations, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy, one_hot

from kmixup import CoMixup
from kmixup.methods import comixup
from kmixup.methods.comixup import (
    CoMix,
    Gamma,
    best_output,
    groups_of,
    least_labels,
    promising,
    repeats,
)


def batch(n=10, side=8, channels=3, dtype=torch.float32, seed=0):
    torch.manual_seed(seed)
    x = torch.rand(n, channels, side, side).to(dtype)
    return x, torch.randint(5, (n,)), torch.rand(n, side, side) ** 4


def mixer(k=1, **settings):
    mix = CoMixup(k, num_classes=5, generator=torch.Generator().manual_seed(0))
    mix.interpolation = CoMix(**settings)
    return mix


def drawn(n=10, **settings):
    x, y, importance = batch(n)
    return x, y, importance, mixer(**settings).mix(x, y, importance=importance)


def smoothness(shown):
    """Half the squared steps between neighbouring cells of `(rows, columns, m)`."""
    return sum((np.diff(shown, axis=axis) ** 2).sum() / 2 for axis in (0, 1))


def joint_energy(shown, cost, *, beta, gamma):
    """The energy that the descent goes down, of many sets of outputs `(n, m, rows, columns, m)`."""
    cells = shown.shape[2] * shown.shape[3]
    total = (shown * np.moveaxis(cost, 0, -1)).sum((1, 2, 3, 4))
    for axis in (2, 3):
        total += beta / cells * (np.diff(shown, axis=axis) ** 2).sum((1, 2, 3, 4)) / 2
    uses = shown.sum((2, 3))
    for output, other in permutations(range(shown.shape[1]), 2):
        total += gamma / cells * (uses[:, output] * uses[:, other]).sum(1)
    return total


def test_an_output_has_the_least_cost_of_all_given_the_others():
    rng = np.random.default_rng(0)
    for halves in (False, True):
        unary = rng.dirichlet(np.ones(4), (5, 3)).swapaxes(1, 2).reshape(5, 2, 2, 3)
        reached = best_output(unary, 0.1, halves=halves)
        points = list(np.eye(3))
        if halves:
            points += [(a + b) / 2 for a, b in ((points[0], points[1]), (points[0], points[2]))]
            points += [(points[1] + points[2]) / 2]
        for group in range(5):
            among = best_output(unary, 0.1)[group].any((0, 1))  # halves are of what is shown
            costs = [
                (z * unary[group]).sum() + 0.1 * smoothness(z)
                for values in product(points, repeat=4)
                if not ((z := np.array(values).reshape(2, 2, 3)).any((0, 1)) & ~among).any()
            ]
            cost = (reached[group] * unary[group]).sum() + 0.1 * smoothness(reached[group])
            assert cost == pytest.approx(min(costs))
            if halves:
                whole = best_output(unary, 0.1)[group]
                assert cost <= (whole * unary[group]).sum() + 0.1 * smoothness(whole) + 1e-12


def test_two_outputs_of_two_inputs_against_all_of_their_collages(monkeypatch):
    monkeypatch.setattr(comixup, "repeats", lambda shows: np.zeros(shows.shape))
    rng = np.random.default_rng(0)
    levels = np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]])
    every = levels[np.array(list(product(range(3), repeat=8)))].reshape(-1, 2, 2, 2, 2)
    starts = np.eye(2)[np.array(list(product(range(2), repeat=8)))].reshape(-1, 2, 2, 2, 2)
    hits = 0
    for _ in range(20):
        cost = -rng.dirichlet(np.ones(4), 2).reshape(2, 2, 2)
        weights = {"beta": float(rng.uniform(0, 1)), "gamma": float(rng.uniform(0, 0.5))}
        comix = CoMix(**weights, omega=0.0, threshold=0.0, grid=2)
        many = len(starts)
        shown = comix.collages(
            np.broadcast_to(cost, (many, *cost.shape)),
            np.broadcast_to(np.eye(2), (many, 2, 2)),
            starts,
        )
        least = joint_energy(every, cost, **weights).min()
        reached = joint_energy(shown, cost, **weights)
        assert (reached <= joint_energy(starts, cost, **weights) + 1e-12).all()
        assert reached.min() == pytest.approx(least)
        assert (reached >= least - 1e-12).all()
        hits += (reached < least + 1e-9).mean() / 20
    assert hits > 0.95  # with halves in the last round only, 87 % of the starts end in the best


def test_images_are_put_together_as_the_account_says():
    x, y, _, mixed = drawn()
    cells, shares = mixed.region.weight, mixed.shares
    assert torch.allclose(shares.sum(1), torch.ones(10))
    assert ((cells * 2).frac() == 0).all()
    assert torch.equal(cells.sum(1), torch.ones(10, 4, 4))
    weight = cells.repeat_interleave(2, 2).repeat_interleave(2, 3)
    assert torch.allclose(mixed.x, sum(weight[:, j, None] * x[j] for j in range(10)))
    assert torch.allclose(mixed.lam, shares.diagonal())
    assert torch.allclose(mixed.y, shares @ one_hot(y, 5).float())
    assert (shares > 0).sum(1).float().mean() > 1.5


def test_accuracy_counts_shares_and_the_loss_needs_a_criterion_for_every_sample():
    _, y, _, mixed = drawn()
    logits = torch.randn(10, 5)
    agree = (logits.argmax(1)[:, None] == y).float()
    assert mixed.accuracy(logits) == pytest.approx(float((mixed.shares * agree).sum(1).mean()))
    with pytest.raises(ValueError, match="shares of targets differ .* got shape \\(\\)"):
        mixed.loss(cross_entropy, logits)


def test_numbers_and_several_targets_are_mixed_by_shares():
    x, y, importance = batch()
    targets = {"class": y, "number": torch.randn(10, 2)}
    mix = CoMixup(num_classes={"class": 5, "number": None})
    mixed = mix.mix(x, targets, importance=importance)
    assert torch.allclose(mixed.y["number"], mixed.shares @ targets["number"], atol=1e-6)
    assert torch.allclose(mixed.y["class"], mixed.shares @ one_hot(y, 5).float())
    alone = mix.mix(x, None, importance=importance)
    assert alone.y is None
    with pytest.raises(ValueError, match="no targets to take a loss of"):
        alone.loss(cross_entropy, torch.zeros(10, 5))


def test_without_smoothness_and_price_every_cell_shows_what_is_most_salient():
    x, _, importance, mixed = drawn(8, beta=0.0, gamma=0.0, eta=0.0)
    s = importance / importance.sum((1, 2), keepdim=True)
    cells = s.reshape(8, 4, 2, 4, 2).sum((2, 4))
    winner = cells.argmax(0).repeat_interleave(2, 0).repeat_interleave(2, 1)
    best = x.gather(0, winner.expand(1, 3, 8, 8))[0]
    assert torch.allclose(mixed.x, best.expand(8, 3, 8, 8))


def test_a_high_price_makes_outputs_share_the_images_evenly():
    free = drawn(20, gamma=0.0)[-1].shares.sum(0)
    dear = drawn(20, gamma=10.0)[-1].shares.sum(0)
    assert dear.std() < free.std() / 3
    assert dear.min() > 0.4


def test_a_heavy_prior_shows_the_images_that_were_drawn_large():
    x, y, importance = batch()
    mix = mixer(beta=0.0, gamma=0.0, eta=1e6)
    draw = mix.draw(10)
    mixed = mix.mix(x, y, draw, importance=importance)
    assert (mixed.shares[:, draw.u.argmax()] == 1).all()


def test_weights_follow_the_gamma_law():
    u = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    for alpha in (0.5, 2.0):
        weight = Gamma(alpha).lam(u)
        assert weight.mean() == pytest.approx(alpha, rel=1e-2)  # midpoints miss some of the tail
        assert weight.var() == pytest.approx(alpha, rel=3e-2)
    with pytest.raises(ValueError, match="alpha must be a finite number"):
        Gamma(-1.0)


def test_rows_stand_for_the_samples_that_they_show_most():
    _, _, _, mixed = drawn(6, group=6)
    total = float(mixed.shares.diagonal().sum())
    others = (float(mixed.shares[list(order), range(6)].sum()) for order in permutations(range(6)))
    assert total == pytest.approx(max(others))


def test_groups_are_cut_from_the_way_along_partners():
    partner = np.array([3, 4, 0, 2, 5, 1])
    assert [group.tolist() for group in groups_of(partner, 6)] == [[0, 3, 2, 1, 4, 5]]
    assert [group.tolist() for group in groups_of(partner, 3)] == [[0, 3, 2], [1, 4, 5]]
    assert [len(group) for group in groups_of(np.arange(47), 20)] == [16, 16, 15]
    nearest = np.array([1, 0, 0, 2])  # several samples may share a partner
    assert sorted(np.concatenate(groups_of(nearest, 2)).tolist()) == [0, 1, 2, 3]


def test_only_images_of_a_group_meet_and_with_a_larger_k_they_are_alike():
    torch.manual_seed(0)
    kind = torch.arange(80) % 2  # dark and bright images
    x = torch.rand(80, 1, 4, 4) * 0.1 + kind[:, None, None, None]
    importance = torch.rand(80, 4, 4)
    crossing = {}
    for k in (1, 20):
        mixed = mixer(k, group=4).mix(x, None, importance=importance)
        met = torch.zeros(80, 80)
        for group in groups_of(mixed.partner.numpy(), 4):
            met[np.ix_(group, group)] = 1
        assert not (mixed.shares * (1 - met)).any()
        crossing[k] = float((mixed.shares * (kind[:, None] != kind)).sum(1).mean())
    assert crossing[20] < crossing[1] / 2


def test_equal_outputs_are_driven_apart():
    shows = np.array([[[1, 1, 0], [1, 1, 0], [0, 0, 1]]], dtype=bool)
    assert repeats(shows).tolist() == [[[1, 0, 0], [0, 1, 0], [0, 0, 0]]]
    single = np.array([[[1, 0], [1, 0]]], dtype=bool)  # nothing to drive apart
    assert not repeats(single).any()


def test_partners_from_elsewhere_and_images_that_four_does_not_divide_raise():
    x, y, importance = batch()
    with pytest.raises(ValueError, match="images of one batch, got partners from elsewhere"):
        mixer()(x, y, other=(x.clone(), y), importance=(importance, importance))
    with pytest.raises(ValueError, match="height and width 4 divides, got 8 x 7: resize"):
        mixer()(x[..., :7], y, importance=importance[..., :7])


def problem(n, rows, columns, labels, seed):
    rng = np.random.default_rng(seed)
    unary = rng.random((n, rows, columns, labels))
    apart = rng.random((n, labels, labels)) * rng.random()
    apart = apart + apart.swapaxes(1, 2)
    return unary, apart * (1 - np.eye(labels))


def by_hand(labels, unary, apart):
    """The cost of one grid, cell by cell."""
    rows, columns = labels.shape
    cost = sum(unary[i, j, labels[i, j]] for i in range(rows) for j in range(columns))
    for i, j in product(range(rows), range(columns)):
        cost += apart[labels[i, j], labels[i + 1, j]] if i + 1 < rows else 0
        cost += apart[labels[i, j], labels[i, j + 1]] if j + 1 < columns else 0
    return cost


@pytest.mark.parametrize(
    ("rows", "columns", "labels"),
    [(2, 2, 4), (3, 2, 3), (2, 3, 3), (1, 5, 3), (5, 1, 3), (3, 3, 2)],
)
@pytest.mark.parametrize("alike", [False, True])
def test_labels_have_the_least_cost_of_all_labellings(rows, columns, labels, alike):
    unary, apart = problem(6, rows, columns, labels, seed=rows + 7 * columns)
    apart = np.tile(0.3 * (1 - np.eye(labels)), (6, 1, 1)) if alike else apart
    chosen = least_labels(unary, apart)
    every = [
        np.array(values).reshape(rows, columns)
        for values in product(range(labels), repeat=rows * columns)
    ]
    for i in range(6):
        least = min(by_hand(z, unary[i], apart[i]) for z in every)
        assert by_hand(chosen[i], unary[i], apart[i]) == pytest.approx(least)


@given(st.integers(0, 1000), st.floats(0, 0.3), st.integers(1, 7))
@settings(max_examples=40, deadline=None)
def test_labels_that_are_left_out_are_in_no_best_labelling(seed, weight, labels):
    unary, _ = problem(3, 3, 3, labels, seed)
    apart = np.broadcast_to(weight * (1 - np.eye(labels)), (3, labels, labels))
    kept = promising(unary, weight, labels)
    fewer = np.take_along_axis(unary, kept[:, None, None], -1)
    some = apart[:, : kept.shape[1], : kept.shape[1]]
    reached = map(by_hand, least_labels(fewer, some), fewer, some)
    least = map(by_hand, least_labels(unary, apart), unary, apart)
    assert list(reached) == pytest.approx(list(least))


def test_no_more_labels_are_kept_than_asked_for():
    unary, _ = problem(2, 2, 2, 6, seed=0)
    assert promising(unary, 10.0, 6).shape == (2, 6)
    assert promising(unary, 10.0, 3).shape == (2, 3)
