"""The user's own tables: from the text of their cells to numbers."""

import numpy as np
import pytest
import torch
from own_tables import mixed, regression, wide, write_csv

from kmixup.lab.data import delimited, load
from kmixup.lab.data.columns import Column
from kmixup.lab.data.table import read_csv


def table(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "own.csv"
    path.write_text(text, encoding=encoding)
    return path


def test_csv_takes_the_named_column_as_the_class(tmp_path):
    path = table(tmp_path, "a,kind,b\n1,x,2\n3,y,4e1\n\n5,x,-6\n")
    contents = read_csv(path, target="kind")
    assert contents.x.tolist() == [[1, 2], [3, 40], [5, -6]]
    assert (contents.y.tolist(), contents.classes) == ([0, 1, 0], ("x", "y"))


def test_a_csv_is_read_in_parts_that_do_not_show(tmp_path, monkeypatch):
    lines = [f"{i},{'zyx'[i % 3]},{-i / 7}" for i in range(10)]
    path = table(tmp_path, "\n".join(["a,kind,b", *lines]))
    whole = read_csv(path, target="kind")
    assert whole.columns == ("a", "b")
    assert whole.classes == ("x", "y", "z")
    assert whole.y.tolist() == [2, 1, 0, 2, 1, 0, 2, 1, 0, 2]
    assert whole.x.equal(torch.tensor([[float(i), -i / 7] for i in range(10)]))
    for rows in (1, 3, 10):
        monkeypatch.setattr(delimited, "ROWS", rows)
        contents = read_csv(path, target="kind")
        assert contents.x.equal(whole.x)
        assert contents.y.equal(whole.y)


def test_a_mixed_table_is_read_in_parts_that_do_not_show(tmp_path, monkeypatch):
    path = mixed(tmp_path / "own.csv", rows=40)
    whole = read_csv(path)
    for rows in (1, 7):
        monkeypatch.setattr(delimited, "ROWS", rows)
        parts = read_csv(path)
        assert parts.table == whole.table
        assert torch.equal(parts.x.nan_to_num(-7), whole.x.nan_to_num(-7))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1,x", "2,y", "inf,x"], "must hold finite numbers, row 3 has 'inf': correct it or leave"),
        (["1,x", "2,y", "3"], "must have 2 values in a row, row 3 has 1"),
    ],
)
def test_rows_of_a_csv_are_counted_through_its_parts(tmp_path, monkeypatch, lines, message):
    monkeypatch.setattr(delimited, "ROWS", 2)
    with pytest.raises(ValueError, match=message):
        read_csv(table(tmp_path, "\n".join(["a,target", *lines])))


def test_the_names_of_columns_stay_with_the_data(tmp_path):
    lines = [f"{i},{'xy'[i % 2]}" for i in range(9)]
    data = load(str(table(tmp_path, "\n".join(["size,target", *lines]))), limit=3)
    assert data.columns == ("size",)
    assert load("iris").columns[0] == "sepal length (cm)"
    assert load("one-ring").columns == ()


# targets


@pytest.mark.parametrize(
    ("header", "target", "note"),
    [
        ("a,Label,b", "Label", "the target is the column 'Label': --target names another"),
        ("y,class,b", "class", "the target is the column 'class': --target names another"),
        ("a,b,kind", "kind", "the target is the last column, 'kind': --target names another"),
    ],
)
def test_a_target_that_is_not_named_has_a_usual_name_or_is_the_last(tmp_path, header, target, note):
    samples = read_csv(table(tmp_path, f"{header}\n1,2,3\n4,5,6\n"))
    assert target not in samples.columns
    assert len(samples.columns) == 2
    assert note in samples.notes
    assert not read_csv(tmp_path / "own.csv", target=target).notes
    assert not read_csv(table(tmp_path, "a,target\n1,2\n3,4\n")).notes


