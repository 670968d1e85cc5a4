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
from kmixup.lab.report.document import Figure
from kmixup.lab.report.tune import headline, surface, tune_document
from kmixup.lab.trial import Method, Protocol, Trial


def rows_of(trials, error):
    """Rows as of a training; `error` gives that of a trial, None for one that fails."""
    for trial in trials:
        where = {"versions": {"kmixup": "1"}, "machine": {"cores": 2}}
        if (figure := error(trial)) is None:
            yield failed_row(trial, "ValueError: <no>", **where)
        else:
            data = DataUsed(trial.data, None, 80, 20, 3, (4,), "paper")
            yield done_row(trial, figure, data=data, seconds=1.5, **where)


def error(trial):
    """k = 4 is best by far; without a seed's part in it, intervals would have no width."""
    method = trial.method
    best = 0.1 if method.name == "erm" else 0.05 + abs(method.k - 4) / 100 + method.alpha / 1000
    return best + trial.seed % 3 / 1000 * (1 + (method.k == 4))


def tuned(name="grid", *, error=error, k=(1, 4), alpha=(1,), **lists):
    base = Trial("iris", "mlp-iris", Method("erm"), Protocol(epochs=3), split=0)
    plan = Plan(base, make_strategy(name, k=k, alpha=alpha, **lists), 0.2)
    return tune_plan(plan, lambda trials: list(rows_of(trials, error)))


def page(tuned, command=""):
    return render_html.html(tune_document(tuned, command, ["kmixup train iris --k 4"]))


@pytest.fixture(scope="module")
def searched():
    return tuned(k=[1, 2, 4], alpha=[0.5, 1], trials=3)


@pytest.fixture(scope="module")
def html(searched):
    return page(searched, command="kmixup tune --data iris")


def test_the_page_shows_surface_protocol_and_commands(searched, html):
    text = text_of(html)
    assert '<th scope="row">ERM</th><td colspan="2">10.10<small>' in html
    assert re.findall(r'<td class="best"[^>]*>(.*?)</td>', html) == [
        "5.25<small>± 0.12 (3)</small>"
    ]
    assert "21 trials with ERM" in text
    assert "held out 20 % of the training set" in text
    for fact in ("training samples 100", "of them held out 20", "epochs 3", "kmixup 1"):
        assert fact in text
    assert "None" not in text  # settings that were not made
    assert "<pre>kmixup tune --data iris</pre>" in html
    assert "<pre>kmixup train iris --k 4</pre>" in html
    assert isinstance(tune_document(searched, "").blocks[1], Figure)


def test_the_headline_names_the_choice_and_a_better_but_larger_setting(searched):
    said = headline(searched)
    assert said.text == "Chosen: k=4 alpha=0.5, validation error 5.25%."
    assert said.sentences[0].startswith("This chooses, and does not show that mixing helps")

    def close(trial):
        return 0.1 - (trial.method.k == 4) * (0.01 if trial.seed else -0.005)

    assert headline(tuned(error=close, trials=2)).text == (
        "Chosen: ERM, validation error 10.00%: within one standard error of the best, k=4 alpha=1 "
        "with 9.75%."
    )


def test_networks_that_predict_a_constant_are_named(searched):
    scores = ClassScores(0.014, 0.1, 0.1, 0.014, 0.5, None, 1)
    stuck = replace(searched, rows=tuple(replace(row, scores=scores) for row in searched.rows))
    assert "21 of 21 networks are stuck on a single class" in " ".join(headline(stuck).sentences)


def test_two_steps_fill_a_row_and_a_column_of_the_surface():
    drawn = surface(tuned("two-step", k=[2, 4], alpha=[0.5, 1], trials=2))
    assert [head for head, _ in drawn.head] == ["α 0.5", "α 1"]
    assert {label: [bool(box.text) for box in boxes] for label, boxes in drawn.rows} == {
        "ERM": [True], "k = 1": [True, True], "k = 2": [True, False], "k = 4": [True, False],
    }  # fmt: skip


def test_failures_are_shown():
    failing = tuned(k=[1, 2, 4], error=lambda t: None if t.method.k == 2 else error(t))
    html = page(failing)
    assert "5 failed" in html
    assert "5 trials failed." in headline(failing).sentences
    assert "ValueError: &lt;no&gt;" in html


def test_the_order_of_the_rows_does_not_change_the_page(searched, html, tmp_path):
    again = replace(searched, rows=tuple(reversed(searched.rows)))
    command = "kmixup tune --data iris"
    path = render_html.write(
        tune_document(again, command, ["kmixup train iris --k 4"]), tmp_path / "deep/tune.html"
    )
    assert path == tmp_path / "deep" / "tune.html"
    assert path.read_text() == html
