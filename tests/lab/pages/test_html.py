"""Templates: every page extends one base, and everything is escaped."""

import pytest
from jinja2 import TemplateNotFound, UndefinedError

from kmixup.lab.pages.html import render, with_contents

PACKAGE = "kmixup.lab.report"


@pytest.mark.parametrize("name", ["<b>", "a & b"])
def test_a_template_of_the_shared_folder_is_found_and_escaped(name):
    page = render(PACKAGE, "base.html", name=name)
    assert "<title>" in page
    assert name not in page
    assert "--ground" in page  # the style sheet is inside


def test_what_a_template_needs_must_be_given():
    with pytest.raises(UndefinedError, match="'name' is undefined"):
        render(PACKAGE, "base.html")


def test_a_page_has_its_own_templates_and_no_others():
    with pytest.raises(TemplateNotFound, match="inspect.html"):
        render(PACKAGE, "inspect.html")


def test_a_page_lists_its_sections_where_there_are_several():
    header = "<header><h1>A</h1></header>"
    sections = "".join(
        f'<section id="s{i}" class="answer">\n<h2>Part {i}</h2></section>' for i in range(3)
    )
    page = with_contents(header + sections)
    assert '<a href="#s0">Part 0</a> <a href="#s1">Part 1</a>' in page
    assert page.index("<nav") < page.index("<section")
    assert with_contents(header + '<section id="a"><h2>B</h2></section>').count("<nav") == 0
