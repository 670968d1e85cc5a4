"""Verdicts against loops in plain Python, against scipy, and where the truth is known."""

import random
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_rows import failed, method, row, sweep, table
from scipy import stats

from kmixup.lab.paper.tables import Claim, PaperColumn
from kmixup.lab.report.comparing import (
    BETWEEN_TURNS,
    CellComparison,
    by_column,
    claimed,
    compare,
    comparisons,
)
from kmixup.lab.report.grids import Cell
from kmixup.lab.report.outcomes import outcomes
from kmixup.lab.report.verdict import (
    Mood,
    PairedDifference,
    Partition,
    Verdict,
    interval,
    judge,
    mood_of,
)
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
        done=tuple(
            SimpleNamespace(trial=SimpleNamespace(seed=seed), error=error / 100)
            for seed, error in enumerate(errors)
        ),
        failed=tuple(SimpleNamespace(trial=SimpleNamespace(seed=seed)) for seed in broken),
    )


def words(paired, paper, challenger):
    """The verdict on a paired difference beside that of the paper."""
    return CellComparison(challenger, "mixup", None, None, None, paper, None, paired).text


def by_hand(new, old):
    """Differences of the two turns, in loops; `new` and `old` are lists of lists of errors."""
    seeds = range(len(new[0]))
    turns = []
    for chooses, compares in ((0, 1), (1, 0)):
        best = []
        for family in (new, old):
            sums = []
            for errors in family:
                total = 0.0
                for seed in seeds:
                    if seed % 2 == chooses:
                        total += errors[seed]
                sums.append(total)
            best.append(family[sums.index(min(sums))])
        for seed in seeds:
            if seed % 2 == compares:
                turns.append(best[0][seed] - best[1][seed])
    return turns


@given(
    st.integers(4, 11).flatmap(
        lambda n: st.tuples(
            *[
                st.lists(
                    st.lists(st.integers(0, 50), min_size=n, max_size=n), min_size=1, max_size=5
                )
            ]
            * 2
        )
    )
)
def test_the_honest_difference_is_that_of_plain_loops(families):
    new, old = families
    difference = compare("new", [cell(e) for e in new], "old", [cell(e, k=1) for e in old]).honest
    assert difference.mean == pytest.approx(np.mean(by_hand(new, old)), abs=1e-9)
    assert difference.trials == len(new[0])


@given(st.lists(st.tuples(st.integers(0, 999), st.integers(0, 999)), min_size=2, max_size=30))
def test_intervals_are_those_of_the_paired_t_test(pairs):
    new, old = np.array(pairs, dtype=float).T
    if np.ptp(new - old) == 0:
        return  # scipy divides by 0
    expected = stats.ttest_rel(new, old).confidence_interval(0.95)
    difference = interval(list(new - old))
    assert (difference.low, difference.high) == pytest.approx((expected.low, expected.high))


def test_the_interval_for_new_data_adds_the_share_of_the_test_part():
    differences = [1.0, 2.0, 4.0, 3.5, 0.5]
    difference = interval(differences, partition=Partition(ratio=0.5))
    spread = np.std(differences, ddof=1)
    half = stats.t.ppf(0.975, 4) * spread * np.sqrt(1 / 5 + 0.5)
    assert difference.new_data == pytest.approx((difference.mean - half, difference.mean + half))
    assert interval(differences).new_data is None


def test_p_is_that_of_the_paired_t_test():
    differences = [1.0, 2.0, 4.0, 3.5, -0.5]
    assert interval(differences).p == pytest.approx(stats.ttest_1samp(differences, 0).pvalue)
    assert interval([2.0, 2.0, 2.0]).p == 1


@pytest.mark.parametrize("n", [3, 5, 20])
def test_equal_differences_have_an_exact_interval(n):
    difference = interval([0.0] * n, partition=Partition(resolution=2.0, ratio=0.5))
    share = difference.high / 2.0
    assert (1 - share) ** n == pytest.approx(0.025)  # n trials show nothing so often
    assert difference.low == -difference.high
    assert difference.new_data[1] > difference.high


