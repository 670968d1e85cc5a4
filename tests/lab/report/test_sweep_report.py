"""Files and terminal: complete, escaped, self-contained, and the same from the same rows."""

import csv
import io
import random
import re
from dataclasses import dataclass, replace
from statistics import fmean, stdev

import pytest
from page_checker import Checker
from report_rows import (
    check_self_contained,
    failed,
    method,
    results_of,
    row,
    sweep,
    sweep_document,
    table,
    tables_of,
)
from rich.console import Console

from kmixup.lab.evaluate.baseline import figures
from kmixup.lab.evaluate.scores import ClassScores, metric
from kmixup.lab.paper.tables import ErrorColumn
from kmixup.lab.report import frame, render_html
from kmixup.lab.report.frame import cells_csv
from kmixup.lab.report.render_html import html
from kmixup.lab.report.render_text import show
from kmixup.lab.report.sweep import Preface, unfitted_sentence
from kmixup.lab.results import frame_of
from kmixup.lab.trial import Method

COMMAND = "kmixup reproduce uci --trials 6"


def errors(k, alpha, rule, seed):
    return 6.0 - (2.0 if k > 1 else 0.0) + 0.3 * ((5 * seed + k) % 7) + 0.1 * alpha


def rows():
    swept = sweep(errors)
    return [
        *(entry for entry in swept if entry.id != failed(method(16, 1.0), 2).id),
        failed(method(16, 1.0), 2),
    ]


def write(folder, rows, tables, **more):
    """The page, Markdown and cells of a report."""
    how = {"name": "UCI", "command": COMMAND, "claim": "k-mixup wins.", "notes": ["3 epochs."]}
    results = results_of(rows, tables)
    document = sweep_document(rows, results, Preface(**{**how, **more}))
    page = render_html.write(document, folder / "report.html", report=True)
    return page.read_text(), (folder / "report.md").read_text(), cells_csv(results)


def printed(rows, tables, **more):
    """What a terminal shows."""
    console = Console(record=True, width=200, file=io.StringIO())
    show(sweep_document(rows, results_of(rows, tables), Preface("", COMMAND, **more)), console)
    return console.export_text()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return write(tmp_path_factory.mktemp("report"), rows(), [table()])


def test_the_page_is_self_contained_and_shows_all_that_was_found(written):
    check_self_contained(written[0])
    text = " ".join("".join(Checker(written[0]).text).split())
    parts = ("k-mixup wins.", "3 epochs.", "41 trials finished, 1 failed", "reproduced")
    parts += ("Ours, same alpha at every k", "Ours, alpha calibrated to keep ξ", "weight decay")
    parts += ("calibration error", "a machine", COMMAND)
    for part in (*parts, "DivergedError: the loss became NaN"):
        assert part in text, part


def test_the_same_rows_in_any_order_give_the_same_bytes(tmp_path, written):
    mixed = rows()
    random.Random(1).shuffle(mixed)
    assert write(tmp_path, mixed, [table()]) == written


def test_markdown_has_every_cell_beside_the_papers(written):
    text = written[1]
    of_cell = [errors(16, 0.1, "same", seed) for seed in range(6)]
    cell = f"{fmean(of_cell):.2f} ± {stdev(of_cell) / 6**0.5:.2f} (3.00)"
    assert f"| k = 16 | {cell.replace(' ±', ' ↓ ±')} |" in text.replace("\\* ", "")
    assert "**k-mixup against mixup, 2 comparisons: reproduced in 2.**" in text
    assert text.index("k-mixup wins.") < text.index("## Verdicts")
    assert "iris, mlp-iris, kmixup k=16 alpha=1, seed 2: DivergedError" in text


def test_cells_are_lines_of_numbers(written):
    lines = list(csv.DictReader(io.StringIO(written[2])))
    assert len(lines) == 1 + 2 + 2 * 2
    place = {"k": "16", "alpha": "1", "alpha_rule": "same"}
    (cell,) = (line for line in lines if place.items() <= line.items())
    assert (cell["trials"], cell["failed"], cell["missing"]) == ("5", "1", "0")
    assert float(cell["paper"]) == 4.0
    assert lines[0]["method"] == "erm"


def test_your_own_sweep_is_reported_without_the_paper(tmp_path):
    rows = sweep(errors)
    page, text, _ = write(tmp_path, rows, tables_of(rows), claim=None, notes=[])
    Checker(page)
    assert "the paper" not in (page + text).lower()
    assert "k-mixup is better" in text
    assert "reproduced" not in text


def own(tmp_path, methods, trials=6):
    """Page, Markdown and terminal of a sweep of your own with these methods."""
    rows = [
        row(mixing, 5.0 - mixing.alpha + 0.1 * seed + 0.01 * seed * mixing.k, seed)
        for seed in range(trials)
        for mixing in methods
    ]
    page, text, _ = write(tmp_path, rows, tables_of(rows), claim=None, notes=[])
    return page, text, printed(rows, tables_of(rows))


@pytest.mark.parametrize(
    ("mixing", "title"), [(method(16, 1.0), "k-mixup"), (Method("mixup", alpha=1.0), "mixup")]
)
def test_one_method_is_compared_with_erm(tmp_path, mixing, title):
    for said in own(tmp_path, [Method("erm"), mixing]):
        assert f"{title} is better than ERM" in said
        assert "too few trials" not in said
    for said in own(tmp_path, [mixing]):
        assert "too few trials" in said  # ERM was not run


