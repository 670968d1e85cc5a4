"""The encoder of tables: kinds of columns, what is fitted to them, and new rows."""

import json
from datetime import date, datetime
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmixup.columns import KINDS, Column, Kind, TableEncoder, infer, looks_like_id

NAN = float("nan")


def series(cells, **how):
    return pd.Series(cells, name="a", **how)


def read(column, *cells):
    return column.read(series(list(cells), dtype=object))


def fit(column, values):
    dtype = object if column.kind == "category" else float
    return column.fit(np.array(values, dtype))


def encode(column, values):
    dtype = object if column.kind == "category" else float
    return column.encode(np.array(values, dtype)).tolist()


# kinds


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
def test_the_kind_of_a_column_is_inferred_from_its_text(cells, delimiter, kind, form):
    column = infer(series(cells), delimiter=delimiter)
    assert (column.kind, column.form) == (kind, form)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (series([1, 2]), "number"),
        (series([1, None], dtype="Int64"), "number"),
        (series([True, False]), "boolean"),
        (series([True, None], dtype=object), "boolean"),
        (series(pd.to_datetime(["2020-01-31"])), "date"),
        (series([date(2020, 1, 31), None], dtype=object), "date"),
        (series(["1", "2"], dtype="category"), "category"),
        (series([1, 2], dtype="category"), "category"),
        (series(["1", "2"]), "number"),
        (series([1, "x"], dtype=object), "category"),
        (series([None, None], dtype=object), "number"),
    ],
)
def test_the_kind_of_a_typed_column_is_that_of_its_type(cells, kind):
    column = infer(cells)
    assert column.kind == kind
    assert len(column.read(cells)) == len(cells)


def test_dates_that_may_have_the_month_first_are_remarked():
    assert "the day is taken to come first" in infer(series(["03/04/2020"])).remarks[0]
    assert not infer(series(["03/04/2020", "05/26/2021"])).remarks


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_numbers_read_as_they_are_written(value):
    assert read(Column("a"), repr(value), f" {value!r} ").tolist() == [value, value]
    comma = Column("a", "number", "1.234,5")
    if "e" not in f"{value:.3f}":
        assert read(comma, f"{value:.3f}".replace(".", ",")) == float(f"{value:.3f}")


@given(st.dates(min_value=date(1000, 1, 1)))
def test_dates_are_days_since_1970_in_every_form(day):
    expected = (day - date(1970, 1, 1)).days
    for form, text in (
        ("YYYY-MM-DD", day.isoformat()),
        ("DD.MM.YYYY", f"{day.day}.{day.month}.{day.year}"),
        ("DD/MM/YYYY", f"{day.day:02d}/{day.month:02d}/{day.year}"),
        ("MM/DD/YYYY", f"{day.month}-{day.day}-{day.year}"),
    ):
        column = Column("a", "date", form)
        assert (
            read(column, text, day, datetime(day.year, day.month, day.day)).tolist()
            == [expected] * 3
        )


def test_a_time_is_a_share_of_its_day_and_a_zone_is_taken_off():
    column = Column("a", "date", "YYYY-MM-DD")
    cells = ["1970-01-03 06:00", "1970-01-03T06:00:00+06:00", pd.Timestamp("1970-01-03 12:00")]
    assert read(column, *cells).tolist() == [2.25, 2.0, 2.5]


def test_numbers_and_dates_of_a_program_are_read_whatever_the_form_of_the_file():
    assert read(Column("a", "number", "1.234,5"), 1.5, "1,5", np.float32(2), 3).tolist() == [
        1.5, 1.5, 2, 3,
    ]  # fmt: skip
    assert read(Column("a", "boolean", ""), True, "no", 1, 0.0).tolist() == [1, 0, 1, 0]
    assert read(Column("a", "category", ""), 3.0, 3, "3", "x ").tolist() == ["3", "3", "3", "x"]


@pytest.mark.parametrize("kind", KINDS)
def test_blanks_are_missing_in_every_kind(kind):
    column = Column("a", kind, next(iter(KINDS[kind].forms)))
    cells = ["", " ", "NA", "NaN", "null", "None", "?", "#N/A", None, NAN, pd.NA, pd.NaT]
    assert pd.isna(read(column, *cells)).all()


