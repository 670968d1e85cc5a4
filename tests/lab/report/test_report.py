"""Files and terminal: complete, escaped, self-contained, and the same from the same rows."""

import csv
import io
import random
import re
import subprocess
import sys
from statistics import fmean, stdev

import pytest
from page_checker import Checker
from report_rows import BASE, failed, method, row, sweep, table
from rich.console import Console

from kmixup.lab import report
from kmixup.lab.pages.html import Picture
from kmixup.lab.paper.tables import Claim, PaperColumn
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


def write(tmp_path, rows, tables, **more):
    how = {
        "name": "UCI",
        "command": COMMAND,
        "claim": "k-mixup errs less.",
        "notes": ["3 of 200 epochs."],
    }
    paths = report.write(rows, tables, tmp_path, **{**how, **more})
    return paths.page.read_text(), paths.markdown.read_text(), paths.cells.read_text()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return write(tmp_path_factory.mktemp("report"), rows(), [table()])


def test_the_page_is_well_formed_and_needs_nothing_from_elsewhere(written):
    page = Checker(written[0])
    assert len(page.ids) == len(set(page.ids))
    assert {link.lstrip("#") for link in page.links} <= set(page.ids)
    assert set(re.findall(r"url\((.)", written[0])) <= {"#"}
    assert "<script" not in written[0]
    assert "@import" not in written[0]
    assert 'name="viewport"' in written[0]


def test_the_page_shows_all_that_was_found(written):
    text = " ".join("".join(Checker(written[0]).text).split())
    for part in (
        "k-mixup errs less.",
        "3 of 200 epochs.",
        "41 trials ended well, 1 failed",
        "reproduced",
        "chosen on the test error, as the paper does",
        "Ours, the same alpha at every k",
        "Ours, alpha calibrated to keep xi",
        "The paper, Table 4",
        "Difference, the same alpha at every k",
        "Error against k",
        "Mean training loss",
        "ξ 0.5",
        "DivergedError: the loss became NaN",
        "weight decay",
        "a machine",
        COMMAND,
    ):
        assert part in text, part


def test_the_same_rows_in_any_order_give_the_same_bytes(tmp_path, written):
    mixed = rows()
    random.Random(1).shuffle(mixed)
    assert write(tmp_path, mixed, [table()]) == written


def test_what_comes_from_outside_is_escaped(tmp_path):
    evil = "<script>alert('x')</script> | a*b"
    rows = [*sweep(errors, trials=1), failed(method(16, 1.0), 1, error=evil)]
    of = table(title=evil, notes=(evil,), label=evil)
    page, text, _ = write(tmp_path, rows, [of], name=evil, claim=evil, notes=[evil], command=evil)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 6
    assert "<script" not in text.replace(f"```\n{evil}", "")
    Checker(page)


def test_markdown_has_every_cell_beside_the_papers(written):
    text = written[1]
    of_cell = [errors(16, 0.1, "same", seed) for seed in range(6)]
    assert f"| k = 16 | {fmean(of_cell):.2f} ± {stdev(of_cell) / 6**0.5:.2f} (3.00) |" in text
    assert "## Verdicts" in text
    assert "Chosen on the test error, as the paper does" in text
    assert "iris, mlp-iris, kmixup k=16 alpha=1, seed 2: DivergedError" in text
    widths = {line.count("|") for line in text.splitlines() if line.startswith("| k = ")}
    assert widths == {4}


def test_cells_are_lines_of_numbers(written):
    lines = list(csv.DictReader(io.StringIO(written[2])))
    assert len(lines) == 1 + 2 + 2 * 2
    (cell,) = (
        line
        for line in lines
        if (line["k"], line["alpha"], line["alpha_rule"]) == ("16", "1.0", "same")
    )
    assert (cell["trials"], cell["failed"], cell["missing"]) == ("5", "1", "0")
    assert float(cell["difference"]) == pytest.approx(float(cell["error_percent"]) - 4.0)
    assert lines[0]["method"] == "erm"


def test_the_terminal_shows_grids_and_verdicts():
    console = Console(record=True, width=140, file=io.StringIO())
    report.show(rows(), [table()], console)
    text = console.export_text()
    assert "Iris, the same alpha at every k" in text
    assert "3.00 (+1.86)" in text
    assert "1 failed" in text
    assert "Iris, the same alpha at every k: reproduced" in text


def test_a_claim_of_every_column_is_counted_by_columns(tmp_path):
    claim = Claim(k=16, each="column")
    _, text, _ = write(tmp_path, sweep(errors), [table()], comparison=claim)
    assert "| of 2 columns: reproduced in 2 |" in text
    console = Console(record=True, width=200, file=io.StringIO())
    report.show(sweep(errors), [table()], console, comparison=claim)
    assert "Iris, the same alpha at every k: of 2 columns: reproduced in 2" in console.export_text()


