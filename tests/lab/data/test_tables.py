"""Your own tables: from files and data frames to data sets."""

import sys

import numpy as np
import pandas as pd
import pytest
import torch
from own_tables import imbalanced, mixed, regression, write_csv

from kmixup.lab.data import Holdout, digest, load
from kmixup.lab.data.loading import from_memory, write_samples
from kmixup.lab.data.own import OwnOptions
from kmixup.lab.data.tables import column_report, read_table, samples_of


def write(tmp_path, content, name="own.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def samples(path, target=None, **options):
    return samples_of(read_table(path), OwnOptions(target, **options))


def values(own):
    return own.frame.iloc[own.x.numpy()]


def report_rows(data):
    return [column.report() for column in data.encoder.columns]


# text files


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("größe".encode(), None),
        ("größe".encode("utf-8-sig"), None),
        ("größe".encode("utf-16"), None),
        (b"\xfe\xff" + "größe".encode("utf-16-be"), None),
        ("größe".encode("cp1252"), "cp1252"),
    ],
)
def test_the_encoding_is_found_out(tmp_path, content, said):
    encoding = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(content[:2], "ascii")
    path = write(tmp_path, content + ",b\n1,2\n3,4\n".encode(encoding))
    table = read_table(path)
    assert table.frame.columns[0] == "größe"
    assert [f"read as {said}" in note for note in table.notes] == [True] * (said is not None)


def test_what_is_no_text_is_rejected(tmp_path):
    with pytest.raises(ValueError, match="must be a whole table of text in UTF-8, could not be"):
        read_table(write(tmp_path, b"a,b\n\x81\xff\n"))


@pytest.mark.parametrize(
    ("text", "delimiter", "header"),
    [
        ("a,b,c\n1,2,3", ",", ["a", "b", "c"]),
        ("a;b;c\n1,5;2,5;x\n", ";", ["a", "b", "c"]),
        ("a\tb, c\td\n1\t2\t3", "\t", ["a", "b, c", "d"]),
        ('"a; b",c\n1,2', ",", ["a; b", "c"]),
        ("\n\n a , b \n1,2", ",", ["a", "b"]),
        (",a,,b\n1,2,3,4", ",", ["column 1", "a", "column 3", "b"]),
        ('"a\nb",c\n1,2', ",", ["a\nb", "c"]),
    ],
)
def test_the_delimiter_is_what_divides_the_header_most(tmp_path, text, delimiter, header):
    table = read_table(write(tmp_path, text))
    assert (table.delimiter, list(table.frame.columns)) == (delimiter, header)
    assert len(table.frame) == 1


def test_cells_are_stripped_and_empty_lines_left_out(tmp_path):
    text = ",,\r\na,b,target\r\n1, x y ,u\r\n\r\n   \r\n , ,\r\n 3,z,v \r\n"
    with pytest.raises(ValueError, match="must have 3 values in a row, row 3 has 2"):
        samples(write(tmp_path, text + "5,6\n"))
    own = samples(write(tmp_path, text))
    assert values(own)["a"].tolist() == [1, 3]
    assert values(own)["b"].tolist() == ["x y", "z"]
    assert own.classes == ("u", "v")


def test_quotes_hold_delimiters_and_a_text_of_two_lines(tmp_path):
    text = 'a,b,c\n1,"x, y",2\n3,"two\nlines",4\n5,"say ""hi""",6\n'
    cells = read_table(write(tmp_path, text)).frame["b"].tolist()
    assert cells == ["x, y", "two\nlines", 'say "hi"']
    spaced = read_table(write(tmp_path, 'a, b\n1, "x, y"\n')).frame
    assert spaced["b"].tolist() == ["x, y"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # the quote of line 3 is never closed
        ('a,b,c\n1,x,2\n3,"y,4\n5,z,6\n7,w,8\n', "after row 1: unexpected end of data; is there"),
        ('a,b,c\n1,"x"y,2\n', "after row 0: ',' expected after"),
        ("a,b\n1,x\n2,y\n3\n", "must have 2 values in a row, row 3 has 1"),
        ("a,b\n1,x,5\n2,y,6\n", "must have 2 values in a row, row 1 has 3"),
        ("1,2,1\n3,4,5\n", "has '1' 2 times: rename them, or add a header if the"),
        ("", r"own\.csv must have a header and rows below it, is empty"),
        ("a,target\n", r"own\.csv must have a row below its header, has none"),
    ],
)
def test_a_file_that_is_no_table_is_named_with_the_place(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path, text))


