"""Statistics against scipy, printed tables, enumeration and simulation."""

import random
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kmixup.lab.report.stats import (
    BETWEEN_HALVES,
    Comparison,
    Outcome,
    PairedDifference,
    Partition,
    friedman,
    holm,
    interval,
    mood_of,
    nemenyi,
    p_text,
    rank,
    split_choice,
    tally,
)

# AUC of C4.5 with four ways of choosing m and cf on 14 data sets, Demšar 2006, table 6; the last
# but one has a digit more than printed, as its printed ranks show no tie
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569], [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657], [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625], [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000], [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.975, 0.9749], [0.957, 0.978, 0.946, 0.970],
    ]
)  # fmt: skip
NAMES = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]


def test_the_example_of_demsar_is_reproduced():
    ranking = rank(NAMES, 1 - DEMSAR)
    assert dict(zip(ranking.names, ranking.ranks, strict=True)) == pytest.approx(
        {"C4.5": 3.143, "C4.5+m": 2.000, "C4.5+cf": 2.893, "C4.5+m+cf": 1.964}, abs=5e-4
    )
    assert ranking.critical == pytest.approx(1.25, abs=0.005)
    # his statistic, without a correction for ties, is 9.28; the corrected one is larger
    assert 0.01 < ranking.p < 0.0258
    assert ranking.differ


@pytest.mark.parametrize(
    ("methods", "quantile"),
    [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (7, 2.949), (8, 3.031),
     (9, 3.102), (10, 3.164)],
)  # fmt: skip
def test_critical_differences_are_those_of_the_printed_table(methods, quantile):
    """Demšar 2006, table 5a."""
    wanted = quantile * np.sqrt(methods * (methods + 1) / (6 * 20))
    assert nemenyi(methods, 20) == pytest.approx(wanted, rel=5e-4)


def test_friedman_by_hand():
    # ranks 1 2 3, 1 2 3, 1 3 2: sums 3, 7, 8; chi² = 12/(3·3·4)·(9+49+64) - 3·3·4 = 14/3
    errors = [[1.0, 2.0, 3.0], [0.1, 0.2, 0.3], [1.0, 3.0, 2.0]]
    assert friedman(errors) == pytest.approx(np.exp(-14 / 6))  # chi² of two degrees of freedom
    assert friedman([[1.0] * 3] * 4) == 1.0
    assert (p_text(0.0004), p_text(0.2)) == ("< 0.001", "0.200")


def test_errors_that_differ_by_rounding_share_a_rank():
    ranking = rank(["a", "b"], [[0.1 + 0.2, 0.3], [1.0, 1.0]])
    assert ranking.ranks == (1.5, 1.5)
    assert (ranking.p, ranking.critical, ranking.differ) == (None, None, False)


@given(st.lists(st.tuples(st.integers(0, 999), st.integers(0, 999)), min_size=2, max_size=30))
def test_interval_and_p_are_those_of_the_paired_t_test(pairs):
    new, old = np.array(pairs, dtype=float).T
    if np.ptp(new - old) == 0:
        assert interval(list(new - old)).p == 1
        return  # scipy divides by 0
    expected = stats.ttest_rel(new, old)
    difference = interval(list(new - old))
    assert (difference.low, difference.high) == pytest.approx(expected.confidence_interval(0.95))
    assert difference.p == pytest.approx(expected.pvalue)


def test_the_interval_for_new_data_adds_the_share_of_the_test_part():
    differences = [1.0, 2.0, 4.0, 3.5, 0.5]
    difference = interval(differences, partition=Partition(ratio=0.5))
    spread = np.std(differences, ddof=1)
    half = stats.t.ppf(0.975, 4) * spread * np.sqrt(1 / 5 + 0.5)
    assert difference.new_data == pytest.approx((difference.mean - half, difference.mean + half))
    assert interval(differences).new_data is None


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
def test_one_sample_in_every_trial_is_significant_if_a_sign_test_is(n):
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


def test_turns_that_choose_on_each_other_are_as_much_alike_as_the_interval_allows():
    # two means of each cell, in units of their standard deviation, all cells equal
    draw = np.random.default_rng(0)
    for cells in (2, 3, 4, 8):
        first, second = draw.normal(size=(2, 200_000, cells))
        rows = np.arange(len(first))
        product = np.mean(first[rows, second.argmin(1)] * second[rows, first.argmin(1)])
        greatest = np.mean(draw.normal(size=(200_000, cells)).max(1))
        assert product == pytest.approx(greatest**2 / (cells - 1), abs=0.015)
        assert product < BETWEEN_HALVES + 0.015


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_the_closure_of_bonferronis_tests(values):
    """A hypothesis falls only if every set of hypotheses that holds it falls."""
    numbers = range(len(values))
    expected = [
        max(
            min(1.0, len(some) * min(values[j] for j in some))
            for size in range(1, len(values) + 1)
            for some in combinations(numbers, size)
            if i in some
        )
        for i in numbers
    ]
    assert holm(values) == pytest.approx(expected)


