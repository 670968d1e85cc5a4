"""The schema and the encoder of tables: typed cells, what is fitted, and new rows."""

import json
from datetime import date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmixup.tables.encoder import Fitted, TableEncoder, looks_like_id
from kmixup.tables.forms import Form
from kmixup.tables.look import across, row_hashes
from kmixup.tables.schema import KINDS, Column, Schema, read_column

NAN = float("nan")
POINT = Form()


def series(cells, **how):
    return pd.Series(cells, name="a", **how)


def read(column, *cells, form=POINT):
    return read_column(series(list(cells), dtype=object), column, form)


def fitted(frame, y=None, **kinds):
    schema, _ = Schema.infer(frame)
    columns = tuple(Column(c.name, kinds.get(c.name, c.kind), c.form) for c in schema.columns)
    schema = Schema(columns, schema.form)
    return TableEncoder.fit(schema, schema.read(frame), y)


def encode(cells, new, kind="number", **how):
    encoder, _ = fitted(pd.DataFrame({"a": series(cells, **how)}), a=kind)
    return encoder, encoder.transform(pd.DataFrame({"a": new})).tolist()


# cells


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (series([1, 2]), "number"),
        (series([1, None], dtype="Int64"), "number"),
        (series([True, False]), "boolean"),
        (series([True, None], dtype=object), "boolean"),
        (series(pd.to_datetime(["2020-01-31"])), "date"),
        (series(pd.to_datetime(["2020-01-31T00:30+02:00"])), "date"),
        (series([date(2020, 1, 31), None], dtype=object), "date"),
        (series(["1", "2"], dtype="category"), "category"),
        (series([1, 2], dtype="category"), "category"),
        (series(["1", "2"]), "number"),
        (series(["1", "2"], dtype=object), "number"),
        (series([1, "x"], dtype=object), "category"),
        (series([None, None], dtype=object), "ignore"),
        (series([*["1"] * 9, "x"]), "number"),
        (series([*["1"] * 8, "x"]), "category"),
        (series(["yes", "No", ""]), "boolean"),
        (series(["0", "1"]), "number"),
        (series(["", "na"]), "ignore"),
    ],
)
def test_the_kind_of_a_column_is_that_of_its_cells(cells, kind):
    schema, _ = Schema.infer(pd.DataFrame({"a": cells}))
    assert schema["a"].kind == kind
    if kind != "number" or "x" not in map(str, cells):
        assert len(read_column(cells, schema["a"], schema.form)) == len(cells)


@pytest.mark.parametrize(
    "cells",
    [
        np.array([2**63 + 1, 2**63 + 3] * 6, np.uint64),
        pd.array([2**53 + 1, None, -(2**53) - 3] * 4, dtype="Int64"),
        pd.Series([10**400, 1, 2] * 4, dtype=object),
    ],
)
def test_whole_numbers_that_floats_cannot_hold_stay_text(cells):
    frame = pd.DataFrame({"a": cells})
    schema, notes = Schema.infer(frame)
    assert "codes with leading zeros or many digits, which stay text" in notes[0]
    given = [str(cell) for cell in frame["a"].dropna()]
    assert schema.read(frame)["a"].dropna().tolist() == given


def test_a_whole_number_beyond_float64_is_named():
    with pytest.raises(ValueError, match="'a' must hold finite numbers, row 2 has '1000"):
        read(Column("a"), 1, 10**400)


def test_dates_of_pyarrow_are_dates():
    days = pd.array([date(2024, 1, 1), None], dtype=pd.ArrowDtype(pa.date32()))
    hours = pd.array([datetime(2024, 1, 1, 12), None], dtype=pd.ArrowDtype(pa.timestamp("us")))
    values = Schema.infer(frame := pd.DataFrame({"a": days, "b": hours}))[0].read(frame)
    assert values.iloc[0].tolist() == [19723, 19723.5]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([1, "2", 3.0, "x"], "'a' (cells with digits like 2, read as text)"),
        ([1, "x", 2.5], "'a' (cells with digits next to words, read as text)"),
    ],
)
def test_numbers_and_words_of_a_program_are_named(cells, words):
    _, notes = Schema.infer(pd.DataFrame({"a": series(cells, dtype=object)}))
    assert words in notes[0]