@pytest.mark.parametrize("columns", ["a,b", "b,a"])
def test_numbers_are_read_to_the_last_bit(tmp_path, columns):
    numbers = np.random.default_rng(0).normal(size=500) * 10.0 ** np.arange(-250, 250).clip(-30, 30)
    lines = [f"{number!r},{number!r}" for number in numbers.tolist()]
    frame = values(samples(write(tmp_path, "\n".join([f"{columns}", *lines])), target="b"))
    assert frame["a"].tolist() == numbers.tolist()


# Excel, Parquet and data frames


def test_columns_of_equal_names_in_excel_are_named(tmp_path):
    path = tmp_path / "own.xlsx"
    pd.DataFrame([[1, 2, 2], [3, 4, 4]], columns=["a", "y", "y"]).to_excel(path, index=False)
    with pytest.raises(ValueError, match="own.xlsx must have a header .*, has 'y' 2 times"):
        read_table(path)


@pytest.mark.parametrize("targets", [9, 15])
def test_a_frame_and_its_targets_have_the_same_length(targets):
    message = f"y must have a target for each of the 12 rows, has {targets}"
    with pytest.raises(ValueError, match=message):
        from_memory(pd.DataFrame({"a": range(12)}), [0, 1, 1] * (targets // 3))


@pytest.mark.parametrize("name", ["target", " Target"])
def test_a_column_called_target_beside_targets_raises(tmp_path, name):
    with pytest.raises(ValueError, match="data must not have a column 'target' and y"):
        write_samples(pd.DataFrame({name: [1, 2]}), [0, 1], tmp_path)


@pytest.mark.parametrize("suffix", [".xlsx", ".parquet", ".tsv"])
def test_other_formats_load_like_a_csv(tmp_path, suffix):
    path = mixed(tmp_path / "own.csv", rows=60)
    frame = pd.read_csv(path, parse_dates=["since"])
    other = tmp_path / f"own{suffix}"
    if suffix == ".xlsx":
        frame.to_excel(other, index=False)
    elif suffix == ".parquet":
        frame.to_parquet(other)
    else:
        frame.to_csv(other, sep="\t", index=False)
    expected, data = load(str(path)), load(str(other))
    assert (data.encoder.names, data.classes) == (expected.encoder.names, expected.classes)
    assert torch.equal(data.x_train, expected.x_train)
    assert torch.equal(data.y_test, expected.y_test)


def test_a_data_frame_is_a_table(tmp_path):
    path = mixed(tmp_path / "own.csv", rows=60)
    frame = pd.read_csv(path)
    expected = load(str(path))
    by_column = from_memory(frame, target="churn")
    by_targets = from_memory(frame.drop(columns="churn"), frame["churn"])
    for data in (by_column, by_targets):
        assert torch.equal(data.x_train, expected.x_train)
        assert (data.classes, data.encoder.names) == (expected.classes, expected.encoder.names)
    assert from_memory(frame, target="churn", drop=["row"]).shape == (13,)
    with pytest.raises(ValueError, match="target must name a column of the data, got 'chrun'"):
        from_memory(frame, target="chrun")


@pytest.mark.parametrize("given", [True, False])
def test_a_data_frame_that_was_written_loads_alike(tmp_path, given):
    frame = pd.read_csv(mixed(tmp_path / "own.csv", rows=60)).assign(zip=["1", "2"] * 30)
    frame["zip"] = frame["zip"].astype("category")
    x, y = (frame.drop(columns="churn"), frame["churn"]) if given else (frame, None)
    path = write_samples(x, y, tmp_path)
    expected = from_memory(x, y, target=None if given else "churn")
    data = load(str(path), target="target" if given else "churn")
    assert "zip=1" in data.encoder.names
    assert torch.equal(data.x_train, expected.x_train)
    assert torch.equal(data.y_train, expected.y_train)


@pytest.mark.parametrize(("suffix", "package"), [(".xlsx", "openpyxl"), (".parquet", "pyarrow")])
def test_a_missing_package_is_named(tmp_path, monkeypatch, suffix, package):
    frame = pd.DataFrame({"a": [1, 2], "target": ["x", "y"]})
    path = tmp_path / f"own{suffix}"
    frame.to_excel(path) if suffix == ".xlsx" else frame.to_parquet(path)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ValueError, match=f"own{suffix} could not be read: .*{package}"):
        read_table(path)


@pytest.mark.parametrize("suffix", [".xlsx", ".parquet"])
def test_a_damaged_file_is_named(tmp_path, suffix):
    path = write(tmp_path, b"PK\3\4 not a table", f"own{suffix}")
    with pytest.raises(ValueError, match=rf"own\{suffix} must be a whole \{suffix} file, could"):
        read_table(path)


# targets


@pytest.mark.parametrize(
    ("header", "target", "note"),
    [
        ("a,Label,b", "Label", "the target is the column 'Label': --target names another"),
        ("y,class,b", "class", "the target is the column 'class': --target names another"),
        ("a,b,kind", "kind", "the target is the column 'kind': --target names another"),
    ],
)
def test_a_target_that_is_not_named_has_a_usual_name_or_is_the_last(tmp_path, header, target, note):
    path = write(tmp_path, f"{header}\n1,2,3\n4,5,6\n")
    own = samples(path)
    assert set(values(own)) == set(header.split(",")) - {target}
    assert note in own.notes
    assert not samples(path, target).notes
    assert not samples(write(tmp_path, "a,target\n1,2\n3,4\n")).notes


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\n1,2\n", {"target": "kind"}, "got 'kind': there are a, b$"),
        ("Age,b\n1,2\n", {"target": "age"}, r"got 'age': did you mean 'Age'\?$"),
        ("target\n1\n", {}, "must have a column next to its target 'target', between commas"),
        ("a,target\n1,\n2, \n", {}, "a row must have a value of the target 'target', none has"),
        ("a,b,c\n1,2,3\n", {"drop": ["d"]}, r"drop must name columns of .*, got 'd': there are a"),
        ("a,b,c\n1,2,3\n", {"drop": ["c"]}, "columns of .* in addition to the target 'c', got 'c'"),
        ("a,b,c\n1,2,3\n", {"drop": ["a", "b"]}, "must have a column next to its target 'c'"),
        ("a,t\n1,x\n2,y\n", {"task": "regression"}, "task must be classes for the target 't'"),
        ("a,t\n1,fine\n2,fine\n", {}, "'t' must have at least two distinct values, all 2 rows"),
        ("a,t\n1,0\n2,1\n3,1.0\n", {}, "must write each class in one way, has 3 spellings of 2"),
        ("a,t\n1,0.5\n2,1e39\n", {}, "own.csv: the column 't' must hold finite .* has '1e39'"),
    ],
)
def test_impossible_targets_and_columns_are_named(tmp_path, text, options, message):
    with pytest.raises(ValueError, match=message):
        samples(write(tmp_path, text), **options)


