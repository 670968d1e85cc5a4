"""Comparisons of cells against loops in plain Python, scipy, and simulations."""

from dataclasses import replace

import numpy as np
import pytest
from report_rows import BASE, failed, method, results_of, row, sweep, table
from scipy import stats
from sweeping import done_row

from kmixup.lab.paper.tables import Claim, ErrorColumn
from kmixup.lab.report.comparisons import best_of, claimed, column_tests, compare, comparisons
from kmixup.lab.report.frame import Cell
from kmixup.lab.results import frame_of, lines_of
from kmixup.lab.trial import Method


def cell(errors, *, k=16, alpha=1.0, paper=None, broken=(), tested=50):
    """A cell with the errors of seeds 0, 1, …"""
    rows = [done_row(replace(BASE, seed=s), e / 100) for s, e in enumerate(errors)]
    rows = [replace(made, data=replace(made.data, test=tested)) for made in rows]
    rows += [failed(Method("erm"), seed) for seed in broken]
    return Cell(
        method="kmixup",
        k=k,
        alpha=alpha,
        rule="same",
        eps=None,
        expected=len(errors),
        paper=paper,
        confidence=None,
        trials=lines_of(frame_of(rows)).sort_values("seed"),
    )


def test_the_noise_of_the_paper_is_that_of_both_figures():
    new, old = cell([1.0, 2.0, 3.0], paper=3.0), cell([4.0, 4.5, 5.0], k=1, paper=4.0)
    noise = compare([new], [old], new="new", old="old").noise
    assert noise == pytest.approx(np.hypot(stats.sem([1, 2, 3]), stats.sem([4, 4.5, 5])))


def test_of_cells_with_as_many_wrong_answers_the_first_is_best():
    answers = 150  # that a network is tested on
    for a, b, c in np.ndindex(6, 6, 6):
        if (d := a + b - c) >= 0:
            tied = [
                cell([100 * (wrong / answers) for wrong in pair], tested=answers)
                for pair in ((a, b), (c, d))
            ]
            assert best_of(tied) is tied[0]
            assert best_of(tied, [1, 0]) is tied[0]
    assert best_of([cell([2.0, 4.0]), better := cell([2.0, 2.0])]) is better


def test_a_real_difference_is_reproduced_and_its_opposite_is_not():
    def errors(k, alpha, rule, seed):
        gain = {"same": -2.0, "xi": 2.0}[rule] if k > 1 else 0.0
        return 6.0 + gain + 0.1 * ((7 * seed + 3 * k) % 5) + 0.01 * alpha

    (outcome,) = results_of(sweep(errors), [table()])
    by_pair = {(c.new, c.old, c.rule): c for c in comparisons(outcome) if c.k is None}
    better, worse = by_pair["k-mixup", "mixup", "same"], by_pair["k-mixup", "mixup", "xi"]
    assert better.outcome == "reproduced"
    assert worse.outcome == "not reproduced"
    assert better.paper == pytest.approx(-3.0)
    assert by_pair["mixup", "ERM", None].paper == pytest.approx(1.0)
    assert [c.rule for c in comparisons(outcome) if c.k == 16] == ["same", "xi"]
    assert by_pair["k-mixup", "ERM", "same"].outcome == "reproduced"


def test_three_trials_are_too_few_for_a_split_choice_and_two_for_a_pair():
    rows = [
        row(method(16, 1.0), 1.0, 0),
        row(Method("mixup", alpha=1.0), 2.0, 0),
        failed(method(16, 0.1)),
    ]
    (outcome,) = results_of(rows, [table()])
    assert column_tests(outcome.grids[0]) == {}
    comparison = compare([cell([1.0] * 3)], [cell([2.0] * 3, k=1)], new="new", old="old")
    assert comparison.on_test == pytest.approx(-1.0)
    assert comparison.difference is None
    assert comparison.outcome == "too few trials"


