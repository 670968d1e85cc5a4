"""One document in three forms: everything escaped, brief on a terminal, whole on a page."""

import io
import re

from page_checker import Checker
from rich.console import Console

from kmixup.lab.report.document import (
    Box,
    Bullets,
    Code,
    Details,
    Document,
    Facts,
    Figure,
    Figures,
    Headline,
    HeatMap,
    Image,
    Images,
    Paragraph,
    ReportTable,
    Section,
)
from kmixup.lab.report.render_html import colours, diverging, html, sequential
from kmixup.lab.report.render_markdown import heat_table, markdown
from kmixup.lab.report.render_terminal import show

EVIL = "<script>[red]x[/] | a*b"
MAP = HeatMap(
    "Errors",
    (("α = 1", ""), ("α = 2", "ξ = 3")),
    (("k = 1", (Box("5.0", ["± 1"]), Box("4.0", best=True))), ("k = 2", (Box("6.0"),))),
)


def terminal(document, width=80):
    console = Console(record=True, width=width, file=io.StringIO())
    show(document, console)
    return console.export_text()


def everything(text):
    """A document with every kind of block, all of the same text."""
    line = Figure(text, lambda axes: axes.plot([1, 2], label=text.strip("<>")), text, legend=1)
    box = Box(text, [text], 1.0, best=True)
    blocks = [
        Headline(text, [text], code=text, mood="good"),
        Paragraph(text),
        Paragraph(text, style="fine"),
        Bullets([text]),
        ReportTable([text, text], [[text, text]], text, ["bad"], 1),
        ReportTable([text, text], [[text, text]], text, sentences=True),
        ReportTable([text, text], [[text, text]], text, numeric=True),
        HeatMap(text, [(text, text)], [(text, [box])], text, scale="sequential"),
        Figures([line]),
        Images([Image(text, lambda: b"png", text)]),
        Facts({text: text}, text),
        Code(text),
        Details(text, [Paragraph(text)]),
    ]
    sections = [Section(f"{text} {i}", blocks if i == 0 else [Code(text)]) for i in range(3)]
    return Document(text, sections)


def test_every_block_is_escaped_in_every_form():
    page, text = html(everything(EVIL)), markdown(everything(EVIL))
    Checker(page)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") > 20
    assert "<script" not in re.sub(r"```.*?```", "", text, flags=re.S)
    assert "[red]x[/]" in terminal(everything(EVIL))


def test_a_page_lists_its_sections_and_every_link_has_a_target():
    page = html(everything("some text"))
    checked = Checker(page)
    inside = [link for link in checked.links if link.startswith("#")]
    assert len(inside) >= 3
    assert {link.lstrip("#") for link in inside} <= set(checked.ids)
    assert len(checked.ids) == len(set(checked.ids))


def test_the_terminal_leaves_out_details_and_ends_with_the_verdict():
    document = Document(
        "A title",
        [
            Headline("The verdict."),
            Paragraph("Some text."),
            Paragraph("Fine print.", style="fine"),
            Section("Hidden", [Details("More", [Paragraph("Folded.")]), Facts({"a": "b"})]),
        ],
    )
    shown = terminal(document)
    assert shown.split() == ["Some", "text.", "The", "verdict."]
    assert "Folded." in markdown(document)
    assert "Fine print." in markdown(document)


def test_a_row_of_a_wide_table_is_a_sentence_on_the_terminal():
    table = ReportTable(["table", "verdict", "difference", "more"], [["Iris", "better", "−1", "–"]],
                  verdict=1, sentences=True)  # fmt: skip
    assert terminal(Document("", [table])).strip() == "Iris: better; difference: −1"


def test_maps_that_repeat_numbers_are_on_the_page_only():
    again = HeatMap(**{**vars(MAP), "title": "Again", "repeats": True})
    document = Document("", [MAP, again])
    assert "Again" in html(document)
    assert "Again" not in markdown(document)
    assert "Again" not in terminal(document)


def test_columns_of_a_map_may_have_scales_of_their_own():
    rows = [(str(i), [Box("", (), float(i)), Box("", (), 100.0 * i)]) for i in range(3)]
    shared = HeatMap("", [("a", ""), ("b", "")], rows, scale="sequential")
    apart = HeatMap("", [("a", ""), ("b", "")], rows, scale="sequential", by_column=True)
    assert all(first == second for first, second in colours(apart))
    assert colours(shared)[2][0] != colours(shared)[2][1]


def test_colours_are_one_scale_and_their_text_stands_out():
    style = sequential([1.0, None, 9.0])
    assert style(None) == ""
    assert style(1.0) != style(9.0)
    assert style(20.0) == style(9.0)
    both = diverging([-2.0, 1.0])
    assert both(2.0) != both(-2.0)
    for css in (style(1 + i / 10) for i in range(81)):
        ground, ink = re.findall(r"#\w+", css)
        assert contrast(ground, ink) >= 4.5  # what WCAG asks of text


def contrast(ground, ink):
    def luminance(colour):
        digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
        parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(ground), luminance(ink)))
    return (high + 0.05) / (low + 0.05)


def test_a_constant_grid_has_one_colour():
    assert sequential([3.0, 3.0])(3.0) == sequential([])(3.0)
    assert diverging([0.0])(0.0) == diverging([])(0.0)


def test_outliers_do_not_flatten_the_colours_of_the_others():
    near = [4.0, 4.1, 4.2, 4.3, 4.4, 4.5]
    style, alone = sequential([*near, 90.0]), sequential(near)
    assert len({style(value) for value in near}) == len(near)
    assert style(4.5) != sequential([4.0, 90.0])(4.5)
    assert style(90.0) != style(4.5)
    assert alone(4.0) == style(4.0)
    both = diverging([-0.1, 0.1, 0.2, -0.2, 0.3, 50.0])
    assert both(0.3) != both(0.1)
    assert both(50.0) == both(60.0)


def test_a_single_cell_that_differs_keeps_a_colour_of_its_own():
    style = sequential([5.0] * 9 + [80.0])
    assert style(5.0) != style(80.0)


def test_a_map_without_colours_marks_its_best_box():
    table = heat_table(MAP, between="\n")
    assert table.header == ["", "α = 1", "α = 2\nξ = 3"]
    assert table.rows == [("k = 1", "5.0\n± 1", "* 4.0"), ("k = 2", "6.0")]