def test_a_misspelt_column_of_many_is_told_the_likely_one(tmp_path):
    header = ",".join([*(f"g{i}" for i in range(300)), "Tumour"])
    path = write(tmp_path, f"{header}\n{'1,' * 300}x\n")
    with pytest.raises(ValueError, match=r"got 'tumor': did you mean 'Tumour'\?$"):
        samples(path, target="tumor")
    with pytest.raises(ValueError, match=r"got 'Zebra': there are g0, g1, .*, g19 and 280 more$"):
        samples(path, drop=["Zebra"])


def test_a_first_line_of_values_is_said_to_be_taken_for_names(tmp_path):
    rows = "4.9,3.0,setosa\n6.3,3.3,virginica\n"
    said = "the first line is read as column names but contains the number 5.1"
    assert any(said in note for note in samples(write(tmp_path, f"5.1,3.5,kind\n{rows}")).notes)
    for header in ("0,1,target", "2019,2020,target", "a,b,target"):
        assert not samples(write(tmp_path, f"{header}\n{rows}")).notes


@pytest.mark.parametrize(
    ("cells", "numbers", "form"),
    [
        (['"1,234.50"', '"2,345.25"', "999"], [1234.5, 2345.25, 999], "1,234.5"),
        (['"12,5"', '"1,25"', "3"], [12.5, 1.25, 3], "1234,5"),
    ],
)
def test_commas_in_quotes_mean_the_same_in_the_target_as_in_other_columns(
    tmp_path, cells, numbers, form
):
    lines = [f"{cell},{cell}" for cell in cells]
    own = samples(write(tmp_path, "\n".join(["size,price", *lines])), task="regression")
    assert own.y.tolist() == values(own)["size"].tolist() == numbers
    assert f"numbers are read like {form}" in own.notes


