"""Comparisons of cells against loops in plain Python, scipy, and simulations."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from report_rows import BASE, failed, method, row, sweep, table
from scipy import stats
from sweeping import done_row

from kmixup.lab.paper.tables import Claim, PaperColumn
from kmixup.lab.report.comparisons import (
    agreement,
    by_column,
    claimed,
    column_tests,
    compare,
    comparisons,
    recipes,
)
from kmixup.lab.report.frame import Cell, results_of
from kmixup.lab.train.config import Method


def cell(errors, *, k=16, alpha=1.0, paper=None, broken=()):
    """A cell with the errors of seeds 0, 1, …"""
    return Cell(
        k=k,
        alpha=alpha,
        eps=None,
        measure="error",
        expected=len(errors),
        paper=paper,
        confidence=None,
        trials=pd.DataFrame(
            {
                "row": [done_row(replace(BASE, seed=s), e / 100) for s, e in enumerate(errors)]
                + [failed(Method("erm"), seed) for seed in broken],
                "seed": [*range(len(errors)), *broken],
                "error": [*errors, *(np.nan for _ in broken)],
                "done": [*(True for _ in errors), *(False for _ in broken)],
            }
        ),
    )


def test_the_noise_of_the_paper_is_that_of_both_figures():
    new, old = cell([1.0, 2.0, 3.0], paper=3.0), cell([4.0, 4.5, 5.0], k=1, paper=4.0)
    noise = compare("new", [new], "old", [old]).noise
    assert noise == pytest.approx(np.hypot(stats.sem([1, 2, 3]), stats.sem([4, 4.5, 5])))


def test_a_real_difference_is_reproduced_and_its_opposite_is_not():
    def errors(k, alpha, rule, seed):
        gain = {"same": -2.0, "xi": 2.0}[rule] if k > 1 else 0.0
        return 6.0 + gain + 0.1 * ((7 * seed + 3 * k) % 5) + 0.01 * alpha

    (outcome,) = results_of(sweep(errors), [table()])
    by_pair = {(c.new, c.old, c.rule): c for c in comparisons(outcome) if c.k is None}
    better, worse = by_pair["k-mixup", "mixup", "same"], by_pair["k-mixup", "mixup", "xi"]
    assert better.verdict.outcome == "reproduced"
    assert worse.verdict.outcome == "not reproduced"
    assert better.paper == pytest.approx(-3.0)
    assert by_pair["mixup", "ERM", None].paper == pytest.approx(1.0)
    assert [c.rule for c in comparisons(outcome) if c.k == 16] == ["same", "xi"]
    assert by_pair["k-mixup", "ERM", "same"].verdict.outcome == "reproduced"


def test_no_difference_at_all_is_undecided():
    comparison = compare("new", [cell([0.0] * 5)], "old", [cell([0.0] * 5, k=1)])
    assert comparison.held_out.low < 0 < comparison.held_out.high
    assert comparison.verdict.outcome == "no significant difference"


def test_three_trials_are_too_few_for_a_split_choice():
    comparison = compare("new", [cell([1.0] * 3)], "old", [cell([2.0] * 3, k=1)])
    assert comparison.on_test == pytest.approx(-1.0)
    assert comparison.held_out is None
    assert comparison.verdict.outcome == "no verdict"


def test_only_trials_that_all_cells_have_are_compared():
    comparison = compare("new", [cell([1.0] * 9), cell([3.0] * 5)], "old", [cell([2.0] * 7, k=1)])
    assert comparison.held_out.trials == 5


def test_a_cell_with_a_failed_trial_cannot_be_chosen():
    lucky, sound = cell([0.0] * 5, broken=[5]), cell([2.0] * 6, alpha=4.0)
    comparison = compare("new", [lucky, sound], "old", [cell([3.0] * 6, k=1)])
    assert comparison.chosen[0] is sound
    assert comparison.held_out.mean == pytest.approx(-1.0)
    none = compare("new", [lucky], "old", [cell([3.0] * 6, k=1)])
    assert none.chosen is None
    assert none.on_test is None
    assert none.why == "every setting of new has failed trials"


def test_the_papers_way_takes_the_best_cells_over_all_trials():
    errors = {(1, 0.1): 5.0, (1, 1.0): 6.0, (16, 0.1): 4.5, (16, 1.0): 4.0, (0, 0.0): 9.0}
    rows = sweep(lambda k, alpha, rule, seed: errors[k, alpha], rules=("same",))
    (outcome,) = results_of(rows, [table()])
    first = comparisons(outcome)[0]
    assert [(c.k, c.alpha) for c in first.chosen] == [(16, 1.0), (1, 0.1)]
    assert first.on_test == pytest.approx(-1.0)


def test_levels_of_noise_are_compared_each_by_itself():
    of = table(
        columns=(PaperColumn(1.0, eps=4), PaperColumn(1.0, eps=8)), measure="noise", erm=None
    )
    rows = [
        row(mixing, 1.0, seed, noise={4: shift + seed, 8: 2 * shift + seed})
        for seed in range(5)
        for mixing, shift in ((method(16, 1.0), 10.0), (Method("mixup"), 20.0))
    ]
    (outcome,) = results_of(rows, [of])
    by_eps = {c.eps: c for c in comparisons(outcome) if (c.new, c.old) == ("k-mixup", "mixup")}
    assert by_eps[4].on_test == pytest.approx(-10.0)
    assert by_eps[8].on_test == pytest.approx(-20.0)


def test_a_claim_is_of_the_table_or_of_every_column_and_of_all_k_or_one():
    errors = {1: 5.0, 4: 3.0, 16: 6.0}
    of = table(ks=(1, 4, 16), errors=((6.0, 7.0), (4.0, 4.0), (3.0, 8.0)))
    rows = sweep(lambda k, alpha, rule, seed: errors.get(k, 9.0) + alpha, of=of, rules=("same",))
    (outcome,) = results_of(rows, [of])
    by_claim = {
        claim: [entry.held_out.mean for entry in claimed(outcome, outcome.grids[0], claim)]
        for claim in (Claim(), Claim(k=16), Claim(each="column"), Claim(k=16, each="column"))
    }
    assert [pytest.approx(entry) for entry in by_claim.values()] == [
        [-2.0],
        [1.0],
        [-2.0] * 2,
        [1.0] * 2,
    ]
    sixteen = claimed(outcome, outcome.grids[0], Claim(k=16, each="column"))
    assert [entry.verdict.outcome for entry in sixteen] == ["not reproduced", "reproduced"]


def test_columns_are_compared_in_pairs_over_all_trials():
    draw = np.random.default_rng(1)
    drawn = {}

    def errors(*key):
        return drawn.setdefault(key, 5 + draw.normal())

    (outcome,) = results_of(sweep(errors, rules=("same",)), [table()])
    for new, old, difference in by_column(outcome.grids[0], k=16):
        assert (new.k, old.k) == (16, 1)
        assert new.alpha == old.alpha
        pair = [list(entry.errors.values()) for entry in (new, old)]
        expected = stats.ttest_rel(*pair).confidence_interval(0.95)
        assert (difference.low, difference.high) == pytest.approx((expected.low, expected.high))


def test_a_column_with_fewer_than_two_common_trials_has_no_estimate():
    rows = [row(method(16, 1.0), 1.0, 0), row(Method("mixup"), 2.0, 0), failed(method(16, 0.1))]
    (outcome,) = results_of(rows, [table()])
    assert [estimate for *_, estimate in by_column(outcome.grids[0], k=16)] == [None, None]


def drawn(gap, trials=10):
    """k = 16 differs from k = 1 by `gap[alpha]`, with a little noise."""
    draw = np.random.default_rng(0)
    return sweep(
        lambda k, alpha, rule, seed: 10 + (gap[alpha] if k > 1 else 0) + draw.normal() / 10,
        trials=trials,
        rules=("same",),
    )


def test_a_family_has_the_tests_of_all_tables():
    tables = [table(), table(name="again", title="Iris again")]
    tests = column_tests(results_of(drawn({0.1: 0.0, 1.0: -3.0}), tables), 16, "same")
    assert [test.where for test in tests] == [
        f"{title}, α = {alpha:g}" for title in ("Iris", "Iris again") for alpha in (0.1, 1.0)
    ]
    assert [test.side for test in tests] == [0, -1, 0, -1]
    assert all(test.p >= test.difference.p for test in tests)


def test_recipes_choose_on_one_half_and_compare_on_the_other():
    draw = np.random.default_rng(3)
    errors = {(k, alpha): draw.normal(10, 1, 8) for k in (1, 4, 16) for alpha in (0.1, 1.0)}
    three = table(ks=(1, 4, 16), errors=((6.0, 7.0), (3.0, 4.0), (5.0, 6.0)))
    rows = sweep(
        lambda k, alpha, rule, seed: errors[k, alpha][seed] if k else 9.0,
        of=three,
        trials=8,
        rules=("same",),
    )
    (outcome,) = results_of(rows, [three])
    simple, steps = recipes(outcome, outcome.grids[0])
    expected = [[], []]
    even, odd = slice(0, None, 2), slice(1, None, 2)
    for half, rest in ((even, odd), (odd, even)):
        mixup = min((0.1, 1.0), key=lambda alpha: errors[1, alpha][half].mean())
        for of, alpha in enumerate((1.0, mixup)):
            k = min((4, 16), key=lambda k: errors[k, alpha][half].mean())
            expected[of] += list(errors[k, alpha][rest] - errors[1, mixup][rest])
    assert [simple.held_out.mean, steps.held_out.mean] == pytest.approx(
        np.mean(expected, 1).tolist()
    )
    assert (simple.paper, steps.paper) == pytest.approx((4.0 - 6.0, 3.0 - 6.0))


# Agreement with the paper

ALPHAS = (0.1, 0.5, 1.0, 4.0)
PAPER = {16: (3.0, 4.0, 4.5, 6.0), 4: (3.5, 4.2, 5.5, 7.0), 1: (6.0, 7.0, 8.0, 9.0)}
WIDE = table(
    ks=(1, 4, 16),
    columns=tuple(map(PaperColumn, ALPHAS)),
    errors=(PAPER[1], PAPER[4], PAPER[16]),
)


@cache
def blank(trials, rules):
    """A sweep without errors, since rows take longer to make than to fill."""
    return sweep(lambda *_: 0.0, of=WIDE, trials=trials, rules=rules)


def filled(errors, trials=6, rules=("same", "xi")):
    rows = []
    for done in blank(trials, rules):
        of, seed = done.trial.method, done.trial.seed
        k = 0 if of.name == "erm" else of.k
        error = errors(k, of.alpha, of.alpha_rule, seed)
        rows.append(replace(done, scores=replace(done.scores, error=error / 100)))
    return rows


def fitted(errors, **how):
    (outcome,) = results_of(filled(errors, **how), [WIDE])
    return agreement(outcome)


def printed(k, alpha):
    return PAPER[k][ALPHAS.index(alpha)] if k else 5.0


def noisy(seed, shift):
    """The paper's figures with noise of 1 in each trial, and `shift` under the rule xi."""
    draw = np.random.default_rng(seed)
    return lambda k, alpha, rule, _: (
        printed(k, alpha) + (shift if rule == "xi" else 0.0) + draw.normal()
    )