def test_a_sweep_of_ones_own_is_reported_without_a_paper(tmp_path):
    rows = sweep(errors)
    page, text, _ = write(tmp_path, rows, report.tables_of(rows), claim=None, notes=[])
    Checker(page)
    assert "The paper" not in page
    assert "k-mixup is better" in text
    assert "reproduced" not in text


def own(tmp_path, methods, trials=6):
    """Page, Markdown and terminal of a sweep of one's own with these methods."""
    rows = [
        row(mixing, 5.0 - mixing.alpha + 0.1 * seed + 0.01 * seed * mixing.k, seed)
        for seed in range(trials)
        for mixing in methods
    ]
    page, text, _ = write(tmp_path, rows, report.tables_of(rows), claim=None, notes=[])
    console = Console(record=True, width=200, file=io.StringIO())
    report.show(rows, report.tables_of(rows), console)
    return page, text, console.export_text()


def test_without_mixup_the_sweep_compares_k_mixup_with_erm_and_draws_both(tmp_path):
    page, text, printed = own(tmp_path, [Method("erm"), method(16, 1.0)])
    for shown in (text, printed):
        assert "k-mixup is better" in shown
        assert "best k-mixup less ERM" in shown
        assert "no verdict" not in shown
    training = page[page.index("<h3>Training") :]
    assert "k = 16, α = 1</text>" in training
    assert "ERM</text>" in training


def test_without_k_mixup_the_sweep_compares_mixup_with_erm(tmp_path):
    page, text, printed = own(tmp_path, [Method("erm"), Method("mixup")])
    assert "mixup is better" in text
    assert "best mixup less ERM" in printed
    assert "no verdict" not in printed
    assert "mixup, α = 1</text>" in page[page.index("<h3>Training") :]


def test_what_was_not_run_is_said_to_be_so(tmp_path):
    _, text, printed = own(tmp_path, [method(16, 1.0)])
    assert "no verdict: ERM was not run" in printed
    assert "no verdict: ERM was not run" in text


def test_erm_has_a_line_in_error_against_k(tmp_path):
    page, *_ = own(tmp_path, [Method("erm"), Method("mixup"), method(16, 1.0)])
    drawn = page[page.index("<h3>Error against k") : page.index("<h3>Training")]
    assert "ERM</text>" in drawn


def test_an_interval_of_two_trials_is_a_dash(tmp_path):
    _, text, _ = own(tmp_path, [Method("erm"), Method("mixup"), method(16, 1.0)], trials=2)
    assert "[" not in text.partition("## To repeat")[0].replace("[95 %]", "")


def test_a_page_of_ones_own_sweep_does_not_speak_of_the_paper(tmp_path):
    page, text, _ = own(tmp_path, [Method("erm"), Method("mixup"), method(16, 1.0)])
    for shown in (page, text):
        assert "the paper" not in shown.lower()


def test_a_table_with_several_levels_is_reported(tmp_path):
    of = table(columns=(PaperColumn(1.0, eps=4), PaperColumn(1.0, eps=8)), measure="fgsm", erm=None)
    rows = [
        row(mixing, 1.0, seed, fgsm={4: shift + seed, 8: 2 * shift + seed})
        for seed in range(5)
        for mixing, shift in (
            (method(16, 1.0), 10.0),
            (Method("mixup"), 20.0),
            (Method("erm"), 30.0),
        )
    ]
    page, text, _ = write(tmp_path, rows, [of])
    Checker(page)
    assert "of 2 levels of ε: reproduced in 2" in text
    assert "ε = 4" in page


def test_an_unfinished_sweep_is_reported(tmp_path):
    for rows in (
        [],
        [row(Method("erm"), 5.0)],
        [failed(Method("mixup"))],
        [row(method(16, 1.0), 1.0)],
    ):
        page, text, _ = write(tmp_path, rows, [table()])
        Checker(page)
        assert "not run" in page
        assert "no verdict" in text


def test_rows_that_are_in_no_table_are_mentioned(tmp_path):
    rows = [*sweep(errors, trials=1), row(Method("nearest", k=16), 5.0)]
    page, text, _ = write(tmp_path, rows, [table()])
    assert "1 further row of the sweep is in no cell of these tables." in page
    assert "1 further row of the sweep" in text


def test_the_protocol_of_the_rows_is_on_the_page(written):
    assert "<dt>epochs</dt><dd>3</dd>" in written[0]
    assert BASE.protocol.epochs == 3


def test_pictures_that_are_handed_over_are_on_the_page(tmp_path, written):
    assert "data:image/png" not in written[0]
    picture = Picture("<ERM>", "3 % test error", "data:image/png;base64,abc")
    page, *_ = write(tmp_path, rows(), [table()], pictures={"four-bars": [picture] * 3})
    assert page.count("data:image/png;base64,abc") == 3
    assert "&lt;ERM&gt;<br>3 % test error" in page
    Checker(page)


def test_a_report_trains_nothing():
    """Training is of no use to a page of rows: `figures` draws what needs a network."""
    code = (
        "import sys, kmixup.lab.report; "
        "print({'kmixup.lab.train.loop', 'kmixup.lab.train.fleet'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