@pytest.mark.parametrize("mean", [0.0, 0.05, 0.5, -0.6, -50.0])
def test_p_of_equal_differences_is_that_of_their_interval(mean):
    difference = interval([mean] * 5, partition=Partition(resolution=1.0))
    assert (difference.p < 0.05) == (difference.side != 0)
    assert (difference.p == 1) == (abs(mean) < 0.5)
    assert interval([mean] * 5).p == 1  # of errors that are no counts nothing is known


@pytest.mark.parametrize("n", [3, 5, 6, 10])
def test_a_sample_in_every_trial_is_beyond_chance_as_a_sign_test_has_it(n):
    partition = Partition(resolution=2.0, ratio=0.5)
    difference = interval([2.0] * n, partition=partition)
    assert difference.p == pytest.approx(stats.binomtest(n, n, 0.5).pvalue)
    assert (difference.p <= 0.05) == (difference.side == 1) == (n > 5)
    assert difference.new_data[0] < difference.low
    many = interval([50.0] * n, partition=partition)
    assert many.p < 1e-20
    assert many.high - many.mean == pytest.approx(2.0 * (1 - 0.025 ** (1 / n)))


def test_differences_that_are_equal_but_for_rounding_have_no_degenerate_interval():
    differences = [100 * (i + 1) / 50 - 100 * i / 50 for i in (1, 6, 7, 13, 27, 28)]
    differences += [100 * (0.58 - 0.56)]
    assert len(set(differences)) > 1
    difference = interval(differences, partition=Partition(resolution=2.0))
    exact = interval([2.0] * 7, partition=Partition(resolution=2.0))
    assert difference.p == pytest.approx(exact.p)
    assert (difference.low, difference.high) == pytest.approx((exact.low, exact.high))


def test_a_size_is_excluded_only_beyond_the_papers_own_noise():
    difference = PairedDifference(0.1, -0.5, 0.7, trials=20)
    assert judge(difference, -3.0) is Verdict.SIZE_EXCLUDED
    assert judge(difference, -3.0, noise=2.0) is Verdict.UNDECIDED
    assert judge(difference, -0.3) is Verdict.UNDECIDED
    assert judge(difference, None) is Verdict.UNDECIDED


def test_the_noise_of_the_paper_is_that_of_both_figures():
    new, old = cell([1.0, 2.0, 3.0], paper=3.0), cell([4.0, 4.5, 5.0], k=1, paper=4.0)
    noise = compare("new", [new], "old", [old]).noise
    assert noise == pytest.approx(np.hypot(stats.sem([1, 2, 3]), stats.sem([4, 4.5, 5])))