def test_distance_and_rank_are_over_the_cells_with_k_above_1():
    def errors(k, alpha, rule, seed):
        return printed(k, alpha) + (k * alpha / 10 if rule == "xi" else 0.5)

    agreement = fitted(errors)
    assert agreement.cells == 8
    same, xi = agreement.fits
    assert same.distance == pytest.approx(0.5)
    assert same.rank == pytest.approx(1.0)
    shifts = [k * alpha / 10 for k in (4, 16) for alpha in ALPHAS]
    ours = [p + s for p, s in zip(PAPER[4] + PAPER[16], shifts, strict=True)]
    assert xi.distance == pytest.approx(np.sqrt(np.mean(np.square(shifts))))
    assert xi.rank == pytest.approx(stats.spearmanr(ours, PAPER[4] + PAPER[16]).statistic)
    assert agreement.nearer.rule == "same"


def test_a_row_that_is_shifted_keeps_its_shape():
    agreement = fitted(
        lambda k, alpha, rule, seed: printed(k, alpha) + (k if rule == "same" else alpha) + seed % 2
    )
    same, xi = agreement.fits
    assert same.shape == pytest.approx(0.0, abs=1e-9)
    slope = np.array(ALPHAS) - np.mean(ALPHAS)
    assert xi.shape == pytest.approx(np.sqrt(np.mean(slope**2)))
    assert (agreement.nearer.rule, agreement.nearer_shape.rule) == ("xi", "same")


