"""The page of a comparison: what it shows, and what it does not claim."""

import math

import pytest
from report_rows import text_of
from sweeping import done_row, failed_row

from kmixup.lab.evaluate.scores import ClassScores, NumberScores
from kmixup.lab.experiments.compare import compare, make_contests
from kmixup.lab.experiments.references import Reference
from kmixup.lab.report import render_html, render_text
from kmixup.lab.report.compare import compare_document, pooled, standings_of
from kmixup.lab.report.stats import holm

DATA = ("iris", "cancer", "four-bars")
COMMAND = "kmixup compare"
LEVEL = {"erm": 30, "mixup": 20, "kmixup": 10, "nearest": 40, "regmixup": 20.5}


def error(trial):
    """k-mixup is best by far, RegMixup as good as mixup; trials differ a little."""
    noise = (trial.seed * 7 + len(trial.method.name)) % 5 / 1000
    return LEVEL[trial.method.name] / 100 + noise


def judged(error=error, *, data=DATA, trials=5):
    """Standings in which `error` gives the error of a trial, its row, or None for a failure."""

    def row_of(trial):
        found = error(trial)
        if found is None:
            return failed_row(trial, "ValueError: <no>")
        return done_row(trial, found) if isinstance(found, float) else found

    contests = make_contests(data, methods=list(LEVEL), settings=2, trials=trials)
    return standings_of(
        [compare(contest, lambda asked: map(row_of, asked)) for contest in contests]
    )


@pytest.fixture(scope="module")
def standings():
    return judged()


@pytest.fixture(scope="module")
def html(standings):
    return page(standings, command="kmixup compare iris cancer four-bars")


def page(standings, command=COMMAND):
    return render_html.html(compare_document(standings, command))


def markdown(standings, command=COMMAND):
    return render_text.markdown(compare_document(standings, command))


def headline(standings):
    first = compare_document(standings, "").blocks[0]
    return (first.text, *first.sentences)


def test_the_page_has_ranks_errors_comparisons_and_the_protocol(html):
    text = text_of(html)
    assert "Best mean rank on 3 data sets: k-mixup, 1.00." in text
    assert "5 methods on 3 data sets, 5 paired trials each" in text
    assert "critical difference, 3.52" in text
    assert "Against mixup and ERM, 21 tests with Holm correction: better: k-mixup than " in text
    assert "k = 4, α 1 (5)" in text
    assert "held out to tune on 20 %" in text
    assert "kmixup compare iris cancer four-bars" in text


def test_tables_that_are_split_anew_have_intervals_for_new_data(standings):
    lines = markdown(standings, command="").splitlines()
    against, *_ = (line for line in lines if line.startswith("| iris: RegMixup − mixup |"))
    test = standings.tests["iris", "RegMixup", "mixup"]
    low, high = test.difference.new_data
    assert low < test.difference.low < test.difference.high < high
    assert f"| [{low:+.2f}, {high:+.2f}] |".replace("-", "−") in against
    drawn, *_ = (line for line in lines if line.startswith("| four-bars: RegMixup − mixup |"))
    assert drawn.split("|")[4].strip() == "–"  # every trial draws its own points


def test_ranks_are_of_mean_errors_and_comparisons_are_corrected_for_all_of_them(standings):
    assert standings.ranking.names == ("k-mixup", "mixup", "RegMixup", "ERM", "nearest neighbours")
    assert standings.ranking.ranks == (1.0, 2.0, 3.0, 4.0, 5.0)
    assert "differ significantly (Friedman's test, p = " in headline(standings)[1]
    assert len(standings.tests) == 21  # four methods against mixup but for ERM, four against ERM
    tests = standings.tests.values()
    assert [test.p for test in tests] == list(holm([test.difference.p for test in tests]))
    assert standings.tests["iris", "k-mixup", "mixup"].side == -1
    assert standings.tests["cancer", "mixup", "ERM"].side == -1


def test_page_and_markdown_are_written(standings, tmp_path):
    path = render_html.write(
        compare_document(standings, COMMAND), tmp_path / "compare.html", report=True
    )
    assert path.name == "compare.html"
    text = (tmp_path / "report.md").read_text()
    assert text == markdown(standings)
    assert "| k-mixup | * 10." in text.replace("\\*", "*")


def test_a_method_with_missing_trials_is_not_ranked_and_named():
    def failing(trial):
        return None if trial.method.name == "regmixup" and trial.data == "iris" else error(trial)

    standings = judged(failing, data=("iris", "cancer"))
    assert "Not ranked, trials are missing: RegMixup." in headline(standings)
    assert "ValueError: &lt;no&gt;" in page(standings)


