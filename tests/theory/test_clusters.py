"""Cross-cluster matches: the lemma, where it fails, and the count that is right."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from kmixup.theory import (
    cross_matches,
    draw_counts,
    lemma_condition,
    lemma_count,
    longest_chain,
    transport_count,
)

ROW = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])


def balls(centres: np.ndarray, radius: float, per_cluster: int = 60, seed: int = 0):
    """Points spread evenly in balls around the centres, and the cluster of each."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(centres)), per_cluster)
    u = rng.normal(size=(len(labels), centres.shape[1]))
    u *= rng.random((len(u), 1)) ** (1 / centres.shape[1]) / np.linalg.norm(u, axis=1)[:, None]
    return centres[labels] + radius * u, labels


def transported(first: np.ndarray, second: np.ndarray, centres: np.ndarray) -> tuple[int, int]:
    """Fewest and most cross matches among the optimal flows, by linear programming."""
    m = len(centres)
    cost = np.square(centres[:, None] - centres[None]).sum(2).ravel()
    rows, columns = np.kron(np.eye(m), np.ones(m)), np.kron(np.ones(m), np.eye(m))
    equal = {"A_eq": np.vstack([rows, columns]), "b_eq": np.concatenate([first, second])}
    best = linprog(cost, **equal).fun
    cross = (1 - np.eye(m)).ravel()
    limit = {"A_ub": cost[None], "b_ub": [best + 1e-7 * cost.max()]}
    fewest = linprog(cross, **equal, **limit).fun
    most = -linprog(-cross, **equal, **limit).fun
    return round(fewest), round(most)


@pytest.mark.parametrize(
    ("name", "centres", "always"),
    [
        ("two", TRIANGLE[:2], True),
        ("equilateral triangle", TRIANGLE, True),
        ("three in a row", ROW, False),
        ("square", SQUARE, False),
    ],
)
def test_the_lemma_holds_where_its_condition_does_and_fails_on_the_counter_examples(
    name, centres, always
):
    x, labels = balls(centres, radius=1e-3)
    matches = cross_matches(x, labels, 32, 1500)
    lemma = lemma_count(matches.first, matches.second)
    fewest, most = transport_count(matches.first, matches.second, centres)
    held = (matches.cross == lemma).mean()
    assert lemma_condition(centres, 1e-3) == always
    assert (held == 1) if always else (0.3 < held < 0.55)
    assert (fewest <= matches.cross).all()
    assert (matches.cross <= most).all()
    assert (lemma <= matches.cross).all()


def test_random_clusters_agree_with_the_lemma_under_its_condition_and_with_transport_always():
    rng = np.random.default_rng(1)
    batches = acute = lemma_right = unique = 0
    for trial in range(80):
        m, d = int(rng.integers(2, 7)), int(rng.integers(1, 9))
        centres, radius = rng.normal(size=(m, d)), 1e-6
        x, labels = balls(centres, radius, per_cluster=20, seed=trial)
        matches = cross_matches(x, labels, int(rng.integers(2, 17)), 50)
        lemma = lemma_count(matches.first, matches.second)
        fewest, most = transport_count(matches.first, matches.second, centres)
        assert (fewest <= matches.cross).all()
        assert (matches.cross <= most).all()
        unique += (fewest == most).sum()
        batches += 50
        if lemma_condition(centres, radius):
            acute += 50
            assert (matches.cross == lemma).all()
        else:
            lemma_right += (matches.cross == lemma).sum()
    assert batches == unique
    assert 500 < acute < batches - 500
    assert lemma_right < 0.8 * (batches - acute)  # the lemma alone would not pass


def test_the_lemma_holds_right_up_to_the_radius_that_its_condition_allows():
    rng = np.random.default_rng(5)
    for trial in range(40):
        sides = TRIANGLE + 0.08 * rng.normal(size=(3, 2))
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if lemma_condition(sides, middle) else (low, middle)
        x, labels = balls(sides, low, per_cluster=40, seed=trial)
        matches = cross_matches(x, labels, 16, 100)
        assert low > 0
        assert (matches.cross == lemma_count(matches.first, matches.second)).all()
    x, labels = balls(TRIANGLE, 0.6, per_cluster=40)
    matches = cross_matches(x, labels, 16, 200)
    wrong = (matches.cross != lemma_count(matches.first, matches.second)).mean()
    assert wrong > 0.5


def test_two_clusters_need_only_the_gap_of_the_lemma():
    x, labels = balls(np.array([[0.0, 0.0], [4.0, 0.0]]), 1.0, per_cluster=200)
    matches = cross_matches(x, labels, 32, 1000)
    assert (matches.cross == lemma_count(matches.first, matches.second)).all()


@given(st.integers(2, 5), st.integers(1, 3), st.integers(1, 12), st.integers(0, 10**6))
def test_transport_is_that_of_linear_programming(m, d, k, seed):
    rng = np.random.default_rng(seed)
    centres = rng.integers(-2, 3, size=(m, d)).astype(float)  # a grid: ties are common
    if len(np.unique(centres, axis=0)) < m:
        return
    first, second = draw_counts(
        np.full(m, 1 / m), k, 3, generator=torch.Generator().manual_seed(seed)
    )
    fewest, most = transport_count(first, second, centres)
    for row in range(3):
        assert (fewest[row], most[row]) == transported(first[row], second[row], centres)


@given(st.integers(2, 6), st.integers(1, 3), st.integers(0, 10**6))
def test_the_condition_is_the_strict_triangle_inequality_of_squared_distances(m, d, seed):
    centres = np.random.default_rng(seed).normal(size=(m, d))
    square = np.square(centres[:, None] - centres[None]).sum(2)
    triples = [
        (a, b, c) for a in range(m) for b in range(m) for c in range(m) if len({a, b, c}) > 2
    ]
    strict = all(square[a, c] < square[a, b] + square[b, c] for a, b, c in triples)
    assert lemma_condition(centres) == strict
    chain = longest_chain(centres)
    assert (chain == 1) == strict
    assert 1 <= chain <= m - 1


def test_chains_of_known_clusters():
    assert longest_chain(ROW) == 2
    assert longest_chain(SQUARE) == 2
    assert longest_chain(TRIANGLE) == longest_chain(TRIANGLE[:2]) == 1
    assert longest_chain(TRIANGLE, radius=0.2) == 2  # too wide to be sure
    assert longest_chain(TRIANGLE[:1]) == 0


def test_a_right_angle_does_not_hold_whatever_its_rounding():
    turn = 0.3
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    assert not lemma_condition(SQUARE @ rotation)


def test_counts_of_a_batch_and_their_means():
    x, labels = balls(ROW, 0.1, per_cluster=10)
    matches = cross_matches(x, np.array(["a", "b", "c"])[labels], 5, 200)
    assert (matches.first.sum(1) == 5).all()
    assert matches.fraction.value == pytest.approx(matches.cross.mean() / 5)
    assert matches.fraction.error == pytest.approx(matches.cross.std(ddof=1) / 5 / 200**0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cross_matches(ROW, [0, 1], 1), "X and labels must have the same length"),
        (lambda: lemma_count([1, 2], [1, 1]), "same shape and total"),
        (lambda: transport_count([[1, 1]], [[0, 2]], ROW), "one for each of the 2 clusters, got 3"),
        (lambda: lemma_condition([1.0, 2.0]), "centres must have the shape"),
    ],
)
def test_impossible_counts_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
