"""Claims that a grid can answer, and that the paper's own grids bear them out."""

import pytest
from printed import TABLES, above_one, lowest

from kmixup.lab.paper.presets import PRESETS
from kmixup.lab.paper.tables import Claim


def margins(claim, table):
    """By how much the claim's `better` is below its `than`, for the table or for each column."""
    others = [k for k in above_one(table) if claim.k in (None, k)]
    better, than = (others, [1]) if claim.than == "mixup" else ([1], others)
    groups = [[column] for column in table.columns] if claim.each == "column" else [table.columns]
    return tuple(
        lowest(table, ks=than, columns=group) - lowest(table, ks=better, columns=group)
        for group in groups
    )


def test_a_claim_has_mixup_on_one_side():
    for better, than in (("mixup", "mixup"), ("kmixup", "nearest")):
        with pytest.raises(ValueError, match='one of better and than must be "mixup"'):
            Claim(better, than)


def test_the_papers_grids_bear_out_every_claim():
    zeros = []
    for preset in PRESETS.values():
        for table in (table for table in preset.tables if table.name in TABLES):
            for margin in margins(preset.comparison, table):
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
        assert margins(preset.comparison, table) == pytest.approx((margin,))
        assert f"{margin:.2f} %" in preset.claim
    attack = PRESETS["fgsm-cifar10"]
    (table,) = attack.tables
    assert max(margins(attack.comparison, table)) == pytest.approx(6.12)
    swiss = PRESETS["toy"].tables[2]
    best = [
        min(zip(column, swiss.ks, strict=True))[1] for column in zip(*swiss.errors, strict=True)
    ]
    assert best == [4, 16, 16, 16, 16]  # the one column of the toys where k = 16 is not best
