import math
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmixup.lab.data.columns import Column, Guess


def guess(cells, delimiter=","):
    guess = Guess("a", delimiter)
    guess.see(cells)
    return guess.column()


@pytest.mark.parametrize(
    ("cells", "delimiter", "kind", "form"),
    [
        (["1", "-2.5", "3e4", "", "NA"], ",", "number", "1234.5"),
        (["1,5", "2", "-1.234,25"], ";", "number", "1.234,5"),
        (["1,5", "2"], "\t", "number", "1.234,5"),
        (["1,500", "20", "1,234,567.5"], ",", "number", "1,234.5"),
        (["1,500", "20"], "\t", "number", "1,234.5"),
        (["yes", "No", ""], ",", "boolean", ""),
        (["TRUE", "False"], ",", "boolean", ""),
        (["0", "1"], ",", "number", "1234.5"),
        (["2020-01-31", "2020-02-01T12:00"], ",", "date", "YYYY-MM-DD"),
        (["2020/01/31", "?"], ",", "date", "YYYY-MM-DD"),
        (["31.01.2020"], ",", "date", "DD.MM.YYYY"),
        (["31/01/2020", "01/02/2020"], ",", "date", "DD/MM/YYYY"),
        (["01/31/2020", "01/02/2020"], ",", "date", "MM/DD/YYYY"),
        (["01/31/2020", "31/01/2020"], ",", "category", ""),
        (["2020-02-30", "2020-02-28"], ",", "category", ""),
        (["red", "blue"], ",", "category", ""),
        (["1,5", "x"], ",", "category", ""),
        ([*["1"] * 9, "x"], ",", "number", "1234.5"),
        ([*["1"] * 8, "x"], ",", "category", ""),
        ([*["1,5"] * 9, "x"], ";", "number", "1.234,5"),
        ([*["1,500.5"] * 9, "x"], ",", "number", "1,234.5"),
        (["1,5", "12,25"], ",", "number", "1.234,5"),
        (["1,234.5", "2"], ";", "number", "1,234.5"),
        (["", "na"], ",", "number", "1234.5"),
        (["1", "inf"], ",", "number", "1234.5"),
    ],
)
def test_the_kind_of_a_column_is_told_by_its_cells(cells, delimiter, kind, form):
    column = guess(cells, delimiter)
    assert (column.kind, column.form) == (kind, form)


def test_a_kind_is_told_by_all_parts_of_a_column():
    column = Guess("a")
    column.see(["1", "2"])
    assert column.column().kind == "number"
    column.see(["2020-01-01", "2020-01-02", "2020-01-03"])
    assert column.column().kind == "category"


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_numbers_read_as_they_are_written(value):
    assert Column("a").numbers([repr(value)])[0] == np.float32(value)
    comma = Column("a", "number", "1.234,5")
    if "e" not in f"{value:.3f}":
        assert comma.number(f"{value:.3f}".replace(".", ",")) == float(f"{value:.3f}")


@given(st.dates(min_value=date(1000, 1, 1)))
def test_dates_are_days_since_1970_in_every_form(day):
    expected = (day - date(1970, 1, 1)).days
    for form, text in (
        ("YYYY-MM-DD", day.isoformat()),
        ("DD.MM.YYYY", f"{day.day}.{day.month}.{day.year}"),
        ("DD/MM/YYYY", f"{day.day:02d}/{day.month:02d}/{day.year}"),
        ("MM/DD/YYYY", f"{day.month}-{day.day}-{day.year}"),
    ):
        assert Column("a", "date", form).number(text) == expected


def test_a_time_is_a_share_of_its_day_and_a_zone_is_taken_off():
    column = Column("a", "date", "YYYY-MM-DD")
    assert column.number("1970-01-03 06:00") == 2.25
    assert column.number("1970-01-03T06:00:00+06:00") == 2.0
    with pytest.raises(
        ValueError, match="must hold dates like YYYY-MM-DD, row 1 has '1970-01-03 x"
    ):
        column.numbers(["1970-01-03 x"])


def test_categories_are_places_and_others_are_unknown():
    column = Column("a", "category", "", ("red", "blue"))
    numbers = column.numbers(["blue", "red", "pink", ""])
    assert numbers[:3].tolist() == [1, 0, -1]
    assert math.isnan(numbers[3])


@pytest.mark.parametrize(
    ("column", "cell", "words"),
    [
        (Column("a"), "red", "finite numbers"),
        (Column("a"), "inf", "finite numbers"),
        (Column("a", "number", "1.234,5"), "1.5", "finite numbers like 1.234,5"),
        (Column("a", "number", "1,234.5"), "1,5", "finite numbers like 1,234.5"),
        (Column("a", "boolean", ""), "maybe", "yes or no"),
        (Column("a", "date", "DD.MM.YYYY"), "1.13.2020", "dates like DD.MM.YYYY"),
        (Column("a", "date", "DD.MM.YYYY"), "1.12.20", "dates like DD.MM.YYYY"),
    ],
)
def test_a_cell_of_another_kind_is_named_with_its_row(column, cell, words):
    with pytest.raises(ValueError, match=f"'a' must hold {words}, row 7 has '{cell}': correct it"):
        column.numbers(["", cell], first=6)


def test_a_column_survives_json():
    for column in (Column("a"), Column("b", "category", "", ("x", "y"))):
        assert Column.from_dict(column.to_dict()) == column