def test_times_between_dates_and_other_types_are_named():
    with pytest.raises(ValueError, match="the column 'a' holds timedelta64: leave it out"):
        Schema.infer(pd.DataFrame({"a": pd.to_timedelta(["1 day"])}))


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_numbers_read_as_they_are_written(value):
    assert read(Column("a"), repr(value), f" {value!r} ").tolist() == [value, value]
    if "e" not in f"{value:.3f}":
        text = f"{value:.3f}".replace(".", ",")
        assert read(Column("a"), text, form=Form(",", ".")) == float(f"{value:.3f}")


@given(st.dates(min_value=date(1000, 1, 1)))
def test_dates_are_days_since_1970_in_every_form(day):
    expected = (day - date(1970, 1, 1)).days
    for form, text in (
        ("YYYY-MM-DD", day.isoformat()),
        ("DD.MM.YYYY", f"{day.day}.{day.month}.{day.year}"),
        ("DD/MM/YYYY", f"{day.day:02d}/{day.month:02d}/{day.year}"),
        ("MM/DD/YYYY", f"{day.month}-{day.day}-{day.year}"),
        ("DD Mon YYYY", f"{day:%d %B %Y}"),
        ("Mon DD, YYYY", f"{day:%b %d, %Y}"),
    ):
        column = Column("a", "date", form)
        typed = [day, datetime(day.year, day.month, day.day)]
        assert read(column, text, *typed).tolist() == [expected] * 3


def test_numbers_and_dates_of_a_program_are_read_whatever_the_form_of_the_file():
    german = Form(",", ".")
    assert read(Column("a"), 1.5, "1,5", np.float32(2), 3, form=german).tolist() == [1.5, 1.5, 2, 3]
    assert read(Column("a", "boolean"), True, "no", 1, 0.0).tolist() == [1, 0, 1, 0]
    assert read(Column("a", "category"), 3.0, 3, "3", "x ").tolist() == ["3", "3", "3", "x"]
    typed = pd.Timestamp("1970-01-03 12:00", tz="Asia/Tokyo")
    assert read(Column("a", "date", "YYYY-MM-DD"), typed, "1970-01-03 06:00").tolist() == [
        2.5,
        2.25,
    ]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "ignore"])
def test_blanks_are_missing_in_every_kind(kind):
    column = Column("a", kind, "YYYY-MM-DD" if kind == "date" else "")
    cells = ["", " ", "NA", "NaN", "null", "None", "?", "#N/A", None, NAN, pd.NA, pd.NaT, "-"]
    assert pd.isna(read(column, *cells, form=Form(missing=("-",)))).all()


GERMAN, ENGLISH = Form(",", "."), Form(".", ",")


@pytest.mark.parametrize(
    ("column", "form", "cell", "words"),
    [
        (Column("a"), Form(), "red", "finite numbers"),
        (Column("a"), Form(), "1e39", "finite numbers"),
        (Column("a"), Form(), "1_000", "finite numbers"),
        (Column("a"), Form(), "007", "finite numbers"),
        (Column("a"), Form(), "3,5", "finite numbers"),
        (Column("a"), GERMAN, "1.5", "finite numbers like 1.234,5"),
        (Column("a"), ENGLISH, "1,5", "finite numbers like 1,234.5"),
        (Column("a", "number", "# kg"), Form(), "12 lb", "finite numbers like # kg"),
        (Column("a", "boolean"), Form(), "maybe", "yes or no"),
        (Column("a", "boolean"), Form(), 2, "yes or no"),
        (Column("a", "time"), Form(), "25:00", "times of day"),
        (Column("a", "date", "DD.MM.YYYY"), Form(), "1.13.2020", "dates like DD.MM.YYYY"),
        (Column("a", "date", "DD.MM.YYYY"), Form(), "2020-01-31", "dates like DD.MM.YYYY"),
        (Column("a", "date", "YYYY-MM-DD"), Form(), "1970-01-03 x", "dates like YYYY-MM-DD"),
        (Column("a", "date", "YYYY-MM-DD"), Form(), 5, "dates like YYYY-MM-DD"),
    ],
)
def test_a_cell_of_another_kind_or_form_is_named_with_its_row(column, form, cell, words):
    with pytest.raises(ValueError, match=f"'a' must hold {words}, row 2 has '{cell}': correct it"):
        read(column, "", cell, form=form)


