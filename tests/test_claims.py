"""Sentences and tables of README and docs/results.md that judge: they follow from the rows.

`expected_…` functions make the lines that must be on the pages.
"""

from functools import cache
from pathlib import Path
from statistics import fmean, stdev

import pytest

from kmixup.lab.experiments.rows import read
from kmixup.lab.formatting import number, signed
from kmixup.lab.paper.presets import PRESETS
from kmixup.lab.report.comparisons import (
    agreement,
    best_against_best,
    column_tests,
    comparisons,
    recipes,
)
from kmixup.lab.report.frame import results_of
from kmixup.lab.report.sweep import printed_text

ROOT = Path(__file__).parents[1]
README, PAGE = ((ROOT / name).read_text() for name in ("README.md", "docs/results.md"))
UCI = ("Abalone", "Arrhythmia", "Cancer", "Iris", "Phishing")
AFTER_HOLM = {-1: "**lower**", 0: "undecided", 1: "**higher**"}


@cache
def results(name):
    return results_of(read(ROOT / "results" / name), PRESETS[name].tables)


def result(name, title):
    return next(entry for entry in results(name) if entry.title == title)


def best(name, title, rule="same"):
    """The best k > 1 less the best k = 1."""
    (comparison,) = best_against_best(result(name, title), rule)
    return comparison


def corrected(name, rule="same"):
    """k = 16 against k = 1 by the name of the column, corrected for all columns."""
    return {test.where: test for test in column_tests(results(name), 16, rule)}


def cell(name, title, k, alpha=1.0, rule="same"):
    outcome = result(name, title)
    if k == 0:
        return outcome.erm[0]
    (grid,) = (grid for grid in outcome.grids if grid.rule == rule)
    return next(cell for cell in grid if (cell.k, cell.alpha) == (k, alpha))


def error(cell):
    return f"{cell.mean:.2f} ± {cell.standard_error:.2f}"


def paired(new, old):
    """Mean and standard error of the differences of two cells, paired by seed."""
    differences = [new.errors[seed] - old.errors[seed] for seed in sorted(new.errors)]
    return fmean(differences), stdev(differences) / len(differences) ** 0.5


def expected_expectation(title):
    """What a user can expect on a data set: at alpha = 1, and after a search."""
    test = corrected("uci")[f"{title}, α = 1"]
    at_one = [error(cell("uci", title, k)) for k in (0, 1, 16)]
    searched = best("uci", title).held_out
    return (
        f"| {title} | {' | '.join(at_one)} | {test.difference.text} | {AFTER_HOLM[test.side]} | "
        f"{searched.text} |"
    )


def expected_verdict(title):
    """The claim of the paper on a data set: ours, for new data, the paper's, and the verdict."""
    comparison = best("uci", title)
    low, high = comparison.held_out.new_data
    return (
        f"| {title} | {comparison.held_out.text} | [{signed(low)}, {signed(high)}] | "
        f"{printed_text(comparison)} | {comparison.verdict.outcome} |"
    )


def expected_recipes(title):
    """The two recipes of the appendix against mixup."""
    outcome = result("uci", title)
    (grid,) = (grid for grid in outcome.grids if grid.rule == "same")
    simple, two_steps = recipes(outcome, grid)
    return (
        f"| {title} | {simple.held_out.text} | {signed(simple.paper)} | "
        f"{two_steps.held_out.text} | {signed(two_steps.paper)} |"
    )


def expected_reading(name, title):
    """Both readings of alpha: distances of levels and of shapes, and which is nearer."""
    found = agreement(result(name, title))
    fits = {fit.rule: fit for fit in found.fits}
    names = {"same": "the same alpha", "xi": "calibrated"}
    levels = f"{number(fits['same'].distance)} | {number(fits['xi'].distance)}"
    shapes = f"{number(fits['same'].shape)} | {number(fits['xi'].shape)}"
    by_level = names[found.nearer.rule] if found.decided else "cannot tell"
    by_shape = names[found.nearer_shape.rule] if found.shape_decided else "cannot tell"
    return f"| {title} | {levels} | {by_level} | {shapes} | {by_shape} |"


