"""Every row is in its cell, once, and a cell that lacks something says so."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_rows import (
    BASE,
    failed,
    method,
    partition_of,
    results_of,
    row,
    sweep,
    table,
    tables_of,
    unplaced,
)

from kmixup.lab.paper.tables import ErrorColumn
from kmixup.lab.report.frame import cells_csv
from kmixup.lab.trial import Method


def only(rows, of=None):
    (outcome,) = results_of(rows, [of or table()])
    return outcome


def cell(outcome, k, alpha, rule="same", eps=None):
    (grid,) = (grid for grid in outcome.grids if grid.rule == rule)
    (chosen,) = (c for c in grid if (c.k, c.alpha, c.eps) == (k, alpha, eps))
    return chosen


@given(st.lists(st.floats(0, 100), min_size=2, max_size=30))
def test_a_cell_has_the_mean_of_its_trials_and_the_standard_deviation_of_that_mean(errors):
    rows = [row(method(16, 1.0), error, seed) for seed, error in enumerate(errors)]
    chosen = cell(only(rows), 16, 1.0)
    assert chosen.mean == pytest.approx(np.mean(errors))
    assert chosen.standard_error == pytest.approx(
        np.std(errors, ddof=1) / np.sqrt(len(errors)), abs=1e-9
    )


def test_mixup_is_in_the_grids_of_both_alpha_rules():
    outcome = only(sweep(lambda k, alpha, rule, seed: 1.0))
    assert [grid.rule for grid in outcome.grids] == ["same", "xi"]
    assert cell(outcome, 1, 0.1, "same").errors == cell(outcome, 1, 0.1, "xi").errors
    assert len(outcome.lines) == outcome.lines.id.nunique() == 6 * (1 + 2 + 4)
    single = only(sweep(lambda *_: 1.0, rules=("xi",)))
    assert [grid.rule for grid in single.grids] == ["xi"]


def test_cells_tell_failed_trials_from_missing_ones():
    rows = [row(method(16, 1.0), 2.0, seed) for seed in range(3)]
    rows += [row(method(16, 0.1), 2.0, 0), failed(method(16, 0.1), 1)]
    outcome = only([*rows, failed(Method("mixup", alpha=1.0), 0)])
    partly, never, broke = cell(outcome, 16, 0.1), cell(outcome, 1, 0.1), cell(outcome, 1, 1.0)
    assert (len(partly.done), partly.failed, partly.missing) == (1, 1, 1)
    assert (never.mean, never.missing) == (None, 3)
    assert (broke.mean, broke.failed, broke.missing) == (None, 1, 2)
    assert partly.standard_error is None
    assert all(entry.mean is None and entry.missing == 0 for entry in only([]).cells)


def test_alpha_and_xi_are_means_over_trials_and_an_infinite_alpha_stays_so():
    rows = [row(method(16, 1.0, "xi"), 2.0, seed, alpha=2.0 + seed, xi=1.0) for seed in range(3)]
    assert [cell(only(rows), 16, 1.0, "xi").mean_of(n) for n in ("trained_alpha", "xi")] == [
        3.0,
        1.0,
    ]
    rows[0] = replace(rows[0], alpha=math.inf)
    assert cell(only(rows), 16, 1.0, "xi").mean_of("trained_alpha") == math.inf


def test_rows_of_different_settings_are_never_averaged():
    longer = replace(BASE, protocol=replace(BASE.protocol, epochs=9))
    rows = sweep(lambda *_: 1.0) + sweep(lambda *_: 3.0, base=longer)
    found = {result.title: [c.mean for c in result.cells] for result in results_of(rows, [table()])}
    assert list(found) == ["Iris (epochs = 3)", "Iris (epochs = 9)"]
    assert list(found.values()) == [[1.0] * 7, pytest.approx([3.0] * 7)]


def test_erm_is_beside_every_way_of_pairing():
    ways = [Method("kmixup", k=16, pairing=pairing) for pairing in ("loaders", "batch")]
    rows = [row(Method("erm"), 5.0), *(row(way, 3.0) for way in ways)]
    found = results_of(rows, [table()])
    assert [outcome.distinct for outcome in found] == [{"pairing": "batch"}, {"pairing": "loaders"}]
    assert [outcome.erm[0].mean for outcome in found] == [5.0, 5.0]


def test_noise_and_attacks_are_read_at_the_eps_of_the_column():
    columns = (ErrorColumn(1.0, eps=4), ErrorColumn(1.0, eps=8))
    of = table(columns=columns, measure="fgsm", erm=None, confidence=None)
    rows = [row(method(16, 1.0), 1.0, fgsm={4: 10.0, 8: 20.0}), row(method(16, 1.0), 1.0, seed=1)]
    rows += [row(Method("erm"), 1.0, fgsm={4: 30.0, 8: 40.0})]
    outcome = only(rows, of)
    assert cell(outcome, 16, 1.0, eps=4).errors == {0: pytest.approx(10.0)}
    assert cell(outcome, 16, 1.0, eps=8).errors == {0: pytest.approx(20.0)}
    assert [entry.mean for entry in outcome.erm] == [30.0, pytest.approx(40.0)]


def test_a_trial_that_was_run_twice_for_other_tests_counts_once():
    rows = [row(method(16, 1.0), 2.0), row(method(16, 1.0), 2.0, noise={8: 9.0})]
    assert cell(only(rows), 16, 1.0).errors == {0: 2.0}
    rows = [row(method(16, 1.0), 2.0, noise={8: 9.0}), failed(method(16, 1.0))]
    for order in (rows, rows[::-1]):
        assert cell(only(order), 16, 1.0).errors == {0: 2.0}


def test_other_k_and_alpha_than_the_papers_get_rows_and_columns_of_their_own():
    outcome = only([*sweep(lambda *_: 1.0), row(method(64, 5.0), 2.0)])
    assert outcome.ks == (1, 16, 64)
    assert [column.alpha for column in outcome.columns] == [0.1, 1.0, 5.0]
    assert cell(outcome, 64, 5.0).mean == 2.0
    assert cell(outcome, 64, 5.0).paper is None
    assert cell(outcome, 16, 1.0).paper == 4.0


def test_a_table_is_not_widened_by_rows_that_have_a_place_in_another():
    narrow = table(name="narrow", columns=(ErrorColumn(1.0, 0.5),), errors=((7.0,), (4.0,)))
    found = results_of(sweep(lambda *_: 1.0), [table(), narrow])
    assert [len(result.columns) for result in found] == [2, 1]


def test_nearest_shares_mixup_and_erm_and_is_in_no_table_of_k_mixup():
    rows = [
        row(Method("erm"), 5.0),
        row(Method("mixup", alpha=1.0), 4.0),
        row(Method("nearest", k=16), 6.0),
    ]
    outcome = only(rows, table(method="nearest"))
    assert [cell(outcome, k, 1.0).mean for k in (1, 16)] == [4.0, 6.0]
    assert unplaced(rows, results_of(rows, [table()])) == {rows[-1].id}


@given(st.integers(0, 10**6))
def test_the_order_of_rows_changes_nothing(seed):
    rows = sweep(lambda k, alpha, rule, seed: k + alpha + seed, trials=2)
    mixed = list(rows)
    random.Random(seed).shuffle(mixed)
    assert cells_csv(results_of(mixed, [table()])) == cells_csv(results_of(rows, [table()]))


def test_your_own_sweep_has_a_table_for_each_data_set_method_and_level():
    rows = sweep(lambda *_: 1.0, trials=2)
    rows += [row(method(4, 0.5), 1.0, base=replace(BASE, data="cancer", model="mlp-cancer"))]
    rows += [row(Method("nearest", k=8), 1.0), row(method(16, 1.0), 1.0, noise={8: 3.0})]
    tables = tables_of(rows)
    assert [(entry.data, entry.method, entry.measure) for entry in tables] == [
        ("cancer", "kmixup", "error"),
        ("iris", "kmixup", "error"),
        ("iris", "nearest", "error"),
        ("iris", "kmixup", "noise"),
    ]
    assert tables[1].ks == (1, 16)
    assert tables[1].alphas == (0.1, 1.0)
    assert all(entry.errors is None for entry in tables)
    assert not unplaced(rows, results_of(rows, tables))


def test_erm_alone_is_an_outcome_and_has_a_table():
    rows = [row(Method("erm"), 5.0)]
    (of,) = tables_of(rows)
    assert of.ks == ()
    for outcome in (only(rows), only(rows, of)):
        assert outcome.erm[0].mean == 5.0
        assert outcome.setting["pairing"] is None


def test_a_table_that_every_trial_splits_anew_has_a_ratio_and_a_resolution():
    rows = sweep(lambda *_: 1.0, trials=1)
    data = rows[0].data
    assert partition_of(rows).resolution == pytest.approx(100 / data.test)
    assert partition_of(rows).ratio == pytest.approx(data.test / data.train)
    assert partition_of([]).ratio is None
