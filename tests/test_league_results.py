"""The table of docs/league.md follows from the rows that are published with it."""

from pathlib import Path

import pytest

from kmixup.lab.experiments.league import make_contests, result_of
from kmixup.lab.experiments.rows import read
from kmixup.lab.formatting import with_error
from kmixup.lab.paper.presets import PRESETS, small_experiments
from kmixup.lab.report.comparisons import comparisons
from kmixup.lab.report.frame import results_of
from kmixup.lab.report.league import against_sentence, friedman_sentence, standings_of
from kmixup.lab.report.stats import paired

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/league.md").read_text().partition("## What was run")[2]
LINES = [line for line in PAGE.splitlines() if line.startswith("| ")]
TABLE = {line.split("|")[1].strip(): line for line in LINES if "±" in line}
METHODS = ["erm", "mixup", "kmixup"]


@pytest.fixture(scope="module")
def rows():
    return {row.id: row for row in read(ROOT / "results/league")}


@pytest.fixture(scope="module")
def results(rows):
    """What the published rows say of every data set on the page."""
    contests = make_contests(list(TABLE), methods=METHODS, experiments=small_experiments())
    return {contest.name: result_of(contest, rows) for contest in contests}


def test_the_page_has_all_that_was_run(rows, results):
    assert all(score.complete for result in results.values() for score in result.scores)


@pytest.mark.parametrize("name", TABLE)
def test_a_line_follows_from_the_rows(results, name):
    result = results[name]
    figures = [with_error(*vars(score.measured).values()) for score in result.scores]
    assert f"| {' | '.join([name, *figures])} |" in TABLE[name]


def test_ranks_and_comparisons_in_words_follow_from_the_rows(rows, results):
    standings = standings_of(list(results.values()))
    ranking = standings.ranking
    ranks = ", ".join(map("{} {:.2f}".format, ranking.names, ranking.ranks))
    said = f"The mean ranks are {ranks}. {friedman_sentence(ranking)} {against_sentence(standings)}"
    assert said in PAGE
    assert not ranking.differ
    assert "cannot be told apart by their ranks" in (ROOT / "README.md").read_text()
    assert f"{len(rows):,} networks" in PAGE


def test_the_gain_on_arrhythmia_follows_from_the_rows(results):
    erm, mixup, matched = (score.measured.value for score in results["arrhythmia"].scores)
    assert (round(erm - mixup), round(erm - matched)) == (2, 3)


def test_the_gain_on_mnist_follows_from_the_rows(results):
    erm, mixup, matched = results["mnist-1000"].scores
    gain = erm.measured.value - mixup.measured.value
    assert 0.6 < gain < 0.75  # two thirds of a point
    assert f"k-mixup less mixup is {paired(matched.errors, mixup.errors).text}." in PAGE
    chosen = [method.alpha for method in mixup.chosen.values()]
    assert (chosen.count(0.05), len(chosen)) == (4, 10)
    (whole,) = results_of(read(ROOT / "results/mnist-1000"), PRESETS["mnist-1000"].tables[:1])
    (best,) = (
        comparison.held_out.mean
        for comparison in comparisons(whole)
        if (comparison.new, comparison.old) == ("mixup", "ERM")
    )
    assert 0.6 < gain / -best < 0.7  # a third of the gain is lost
    assert min(method.alpha for method in matched.entrant.settings) == 0.2
