"""Friedman and Nemenyi, against printed tables, by hand and by chance."""

import numpy as np
import pytest

from kmixup.lab.league.ranking import Ranking, critical_difference, friedman, rank

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
    # "we cannot tell which group C4.5 belongs to": no two are that far apart
    assert ranking.groups == ((0, 3),)


@pytest.mark.parametrize(
    ("methods", "quantile"),
    [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (7, 2.949), (8, 3.031),
     (9, 3.102), (10, 3.164)],
)  # fmt: skip
def test_critical_differences_are_those_of_the_printed_table(methods, quantile):
    """Demšar 2006, table 5a."""
    wanted = quantile * np.sqrt(methods * (methods + 1) / (6 * 20))
    assert critical_difference(methods, 20) == pytest.approx(wanted, rel=5e-4)


def test_friedman_by_hand():
    # ranks 1 2 3, 1 2 3, 1 3 2: sums 3, 7, 8; chi² = 12/(3·3·4)·(9+49+64) - 3·3·4 = 14/3
    errors = [[1.0, 2.0, 3.0], [0.1, 0.2, 0.3], [1.0, 3.0, 2.0]]
    assert friedman(errors) == pytest.approx(np.exp(-14 / 6))  # chi² of two degrees of freedom
    assert friedman([[1.0] * 3] * 4) == 1.0


def test_without_any_difference_few_leagues_find_one():
    """5 % of them should; 400 leagues are off by at most 4 standard errors."""
    random = np.random.default_rng(0)
    rejected = np.mean([friedman(random.normal(size=(12, 5))) <= 0.05 for _ in range(400)])
    assert rejected < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 400)


def test_groups_are_the_longest_runs_within_the_critical_difference():
    def groups(*ranks):
        return Ranking(tuple("abcdef"[: len(ranks)]), ranks, 10, 0.01, 1.0).groups

    assert groups(1.0, 1.5, 2.2, 4.0) == ((0, 1), (1, 2))
    assert groups(1.0, 1.2, 1.4) == ((0, 2),)
    assert groups(1.0, 2.0, 3.0) == ()
    assert Ranking(("a", "b"), (1.0, 2.0), 1, None, None).groups == ()


def test_errors_that_differ_by_rounding_share_a_rank():
    ranking = rank(["a", "b"], [[0.1 + 0.2, 0.3], [1.0, 1.0]])
    assert ranking.ranks == (1.5, 1.5)
    assert (ranking.p, ranking.critical, ranking.differ) == (None, None, False)


def test_a_single_data_set_is_ranked_without_a_test():
    assert rank(["a", "b", "c"], [[3.0, 1.0, 2.0]]).p is None


def test_errors_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"errors must have a row for each data set and 2 columns"):
        rank(["a", "b"], [[1.0, 2.0, 3.0]])