def test_one_data_set_gives_an_order_and_no_test():
    standings = judged(data=("iris",), trials=1)
    assert standings.ranking.p is None
    assert headline(standings)[0] == "Too few trials to test differences: that takes 3."
    assert standings.tests == {}
    assert "do not overlap" not in page(standings)


def test_methods_that_share_the_best_rank_are_all_named():
    def tied(trial):
        return 0.1 if trial.method.name in ("kmixup", "regmixup") else error(trial)

    first = headline(judged(tied))[0]
    assert first == "Best mean rank on 3 data sets: k-mixup and RegMixup, 1.50."


def test_an_order_that_is_not_significant_is_not_the_headline():
    def alike(trial):
        names = sorted(LEVEL)
        return 0.1 + (names.index(trial.method.name) + DATA.index(trial.data)) % 5 / 100

    first, second, _ = headline(judged(alike))
    assert "do not differ significantly" in first
    assert second.startswith("Best mean rank on 3 data sets: ")


def test_a_mean_over_a_part_of_the_trials_is_not_marked_as_the_least():
    def failing(trial):
        late = trial.seed > 1 and trial.validation is None
        return None if trial.method.name == "kmixup" and late else error(trial)

    (row,) = (
        line for line in markdown(judged(failing), command="").splitlines() if "3 missing" in line
    )
    assert row.startswith("| k-mixup |")
    assert "*" not in row


def test_a_comparison_in_which_all_fails_has_a_page_that_says_so():
    standings = judged(lambda trial: None, data=("iris",))
    assert headline(standings)[0].startswith("Too few trials")
    assert "5 methods on 1 data set" in text_of(page(standings))


def test_a_regression_is_labelled_with_its_metric():
    def numbers(trial):
        return done_row(trial, scores=NumberScores(error(trial), 1.0, 0.5))

    standings = judged(numbers, data=("iris",))
    assert "RMSE" in text_of(page(standings))
    assert "| 0.10" in markdown(standings).replace("\\* ", "")


def test_networks_that_all_predict_a_constant_are_no_tie():
    def constant(trial):
        return done_row(trial, scores=ClassScores(0.02, 0.1, 0.1, 0.02, 0.5, None, 1))

    standings = judged(constant, data=("iris", "cancer"))
    assert headline(standings)[0] == "Nothing was learned: all networks predict a constant."
    assert "no significant difference" not in markdown(standings)


def test_what_is_not_significant_has_the_largest_gain_that_is_not_excluded():
    def close(trial):
        noisy = trial.method.name == "regmixup"
        return error(trial) + noisy * (-0.005 + trial.seed % 3 / 100 - 0.01)

    standings = judged(close, data=("iris",))
    test = standings.tests["iris", "RegMixup", "mixup"]
    assert test.side == 0
    assert test.difference.low < 0
    said = headline(standings)[0]
    gain = f"{-test.difference.low:.2f}"
    assert f"RegMixup and mixup (largest gain not excluded: {gain} points)" in said
    (line,) = (line for line in markdown(standings).splitlines() if "RegMixup − mixup |" in line)
    assert line.split("|")[4].strip() == gain


def test_several_data_sets_have_the_mean_relative_change(standings):
    assert set(pooled(standings)) == {(new, old) for _, new, old in standings.tests}
    halved = pooled(standings)["k-mixup", "mixup"]
    assert halved.high < 0
    assert halved.mean == pytest.approx(math.log(0.5), abs=0.1)
    text = markdown(standings)
    assert f"| k-mixup against mixup | {halved.text} | {100 * halved.largest_gain:.1f} % |" in text


def test_reference_models_are_shown_and_neither_tested_nor_ranked():
    (contest,) = make_contests(["iris"], methods=["erm", "mixup"], settings=2, trials=3)
    models = [Reference("linear model", {0: 0.01, 1: 0.02, 2: 0.03}, {0: "a", 1: "a", 2: "b"}, 2)]

    def run(trials):
        return [done_row(trial, error(trial)) for trial in trials]

    standings = standings_of([compare(contest, run, references=lambda contest: models)])
    assert standings.ranking.names == ("mixup", "ERM")
    assert {new for _, new, _ in standings.tests} == {"mixup"}
    text = markdown(standings)
    assert "| linear model | \\* 2.00 ± 0.58 |" in text
    assert "| iris | linear model | a (2); b (1) |" in text
