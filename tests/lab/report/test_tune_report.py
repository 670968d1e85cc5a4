"""The page of a search: what it shows, and what it does not claim."""

import re
from dataclasses import replace

import pytest
from report_rows import text_of
from sweeping import done_row, failed_row

from kmixup.lab.evaluate.scores import ClassScores
from kmixup.lab.experiments.rows import DataUsed
from kmixup.lab.experiments.search import make_strategy
from kmixup.lab.experiments.tuning import Plan, tune_plan
from kmixup.lab.report import render_html
from kmixup.lab.report.stats import mood_of
from kmixup.lab.report.tune import comparisons, headline, surface, tune_document, write_tune
from kmixup.lab.train.config import Method, Protocol, Trial


def rows_of(trials, error):
    """Rows as of a training; `error` gives that of a trial, None for one that fails."""
    for trial in trials:
        where = {"versions": {"kmixup": "1"}, "machine": {"cores": 2}}
        if (figure := error(trial)) is None:
            yield failed_row(trial, "ValueError: <no>", **where)
        else:
            train, test = (100, 50) if trial.validation is None else (80, 20)
            data = DataUsed(trial.data, None, train, test, 3, (4,), "paper")
            yield done_row(trial, figure, data=data, seconds=1.5, **where)


def error(trial):
    """k = 4 is best by far; without a seed's share in it, intervals would have no width."""
    method = trial.method
    best = 0.1 if method.name == "erm" else 0.05 + abs(method.k - 4) / 100 + method.alpha / 1000
    return best + trial.seed % 3 / 1000 * (1 + (method.k == 4))


def in_test(error_of):
    """Errors as above in the searches, those of `error_of` in the final test."""
    return lambda trial: error(trial) if trial.validation is not None else error_of(trial)


def tuned(name="grid", *, error=error, tests=4, k=(1, 4), alpha=(1,), **lists):
    base = Trial("iris", "mlp-iris", Method("erm"), Protocol(epochs=3), split=0)
    plan = Plan(base, make_strategy(name, k=k, alpha=alpha, **lists), 0.2, tests)
    return tune_plan(plan, lambda trials: list(rows_of(trials, error)))


def page(tuned, command=""):
    return render_html.html(tune_document(tuned, command))


@pytest.fixture(scope="module")
def searched():
    return tuned(k=[1, 2, 4], alpha=[0.5, 1], trials=3)


@pytest.fixture(scope="module")
def html(searched):
    return page(searched, command="kmixup tune --data iris")


def test_the_page_shows_surface_test_protocol_and_command(html):
    text = text_of(html)
    assert '<th scope="row">ERM</th><td colspan="2">10.10<small>' in html
    assert re.findall(r'<td class="best"[^>]*>(.*?)</td>', html) == [
        "5.25<small>± 0.12 (3)</small>"
    ]
    assert "18 trials of k-mixup, 18 of mixup" in text
    assert "held out 20 % of the training set" in text
    for fact in ("training samples 100", "of them held out 20", "epochs 3", "kmixup 1"):
        assert fact in text
    assert "None" not in text  # settings that were not made
    assert "<pre>kmixup tune --data iris</pre>" in html


@pytest.mark.parametrize(
    ("error_of", "tests", "outcome", "mood"),
    [
        (error, 4, "better", "good"),
        (lambda trial: error(trial) + 0.3 * (trial.method.k == 4), 4, "worse", "bad"),
        (
            lambda trial: 0.1 + (trial.seed % 2 - 0.5) / 100 * (trial.method.k == 4),
            4,
            "no significant difference",
            "open",
        ),
        (error, 1, "too few trials", "open"),
    ],
)
def test_a_method_is_better_only_if_the_corrected_test_says_so(error_of, tests, outcome, mood):
    found = tuned(error=in_test(error_of), tests=tests)
    first, *_ = comparisons(found)
    assert (first.outcome, mood_of([first])) == (outcome, mood)
    assert ("k-mixup is better" in headline(found).text) == (outcome == "better")
    assert headline(found).text.startswith("Too few trials") == (outcome == "too few trials")


def test_the_headline_names_the_best_of_the_test_with_a_line_to_copy(searched):
    said = headline(searched)
    assert said.text.startswith("k-mixup is better than mixup and ERM: test error 5.")
    assert (said.code, said.mood) == ("KMixup(k=4, alpha=0.5)", "good")
    assert f"<pre>{said.code}</pre>" in page(searched)