def judged(difference, **options):
    return Comparison(new="k-mixup", old="mixup", difference=difference, **options)


def outcome(difference, **options):
    return judged(difference, **options).outcome


def test_an_effect_size_is_ruled_out_only_beyond_the_papers_own_noise():
    difference = PairedDifference(0.1, -0.5, 0.7, trials=20)
    assert outcome(difference, paper=-3.0) is Outcome.SIZE_RULED_OUT
    assert outcome(difference, paper=-3.0, noise=2.0) is Outcome.NOT_SIGNIFICANT
    assert outcome(difference, paper=-0.3) is Outcome.NOT_SIGNIFICANT
    assert outcome(difference) is Outcome.NOT_SIGNIFICANT


def test_a_claim_of_being_worse_is_reproduced_by_being_worse():
    worse = PairedDifference(1.0, 0.5, 1.5, trials=20)
    better = PairedDifference(-1.0, -1.5, -0.5, trials=20)
    assert outcome(worse, paper=0.09) is Outcome.REPRODUCED
    assert outcome(worse) is outcome(worse, paper=0.0) is Outcome.WORSE
    assert outcome(better, paper=0.09) is Outcome.NOT_REPRODUCED


def test_better_needs_significance_after_the_correction():
    better = PairedDifference(-1.0, -1.5, -0.5, trials=20, p=0.03)
    assert outcome(better) is Outcome.BETTER
    assert outcome(better, p=0.04) is Outcome.BETTER
    corrected = judged(better, p=0.06)
    assert (corrected.outcome, corrected.side) == (Outcome.NOT_SIGNIFICANT, 0)
    assert mood_of([corrected]) == mood_of([judged(better), corrected]) == "open"
    assert mood_of([judged(better)]) == "good"
    assert "better" not in corrected.verdict


def test_without_enough_trials_there_is_no_verdict():
    unknown = judged(None)
    assert (unknown.outcome, unknown.verdict) == (Outcome.TOO_FEW, "too few trials")


def chosen(new, old):
    """The split choice between lists of errors, each the best of its side."""
    families = [[dict(enumerate(errors)) for errors in family] for family in (new, old)]

    def choose(seeds):
        new, old = (min(f, key=lambda e: sum(e[seed] for seed in seeds)) for f in families)
        return new, old

    return split_choice([*families[0], *families[1]], choose)


def by_hand(new, old):
    """Differences of the two halves, from lists of lists of errors."""
    differences = []
    for first, second in ((0, 1), (1, 0)):
        best = []
        for family in (new, old):
            sums = [sum(errors[first::2]) for errors in family]
            best.append(family[sums.index(min(sums))][second::2])
        differences += [a - b for a, b in zip(*best, strict=True)]
    return differences


def families_of(n):
    errors = st.lists(st.integers(0, 50), min_size=n, max_size=n)
    family = st.lists(errors, min_size=1, max_size=5)
    return st.tuples(family, family)


@given(st.integers(4, 11).flatmap(families_of))
def test_the_split_choice_is_that_of_plain_loops(families):
    new, old = families
    difference = chosen(new, old)
    assert difference.mean == pytest.approx(np.mean(by_hand(new, old)), abs=1e-9)
    assert difference.trials == len(new[0])


def test_without_a_choice_the_split_choice_is_the_paired_difference():
    random.seed(0)
    new, old = ([random.gauss(5, 1) for _ in range(12)] for _ in range(2))
    difference = chosen([new], [old])
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
        covered += chosen(errors[:several], errors[several:]).side == 0
        means = errors.mean(1)
        below += means[:several].min() < means[several:].min()
    # 600 draws have a standard deviation of 0.9 points at 95 %
    assert covered / sweeps == pytest.approx(0.95, abs=0.025)
    # the best of all is as often among the several as they are many; 1.6 to 2 points here
    assert below / sweeps == pytest.approx(several / (several + few), abs=0.06)


def test_a_tally_says_which_differences_exclude_the_effect_of_the_paper():
    small = PairedDifference(0.0, -0.1, 0.1, trials=20)
    compared = [
        Comparison(new="a", old="b", difference=difference, paper=-1.0)
        for difference in (small, None)
    ]
    assert tally(compared) == (
        "no significant difference in 1 (the paper's effect size is ruled out in 1); "
        "too few trials in 1"
    )


def test_a_difference_within_the_noise_of_the_paper_has_no_sign_to_reproduce():
    better = PairedDifference(-1.0, -1.5, -0.5, trials=20)
    found = Comparison(new="a", old="b", difference=better, paper=-0.01, noise=0.04)
    assert found.verdict == "a is better than b"