def test_a_cell_with_a_failed_trial_cannot_be_chosen():
    lucky, sound = cell([0.0] * 5, broken=[5]), cell([2.0] * 6, alpha=4.0)
    comparison = compare([lucky, sound], [cell([3.0] * 6, k=1)], new="new", old="old")
    assert comparison.chosen[0] is sound
    assert comparison.difference.mean == pytest.approx(-1.0)
    none = compare([lucky], [cell([3.0] * 6, k=1)], new="new", old="old")
    assert (none.chosen, none.on_test) == (None, None)
    several = [cell([1.0] * 9), cell([3.0] * 5)]
    shared = compare(several, [cell([2.0] * 7, k=1)], new="new", old="old")
    assert shared.difference.trials == 5  # that all cells have


def test_the_papers_way_takes_the_best_cells_over_all_trials():
    errors = {(1, 0.1): 5.0, (1, 1.0): 6.0, (16, 0.1): 4.5, (16, 1.0): 4.0, (0, 0.0): 9.0}
    rows = sweep(lambda k, alpha, rule, seed: errors[k, alpha], rules=("same",))
    (outcome,) = results_of(rows, [table()])
    first = comparisons(outcome)[0]
    assert [(c.k, c.alpha) for c in first.chosen] == [(16, 1.0), (1, 0.1)]
    assert first.on_test == pytest.approx(-1.0)


def test_levels_of_noise_are_compared_each_by_itself():
    columns = (ErrorColumn(1.0, eps=4), ErrorColumn(1.0, eps=8))
    rows = [
        row(mixing, 1.0, seed, noise={4: shift + seed, 8: 2 * shift + seed})
        for seed in range(5)
        for mixing, shift in ((method(16, 1.0), 10.0), (Method("mixup", alpha=1.0), 20.0))
    ]
    (outcome,) = results_of(rows, [table(columns=columns, measure="noise", erm=None)])
    compared = [c for c in comparisons(outcome) if (c.new, c.old) == ("k-mixup", "mixup")]
    assert {c.eps: c.on_test for c in compared} == pytest.approx({4: -10.0, 8: -20.0})


def test_a_claim_is_of_the_table_or_of_every_column_and_of_all_k_or_one():
    errors = {1: 5.0, 4: 3.0, 16: 6.0}
    of = table(ks=(1, 4, 16), errors=((6.0, 7.0), (4.0, 4.0), (3.0, 8.0)))
    rows = sweep(lambda k, alpha, rule, seed: errors.get(k, 9.0) + alpha, of=of, rules=("same",))
    (outcome,) = results_of(rows, [of])
    by_claim = {
        claim: [entry.difference.mean for entry in claimed(outcome, outcome.grids[0], claim)]
        for claim in (Claim(), Claim(k=16), Claim(each="column"), Claim(k=16, each="column"))
    }
    expected = [[-2.0], [1.0], [-2.0, -2.0], [1.0, 1.0]]
    assert list(by_claim.values()) == list(map(pytest.approx, expected))
    sixteen = claimed(outcome, outcome.grids[0], Claim(k=16, each="column"))
    assert [entry.outcome for entry in sixteen] == ["not reproduced", "reproduced"]


def test_columns_are_compared_in_pairs_over_all_trials():
    draw = np.random.default_rng(1)
    drawn = {}

    def errors(*key):
        return drawn.setdefault(key, 5 + draw.normal())

    (outcome,) = results_of(sweep(errors, rules=("same",)), [table()])
    (grid,) = outcome.grids
    tests = column_tests(grid)
    assert list(tests) == [(16, 0.1, None), (16, 1.0, None)]
    cells = {(cell.k, cell.alpha): list(cell.errors.values()) for cell in grid}
    expected = [stats.ttest_rel(cells[16, alpha], cells[1, alpha]).pvalue for alpha in (0.1, 1.0)]
    assert [test.difference.p for test in tests.values()] == pytest.approx(expected)
    assert all(test.p >= test.difference.p for test in tests.values())