# fitted columns


def test_a_blank_number_gets_the_median_and_an_indicator():
    encoder, inputs = encode([5.0, 1.0, NAN, 9.0], [7.0, NAN])
    assert (encoder.names, encoder.binary) == (("a", "a blank"), (False, True))
    assert inputs == [[7, 0], [5, 1]]
    assert encoder.columns[0].remarks == ("1 blanks",)
    assert encode([5.0, 1.0, 9.0], [NAN])[1] == [[5]]


def test_a_boolean_is_0_or_1_and_a_blank_the_most_frequent():
    encoder, inputs = encode([1.0, 1.0, 0.0, NAN], [0.0, NAN], "boolean")
    assert (inputs, encoder.binary) == ([[0, 0], [1, 1]], (True, True))


def test_a_category_is_one_hot_over_the_texts_of_the_training_rows():
    encoder, inputs = encode(
        ["red", "red", "blue", None], ["blue", "red", "pink", None], "category"
    )
    assert encoder.names == ("a=blue", "a=red", "a blank")
    assert inputs == [[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]]


def test_a_date_is_days_month_and_weekday():
    new = ["2024-02-29", "1969-12-31", "2024-03-03 18:00"]
    encoder, inputs = encode(["2024-02-29", "2023-12-31"], new, "date")
    assert encoder.names == ("a", "a month", "a weekday")
    # a Thursday, a Wednesday, a Sunday
    assert inputs == [[19782, 2, 3], [-1, 12, 2], [19785.75, 3, 6]]


def many(rows=1200, classes=2):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 120, rows)
    y = (codes + rng.integers(0, 20, rows)) * classes // 140
    return pd.DataFrame({"a": [f"t{code}" for code in codes], "b": rng.normal(size=rows)}), y


@pytest.mark.parametrize("classes", [2, 3])
def test_a_category_of_many_texts_becomes_its_mean_target(classes):
    frame, y = many(classes=classes)
    encoder, x = fitted(frame, y)
    outputs = 1 if classes == 2 else classes
    assert len(encoder.names) == outputs + 1
    assert np.corrcoef(x[:, outputs - 1], y == classes - 1)[0, 1] > 0.6
    new = encoder.transform(pd.DataFrame({"a": ["unseen", "t119"], "b": [0.0, 0.0]}))
    assert new[0, outputs - 1] == pytest.approx((y == classes - 1).mean())
    assert new[1, outputs - 1] > new[0, outputs - 1]


def test_the_mean_of_a_training_row_leaves_its_own_target_out():
    frame, _ = many()
    noise = np.random.default_rng(1).integers(0, 2, len(frame))
    _, x = fitted(frame, noise)
    assert abs(np.corrcoef(x[:, 0], noise)[0, 1]) < 0.15


def test_texts_become_hashed_words():
    texts = [f"the {word} is number {i} of all" for i, word in enumerate(["good", "bad"] * 10)]
    frame = pd.DataFrame({"a": texts, "b": np.arange(20.0)})
    encoder, x = fitted(frame)
    assert x.shape == (20, 257)
    assert np.array_equal(encoder.transform(frame), x)
    assert not encoder.transform(pd.DataFrame({"a": [None], "b": [1.0]}))[:, :256].any()


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
    encoder, _ = fitted(pd.DataFrame({name: values, "b": values % 3}))
    remark = f"looks like an id: --drop {name} leaves it out"
    assert (remark in encoder.columns[0].remarks) == is_id


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


def test_an_encoder_survives_json_and_encodes_text_like_types():
    encoder, typed = fitted(frame())
    schema = Schema.from_json(encoder.schema.to_json())
    kept = TableEncoder.from_dict(schema, json.loads(json.dumps(encoder.to_dict())))
    assert kept == encoder
    assert np.isfinite(typed).all()
    assert np.array_equal(kept.transform(frame().astype(str)), typed)
    assert np.array_equal(kept.transform(frame().to_dict("records")), typed)
    assert len(encoder.names) == len(encoder.binary) == typed.shape[1]


