"""Tables of text in Markdown and on a terminal."""

import io

import pytest
from rich.console import Console

from kmixup.lab.formatting import TextTable


def shown(table, width=60):
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(table)
    return console.export_text()


def test_markup_in_a_cell_is_text():
    table = TextTable(["[red]a[/]", "b"], [["[bold]x[/]", "*y* | <z>"]], "[i]t")
    text = shown(table.printed())
    for part in ("[red]a[/]", "[bold]x[/]", "*y* | <z>", "[i]t"):
        assert part in text
    assert "\\*y\\* \\| &lt;z>" in table.markdown()


def test_a_row_may_end_early_in_a_document_and_on_a_terminal():
    table = TextTable(["a", "b", "c"], [["1"], ["1", "2", "3"]])
    assert table.markdown().splitlines()[2] == "| 1 |  |  |"
    assert "3" in shown(table.printed())
    with pytest.raises(ValueError, match="zip"):
        table.aligned()


def test_numbers_are_aligned_to_the_right():
    table = TextTable(["long heading", "long heading"], [["x", "y"]])
    line = next(line for line in shown(table.printed()).splitlines() if "x" in line)
    assert line.index("x") < 4
    assert line.rstrip(" │").endswith("           y")
