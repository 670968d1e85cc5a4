"""Analyses that only the documentation shows, against loops in plain Python and simulations."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from report_rows import results_of, sweep, table

from kmixup.lab.paper.tables import ErrorColumn
from kmixup.lab.report.appendix import agreement, recipes

ALPHAS = (0.1, 0.5, 1.0, 4.0)
PAPER = {16: (3.0, 4.0, 4.5, 6.0), 4: (3.5, 4.2, 5.5, 7.0), 1: (6.0, 7.0, 8.0, 9.0)}
WIDE = table(
    ks=(1, 4, 16), columns=tuple(map(ErrorColumn, ALPHAS)), errors=(PAPER[1], PAPER[4], PAPER[16])
)


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
    simple, steps = recipes(outcome.grids[0])
    expected = [[], []]
    even, odd = slice(0, None, 2), slice(1, None, 2)
    for half, rest in ((even, odd), (odd, even)):
        mixup = min((0.1, 1.0), key=lambda alpha: errors[1, alpha][half].mean())
        for of, alpha in enumerate((1.0, mixup)):
            k = min((4, 16), key=lambda k: errors[k, alpha][half].mean())
            expected[of] += list(errors[k, alpha][rest] - errors[1, mixup][rest])
    means = [simple.difference.mean, steps.difference.mean]
    assert means == pytest.approx(np.mean(expected, 1).tolist())
    assert (simple.paper, steps.paper) == pytest.approx((4.0 - 6.0, 3.0 - 6.0))


@cache
def blank(trials):
    """A sweep without errors, since rows take longer to make than to fill."""
    return sweep(lambda *_: 0.0, of=WIDE, trials=trials)


def fitted(errors, trials=6, confidence=0.3, **how):
    rows = []
    for done in blank(trials):
        of, seed = done.trial.method, done.trial.seed
        printed = PAPER[of.k][ALPHAS.index(of.alpha)] if of.name != "erm" else 5.0
        error = printed + errors(of.k, of.alpha, of.alpha_rule, seed)
        rows.append(replace(done, scores=replace(done.scores, error=error / 100)))
    (outcome,) = results_of(rows, [replace(WIDE, confidence=confidence)])
    return agreement(outcome, **how)


def noisy(seed, shift):
    """Noise of 1 in each trial, and `shift` under the rule xi."""
    draw = np.random.default_rng(seed)
    return lambda k, alpha, rule, _: (shift if rule == "xi" else 0.0) + draw.normal()


def test_the_distance_is_over_the_cells_with_k_above_1():
    found = fitted(lambda k, alpha, rule, seed: k * alpha / 10 if rule == "xi" else 0.5 + seed % 2)
    shifts = [k * alpha / 10 for k in (4, 16) for alpha in ALPHAS]
    assert found.distances == pytest.approx(
        {"same": 1.0, "xi": np.sqrt(np.mean(np.square(shifts)))}
    )


def test_a_row_that_is_shifted_keeps_its_shape():
    def errors(k, alpha, rule, seed):
        return (k if rule == "same" else alpha) + seed % 2

    found = fitted(errors, shape=True)
    slope = np.array(ALPHAS) - np.mean(ALPHAS)
    assert found.distances == pytest.approx(
        {"same": 0.0, "xi": np.sqrt(np.mean(slope**2))}, abs=1e-9
    )
    assert fitted(errors).distances["xi"] < fitted(errors).distances["same"]


def test_a_clear_difference_is_significant_and_rules_that_are_alike_seldom_differ():
    assert fitted(noisy(0, 3.0), trials=10).nearer == "same"
    significant = sum(fitted(noisy(seed, 0.0), trials=8).nearer is not None for seed in range(40))
    # 5 % of 40 are 2, with a standard deviation of 1.4
    assert significant <= 7


def test_the_noise_of_the_paper_counts_and_the_jackknife_agrees_with_repeated_sweeps():
    gaps = [abs(fitted(noisy(0, 1.0), confidence=c).gap) for c in (0.0, 0.3, 3.0)]
    assert gaps == sorted(gaps, reverse=True)
    assert (
        gaps[-1] < abs(fitted(noisy(0, 1.0), confidence=None).gap) < gaps[0]
    )  # by default as large as ours
    # in units of its own standard deviation, which over sweeps is 1; 40 draws are good to 11 %
    repeated = [fitted(noisy(seed, 1.5), trials=12).gap for seed in range(40)]
    assert 0.6 < np.std(repeated) < 1.25
