"""Statistics over data sets against a published example, closed forms, scipy and simulation."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kmixup.lab.report.meta_analysis import (
    Pooled,
    log_ratios,
    nested_best,
    nested_choice,
    pool,
    regression,
    regrets,
    slope,
)

# Cases of tuberculosis and persons, vaccinated and not, in 13 trials: Colditz et al. 1994,
# "Efficacy of BCG vaccine in the prevention of tuberculosis"
BCG = np.array(
    [
        (4, 123, 11, 139), (6, 306, 29, 303), (3, 231, 11, 220), (62, 13598, 248, 12867),
        (33, 5069, 47, 5808), (180, 1541, 372, 1451), (8, 2545, 10, 629),
        (505, 88391, 499, 88391), (29, 7499, 45, 7277), (17, 1716, 65, 1665),
        (186, 50634, 141, 27338), (5, 2498, 3, 2341), (27, 16913, 29, 17854),
    ],
    dtype=float,
)  # fmt: skip


def series(table):
    """Scores by data set and trial."""
    return pd.concat({name: pd.Series(values) for name, values in table.items()})


def test_the_bcg_trials_are_pooled_as_published():
    """Viechtbauer 2010, "Conducting meta-analyses in R", with the test of Knapp and Hartung."""
    cases, persons, others, controls = BCG.T
    effects = np.log((cases / persons) / (others / controls))
    variances = 1 / cases - 1 / persons + 1 / others - 1 / controls
    found = pool(effects, variances)
    assert found.mean == pytest.approx(-0.7145, abs=5e-5)
    assert found.tau**2 == pytest.approx(0.3132, abs=5e-5)
    assert (found.low, found.high) == pytest.approx((-1.1084, -0.3206), abs=5e-5)
    assert found.p == pytest.approx(0.0019, abs=5e-5)


@given(
    st.lists(st.floats(-2, 2), min_size=3, max_size=20).filter(lambda x: np.std(x) > 1e-3),
    st.floats(1e-4, 1.0),
)
def test_equal_variances_give_the_t_interval_of_the_effects(effects, variance):
    found = pool(effects, [variance] * len(effects))
    wanted = stats.ttest_1samp(effects, 0.0)
    low, high = wanted.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)
    assert found.p == pytest.approx(wanted.pvalue, abs=1e-6)
    between = max(0.0, float(np.var(effects, ddof=1)) - variance)
    assert found.tau == pytest.approx(math.sqrt(between), abs=1e-3)
    assert found.prediction[0] < found.low
    assert found.high < found.prediction[1]


def test_a_cluster_counts_as_one_data_set():
    effects, variances = [0.3, 0.1, -0.2, 0.4], [0.01, 0.04, 0.01, 0.02]
    joined = pool([0.2, -0.2, 0.4], [0.0225, 0.01, 0.02])  # the mean of 0.1 and 0.2, squared
    same = pytest.approx((joined.low, joined.high))
    found = pool(effects, variances, ["a", "a", "b", "c"])
    assert (found.low, found.high) == same
    # copies of a data set add nothing
    again = pool([*effects, 0.4, 0.4], [*variances, 0.02, 0.02], ["a", "a", "b", "c", "c", "c"])
    assert (again.low, again.high) == same
    assert again.clusters == 3


def test_intervals_cover_and_prediction_intervals_predict():
    generator = np.random.default_rng(0)
    mean, tau, n = 0.1, 0.2, 500
    covered = predicted = 0
    for _ in range(n):
        variances = generator.uniform(0.002, 0.08, 40)
        effects = generator.normal(mean, np.sqrt(variances + tau**2))
        found = pool(effects, variances)
        covered += found.low <= mean <= found.high
        low, high = found.prediction
        predicted += low <= generator.normal(mean, tau) <= high
    assert covered / n == pytest.approx(0.95, abs=0.025)
    assert predicted / n == pytest.approx(0.95, abs=0.025)


def test_equivalence_is_two_one_sided_tests():
    generator = np.random.default_rng(1)
    effects = generator.normal(0.001, 0.02, 40)
    found = pool(effects, [1e-4] * 40)
    above = stats.ttest_1samp(effects, math.log(0.98), alternative="greater").pvalue
    below = stats.ttest_1samp(effects, math.log(1.02), alternative="less").pvalue
    assert found.equivalence() == pytest.approx(max(above, below), rel=1e-4)
    assert found.equivalence(0.05) < found.equivalence() < 0.05 < found.equivalence(0.001)


def test_the_largest_gain_is_the_lower_end_of_the_interval():
    pooled = Pooled(0.0, math.log(0.9), 0.2, p=0.5, tau=0.0, prediction=None, clusters=10)
    assert (pooled.side, pooled.largest_gain) == (0, pytest.approx(0.1))
    worse = Pooled(0.2, 0.1, 0.3, p=0.01, tau=0.0, prediction=None, clusters=10)
    assert (worse.side, worse.largest_gain) == (1, 0.0)


# Log ratios


def test_errors_are_added_up_over_trials():
    new, old = series({"a": [0.1, 0.2, 0.0]}), series({"a": [0.3, 0.2, 0.1]})
    (line,) = log_ratios(new, old, 10).itertuples()
    assert line.effect == pytest.approx(math.log(3.5 / 6.5))
    assert line.trials == 3
    assert line.low < line.effect < line.high
    (plain,) = log_ratios(new, old).itertuples()
    assert plain.effect == pytest.approx(math.log(0.3 / 0.6))


def test_without_errors_a_data_set_has_next_to_no_weight():
    nothing = series({"iris": [0.0] * 5})
    (line,) = log_ratios(nothing, nothing, 30).itertuples()
    assert (line.effect, line.variance) == (0.0, 4.0)


def test_variances_are_those_of_simulated_experiments():
    generator = np.random.default_rng(2)
    size, trials = 400, 2000
    hard = generator.beta(3, 12, (trials, 10))  # trials differ, and both methods with them
    new = generator.binomial(size, 0.8 * hard) / size
    old = generator.binomial(size, hard) / size
    frames = [pd.DataFrame(x, index=pd.RangeIndex(trials).astype(str)).stack() for x in (new, old)]
    found = log_ratios(*frames, size)
    assert found.effect.mean() == pytest.approx(math.log(0.8), abs=0.01)
    assert found.variance.mean() == pytest.approx(found.effect.var(), rel=0.15)
    covered = (found.low <= math.log(0.8)) & (math.log(0.8) <= found.high)
    assert covered.mean() == pytest.approx(0.95, abs=0.03)


def test_trials_of_one_method_only_are_left_out():
    new, old = series({"a": [1.0, 2.0, 9.0]}), series({"a": [2.0, 4.0]})
    (line,) = log_ratios(new, old).itertuples()
    assert (line.effect, line.trials) == (pytest.approx(math.log(0.5)), 2)
    with pytest.raises(ValueError, match="'a' must have two paired trials, got one"):
        log_ratios(new, series({"a": [2.0]}))


def test_overlapping_splits_widen_the_interval():
    new, old = series({"a": [1.0, 2.0, 3.0]}), series({"a": [2.0, 2.5, 2.0]})
    wide, narrow = log_ratios(new, old, ratio=0.25), log_ratios(new, old)
    assert wide.variance.item() == pytest.approx(1.75 * narrow.variance.item())


# Slopes


def test_slopes_are_those_of_lines_within_data_sets():
    generator = np.random.default_rng(3)
    alphas = np.log([0.02, 0.05, 0.2, 1.0])
    y = generator.normal(size=(6, 4)) + 10 * np.arange(6)[:, None]
    single = [stats.linregress(alphas, line).slope for line in y]
    names = np.repeat(list("abcdef"), 4)
    found = slope(np.tile(alphas, 6), y.ravel(), names)
    wanted = stats.ttest_1samp(single, 0.0)
    assert found.mean == pytest.approx(np.mean(single))
    assert found.p == pytest.approx(wanted.pvalue)
    joined = slope(np.tile(alphas, 6), y.ravel(), names, np.repeat(list("aabcde"), 4))
    assert joined.mean == pytest.approx(np.mean([np.mean(single[:2]), *single[2:]]))
    assert joined.trials == 5


def test_regression_is_robust_to_clusters():
    generator = np.random.default_rng(4)
    inside = 0
    for _ in range(300):
        clusters = np.repeat(np.arange(20), 2)
        x = np.repeat(generator.normal(size=20), 2)
        shared = np.repeat(generator.normal(size=20), 2)
        y = 0.5 * x + shared + 0.3 * generator.normal(size=40)
        line = regression(y, pd.DataFrame({"x": x}), clusters.astype(str)).loc["x"]
        inside += line.low <= 0.5 <= line.high
    assert inside / 300 == pytest.approx(0.95, abs=0.03)


def test_regression_without_clusters_has_the_coefficients_of_least_squares():
    generator = np.random.default_rng(5)
    x = generator.normal(size=(50, 2))
    y = x @ [1.0, -2.0] + 3.0 + generator.normal(size=50)
    found = regression(y, pd.DataFrame(x, columns=["a", "b"]))
    wanted, *_ = np.linalg.lstsq(np.column_stack([np.ones(50), x]), y)
    assert found["slope"].tolist() == pytest.approx(wanted[1:].tolist())
    # HC2 by its definition
    design = np.column_stack([np.ones(50), x])
    hat = design @ np.linalg.pinv(design)
    residual = y - hat @ y
    left = np.linalg.pinv(design)
    errors = np.sqrt(np.diag((left * (residual**2 / (1 - np.diag(hat)))) @ left.T))
    half = stats.t.ppf(0.975, 47) * errors[1:]
    assert (found["high"] - found["slope"]).tolist() == pytest.approx(half.tolist())
    with pytest.raises(ValueError, match="must be independent"):
        regression(y, pd.DataFrame({"a": x[:, 0], "b": 2 * x[:, 0]}))


# Nested choices


def test_every_family_is_tested_with_the_setting_of_lowest_validation_score():
    index = pd.MultiIndex.from_product([["iris"], [0, 1, 2]], names=["data", "seed"])
    columns = ["m1", "m2", "k1", "k2"]
    validation = pd.DataFrame(
        [[0.1, 0.1, 0.3, 0.2], [0.4, 0.3, 0.2, math.inf], [0.1, 0.2, math.inf, math.inf]],
        index, columns,
    )  # fmt: skip
    test = pd.DataFrame(np.arange(12.0).reshape(3, 4), index, columns)
    families = {"mixup": ["m1", "m2"], "k": ["k1", "k2"]}
    chosen = nested_choice(validation, families)
    assert chosen.mixup.tolist() == ["m1", "m2", "m1"]  # of equal ones the first
    assert chosen.k.tolist() == ["k2", "k1", None]
    best = nested_best(validation, test.iloc[::-1], families)
    assert best.mixup.tolist() == [0.0, 5.0, 8.0]
    assert best.k.iloc[:2].tolist() == [3.0, 6.0]
    assert math.isnan(best.k.iloc[2])
    validation.iloc[0, 0] = math.nan
    assert nested_choice(validation, families).mixup.iloc[0] is None


def test_families_of_different_sizes_are_an_error():
    with pytest.raises(ValueError, match="equally many settings"):
        nested_choice(pd.DataFrame(columns=["a", "b", "c"]), {"x": ["a"], "y": ["b", "c"]})


def test_nested_choices_among_equal_settings_are_not_biased():
    """A choice on validation samples doesn't flatter, unlike the best on the test samples."""
    generator = np.random.default_rng(6)
    index = pd.MultiIndex.from_product([["a"], range(4000)])
    columns = [f"s{i}" for i in range(8)]
    validation = pd.DataFrame(generator.normal(size=(4000, 8)), index, columns)
    test = pd.DataFrame(generator.normal(size=(4000, 8)), index, columns)
    best = nested_best(validation, test, {"all": columns})["all"]
    assert best.mean() == pytest.approx(0.0, abs=0.05)
    assert test.min(axis=1).mean() < -1


def test_a_default_is_tested_on_data_that_did_not_choose_it():
    errors = pd.DataFrame(
        {"a": [10.0, 9.0, 8.0], "b": [5.0, 4.0, 5.0], "c": [2.0, 1.0, 3.0]},
        index=["ERM", "mild", "strong"],
    )
    found = regrets(errors, "ERM", "chosen elsewhere")
    assert found.loc["strong"].tolist() == pytest.approx([0, 20, 100])
    # mild is the best on b and c, on a and c, and on a and b
    assert found.iloc[-1].tolist() == found.loc["mild"].tolist() == pytest.approx([10, 0, 0])
