"""Several tests at once, against the closure of all subsets, and recipes against loops."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_rows import sweep, table

from kmixup.lab.paper.tables import BEST_CELLS
from kmixup.lab.report.account import Preface, account_of
from kmixup.lab.report.grids import partition_of
from kmixup.lab.report.markdown import markdown
from kmixup.lab.report.outcomes import outcomes
from kmixup.lab.report.recipes import recipes
from kmixup.lab.report.several import column_tests, holm, sentences


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


def drawn(gap, trials=10):
    """k = 16 differs from k = 1 by `gap[alpha]`, with a little noise."""
    draw = np.random.default_rng(0)
    return sweep(
        lambda k, alpha, rule, seed: 10 + (gap[alpha] if k > 1 else 0) + draw.normal() / 10,
        trials=trials,
        rules=("same",),
    )


def test_what_is_beyond_chance_is_named_with_its_side():
    findings = account_of(drawn({0.1: 2.0, 1.0: -3.0}), [table()]).findings
    (text,) = sentences(findings)
    assert text.startswith(
        "k = 16 against k = 1 in the same column, the same alpha at every k, corrected for 2 tests "
        "(Holm): lower in Iris, α = 1 (−"
    )
    assert "higher in Iris, α = 0.1 (+" in text
    assert "undecided" not in text


def test_a_family_has_the_tests_of_all_tables():
    tables = [table(), table(name="again", title="Iris again")]
    tests = column_tests(account_of(drawn({0.1: 0.0, 1.0: -3.0}), tables).findings, 16, "same")
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
    (outcome,) = outcomes(rows, [three])
    simple, steps = recipes(outcome, outcome.grids[0])
    expected = [[], []]
    even, odd = slice(0, None, 2), slice(1, None, 2)
    for half, rest in ((even, odd), (odd, even)):
        mixup = min((0.1, 1.0), key=lambda alpha: errors[1, alpha][half].mean())
        for of, alpha in enumerate((1.0, mixup)):
            k = min((4, 16), key=lambda k: errors[k, alpha][half].mean())
            expected[of] += list(errors[k, alpha][rest] - errors[1, mixup][rest])
    assert [simple.honest.mean, steps.honest.mean] == pytest.approx(np.mean(expected, 1).tolist())
    assert (simple.paper, steps.paper) == pytest.approx((4.0 - 6.0, 3.0 - 6.0))


def test_recipes_are_in_the_report_of_a_table_of_the_paper():
    account = account_of(drawn({0.1: 2.0, 1.0: -3.0}), [table()])
    text = markdown(account, Preface("uci", "kmixup", None, BEST_CELLS, ()))
    assert "alpha = 1 and the best k against mixup, the same alpha at every k: reproduced." in text
    assert "the best alpha of mixup and the best k against mixup" in text
    assert "corrected for 2 tests (Holm)" in text
    assert "new data [" in text


def test_a_table_that_every_trial_splits_anew_has_a_ratio_and_a_resolution():
    rows = drawn({0.1: 0.0, 1.0: 0.0}, trials=1)
    partition = partition_of(rows)
    data = rows[0].data
    assert partition.resolution == pytest.approx(100 / data.test)
    assert partition.ratio == pytest.approx(data.test / data.train)
    assert partition_of([]).ratio is None