def test_erm_may_be_best():
    def harmful(trial):
        wobble = trial.seed % 3 / 1000 * trial.method.k
        return (0.05 if trial.method.name == "erm" else 0.1) + wobble

    said = headline(tuned(error=harmful))
    assert said.text.startswith("ERM is better than")
    assert said.code == "ERM (alpha=0)"
    same = headline(tuned(error=lambda trial: 0.1))
    assert same.text.startswith("No significant difference")
    assert same.code == "ERM (alpha=0)"  # of equal ones the simplest


def test_a_method_with_failed_trials_does_not_win_the_final_test():
    def often_diverges(trial):
        if trial.method.k == 4 and trial.seed % 4:
            return None
        return 0.01 if trial.method.k == 4 else 0.1

    said = headline(tuned(error=in_test(often_diverges)))
    assert said.code == "ERM (alpha=0)"
    assert "k-mixup: 3 trials failed." in said.sentences

    def once(trial):
        better = 0.01 if trial.method.k == 4 else 0.1
        return (
            None if (trial.method.k, trial.seed % 8) == (4, 0) else better + trial.seed % 3 / 1000
        )

    said = headline(tuned(error=in_test(once), tests=8))
    assert said.text.startswith("ERM has test error 10.")
    assert said.text.endswith("k-mixup scored significantly better, but with failed trials.")
    assert said.mood == "open"


def test_too_few_trials_do_not_make_erm_as_good():
    few, more = (
        headline(tuned(error=in_test(lambda t: 0.1 - 0.001 * t.method.k * (t.seed % 3)), tests=n))
        for n in (2, 4)
    )
    assert few.code == more.code == "KMixup(k=4, alpha=1)"
    assert not few.sentences
    assert more.sentences == ["ERM is simpler, and not significantly worse: ERM (alpha=0)."]


def with_answers(tuned, answers):
    """The final test with networks that predict so many classes."""
    scores = [ClassScores(0.014, 0.1, 0.1, 0.014, 0.5, None, count) for count in answers]

    def changed(final):
        pairs = zip(final.rows, scores, strict=True)
        return replace(final, rows=tuple(replace(row, scores=score) for row, score in pairs))

    return replace(tuned, tests=tuple(map(changed, tuned.tests)))


def test_networks_that_predict_a_constant_are_never_called_better():
    constant = tuned(error=lambda trial: 0.014)
    some = headline(with_answers(constant, [1, 1, 1, 2]))
    assert "9 of 12 networks are stuck on a single class" in " ".join(some.sentences)
    stuck = with_answers(constant, [1, 1, 1, 1])
    assert headline(stuck).text.startswith("Nothing was learned")
    assert headline(stuck).mood == "bad"
    assert {found.outcome for found in comparisons(stuck)} == {"nothing was learned"}


def test_headline_and_table_give_the_same_verdicts():
    """p = 0.022 twice: significant if two tests are corrected for, not if all three are."""
    gains = (1.2, 2.0, 3.0, 3.8)
    close = in_test(lambda trial: 0.1 - gains[trial.seed % 4] / 100 * (trial.method.k == 4))
    found = tuned(error=close)
    against = [c for c in comparisons(found) if c.new == "k-mixup"]
    assert [c.difference.side for c in against] == [-1, -1]
    assert [c.verdict for c in against] == ["no significant difference"] * 2
    assert headline(found).text.startswith("No significant difference")


def test_two_steps_fill_a_row_and_a_column_of_the_surface():
    drawn = surface(tuned("two-step", k=[2, 4], alpha=[0.5, 1], trials=2))
    assert [head for head, _ in drawn.head] == ["α 0.5", "α 1"]
    assert {label: [bool(box.text) for box in boxes] for label, boxes in drawn.rows} == {
        "ERM": [True], "k = 1": [True, True], "k = 2": [True, False], "k = 4": [True, False],
    }  # fmt: skip


def test_failures_are_shown():
    html = page(tuned(k=[1, 2, 4], error=lambda t: None if t.method.k == 2 else error(t)))
    assert "5 failed" in html
    assert "ValueError: &lt;no&gt;" in html
    untested = page(tuned(error=in_test(lambda trial: None)))
    assert "Every trial of the final test failed" in untested
    assert "too few trials" in untested


def test_the_order_of_the_rows_does_not_change_the_page(searched, html, tmp_path):
    again = replace(searched, rows=tuple(reversed(searched.rows)))
    document = tune_document(again, "kmixup tune --data iris")
    path = write_tune(document, tmp_path / "deep")
    assert path == tmp_path / "deep" / "tune.html"
    assert path.read_text() == html
