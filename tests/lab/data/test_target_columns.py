import numpy as np
import pytest

from kmixup.lab.data.targets import decide


def decision(values, rows=1000, task=None):
    return decide(np.array(values, float), distinct=len(values), rows=rows, task=task, name="t")


@pytest.mark.parametrize(
    ("values", "rows", "task", "note"),
    [
        ([0, 1], 100, "classes", False),
        (range(10), 100, "classes", False),
        (range(28), 4177, "classes", True),
        (range(51), 100, "regression", True),
        (range(51), 1100, "classes", True),
        ([0.5, 1.0, 1.5], 100, "regression", True),
        (np.arange(60) / 4, 100, "regression", False),
    ],
)
def test_few_whole_numbers_are_classes_and_others_a_regression(values, rows, task, note):
    decided = decision(list(values), rows)
    assert decided.task == task
    assert (decided.note is not None) == note
    other = {"classes": "regression", "regression": "classes"}[task]
    assert not note or decided.note.endswith(
        f"taken for {task}: --task {other} takes it for {other}"
    )


@pytest.mark.parametrize("task", ["classes", "regression"])
def test_the_user_decides_without_a_note(task):
    assert decision([0.5, 1.5], task=task) == decide(
        np.array([1.0, 2.0]), distinct=2, rows=5, task=task, name="t"
    )


@pytest.mark.parametrize("task", [None, "classes", "regression"])
def test_a_single_value_is_nothing_to_learn(task):
    with pytest.raises(ValueError, match="'t' must have two different values or more, all 5 rows"):
        decide(np.array([1.0]), distinct=1, rows=5, task=task, name="t")


def test_words_are_classes_unless_nearly_all_differ():
    assert decide(None, distinct=50, rows=60, task=None, name="t").task == "classes"
    assert decide(None, distinct=51, rows=200, task=None, name="t").task == "classes"
    assert decide(None, distinct=51, rows=60, task="classes", name="t").task == "classes"
    with pytest.raises(
        ValueError, match=r"'t' must have fewer classes, has 51 .* \(--target\), or"
    ):
        decide(None, distinct=51, rows=60, task=None, name="t")


def test_words_are_no_regression_and_other_tasks_do_not_exist():
    with pytest.raises(ValueError, match="task must be classes for the target 't', got regression"):
        decide(None, distinct=2, rows=60, task="regression", name="t")
    with pytest.raises(ValueError, match="task must be one of classes, regression, got 'ranking'"):
        decide(None, distinct=2, rows=60, task="ranking", name="t")