def test_a_target_that_is_not_there_is_told_the_columns(tmp_path):
    with pytest.raises(ValueError, match="'kind' as its target, has no such: there are a, b$"):
        read_csv(table(tmp_path, "a,b\n1,2\n"), target="kind")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("target\n1\n", "a target and another column, .* has the column target alone"),
        ("", r"own\.csv must have a header and rows below it, is empty"),
        ("a,target\n", r"own\.csv must have a row below its header, has none"),
        ("a,target\n1,\n2, \n", "a row must have a value of the target 'target', none has"),
    ],
)
def test_a_csv_without_features_or_rows_is_named(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_csv(table(tmp_path, text))


def test_a_misspelt_column_of_many_is_told_the_likely_one(tmp_path):
    header = ",".join([*(f"g{i}" for i in range(300)), "Tumour"])
    path = table(tmp_path, f"{header}\n{'1,' * 300}x\n")
    with pytest.raises(ValueError, match=r"has no such: did you mean 'Tumour'\?$"):
        read_csv(path, target="tumor")
    with pytest.raises(ValueError, match=r"got 'Zebra': there are g0, g1, .*, g11 and 289 more$"):
        read_csv(path, drop=["Zebra"])


@pytest.mark.parametrize("cells", [["fine"] * 6, ["7"] * 6, ["fine", ""] * 3])
def test_a_target_of_one_value_is_refused(tmp_path, cells):
    lines = [f"{i},{cell}" for i, cell in enumerate(cells)]
    path = table(tmp_path, "\n".join(["a,state", *lines]))
    with pytest.raises(ValueError, match="'state' must have two different values or more, all"):
        read_csv(path)


def test_a_first_line_of_values_is_said_to_be_taken_for_names(tmp_path):
    rows = "4.9,3.0,setosa\n6.3,3.3,virginica\n"
    said = "the first line is taken for the names of the columns, and has the number 5.1"
    assert any(said in note for note in read_csv(table(tmp_path, f"5.1,3.5,kind\n{rows}")).notes)
    for header in ("0,1,target", "2019,2020,target", "a,b,target"):
        assert not read_csv(table(tmp_path, f"{header}\n{rows}")).notes


def test_a_second_column_called_like_the_target_is_refused(tmp_path):
    path = table(tmp_path, "a,target,b,target\n1,x,2,x\n3,y,4,y\n")
    with pytest.raises(ValueError, match="header of different names, has 'target' 2 times: rename"):
        read_csv(path)


def test_a_decimal_target_is_a_regression(tmp_path):
    path = table(tmp_path, "a,target\n" + "".join(f"{i},{i / 4}\n" for i in range(20)))
    samples = read_csv(path)
    assert (samples.classes, samples.y.dtype) == ((), torch.float32)
    assert samples.y.tolist() == [i / 4 for i in range(20)]
    assert len(read_csv(path, task="classes").classes) == 20


@pytest.mark.parametrize(
    ("cells", "numbers", "form"),
    [
        (['"1,234"', '"2,345"', "999"], [1234, 2345, 999], "1,234.5"),
        (['"1,234.50"', '"2,345.25"', "999"], [1234.5, 2345.25, 999], "1,234.5"),
        (['"12,5"', '"1,25"', "3"], [12.5, 1.25, 3], "1.234,5"),
    ],
)
def test_commas_in_quotes_mean_the_same_in_the_target_as_in_other_columns(
    tmp_path, cells, numbers, form
):
    lines = [f"{cell},{cell}" for cell in cells]
    path = table(tmp_path, "\n".join(["size,price", *lines]))
    samples = read_csv(path, task="regression")
    assert samples.y.tolist() == samples.x[:, 0].tolist() == numbers
    assert f"the numbers of the target 'price' are read like {form}" in samples.notes


def test_a_target_of_words_is_no_regression(tmp_path):
    with pytest.raises(ValueError, match="task must be classes for the target 'target', got regr"):
        read_csv(table(tmp_path, "a,target\n1,x\n2,y\n"), task="regression")


def test_rows_without_a_target_are_left_out_and_counted(tmp_path):
    samples = read_csv(table(tmp_path, "a,target\n1,x\n2,\n3,NA\n4,x\n"))
    assert samples.classes == ("NA", "x")
    assert samples.x.flatten().tolist() == [1, 3, 4]
    assert "1 rows without a 'target' are left out" in samples.notes
    numbers = read_csv(table(tmp_path, "a,target\n1,0.5\n2,NA\n3,?\n4,2.5\n"))
    assert numbers.y.tolist() == [0.5, 2.5]
    assert numbers.x.flatten().tolist() == [1, 4]


# cells


@pytest.mark.parametrize("cell", ["inf", "1e39"])
def test_a_csv_cell_that_is_no_finite_number_is_named(tmp_path, cell):
    with pytest.raises(
        ValueError,
        match=rf"own\.csv: the column 'a b' must hold finite numbers, row 2 has '{cell}': correct "
        r"it or leave it blank, or leave the column out \(--drop 'a b'\)",
    ):
        read_csv(table(tmp_path, f"a b,target\n1,x\n{cell},y\n"))


def test_a_word_among_numbers_is_a_mistake_and_words_are_categories(tmp_path):
    lines = [f"{i},{'xy'[i % 2]}" for i in range(20)]
    with pytest.raises(ValueError, match="'a' must hold finite numbers, row 21 has 'red'"):
        read_csv(table(tmp_path, "\n".join(["a,target", *lines, "red,x"])))
    samples = read_csv(table(tmp_path, "a,target\nred,x\n7,y\nblue,x\n,y\nred,y\n"))
    assert samples.table == (Column("a", "category", "", ("red", "7", "blue")),)
    assert samples.x.nan_to_num(-7).flatten().tolist() == [0, 1, 2, -7, 0]


def test_a_mixed_table_has_a_kind_for_every_column(tmp_path):
    samples = read_csv(mixed(tmp_path / "own.csv"))
    assert {column.name: column.kind for column in samples.table} == {
        "customer": "category", "row": "number", "age": "number", "city": "category",
        "since": "date", "income": "number", "mail": "boolean", "currency": "category",
    }  # fmt: skip
    assert samples.classes == ("leaves", "stays")
    assert 10 < int(samples.x[:, 2].isnan().sum()) < 60


def test_columns_are_left_out_on_request(tmp_path):
    path = mixed(tmp_path / "own.csv", rows=30)
    samples = read_csv(path, drop=["customer", "row"])
    assert samples.columns == ("age", "city", "since", "income", "mail", "currency")
    with pytest.raises(
        ValueError, match=r"drop must name columns of .*, got 'id': there are customer"
    ):
        read_csv(path, drop=["id"])
    with pytest.raises(ValueError, match="drop must leave the target, got 'churn'"):
        read_csv(path, drop=["churn"])
    with pytest.raises(ValueError, match="must have a column beside its target to learn from"):
        read_csv(path, drop=[*samples.columns, "customer", "row"])


def test_a_csv_row_of_another_length_is_named(tmp_path):
    with pytest.raises(ValueError, match="must have 2 values in a row, row 1 has 3"):
        read_csv(table(tmp_path, "a,target\n1,x,5\n"))


def test_a_csv_of_bytes_is_named(tmp_path):
    (tmp_path / "own.csv").write_bytes(b"a,target\n\x00\xfe,1\n")
    with pytest.raises(ValueError, match="must be a table of text, could not be read: save it as"):
        read_csv(tmp_path / "own.csv")


def test_dates_that_may_have_the_month_first_are_said_to(tmp_path):
    path = table(tmp_path, "when,target\n03/04/2020,x\n05/06/2021,y\n")
    assert any("'when' are read with the day first" in note for note in read_csv(path).notes)
    path = table(tmp_path, "when,target\n03/04/2020,x\n05/26/2021,y\n")
    assert not any("'when'" in note for note in read_csv(path).notes)


# whole files


def test_the_same_table_reads_alike_in_every_encoding_and_between_all_delimiters(tmp_path):
    header, rows = ["größe", "ort", "target"], [["1.5", "Köln", "x"], ["2.5", "Bonn", "y"]]
    first = read_csv(write_csv(tmp_path / "a.csv", header, rows))
    for encoding in ("utf-8-sig", "utf-16", "cp1252"):
        for delimiter in ",;\t":
            path = write_csv(
                tmp_path / "b.csv", header, rows, delimiter=delimiter, encoding=encoding
            )
            samples = read_csv(path)
            assert (samples.columns, samples.table) == (first.columns, first.table)
            assert torch.equal(samples.x, first.x)
            said = any("read as cp1252" in note for note in samples.notes)
            assert said == (encoding == "cp1252")


def test_a_table_of_a_german_office_is_a_regression(tmp_path):
    samples = read_csv(regression(tmp_path / "rent.csv"))
    kinds = [(column.kind, column.form) for column in samples.table]
    assert kinds[:2] == [("number", "1.234,5"), ("number", "1234.5")]
    assert kinds[3] == ("date", "DD.MM.YYYY")
    assert sorted(samples.table[2].categories) == ["Altstadt", "Süd", "West"]
    assert 100 < float(samples.y.mean()) < 2000
    assert samples.classes == ()


def test_a_wide_table_of_few_rows_reads(tmp_path):
    samples = read_csv(wide(tmp_path / "genes.csv"), drop=["patient"])
    assert samples.x.shape == (48, 400)
    assert np.isfinite(samples.x.numpy()).all()
    assert samples.y.bincount().tolist() == [16, 16, 16]
