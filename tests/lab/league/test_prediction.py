"""The prediction as it was written down, and what rows say of it."""

from pathlib import Path

import numpy as np
import pytest

from kmixup.lab.league import prediction as module
from kmixup.lab.league.contests import make_contests
from kmixup.lab.league.prediction import CLAIM, Foretold, Prediction, crossing_ratio
from kmixup.lab.report.verdict import Mood, PairedDifference
from kmixup.measured import Measured

PAGE = (Path(__file__).parents[3] / "docs/league.md").read_text()


def case(ratio, mean, half=0.5, name="data"):
    difference = PairedDifference(mean, mean - half, mean + half, 10)
    return Foretold(name, Measured(ratio, 0.01), difference)


def test_the_prediction_is_that_of_the_page():
    assert CLAIM in PAGE
    assert "below 0 where the ratio is below 0.8 and above 0 where it is above 0.8" in PAGE
    assert module.THRESHOLD == 0.8


def test_it_holds_where_all_signs_and_the_correlation_are_as_predicted():
    prediction = Prediction((case(0.4, -2.0), case(0.6, -1.0), case(0.9, 1.0)))
    assert (prediction.holds, prediction.mood, prediction.correlation) == (
        True,
        Mood.GOOD,
        pytest.approx(1.0),
    )
    assert prediction.verdict == (
        "The prediction holds on 3 data sets: the sign is as predicted on 3 of 3, and the rank "
        "correlation of ratio and difference is 1.00. Beyond chance at 95 %, each by itself, are 3 "
        "of the differences, 3 of them as predicted."
    )


@pytest.mark.parametrize(
    "cases",
    [
        (case(0.4, -2.0), case(0.6, 1.0), case(0.9, 2.0)),  # a sign is wrong
        (case(0.4, -1.0), case(0.6, -2.0), case(0.7, -3.0)),  # the correlation is
        (case(0.4, 0.0), case(0.6, 0.0), case(0.9, 0.0)),  # 0 lies on neither side
        (case(0.4, -1.0), case(0.4, -2.0), case(0.4, -3.0)),  # nothing to correlate with
    ],
)
def test_it_does_not_hold_otherwise(cases):
    prediction = Prediction(cases)
    assert (prediction.holds, prediction.mood) == (False, Mood.BAD)
    assert prediction.verdict.startswith("The prediction does not hold on 3 data sets: ")


@pytest.mark.parametrize(
    ("ratios", "side"), [((0.4, 0.6, 0.7), "above"), ((0.8, 0.9, 1.0), "below")]
)
def test_a_half_that_no_data_set_tests_is_named(ratios, side):
    sign = -1 if side == "above" else 1
    prediction = Prediction(tuple(case(r, sign * 9 + r) for r in ratios))
    assert prediction.holds
    assert prediction.verdict.endswith(
        f" No ratio is {side} 0.8: that half of the prediction is not tested."
    )


def test_signs_of_differences_that_chance_explains_are_told_as_such():
    prediction = Prediction(
        tuple(case(r, d, 5.0) for r, d in ((0.4, -2.0), (0.6, -1.0), (0.9, 1.0)))
    )
    assert prediction.holds
    assert prediction.verdict.endswith(
        "No difference is beyond chance at 95 %, so these signs prove little."
    )


def test_with_two_data_sets_it_is_open():
    prediction = Prediction((case(0.4, -2.0), case(0.9, 1.0)))
    assert (prediction.holds, prediction.mood) == (None, Mood.OPEN)
    assert prediction.verdict == "Open after 2 data sets: a verdict takes 3."


@pytest.mark.parametrize(
    ("foretold", "text", "mood"),
    [
        (case(0.4, -1.0), "as predicted", Mood.GOOD),
        (case(0.4, -0.1), "as predicted, within chance", Mood.OPEN),
        (case(0.9, -1.0), "not as predicted", Mood.BAD),
        (case(0.9, -0.1), "not as predicted, within chance", Mood.OPEN),
    ],
)
def test_a_case_says_whether_chance_may_be_behind_it(foretold, text, mood):
    assert (foretold.text, foretold.mood) == (text, mood)


def contest_of(data):
    (contest,) = make_contests([str(data)], methods=["mixup", "kmixup"])
    return contest


def test_the_ratio_is_the_share_of_pairs_that_matching_leaves_between_classes(tmp_path):
    random, path = np.random.default_rng(0), tmp_path / "own.npz"
    labels = np.arange(400) % 2
    # clusters far apart: of 2 k samples only the surplus of a class is matched with the other
    np.savez(path, x=random.normal(size=(400, 2)) + 1000 * labels[:, None], y=labels)
    ratio = crossing_ratio(contest_of(path))
    counts = random.binomial(16, 0.5, size=(200_000, 2))
    surplus = np.abs(counts[:, 0] - counts[:, 1]).mean() / 16
    assert ratio.value == pytest.approx(surplus / 0.5, abs=0.05)
    # labels that matching knows nothing of
    np.savez(path, x=random.normal(size=(400, 2)), y=labels)
    assert crossing_ratio(contest_of(path)).value == pytest.approx(1.0, abs=0.05)


def test_numbers_have_no_ratio(tmp_path):
    path = tmp_path / "numbers.npz"
    random = np.random.default_rng(0)
    np.savez(path, x=random.normal(size=(100, 2)), y=random.normal(size=100))
    assert crossing_ratio(contest_of(path)) is None


def test_a_table_that_is_too_small_has_no_ratio(tmp_path):
    path, random = tmp_path / "small.npz", np.random.default_rng(0)
    np.savez(path, x=random.normal(size=(45, 2)), y=np.arange(45) % 2)  # 30 training samples
    assert crossing_ratio(contest_of(path)) is None
    path, labels = tmp_path / "rare.csv", np.arange(120) // 2
    path.write_text("a,b,y\n" + "".join(f"{random.normal()},1,c{label}\n" for label in labels))
    assert crossing_ratio(contest_of(path)) is None