def test_a_clear_difference_is_decided_and_said():
    agreement = fitted(noisy(0, 3.0), trials=10)
    assert agreement.decided
    assert agreement.gap < 0
    assert agreement.nearer.rule == "same"


def test_rules_that_are_alike_are_seldom_told_apart():
    decided = sum(fitted(noisy(seed, 0.0), trials=8).decided for seed in range(40))
    # 5 % of 40 are 2, with a standard deviation of 1.4
    assert decided <= 7


def test_the_papers_own_noise_widens_the_doubt():
    rows = filled(noisy(0, 1.0), trials=10)
    gaps = []
    for confidence in (None, 0.3, 3.0):
        (outcome,) = results_of(rows, [table(**{**vars(WIDE), "confidence": confidence})])
        gaps.append(abs(agreement(outcome).gap))
    assert gaps == sorted(gaps, reverse=True)


def test_the_jackknife_agrees_with_repeating_the_sweep():
    """The gap is in units of its own standard deviation, so over sweeps it has that of 1."""
    gaps = [fitted(noisy(seed, 1.5), trials=12).gap for seed in range(40)]
    # the paper's noise of 0.3 is counted but not drawn, and 40 draws are good to 11 %
    assert 0.6 < np.std(gaps) < 1.25


def test_one_rule_is_compared_with_nothing():
    agreement = fitted(lambda k, alpha, rule, seed: printed(k, alpha) + 1, rules=("same",))
    assert agreement.gap is None
    assert agreement.cells == 8


def test_one_trial_decides_nothing():
    agreement = fitted(noisy(0, 3.0), trials=1)
    assert agreement.gap is None
    assert not agreement.decided


def test_without_figures_of_the_paper_there_is_nothing_to_agree_with():
    (outcome,) = results_of(sweep(lambda *_: 1.0), [table(errors=None, erm=None, confidence=None)])
    assert agreement(outcome) is None


def test_equal_cells_have_no_order():
    assert [fit.rank for fit in fitted(lambda *_: 1.0).fits] == [None, None]
