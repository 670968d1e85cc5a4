"""Claims as comparisons, and that the paper's own grids bear them out."""

import pytest

from kmixup.lab.paper import PRESETS, Comparison

GRID = [[3.0, 2.0, 5.0], [2.0, 4.0, None], [4.0, 1.5, 6.0]]


def test_margins_are_of_the_best_cells_of_either_side():
    assert Comparison().margins([1, 4, 16], GRID) == (0.5,)
    assert Comparison(k=4).margins([1, 4, 16], GRID) == (0.0,)
    assert Comparison("mixup", "nearest").margins([1, 4, 16], GRID) == (-0.5,)


def test_margins_by_column_leave_out_what_was_not_run():
    assert Comparison(each="column").margins([1, 4, 16], GRID) == (1.0, 0.5, -1.0)
    assert Comparison(k=4, each="column").margins([1, 4, 16], GRID) == (1.0, -2.0, None)
    assert Comparison().margins([4, 16], GRID[1:]) == (None,)
    assert Comparison().margins([], []) == (None,)


def test_a_comparison_has_mixup_on_one_side():
    for better, than in (("mixup", "mixup"), ("kmixup", "nearest")):
        with pytest.raises(ValueError, match='one of better and than must be "mixup"'):
            Comparison(better, than)


def test_the_papers_grids_bear_out_every_claim():
    zeros = []
    for preset in PRESETS.values():
        for table in (one for one in preset.tables if one.errors is not None):
            for margin in preset.comparison.margins(table.ks, table.errors):
                assert margin >= 0, table.name
                zeros += [table.name] * (margin == 0)
    assert zeros == ["four-bars", "four-bars"]  # all rows are at 0.00 there


def test_margins_are_those_that_the_claims_name():
    named = {
        "mnist": 0.10,
        "cifar10": 0.16,
        "cifar100": 2.14,
        "svhn": 0.15,
        "tiny-imagenet": 1.91,
        "speech": 1.11,
        "nearest": 0.09,
    }
    for name, margin in named.items():
        preset = PRESETS[name]
        (table,) = preset.tables
        assert preset.comparison.margins(table.ks, table.errors) == pytest.approx((margin,))
        assert f"{margin:.2f} %" in preset.claim
    attack = PRESETS["fgsm-cifar10"]
    margins = attack.comparison.margins(attack.tables[0].ks, attack.tables[0].errors)
    assert max(margins) == pytest.approx(6.12)
    swiss = PRESETS["toy"].tables[2]
    best = [
        min(zip(column, swiss.ks, strict=True))[1] for column in zip(*swiss.errors, strict=True)
    ]
    assert best == [4, 16, 16, 16, 16]  # the one column of the toys where k = 16 is not best
