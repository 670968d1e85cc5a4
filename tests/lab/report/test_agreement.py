"""Which alpha rule the paper's figures agree with, where that is known."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from report_rows import sweep, table
from scipy import stats

from kmixup.lab.paper.tables import PaperColumn
from kmixup.lab.report.agreement import agreement
from kmixup.lab.report.outcomes import outcomes
from kmixup.lab.report.wording import reading

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
    for row in blank(trials, rules):
        of, seed = row.trial.method, row.trial.seed
        k = 0 if of.name == "erm" else of.k
        error = errors(k, of.alpha, of.alpha_rule, seed)
        rows.append(replace(row, scores=replace(row.scores, error=error / 100)))
    return rows


def of(errors, **how):
    (outcome,) = outcomes(filled(errors, **how), [WIDE])
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

    agreement = of(errors)
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
    agreement = of(
        lambda k, alpha, rule, seed: printed(k, alpha) + (k if rule == "same" else alpha) + seed % 2
    )
    same, xi = agreement.fits
    assert same.shape == pytest.approx(0.0, abs=1e-9)
    slope = np.array(ALPHAS) - np.mean(ALPHAS)
    assert xi.shape == pytest.approx(np.sqrt(np.mean(slope**2)))
    assert (agreement.nearer.rule, agreement.nearer_shape.rule) == ("xi", "same")
    assert "By shape, each row less its mean, the same alpha at every k is nearer" in reading(
        agreement
    )


def test_a_clear_difference_is_decided_and_said():
    agreement = of(noisy(0, 3.0), trials=10)
    assert agreement.decided
    assert agreement.gap < 0
    assert reading(agreement).startswith("the same alpha at every k, which differs by 0.")


def test_rules_that_are_alike_are_seldom_told_apart():
    decided = sum(of(noisy(seed, 0.0), trials=8).decided for seed in range(60))
    # 5 % of 60 are 3, with a standard deviation of 1.7
    assert decided <= 8
    assert reading(of(noisy(1, 0.0), trials=8)).startswith("undecided, these trials cannot tell")


def test_the_papers_own_noise_widens_the_doubt():
    rows = filled(noisy(0, 1.0), trials=10)
    gaps = []
    for confidence in (None, 0.3, 3.0):
        (outcome,) = outcomes(rows, [table(**{**vars(WIDE), "confidence": confidence})])
        gaps.append(abs(agreement(outcome).gap))
    assert gaps == sorted(gaps, reverse=True)


def test_the_jackknife_agrees_with_repeating_the_sweep():
    """The gap is in units of its own standard deviation, so over sweeps it has that of 1."""
    gaps = [of(noisy(seed, 1.5), trials=12).gap for seed in range(80)]
    # the paper's noise of 0.3 is counted but not drawn, and 80 draws are good to 8 %
    assert 0.6 < np.std(gaps) < 1.25


def test_one_rule_is_compared_with_nothing():
    agreement = of(lambda k, alpha, rule, seed: printed(k, alpha) + 1, rules=("same",))
    assert agreement.gap is None
    assert reading(agreement).endswith("over 8 cells with k > 1; no other rule was run.")


def test_one_trial_decides_nothing():
    agreement = of(noisy(0, 3.0), trials=1)
    assert agreement.gap is None
    assert not agreement.decided


def test_without_figures_of_the_paper_there_is_nothing_to_agree_with():
    (outcome,) = outcomes(sweep(lambda *_: 1.0), [table(errors=None, erm=None, confidence=None)])
    assert agreement(outcome) is None


def test_equal_cells_have_no_order():
    assert [fit.rank for fit in of(lambda *_: 1.0).fits] == [None, None]


def test_the_order_of_cells_is_mentioned_where_it_speaks_for_the_other_rule():
    def errors(k, alpha, rule, seed):
        if rule == "xi":
            return printed(k, alpha) + 5 + 0.01 * seed
        return 5.0 - 0.1 * printed(k, alpha) + 0.01 * seed

    assert "is nearer to the latter's." in reading(of(errors))