def test_a_table_with_several_levels_is_reported(tmp_path):
    of = table(columns=(ErrorColumn(1.0, eps=4), ErrorColumn(1.0, eps=8)), measure="fgsm", erm=None)
    rows = [
        row(method(k, 1.0), 1.0, seed, fgsm={4: 30.0 - k + seed, 8: 60.0 - 2 * k + seed})
        for seed in range(5)
        for k in (1, 16)
    ]
    page, text, _ = write(tmp_path, rows, [of])
    assert "2 comparisons: reproduced in 2" in text
    assert "ε = 4" in page


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [row(Method("erm"), 5.0)],
        [failed(Method("mixup", alpha=1.0))],
        [row(method(16, 1.0), 1.0)],
    ],
    ids=["nothing", "erm", "failed", "one"],
)
def test_an_unfinished_sweep_is_reported(tmp_path, rows):
    page, text, _ = write(tmp_path, rows, [table()])
    Checker(page)
    assert "too few trials" in text
    ks = {trial.method.k for trial in (done.trial for done in rows) if trial.method.name != "erm"}
    assert {int(k) for k in re.findall(r'<th scope="row">k = (\d+)</th>', page)} == ks


def test_what_was_reduced_is_on_top_of_the_page_and_erm_next_to_mixup(tmp_path):
    page, text, _ = write(tmp_path, sweep(errors), [table()], extent="Reduced to 3 trials.")
    headline = page.partition('class="answer')[2].partition("</div>")[0]
    assert "<p>Reduced to 3 trials.</p>" in headline
    assert "against mixup" in headline
    assert re.search(r"Against ERM: k-mixup: .*, mixup: ", headline)
    assert "Against ERM: " in text
    assert page.index("<svg") < page.index("<h2>")


def test_rows_that_are_in_no_table_are_mentioned(tmp_path):
    rows = [*sweep(errors, trials=1), row(Method("nearest", k=16), 5.0)]
    page, text, _ = write(tmp_path, rows, [table()])
    for shown in (page, text):
        assert "1 more row of the sweep fit no cell" in shown


def test_cells_that_differ_significantly_from_mixup_are_counted_and_shaded(tmp_path):
    page, text, _ = write(tmp_path, sweep(errors), [table()])  # without a failed trial
    assert "Of 2 cells with k > 1, 2 are significantly lower than k = 1" in text
    assert page.count('class="lower') == 4  # two cells under each rule
    assert 'class="higher' not in page
    assert "for new data [95 %]" in text


def test_networks_that_all_predict_a_constant_are_no_tie(tmp_path):
    constant = ClassScores(0.02, 0.1, 0.1, 0.02, 0.5, None, 1)
    rows = [replace(done, scores=constant) for done in sweep(errors, rules=("same",))]
    _, text, _ = write(tmp_path, rows, tables_of(rows), claim=None, notes=[])
    assert "**Nothing was learned" in text
    assert "no significant difference" not in text
    assert "networks are stuck on a single class. Try more epochs" in text


def test_a_new_metric_is_on_the_page_in_cells_and_in_the_frame(tmp_path, monkeypatch):
    @dataclass(frozen=True)
    class WithSharpness(ClassScores):
        sharpness: float = metric("sharpness", lambda of: None)

    monkeypatch.setattr(frame, "ClassScores", WithSharpness)
    scored = WithSharpness(0.02, 0.1, 0.1, 0.5, 0.5, None, 2, sharpness=0.25)
    rows = [replace(done, scores=scored) for done in sweep(errors, rules=("same",))]
    _, text, cells = write(tmp_path, rows, tables_of(rows))
    assert "sharpness" in text
    assert {line["sharpness"] for line in csv.DictReader(io.StringIO(cells))} == {"0.25"}
    assert "sharpness 0.2500" in figures(scored)
    lines = frame_of(rows).query("metric == 'sharpness'")
    assert len(lines) == len(rows)
    assert set(lines.value) == {0.25}


def test_the_page_says_if_rows_are_of_several_versions_of_kmixup():
    rows = [row(Method("mixup"), 5.0 + seed, seed) for seed in range(4)]

    def page():
        return html(sweep_document(rows, results_of(rows, tables_of(rows)), Preface("", "")))

    assert "versions of kmixup" not in page()
    rows[0] = replace(rows[0], versions={"kmixup": "0", "commit": "3a74176"})
    assert "Versions and machines: rows are of 2 versions of kmixup" in page()


def test_networks_that_have_not_fitted_their_training_data_are_counted():
    fits = [{"error": error, "linear": 0.0, "fitted": error < 0.1} for error in (0.02, 0.4)]
    rows = [
        replace(row(Method("erm"), 5.0, seed), training=fit)
        for seed, fit in enumerate([*fits, None])
    ]
    said = unfitted_sentence(frame_of(rows))
    assert said.startswith("1 of 2 networks have not fitted their training data")
    assert "a higher learning rate" in said
    assert unfitted_sentence(frame_of([rows[0], rows[2]])) == ""
    rows.append(failed(Method("erm"), 3))
    assert unfitted_sentence(frame_of(rows)).endswith("use a lower learning rate.")