def test_new_rows_may_have_other_columns_and_unseen_categories():
    encoder, _ = fitted(frame())
    rows = frame().assign(city="Zug", shoe=43, mail=None)[::-1]
    values = encoder.read(rows)
    unseen, blank = encoder.notes(values, "new")
    assert unseen.startswith("4 rows of new have a category of 'city' that has no input")
    assert blank == "4 rows of new have no 'mail', which every training row had"
    cities = [i for i, name in enumerate(encoder.names) if name.startswith("city=")]
    assert not encoder.encode(values)[:, cities].any()
    with pytest.raises(ValueError, match="must have the columns .*, lacks city, since$"):
        encoder.transform(frame().drop(columns=["city", "since"]))
    with pytest.raises(ValueError, match="'age' must hold finite numbers, row 3 has 'old'"):
        encoder.transform(frame().astype(str).assign(age=["1", "2", "old", "4"]))


def test_a_table_without_a_column_to_learn_from_raises():
    names = pd.DataFrame({"name": [f"n{i}" for i in range(20)], "none": [None] * 20})
    with pytest.raises(ValueError, match="must have a column to learn from"):
        fitted(names)


def test_rows_that_occur_twice_are_found_in_any_process_and_in_a_test_set():
    schema, _ = Schema.infer(frame())
    values = schema.read(pd.concat([frame(), frame()[:2]], ignore_index=True))
    hashes = row_hashes(values)
    assert len(np.unique(hashes)) == 4
    assert hashes[0] == hashes[4] != hashes[1]
    assert across(values[:4], values[4:]) == ["2 of 2 test rows have the inputs of a training row"]


# what a file says that was edited or forged


SCHEMA = {
    "format": 1, "decimal": ".", "thousands": "", "dayfirst": None, "missing": [],
    "target": "y", "columns": {"a": "number: # kg", "b": "date: DD.MM.YYYY", "y": "category"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "must be of format 1, is of 2"),
        ({"decimal": "x"}, "decimal must be . or , got 'x'"),
        ({"thousands": "."}, "thousands must be a comma, point, space"),
        ({"dayfirst": "yes"}, "has 'yes' as dayfirst"),
        ({"missing": [1]}, "must list texts in missing"),
        ({"columns": {"a": "float64"}}, "must have one of number, boolean, .* has 'float64'"),
        ({"columns": {"a": "date: 31.12."}}, "for the column 'a', a date with its form"),
        ({"columns": {"a": ["number"]}}, "must have one of number"),
        ({"columns": []}, r"has \[\] as columns"),
        ({"more": 1}, "must have the entries format, decimal"),
    ],
)
def test_every_entry_of_a_schema_is_checked(changes, message):
    assert Schema.from_json(json.dumps(SCHEMA)).columns[0] == Column("a", "number", "# kg")
    with pytest.raises(ValueError, match=message):
        Schema.from_json(json.dumps(SCHEMA | changes))
    with pytest.raises(ValueError, match="must hold JSON"):
        Schema.from_json("[" * 100_000)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "b"}, {"fill": "x"}, {"fill": None}, {"fill": NAN}, {"used": 1},
        {"categories": [1]}, {"categories": "ab"}, {"means": [1]}, {"means": [[1.0]]},
        {"means": [["x"]]}, {"remarks": None}, {"kind": "number"}, {"indicator": {}},
    ],
)  # fmt: skip
def test_every_entry_of_an_encoder_is_checked(changes):
    schema = Schema((Column("a"),))
    plain = json.loads(json.dumps(TableEncoder(schema, (Fitted(Column("a")),)).to_dict()))
    assert TableEncoder.from_dict(schema, plain).names == ("a",)
    with pytest.raises(ValueError, match="the column 'a' must have entries as training wrote them"):
        TableEncoder.from_dict(schema, [plain[0] | changes])
    with pytest.raises(ValueError, match="must have an entry for each column"):
        TableEncoder.from_dict(schema, plain * 2)
