"""Files and terminal: complete, escaped, self-contained, and the same from the same rows."""

import csv
import io
import random
from dataclasses import dataclass, replace
from statistics import fmean, stdev

import pytest
from page_checker import Checker
from report_rows import check_self_contained, failed, method, row, sweep, table
from rich.console import Console

from kmixup.lab.evaluate.baseline import figures
from kmixup.lab.evaluate.scores import ClassScores, metric
from kmixup.lab.paper.tables import Claim, PaperColumn
from kmixup.lab.report.frame import results_of, tables_of
from kmixup.lab.report.render_text import show
from kmixup.lab.report.sweep import Preface, sweep_document, write_sweep
from kmixup.lab.train.config import Method

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
    page = write_sweep(rows, results, folder, Preface(**{**how, **more}))
    texts = [page.read_text(), *((folder / n).read_text() for n in ("report.md", "cells.csv"))]
    return tuple(texts)


def printed(rows, tables, **more):
    """What a terminal shows."""
    console = Console(record=True, width=200, file=io.StringIO())
    show(sweep_document(rows, results_of(rows, tables), Preface("", COMMAND, **more)), console)
    return console.export_text()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return write(tmp_path_factory.mktemp("report"), rows(), [table()])


def test_the_page_is_well_formed_and_needs_nothing_from_elsewhere(written):
    check_self_contained(written[0])


def test_the_page_shows_all_that_was_found(written):
    text = " ".join("".join(Checker(written[0]).text).split())
    parts = ("k-mixup wins.", "3 epochs.", "41 trials finished, 1 failed", "reproduced")
    parts += ("Ours, same alpha at every k", "Ours, alpha calibrated to keep ξ", "weight decay")
    parts += ("calibration error", "Mean training loss", "a machine", COMMAND)
    for part in (*parts, "DivergedError: the loss became NaN"):
        assert part in text, part


def test_the_same_rows_in_any_order_give_the_same_bytes(tmp_path, written):
    mixed = rows()
    random.Random(1).shuffle(mixed)
    assert write(tmp_path, mixed, [table()]) == written


def test_what_comes_from_outside_is_escaped(tmp_path):
    evil = "<script>alert('x')</script> | a*b"
    rows = [*sweep(errors, trials=1), failed(method(16, 1.0), 1, error=evil)]
    of = table(title=evil, notes=(evil,), label=evil)
    more = {"name": evil, "claim": evil, "notes": [evil], "command": evil}
    page, text, _ = write(tmp_path, rows, [of], **more)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 6
    assert "<script" not in text.replace(f"```\n{evil}", "")
    Checker(page)


def test_markdown_has_every_cell_beside_the_papers(written):
    text = written[1]
    of_cell = [errors(16, 0.1, "same", seed) for seed in range(6)]
    cell = f"{fmean(of_cell):.2f} ± {stdev(of_cell) / 6**0.5:.2f} (3.00)"
    assert f"| k = 16 | {cell.replace(' ±', ' ↓ ±')} |" in text.replace("\\* ", "")
    assert text.index("k-mixup wins.") < text.index("## Verdicts")
    assert "iris, mlp-iris, kmixup k=16 alpha=1, seed 2: DivergedError" in text


def test_cells_are_lines_of_numbers(written):
    lines = list(csv.DictReader(io.StringIO(written[2])))
    assert len(lines) == 1 + 2 + 2 * 2
    place = {"k": "16", "alpha": "1.0", "alpha_rule": "same"}
    (cell,) = (line for line in lines if place.items() <= line.items())
    assert (cell["trials"], cell["failed"], cell["missing"]) == ("5", "1", "0")
    assert float(cell["difference"]) == pytest.approx(float(cell["error_percent"]) - 4.0)
    assert lines[0]["method"] == "erm"


def test_the_terminal_shows_grids_and_ends_with_the_verdict():
    text = printed(rows(), [table()])
    for part in ("Ours, same alpha at every k", "1 failed", "k-mixup is better than mixup"):
        assert part in text
    headline = "k-mixup against mixup, 2 comparisons: reproduced in 2."
    assert text.rindex(headline) > text.rindex("(3.00)")


