"""Tables of text in Markdown and on a terminal."""

import pytest

from kmixup.lab.formatting import TextTable


def test_markup_in_a_cell_is_escaped_in_markdown():
    table = TextTable(["a", "b"], [["x", "*y* | <z>"]])
    assert "\\*y\\* \\| &lt;z>" in table.markdown()


def test_a_row_may_end_early_in_markdown_only():
    table = TextTable(["a", "b", "c"], [["1"], ["1", "2", "3"]])
    assert table.markdown().splitlines()[2] == "| 1 |  |  |"
    with pytest.raises(ValueError, match="zip"):
        table.aligned()