@pytest.mark.parametrize(
    ("column", "cell", "words"),
    [
        (Column("a"), "red", "finite numbers"),
        (Column("a"), "inf", "finite numbers"),
        (Column("a"), "1e39", "finite numbers"),
        (Column("a"), "1_000", "finite numbers"),
        (Column("a", "number", "1.234,5"), "1.5", "finite numbers like 1.234,5"),
        (Column("a", "number", "1,234.5"), "1,5", "finite numbers like 1,234.5"),
        (Column("a", "boolean", ""), "maybe", "yes or no"),
        (Column("a", "boolean", ""), 2, "yes or no"),
        (Column("a", "date", "DD.MM.YYYY"), "1.13.2020", "dates like DD.MM.YYYY"),
        (Column("a", "date", "DD.MM.YYYY"), "1.12.20", "dates like DD.MM.YYYY"),
        (Column("a", "date", "YYYY-MM-DD"), "1970-01-03 x", "dates like YYYY-MM-DD"),
        (Column("a", "date", "YYYY-MM-DD"), 5, "dates like YYYY-MM-DD"),
    ],
)
def test_a_cell_of_another_kind_is_named_with_its_row(column, cell, words):
    with pytest.raises(ValueError, match=f"'a' must hold {words}, row 2 has '{cell}': correct it"):
        read(column, "", cell)


# fitted columns


def test_a_number_stays_a_number_and_a_blank_gets_the_median_and_an_indicator():
    column = fit(Column("a"), [5.0, 1.0, NAN, 9.0])
    assert tuple(column.inputs) == ("a", "a blank")
    assert encode(column, [7.0, NAN]) == [[7, 0], [5, 1]]
    assert tuple(column.inputs.values()) == (False, True)
    assert column.remarks == ("1 blanks, filled with the median",)
    assert encode(fit(Column("a"), [5.0, 1.0, 9.0]), [NAN]) == [[5]]


def test_a_boolean_is_0_or_1_and_a_blank_the_most_frequent():
    column = fit(Column("a", "boolean", ""), [1.0, 1.0, 0.0, NAN])
    assert encode(column, [0.0, NAN]) == [[0, 0], [1, 1]]
    assert tuple(column.inputs.values()) == (True, True)
    assert column.remarks == ("1 blanks, filled with yes",)


def test_a_category_is_one_hot_over_the_texts_of_the_training_rows():
    column = fit(Column("colour", "category", ""), ["red", "red", "blue", None])
    assert tuple(column.inputs) == ("colour=blue", "colour=red", "colour blank")
    inputs = encode(column, ["blue", "red", "pink", None])
    assert inputs == [[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 1, 1]]
    assert column.remarks == ("1 blanks, filled with 'red', the most frequent",)


def test_a_date_is_days_month_and_weekday():
    column = Column("when", "date", "YYYY-MM-DD")
    column = column.fit(read(column, "2024-02-29", "2023-12-31"))
    assert tuple(column.inputs) == ("when", "when month", "when weekday")
    inputs = column.encode(read(column, "2024-02-29", "1969-12-31", "2024-03-03 18:00"))
    # a Thursday, a Wednesday, a Sunday
    assert inputs.tolist() == [[19782, 2, 3], [-1, 12, 2], [19785.75, 3, 6]]


@pytest.mark.parametrize(
    ("kind", "values", "remark"),
    [
        ("category", [f"n{i}" for i in range(20)], "all 20 texts are different"),
        ("number", [NAN, NAN], "no value in the training rows"),
    ],
)
def test_a_column_that_says_nothing_is_left_out(kind, values, remark):
    column = fit(Column("name", kind, next(iter(KINDS[kind].forms))), values)
    assert (column.used, column.inputs) == (False, {})
    assert remark in column.remarks[0]


def test_only_the_most_frequent_of_many_texts_are_inputs():
    texts = [f"{i:03d}" for i in range(150)]
    column = fit(Column("city", "category", ""), texts + texts[50:])
    assert column.categories == tuple(texts[50:])
    assert column.remarks == ("the 100 most frequent of 150, others are 0 everywhere",)