@pytest.mark.parametrize("title", UCI)
def test_the_tables_of_the_uci_data_follow_from_the_rows(title):
    assert expected_expectation(title) in README
    assert expected_verdict(title) in PAGE
    assert expected_recipes(title) in PAGE


@pytest.mark.parametrize(
    ("name", "title"),
    [("toy", toy) for toy in ("One Ring", "Four Bars", "Swiss Roll")] + [("uci", t) for t in UCI],
)
def test_the_readings_of_alpha_follow_from_the_rows(name, title):
    assert expected_reading(name, title) in PAGE


def by_names(*words, page=PAGE):
    for text in words:
        assert text in page, text


def test_verdicts_in_words_follow_from_the_rows():
    compared = {title: best("uci", title) for title in UCI}
    assert all(comparison.held_out.side == 0 for comparison in compared.values())
    assert all(
        not comparison.held_out.low <= comparison.paper <= comparison.held_out.high
        for comparison in compared.values()
    )
    excluded = [
        title for title, comparison in compared.items() if "ruled out" in comparison.verdict.outcome
    ]
    assert excluded == ["Cancer", "Iris", "Phishing"]
    by_names("its size is excluded on Cancer, Iris and Phishing")
    by_names("its size is excluded on Cancer, Iris and Phishing", page=README)


def test_what_stays_after_the_correction_follows_from_the_rows():
    same, xi = corrected("uci"), corrected("uci", "xi")
    assert len(same) == 15
    assert {where: test.side for where, test in same.items() if test.side} == {
        "Arrhythmia, α = 1": 1, "Cancer, α = 1": -1, "Iris, α = 1": -1, "Phishing, α = 1": -1,
    }  # fmt: skip
    beyond = {where for where, test in same.items() if test.difference.side} - {"Arrhythmia, α = 1"}
    assert beyond == {f"{title}, α = 1" for title in ("Abalone", "Cancer", "Iris", "Phishing")}
    low, high = same["Phishing, α = 1"].difference.new_data
    by_names(f"the interval of Phishing alone, [{signed(low)}, {signed(high)}], is without 0")
    for title in ("Abalone", "Arrhythmia", "Cancer", "Iris"):
        low, high = same[f"{title}, α = 1"].difference.new_data
        assert low < 0 < high
    assert {w: signed(t.difference.mean) for w, t in xi.items() if t.side} == {
        "Cancer, α = 1": "−0.66", "Iris, α = 1": "−1.90", "Phishing, α = 1": "+0.20",
    }  # fmt: skip
    by_names("is lower on Cancer (−0.66) and Iris (−1.90), and higher on Phishing (+0.20)")


def test_the_pattern_at_alpha_one_in_words_follows_from_the_rows():
    means, moves = {}, {}
    for title in UCI:
        new, old = cell("uci", title, 16), cell("uci", title, 1)
        mean, spread = paired(new, old)
        means[title] = f"{signed(mean)} ± {spread:.2f}"
        moves[title] = f"{old.mean:.2f} to {new.mean:.2f}"
        printed_move = f"{old.paper:.2f} to {new.paper:.2f}"
        if title in ("Cancer", "Iris", "Phishing"):
            assert f"{moves[title]} (" in PAGE
            assert f"{printed_move})" in PAGE
    by_names(
        f"{means['Cancer']}, {means['Iris']} and {means['Phishing']}, stay",
        f"That of Abalone, {moves['Abalone']} or {means['Abalone']}, does not",
        f"at alpha = 1 by {means['Arrhythmia'].removeprefix('+')}",
    )
    erm, mixup = cell("uci", "Arrhythmia", 0), cell("uci", "Arrhythmia", 1)
    by_names(
        f"({mixup.mean:.2f} against {erm.mean:.2f} for ERM)",
        f"({mixup.paper:.2f} against {erm.paper:.2f})",
    )
    harmed = [t for t in UCI if cell("uci", t, 1).mean > cell("uci", t, 0).mean]
    assert harmed == ["Abalone", "Cancer", "Iris", "Phishing"]