def test_where_nothing_was_chosen_the_honest_difference_is_the_paired_one():
    random.seed(0)
    new, old = ([random.gauss(5, 1) for _ in range(12)] for _ in range(2))
    difference = compare("new", [cell(new)], "old", [cell(old, k=1)]).honest
    expected = stats.ttest_rel(new, old).confidence_interval(0.95)
    assert (difference.low, difference.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(("several", "few", "trials"), [(24, 6, 12), (3, 3, 6), (12, 3, 20)])
def test_equal_cells_are_covered_as_stated_and_flattered_by_choosing_on_the_test(
    several, few, trials
):
    # all cells alike: their trials have a common part and one of their own
    draw = np.random.default_rng(0)
    covered, below, sweeps = 0, 0, 600
    for _ in range(sweeps):
        errors = 10 + draw.normal(size=(several + few, trials)) + draw.normal(size=trials)
        cells = [cell(values) for values in errors]
        comparison = compare("k-mixup", cells[:several], "mixup", cells[several:])
        covered += comparison.honest.side == 0
        below += comparison.difference < 0
    # 600 draws have a standard deviation of 0.9 points at 95 %
    assert covered / sweeps == pytest.approx(0.95, abs=0.025)
    # the best of all is as often among the several as they are many; 1.6 to 2 points here
    assert below / sweeps == pytest.approx(several / (several + few), abs=0.06)


def test_turns_that_choose_on_each_other_are_as_much_alike_as_the_interval_allows():
    # two means of each cell, in units of their standard deviation, all cells equal
    draw = np.random.default_rng(0)
    for cells in (2, 3, 4, 8):
        first, second = draw.normal(size=(2, 200_000, cells))
        rows = np.arange(len(first))
        product = np.mean(first[rows, second.argmin(1)] * second[rows, first.argmin(1)])
        greatest = np.mean(draw.normal(size=(200_000, cells)).max(1))
        assert product == pytest.approx(greatest**2 / (cells - 1), abs=0.015)
        assert product < BETWEEN_TURNS + 0.015


def test_a_real_difference_is_reproduced_and_its_opposite_is_not():
    def errors(k, alpha, rule, seed):
        gain = {"same": -2.0, "xi": 2.0}[rule] if k > 1 else 0.0
        return 6.0 + gain + 0.1 * ((7 * seed + 3 * k) % 5) + 0.01 * alpha

    (outcome,) = outcomes(sweep(errors), [table()])
    by_pair = {(c.challenger, c.baseline, c.rule): c for c in comparisons(outcome) if c.k is None}
    better, worse = by_pair["k-mixup", "mixup", "same"], by_pair["k-mixup", "mixup", "xi"]
    assert better.text == "reproduced"
    assert worse.text == "not reproduced: k-mixup is worse"
    assert better.paper == pytest.approx(-3.0)
    assert by_pair["mixup", "ERM", None].paper == pytest.approx(1.0)
    assert [c.rule for c in comparisons(outcome) if c.k == 16] == ["same", "xi"]
    assert by_pair["k-mixup", "ERM", "same"].text == "reproduced"


def test_a_claim_of_being_worse_is_reproduced_by_being_worse():
    worse = PairedDifference(1.0, 0.5, 1.5, trials=20)
    assert words(worse, 0.09, "nearest") == "reproduced"
    assert words(worse, None, "nearest") == "nearest is worse"
    assert words(worse, 0.0, "nearest") == "nearest is worse"
    better = PairedDifference(-1.0, -1.5, -0.5, trials=20)
    assert words(better, 0.09, "nearest") == "not reproduced: nearest is better"


def test_verdicts_are_good_only_if_all_of_them_reproduce_the_paper():
    good, bad = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED
    assert mood_of([good, good]) == Mood.GOOD
    assert mood_of([good, Verdict.UNDECIDED]) == mood_of([Verdict.BETTER]) == Mood.OPEN
    assert mood_of([]) == mood_of([Verdict.NONE]) == Mood.OPEN
    assert mood_of([good, Verdict.UNDECIDED, bad]) == Mood.BAD


def test_no_difference_at_all_is_undecided():
    comparison = compare("new", [cell([0.0] * 5)], "old", [cell([0.0] * 5, k=1)])
    assert (comparison.honest.low, comparison.honest.high) == (0.0, 0.0)
    assert comparison.text == "undecided: the interval contains 0"


def test_three_trials_are_too_few_for_an_honest_comparison():
    comparison = compare("new", [cell([1.0] * 3)], "old", [cell([2.0] * 3, k=1)])
    assert comparison.difference == pytest.approx(-1.0)
    assert comparison.honest is None
    assert comparison.text == (
        "no verdict: an honest comparison needs 4 trials that all cells have, there are 3"
    )


def test_only_trials_that_all_cells_have_are_compared():
    comparison = compare("new", [cell([1.0] * 9), cell([3.0] * 5)], "old", [cell([2.0] * 7, k=1)])
    assert comparison.honest.trials == 5


def test_a_cell_with_a_failed_trial_cannot_be_chosen():
    lucky, sound = cell([0.0] * 5, broken=[5]), cell([2.0] * 6, alpha=4.0)
    comparison = compare("new", [lucky, sound], "old", [cell([3.0] * 6, k=1)])
    assert comparison.chosen[0] is sound
    assert comparison.honest.mean == pytest.approx(-1.0)
    none = compare("new", [lucky], "old", [cell([3.0] * 6, k=1)])
    assert none.chosen is None
    assert none.difference is None
    assert none.text == "no verdict: no cell of new has trials that all ended well"


def test_the_papers_way_takes_the_best_cells_over_all_trials():
    errors = {(1, 0.1): 5.0, (1, 1.0): 6.0, (16, 0.1): 4.5, (16, 1.0): 4.0, (0, 0.0): 9.0}
    rows = sweep(lambda k, alpha, rule, seed: errors[k, alpha], rules=("same",))
    (outcome,) = outcomes(rows, [table()])
    first = comparisons(outcome)[0]
    assert [(c.k, c.alpha) for c in first.chosen] == [(16, 1.0), (1, 0.1)]
    assert first.difference == pytest.approx(-1.0)


def test_levels_of_noise_are_compared_each_by_itself():
    of = table(
        columns=(PaperColumn(1.0, eps=4), PaperColumn(1.0, eps=8)), measure="noise", erm=None
    )
    rows = [
        row(mixing, 1.0, seed, noise={4: shift + seed, 8: 2 * shift + seed})
        for seed in range(5)
        for mixing, shift in ((method(16, 1.0), 10.0), (Method("mixup"), 20.0))
    ]
    (outcome,) = outcomes(rows, [of])
    by_eps = {
        c.eps: c for c in comparisons(outcome) if (c.challenger, c.baseline) == ("k-mixup", "mixup")
    }
    assert by_eps[4].difference == pytest.approx(-10.0)
    assert by_eps[8].difference == pytest.approx(-20.0)


def test_a_claim_is_of_the_table_or_of_every_column_and_of_all_k_or_one():
    errors = {1: 5.0, 4: 3.0, 16: 6.0}
    of = table(ks=(1, 4, 16), errors=((6.0, 7.0), (4.0, 4.0), (3.0, 8.0)))
    rows = sweep(lambda k, alpha, rule, seed: errors.get(k, 9.0) + alpha, of=of, rules=("same",))
    (outcome,) = outcomes(rows, [of])
    by_claim = {
        claim: [entry.honest.mean for entry in claimed(outcome, outcome.grids[0], claim)]
        for claim in (Claim(), Claim(k=16), Claim(each="column"), Claim(k=16, each="column"))
    }
    assert [pytest.approx(entry) for entry in by_claim.values()] == [
        [-2.0],
        [1.0],
        [-2.0] * 2,
        [1.0] * 2,
    ]
    sixteen = claimed(outcome, outcome.grids[0], Claim(k=16, each="column"))
    assert [entry.text for entry in sixteen] == ["not reproduced: k-mixup is worse", "reproduced"]


def test_columns_are_compared_in_pairs_over_all_trials():
    draw = np.random.default_rng(1)
    drawn = {}

    def errors(*key):
        return drawn.setdefault(key, 5 + draw.normal())

    (outcome,) = outcomes(sweep(errors, rules=("same",)), [table()])
    for new, old, difference in by_column(outcome.grids[0], k=16):
        assert (new.k, old.k) == (16, 1)
        assert new.alpha == old.alpha
        pair = [list(entry.errors.values()) for entry in (new, old)]
        expected = stats.ttest_rel(*pair).confidence_interval(0.95)
        assert (difference.low, difference.high) == pytest.approx((expected.low, expected.high))


def test_a_column_with_fewer_than_two_common_trials_has_no_estimate():
    rows = [row(method(16, 1.0), 1.0, 0), row(Method("mixup"), 2.0, 0), failed(method(16, 0.1))]
    (outcome,) = outcomes(rows, [table()])
    assert [estimate for *_, estimate in by_column(outcome.grids[0], k=16)] == [None, None]