def test_rows_without_a_target_are_left_out_and_counted(tmp_path):
    own = samples(write(tmp_path, "a,target\n1,x\n2,\n3,NA\n4,x\n"))
    assert own.classes == ("NA", "x")
    assert values(own)["a"].tolist() == [1, 3, 4]
    assert "1 rows without a 'target' are left out" in own.notes
    own = samples(write(tmp_path, "target,a\n0.5,1\nNA,2\n?,3\n2.5,4\n"))
    assert own.y.tolist() == [0.5, 2.5]
    assert values(own)["a"].tolist() == [1, 4]


# cells


@pytest.mark.parametrize("cell", ["inf", "1e39", "1e999"])
def test_a_cell_that_is_no_finite_number_is_named(tmp_path, cell):
    with pytest.raises(
        ValueError,
        match=rf"own\.csv: the column 'a b' must hold finite numbers, row 2 has '{cell}': correct "
        r"it or leave it blank, or leave the column out \(--drop\)",
    ):
        samples(write(tmp_path, f"a b,target\n1,x\n{cell},y\n"))


def test_a_word_among_numbers_is_a_mistake_and_words_are_categories(tmp_path):
    lines = [f"{i},{'xy'[i % 2]}" for i in range(20)]
    with pytest.raises(ValueError, match="'a' must hold finite numbers, row 21 has 'red'"):
        samples(write(tmp_path, "\n".join(["a,target", *lines, "red,x"])))
    own = samples(write(tmp_path, "a,target\nred,x\n007,y\nblue,x\n,y\nred,y\n"))
    assert own.schema["a"].kind == "category"
    assert values(own)["a"].tolist() == ["red", "007", "blue", np.nan, "red"]


# data sets


def test_a_mixed_table_loads_with_a_report_on_every_column(tmp_path):
    data = load(str(mixed(tmp_path / "own.csv")))
    assert data.x_train.isfinite().all()
    assert data.encoder.names == (
        "row", "age", "age blank", "city=Aachen", "city=Bern", "city=Cádiz", "city=Dover",
        "city blank", "since", "since month", "since weekday", "income", "mail", "currency=EUR",
    )  # fmt: skip
    assert data.shape == (14,)
    rows = {row[0]: row[1:] for row in report_rows(data)}
    assert rows["customer"][:2] == ("ignore", "left out")
    assert "left out, as nearly all cells differ or are blank: 'customer'" in data.notes
    assert rows["row"][2] == "looks like an id: --drop row leaves it out"
    assert rows["city"][:2] == ("category of 4", "4 columns of 0 and 1, blank")
    assert rows["since"][:2] == ("date like YYYY-MM-DD", "days, month, weekday")
    assert rows["mail"][:2] == ("boolean", "0 or 1")
    assert rows["currency"][2] == "constant: --drop currency leaves it out"
    report = column_report(data)
    assert report.startswith("the target is the column 'churn': --target names another\n")
    assert report.endswith("1 other column is a number")