def test_the_comparison_with_plain_training_follows_from_the_rows():
    compared = {}
    for title in UCI:
        (compared[title],) = (
            comparison
            for comparison in comparisons(result("uci", title))
            if (comparison.new, comparison.old) == ("mixup", "ERM")
        )
    sides = {title: comparison.held_out.side for title, comparison in compared.items()}
    assert sides == {"Abalone": 1, "Arrhythmia": -1, "Cancer": 0, "Iris": 0, "Phishing": 0}
    for title in ("Phishing", "Abalone", "Iris", "Cancer"):
        erm = cell("uci", title, 0)
        assert f"{erm.mean:.2f} %" in PAGE
        assert f"{erm.paper:.2f}" in PAGE
    gains = [f"{-compared[title].paper:.2f}" for title in ("Phishing", "Abalone")]
    losses = [f"{compared[title].on_test:.2f}" for title in ("Phishing", "Abalone")]
    by_names(
        f"gains {gains[0]} points on Phishing and {gains[1]} on Abalone; "
        f"here it loses {losses[0]} and {losses[1]}"
    )


def test_the_recipes_in_words_follow_from_the_rows():
    sides = {"simple": {}, "two steps": {}}
    for title in UCI:
        outcome = result("uci", title)
        (grid,) = (grid for grid in outcome.grids if grid.rule == "same")
        simple, two_steps = recipes(outcome, grid)
        sides["simple"][title] = simple.held_out.side
        sides["two steps"][title] = two_steps.held_out.side
    assert [title for title, side in sides["simple"].items() if side > 0] == ["Abalone", "Phishing"]
    assert min(sides["simple"].values()) == 0
    assert set(sides["two steps"].values()) == {0}


def test_the_scaling_of_columns_in_words_follows_from_the_rows():
    columns = [
        100 * row.error
        for row in read(ROOT / "results/columns")
        if row.trial.data == "cancer" and row.trial.method.name == "erm"
    ]
    (level,) = (
        fit.distance for fit in agreement(result("uci", "Cancer")).fits if fit.rule == "same"
    )
    phishing = [cell("uci", "Phishing", k, rule="xi") for k in (1, 16)]
    by_names(
        f"ERM errs on {fmean(columns):.2f} %, and mixing hardly matters",
        f"come within {level:.2f} points of the paper's",
        f"from {phishing[0].mean:.2f} to {phishing[1].mean:.2f}, where the paper's falls from "
        f"{phishing[0].paper:.2f} to {phishing[1].paper:.2f}",
    )


def test_the_toys_in_words_follow_from_the_rows():
    toys = ("One Ring", "Four Bars", "Swiss Roll")
    erm = [f"{cell('toy', title, 0).mean:.2f}" for title in toys]
    by_names(f"ERM is at {erm[0]}, {erm[1]} and {erm[2]}.")
    higher = {}
    for title in toys:
        for alpha in (0.25, 1.0, 4.0, 16.0, 64.0):
            old, new = cell("toy", title, 1, alpha), cell("toy", title, 16, alpha)
            assert new.mean <= old.mean
            calibrated = cell("toy", title, 16, alpha, "xi")
            if calibrated.mean > old.mean:
                higher[title, alpha] = f"{error(calibrated)} against", f"{error(old)}"
    assert list(higher) == [("Swiss Roll", 0.25), ("Swiss Roll", 1.0)]
    for new, old in higher.values():
        assert new in PAGE
        assert old.removesuffix(" ± 0.00") in PAGE


def test_mnist_in_words_follows_from_the_rows():
    by_alpha = {k: [cell("mnist", "MNIST", k, a).mean for a in (0.2, 100.0)] for k in (1, 64)}
    by_names(*(f"({first:.2f} to {last:.2f})" for first, last in by_alpha.values()))
    tests = column_tests(results("mnist"), 64, "same")
    assert [test.where[-7:] for test in tests if test.difference.side] == ["α = 100"]
    assert not any(test.side for test in tests)


def test_the_rate_of_mnist_in_words_follows_from_the_rows():
    rows = [row for row in read(ROOT / "results/settings/mnist") if row.trial.protocol.rate == 0.1]
    assert max(row.error for row in rows) < 0.1  # chance is 0.9
    slowest = max(rows, key=lambda row: row.curve.loss[0])
    assert slowest.trial.seed == 0
    by_names(
        f"all {len(rows)} networks learned within an epoch",
        f"a mean training loss of {slowest.curve.loss[0]:.2f} in its first epoch",
    )
