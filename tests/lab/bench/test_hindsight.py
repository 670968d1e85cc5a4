"""What advice would have been worth, on rows made up so that the answer is known."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweeping import done_row, failed_row

from kmixup.inspection import Advice
from kmixup.lab.bench.hindsight import Difference, look_back, nearest
from kmixup.lab.evaluate.scores import Scores
from kmixup.lab.sweep.grid import expand
from kmixup.lab.sweep.rows import Done
from kmixup.lab.sweep.store import Store
from kmixup.lab.train.config import Method, Trial

TRIALS = expand(
    data="iris", method=["erm", "kmixup"], k=[1, 4, 16], alpha=[0.1, 1.0], trials=4,
    protocol={"epochs": 1},
)  # fmt: skip


def error_of(method: Method, seed: int) -> float:
    """ERM 0.10, mixup 0.08 at small alpha, and less for a larger k; a little more each seed."""
    return 0.10 - 0.02 * (method.alpha == 0.1) - 0.001 * method.k + 0.01 * seed


def row_of(trial: Trial) -> Done:
    return done_row(trial, error_of(trial.method, trial.seed))


def advising(k: int, alpha: float):
    return lambda trial: Advice(k, alpha, ("", ""), "")


def looked_back(rows, k=32, alpha=0.3):
    (hindsight,) = look_back(rows, advising=advising(k, alpha))
    return hindsight


ROWS = [row_of(trial) for trial in TRIALS]


def test_the_nearest_setting_is_compared_in_the_same_trial():
    hindsight = looked_back(ROWS)
    assert (hindsight.data, hindsight.trials) == ("iris", 4)
    assert hindsight.advised == {(32, 0.3): 4}
    assert hindsight.taken == {(16, 0.1): 4}
    assert hindsight.error == pytest.approx(100 * (0.064 + 0.015))
    assert hindsight.best == ((16, 0.1), pytest.approx(hindsight.error))
    assert hindsight.against["ERM"].mean == pytest.approx(-3.5)  # ERM has k = 1 here
    assert hindsight.against["k = 16, α = 1"].mean == pytest.approx(-2)
    assert hindsight.against["tuned mixup"].mean == pytest.approx(-1.5)
    assert hindsight.against["ERM"].error == pytest.approx(0)
    assert (hindsight.against["ERM"].better, hindsight.against["ERM"].worse) == (4, 0)


def test_advice_not_to_mix_is_plain_training():
    hindsight = looked_back(ROWS, 1, 0.0)
    assert hindsight.taken == {(1, 0.0): 4}
    assert hindsight.against["ERM"].values == (0, 0, 0, 0)


def test_mixup_is_tuned_on_the_other_trials_alone():
    index = next(
        i
        for i, trial in enumerate(TRIALS)
        if trial.method == Method("mixup", 1, 1.0) and trial.seed == 2
    )
    lucky = list(ROWS)
    lucky[index] = replace(ROWS[index], scores=Scores(0.0, 0.0, 0.0))
    # in trial 2 alone alpha = 1 is best: the others do not know, and keep it at 0.1
    difference = looked_back(lucky, 1, 0.1).against["tuned mixup"].values
    assert difference[2] == 0


def test_trials_that_lack_a_setting_do_not_count():
    hindsight = looked_back(ROWS[:-1])
    assert hindsight.trials == 3
    assert hindsight.against["tuned mixup"].mean == pytest.approx(-1.5)


def test_rivals_that_were_not_run_are_left_out():
    small = [row for row in ROWS if row.trial.method.k < 16]
    assert set(looked_back(small).against) == {"ERM", "tuned mixup"}
    single = [row for row in ROWS if row.trial.seed == 0]
    assert set(looked_back(single).against) == {"ERM", "k = 16, α = 1"}
    assert looked_back(single).against["ERM"].error == 0


def test_failures_and_other_methods_are_passed_over():
    failed = failed_row(TRIALS[0], id="x")
    other = row_of(Trial("iris", "mlp-iris", Method("nearest")))
    assert looked_back([*ROWS, failed, other]) == looked_back(ROWS)


settings_of = st.tuples(st.sampled_from([1, 2, 4, 8, 16]), st.floats(0.01, 100))


@given(settings_of, st.lists(settings_of, min_size=1))
def test_a_setting_that_was_run_is_its_own_nearest(wanted, others):
    assert nearest(wanted, [*others, wanted]) == wanted


def test_differences_count_ties_as_neither():
    difference = Difference((-1.0, 0.0, 2.0))
    assert (difference.better, difference.worse) == (1, 1)
    assert difference.mean == pytest.approx(1 / 3)
    assert difference.error == pytest.approx(0.8819, abs=1e-3)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "rows") as opened:
        opened.append(ROWS)
    return tmp_path / "rows"


def test_the_command_inspects_and_prints_a_table(store, kmixup):
    code, out, _ = kmixup("bench", "advice", store)
    assert code == 0
    header, _, line = out.splitlines()
    assert header.startswith("| data | trials | advice")
    assert line.startswith("| iris | 4      | k = ")
    assert line.count("better") == 3


def test_the_command_says_what_it_needs(tmp_path, kmixup):
    code, _, err = kmixup("bench", "advice", tmp_path / "nothing")
    assert code == 2
    assert "must be the folder of a sweep" in err
    with Store(tmp_path / "empty"):
        pass
    code, _, err = kmixup("bench", "advice", tmp_path / "empty")
    assert code == 2
    assert "there are no trials of mixup" in err