@pytest.mark.parametrize(
    ("kind", "form", "value"), [("number", "1234.5", 3), ("category", "", "x")]
)
def test_a_constant_is_named_with_the_remedy(kind, form, value):
    column = fit(Column("a b", kind, form), [value] * 4)
    assert column.used
    assert column.remarks == ("constant: --drop 'a b' leaves it out",)


@pytest.mark.parametrize(
    ("name", "values", "is_id"),
    [
        ("row", np.arange(50.0), True),
        ("row", np.random.default_rng(0).permutation(75)[:50].astype(float), True),
        ("customer_id", 1000 * np.arange(50.0), True),
        ("customerId", 1000 * np.arange(50.0), True),
        ("paid", 1000 * np.arange(50.0), False),
        ("customer_id", np.arange(50.0) % 10, False),
        ("customer_id", np.arange(50.0) / 2, False),
        ("id", np.arange(9.0), False),
    ],
)
def test_ids_are_different_whole_numbers_in_a_row_or_by_name(name, values, is_id):
    assert looks_like_id(name, values) == is_id
    remark = f"looks like an id: --drop {name} leaves it out"
    assert (remark in Column(name).fit(values).remarks) == is_id


# tables


def frame():
    return pd.DataFrame(
        {
            "age": [41, 35, None, 28],
            "city": ["Bern", "Dover", "Bern", None],
            "since": pd.to_datetime(["2020-01-31", "2021-05-01", None, "2022-03-04"]),
            "mail": [True, False, True, True],
            "zip": pd.Categorical([4051, 8001, 4051, 4051]),
        }
    )


def fitted(table):
    encoder = TableEncoder.infer(table)
    return encoder.fit(encoder.read(table))


def test_an_encoder_survives_json_and_encodes_text_like_types():
    encoder = fitted(frame())
    kept = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert kept == encoder
    typed = encoder.transform(frame())
    assert np.isfinite(typed).all()
    assert np.array_equal(kept.transform(frame().astype(str)), typed)
    assert np.array_equal(kept.transform(frame().to_dict("records")), typed)
    assert len(encoder.names) == len(encoder.binary) == typed.shape[1]


def test_new_rows_may_have_other_columns_and_unseen_categories():
    encoder = fitted(frame())
    rows = frame().assign(city="Zug", shoe=43)[::-1]
    values = encoder.read(rows)
    assert encoder.unseen(values) == {"city": 4}
    cities = [i for i, name in enumerate(encoder.names) if name.startswith("city=")]
    assert not encoder.encode(values)[:, cities].any()
    with pytest.raises(ValueError, match="must have the columns .*, lacks city, since$"):
        encoder.transform(frame().drop(columns=["city", "since"]))
    with pytest.raises(ValueError, match="must have the columns .*, lacks age, "):
        encoder.transform([{"city": "Bern"}])
    with pytest.raises(ValueError, match="'age' must hold finite numbers, row 3 has 'old'"):
        encoder.transform(frame().astype(str).assign(age=["1", "2", "old", "4"]))


def test_a_table_without_a_column_to_learn_from_is_refused():
    names = pd.DataFrame({"name": [f"n{i}" for i in range(20)], "none": [None] * 20})
    with pytest.raises(ValueError, match="must have a column to learn from"):
        fitted(names)


def test_a_kind_is_one_entry(monkeypatch):
    class Percent(Kind):
        noun, becomes, inferred = "percents", "share", frozenset()
        forms: ClassVar = {
            "12 %": lambda text: text.str.removesuffix(" %").astype(float).to_numpy() / 100
        }

    monkeypatch.setitem(KINDS, "percent", Percent())
    column = Column("a", "percent", "12 %")
    column = column.fit(read(column, "50 %", "10 %", None))
    assert column.encode(read(column, "25 %", None)).tolist() == [[0.25, 0], [0.3, 1]]
    assert column.report()[1:3] == ("percent like 12 %", "share, blank")