def test_a_table_of_plain_numbers_has_no_report(tmp_path):
    data = load(str(imbalanced(tmp_path / "own.csv")), target="state")
    assert column_report(data) == ""
    assert data.encoder.names == ("heat", "noise", "current", "load", "hour")
    assert column_report(load("iris")) == ""


@pytest.mark.parametrize("scaling", ["standard", "minmax", "symmetric", "none"])
def test_inputs_of_0_and_1_are_not_scaled_and_others_are(tmp_path, scaling):
    data = load(str(mixed(tmp_path / "own.csv")), scaling=scaling)
    z = data.normalise(data.x_train)
    assert z.dtype == torch.float32
    for i, (name, binary) in enumerate(zip(data.encoder.names, data.encoder.binary, strict=True)):
        if binary:
            assert set(z[:, i].tolist()) <= {0, 1}, name
        elif scaling == "standard":
            assert float(z[:, i].mean()) == pytest.approx(0, abs=1e-6), name
            assert float(z[:, i].std(correction=0)) == pytest.approx(1, abs=1e-6), name


@pytest.mark.parametrize("holdout", [None, Holdout(0.25, 3)])
def test_nothing_is_fitted_to_the_test_rows(tmp_path, holdout):
    path = mixed(tmp_path / "own.csv", rows=60)
    first = load(str(path), holdout=holdout)
    lines = path.read_text().splitlines()
    numbers = set(first.x_test[:, first.encoder.names.index("row")].int().tolist())
    changed = [
        line if number not in numbers else
        ",".join([*line.split(",")[:2], "900", "Zug", "1999-01-01", "1e9", "no", "USD",
                  line.split(",")[-1]])
        for number, line in enumerate(lines)
    ]  # fmt: skip
    path.write_text("\n".join(changed))
    second = load(str(path), holdout=holdout)
    assert torch.equal(first.x_train, second.x_train)
    assert torch.equal(first.mean, second.mean)
    assert first.encoder.names == second.encoder.names
    cities = [i for i, name in enumerate(second.encoder.names) if name.startswith("city=")]
    assert not second.x_test[:, cities].any()


@pytest.mark.parametrize("source", ["csv", "npz"])
@pytest.mark.parametrize(
    "numbers",
    [4e19 + 1e19 * np.arange(60.0), 2.0**24 + np.arange(60), 1.7e9 + np.arange(60) / 64],
    ids=["large", "whole", "seconds"],
)
def test_columns_are_scaled_before_they_are_rounded(tmp_path, source, numbers):
    path = tmp_path / f"own.{source}"
    if source == "csv":
        write_csv(path, ["a", "y"], [[repr(float(x)), i % 2] for i, x in enumerate(numbers)])
    else:
        np.savez(path, x=numbers[:, None], y=np.arange(60) % 2)
    data = load(str(path))
    z = data.normalise(torch.cat([data.x_train, data.x_test]))[:, 0].double()
    spread = (z.max() - z.min()) / 59
    assert torch.allclose(z.sort().values.diff(), spread, rtol=1e-3)
    assert float(data.normalise(data.x_train).std(correction=0)) == pytest.approx(1, abs=1e-5)


def test_targets_of_a_regression_are_standardised_and_can_be_unscaled(tmp_path):
    path = regression(tmp_path / "rent.csv")
    data = load(str(path))
    kinds = [str(column) for column in data.encoder.schema.columns]
    assert data.encoder.schema.form.example == "1234,5"
    assert (kinds[:2], kinds[3]) == (["number", "number"], "date: DD.MM.YYYY")
    assert data.encoder.columns[2].categories == ("Altstadt", "Süd", "West")
    assert (data.task, data.outputs, data.classes) == ("regression", 1, ())
    assert data.y_train.dtype == torch.float32
    assert float(data.y_train.mean()) == pytest.approx(0, abs=1e-6)
    assert float(data.y_train.std(correction=0)) == pytest.approx(1, abs=1e-6)
    lines = path.read_text("cp1252").splitlines()[1:]
    rents = sorted(float(line.split(";")[-1].replace(",", ".")) for line in lines)
    unscaled = data.unscale(torch.cat([data.y_train, data.y_test])).tolist()
    assert sorted(unscaled) == pytest.approx(rents, rel=1e-4)