def test_a_claim_about_every_column_is_counted_by_column():
    text = printed(sweep(errors), [table()], comparison=Claim(k=16, each="column"))
    assert "Iris, same alpha at every k" in text
    assert "2 comparisons: reproduced in 2" in text


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
    ("mixing", "title", "curve"),
    [
        (method(16, 1.0), "k-mixup", "k = 16, α = 1"),
        (Method("mixup", alpha=1.0), "mixup", "mixup, α = 1"),
    ],
)
def test_one_method_is_compared_with_erm_and_drawn_beside_it(tmp_path, mixing, title, curve):
    page, text, shown = own(tmp_path, [Method("erm"), mixing])
    for said in (text, shown):
        assert f"{title} is better than ERM" in said
        assert "no verdict" not in said
    training = page[page.index("<summary>Training") :]
    assert f"{curve}</text>" in training
    assert "ERM</text>" in training


def test_what_was_not_run_is_said_to_be_so(tmp_path):
    _, text, shown = own(tmp_path, [method(16, 1.0)])
    for said in (text, shown):
        assert "no verdict: ERM was not run" in said


def test_an_interval_of_two_trials_is_a_dash(tmp_path):
    _, text, _ = own(
        tmp_path, [Method("erm"), Method("mixup", alpha=1.0), method(16, 1.0)], trials=2
    )
    assert "[" not in text.partition("## Repeat it")[0].replace("[95 %]", "")


def test_a_table_with_several_levels_is_reported(tmp_path):
    of = table(columns=(PaperColumn(1.0, eps=4), PaperColumn(1.0, eps=8)), measure="fgsm", erm=None)
    rows = [
        row(mixing, 1.0, seed, fgsm={4: shift + seed, 8: 2 * shift + seed})
        for seed in range(5)
        for mixing, shift in (
            (method(16, 1), 10.0),
            (Method("mixup", alpha=1.0), 20.0),
            (Method("erm"), 30.0),
        )
    ]
    page, text, _ = write(tmp_path, rows, [of])
    Checker(page)
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
    assert "not run" in page
    assert "no verdict" in text


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
    assert "new data [95 %]" in text


@pytest.mark.parametrize("majority", [0.02, 0.5])
def test_networks_that_all_predict_a_constant_are_no_tie(tmp_path, majority):
    constant = ClassScores(0.02, 0.1, 0.1, majority, 0.5, None, 1)
    rows = [replace(done, scores=constant) for done in sweep(errors, rules=("same",))]
    _, text, _ = write(tmp_path, rows, tables_of(rows), claim=None, notes=[])
    assert "**Nothing was learned: all compared networks predict a constant" in text
    assert "no significant difference" not in text
    assert ("predict only that class" in text) == (majority == 0.02)
    rows.append(failed(method(16, 1.0), 9))
    _, text, _ = write(tmp_path, rows, tables_of(rows), claim=None, notes=[])
    assert "Try a lower learning rate or balanced class weights" in text  # after divergence


def test_a_new_metric_is_on_the_page_in_cells_and_in_the_frame(tmp_path):
    @dataclass(frozen=True)
    class WithBrier(ClassScores):
        brier: float = metric("Brier score", lambda of: None)

    scored = WithBrier(0.02, 0.1, 0.1, 0.5, 0.5, None, 2, 0.25)
    rows = [replace(done, scores=scored) for done in sweep(errors, rules=("same",))]
    _, text, cells = write(tmp_path, rows, tables_of(rows))
    assert "Brier score" in text
    assert {line["brier"] for line in csv.DictReader(io.StringIO(cells))} == {"0.25"}
    assert "Brier score 0.2500" in figures(scored)


def test_many_tables_of_one_data_set_name_it_once(tmp_path):
    rows = [
        row(Method("kmixup", k=16, labels=float(c)), 5.0 - c / 10, seed)
        for c in range(8)
        for seed in range(3)
    ]
    document = sweep_document(rows, results_of(rows, tables_of(rows)), Preface("", COMMAND))
    (tables,) = (b for b in document.blocks if getattr(b, "title", "").startswith("Tables"))
    assert tables.title == "Tables: iris, mlp-iris"
    assert not any("iris" in folded.summary for folded in tables.blocks)
