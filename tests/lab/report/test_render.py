"""One document in three forms: everything escaped, brief on a terminal, whole on a page."""

import io
import re
from dataclasses import dataclass

import pytest
from page_checker import Checker
from report_rows import check_self_contained
from rich.console import Console

from kmixup.lab.report import document as doc
from kmixup.lab.report.render_html import html
from kmixup.lab.report.render_text import heat_table, markdown, show

EVIL = "<script>[red]x[/] | a*b"


def terminal(report, width=80):
    console = Console(record=True, width=width, file=io.StringIO())
    show(report, console)
    return console.export_text()


def everything(text):
    """A document with every kind of block, all of the same text."""
    line = doc.Figure(text, lambda axes: axes.plot([1, 2], label=text.strip("<>")), text, legend=1)
    box = doc.Box(text, [text], 1, best=True)
    blocks = [
        doc.Headline(text, [text], code=text, mood="good"),
        doc.Paragraph(text),
        doc.Paragraph(text, style="fine"),
        doc.Bullets([text]),
        doc.ReportTable([text, text], [[text, text]], text, ["bad"]),
        doc.ReportTable([text, text], [[text, text]], text, numeric=True),
        doc.HeatMap(text, [(text, text)], [(text, [box])], text),
        line,
        doc.Images([doc.Image(text, lambda: b"png")]),
        doc.Facts({text: text}, text),
        doc.Code(text),
        doc.Details(text, [doc.Paragraph(text)]),
    ]
    sections = [
        doc.Section(f"{text} {i}", blocks if i == 0 else [doc.Code(text)]) for i in range(3)
    ]
    return doc.Document(text, sections)


def test_every_block_is_escaped_in_every_form():
    page, text = html(everything(EVIL)), markdown(everything(EVIL))
    Checker(page)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") > 20
    assert "<script" not in re.sub(r"```.*?```", "", text, flags=re.S)
    assert "[red]x[/]" in terminal(everything(EVIL))


@dataclass
class Unknown:
    text: str


@pytest.mark.parametrize("write", [html, markdown, terminal])
def test_a_block_that_a_writer_does_not_know_raises(write):
    for blocks in ([Unknown("a")], [doc.Section("b", [Unknown("a")])]):
        with pytest.raises(AssertionError, match="Unknown"):
            write(doc.Document("report", blocks))


def test_a_page_lists_its_sections_and_every_link_has_a_target():
    page = html(everything("some text"))
    check_self_contained(page)
    assert page.count('href="#some-text-') == 3


def test_the_terminal_leaves_out_details_and_ends_with_the_verdict():
    report = doc.Document(
        "A title",
        [
            doc.Headline("The verdict."),
            doc.Paragraph("Some text."),
            doc.Paragraph("Fine print.", style="fine"),
            doc.Section(
                "Hidden", [doc.Details("More", [doc.Paragraph("Folded.")]), doc.Facts({"a": "b"})]
            ),
        ],
    )
    shown = terminal(report)
    assert shown.split() == ["Some", "text.", "The", "verdict."]
    assert "Folded." in markdown(report)
    assert "Fine print." in markdown(report)


def test_only_significant_boxes_are_shaded_and_marked():
    plain, best = doc.Box("4"), doc.Box("2", best=True)
    boxes = [doc.Box("1", side=-1), best, doc.Box("3", side=1, best=True), plain]
    rows = [("k = 1", boxes), ("k = 2", [doc.Box("5", ["± 1"])])]
    shaded = doc.HeatMap("", [("a", ""), ("b", "ξ = 3"), ("c", ""), ("d", "")], rows)
    page = html(doc.Document("", [shaded]))
    cells = re.findall(r"<td([^>]*)>(\d)", page)
    assert [attributes.strip() for attributes, _ in cells] == [
        'class="lower"', 'class="best"', 'class="higher best"', "", 'colspan="4"',
    ]  # fmt: skip
    text = heat_table(shaded, between="\n")
    assert text.header == ["", "a", "b\nξ = 3", "c", "d"]
    assert text.rows == [("k = 1", "1 ↓", "* 2", "* 3 ↑", "4"), ("k = 2", "5\n± 1")]