def test_a_table_is_split_by_class_and_the_test_part_has_the_share_that_is_asked_for(tmp_path):
    path = imbalanced(tmp_path / "own.csv")
    for seed in range(3):
        data = load(str(path), seed=seed)
        assert data.y_test.bincount().tolist() == [7, 467]
        assert load(str(path), seed=seed, test_size=0.1).y_test.bincount().tolist() == [2, 140]
    with pytest.raises(ValueError, match=r"test_size must be a fraction between 0 and 1, .* got 2"):
        load(str(path), test_size=2)
    with pytest.raises(ValueError, match="test_size must not be given for iris"):
        load("iris", test_size=0.5)


def test_the_test_part_of_a_table_may_have_a_file_of_its_own(tmp_path):
    train, test = mixed(tmp_path / "a.csv", rows=60), mixed(tmp_path / "b.csv", rows=30, seed=1)
    data = load(str(train), test=str(test))
    with pytest.raises(ValueError, match="test must be another file than the training data"):
        load(str(train), test=str(train))
    assert (len(data.x_train), len(data.x_test), data.split_by_seed) == (60, 30, False)
    alone = load(str(train), holdout=Holdout(0.25, 3), test=str(test))
    assert (len(alone.x_train), len(alone.x_test)) == (45, 15)
    labels = pd.read_csv(test)["churn"]
    assert [data.classes[i] for i in data.y_test.tolist()] == labels.tolist()
    assert digest(str(train), test=str(test)) == data.digest != digest(str(train))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", r"b.csv must have the target 'target', has no such column: there are a, b"),
        ("a,target\n1,x\n2,z\n", "must hold one of the classes x, y of the training rows, row 2"),
        ("b,target\n1,x\n", "b.csv: the table must have the columns of the training rows, lacks a"),
        ("a,target\n1,\n2, \n", "b.csv must have a value of the target 'target' in some row, has"),
        ("a,target\nred,x\n", "b.csv: the column 'a' must hold finite numbers, row 1 has 'red'"),
    ],
)
def test_a_test_part_that_does_not_fit_is_named(tmp_path, text, message):
    train = write(tmp_path, "a,target\n" + "1,x\n2,y\n" * 5)
    with pytest.raises(ValueError, match=message):
        load(str(train), test=str(write(tmp_path, text, "b.csv")))


def test_a_test_file_is_read_like_the_training_file(tmp_path):
    lines = ("1.234,5;01;x", "2.345,5;02;y", "7,25;A1;x", "8;01;y")
    train = write(tmp_path, "\n".join(["size;code;target", *lines]))
    test = write(tmp_path, "size;code;target\n1.250;01;x\n2.500;02;y\n", "b.csv")
    own = samples(train, test=str(test))
    later = own.frame.iloc[own.x_test.numpy()]
    assert later["size"].tolist() == [1250, 2500]
    assert later["code"].tolist() == ["01", "02"]


def test_escape_codes_of_a_file_do_not_reach_the_terminal(tmp_path):
    path = write(tmp_path, "a\x1b[31mred,b\x9b2J,target\n" + "1,u,\x1b]0;x\x07y\n2,v,z\n" * 5)
    data = load(str(path))
    frame = pd.DataFrame({"a\x1b[31m": [1.0, 2.0] * 3, "target": ["\x1b[2Jx", "y"] * 3})
    for data in (load(str(path)), from_memory(frame, target="target")):
        shown = column_report(data) + "".join(data.classes) + "".join(data.encoder.names)
        assert shown.isprintable() or "\n" in shown
        assert not set(shown) & {"\x1b", "\x9b", "\x07"}
