from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kmixup.methods.comixup import least_labels, promising


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
    best = unary.min((1, 2)).argmin(1)
    assert (promising(unary, 10.0, 1)[:, 0] < 6).all()
    assert (promising(unary - 5 * np.eye(6)[best][:, None, None], 0.0, 1)[:, 0] == best).all()
