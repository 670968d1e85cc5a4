"""Files as people have them: each is read right, or one sentence says what to do.

No number may change without a word. The cases are the kinds of files on which tools that guess
column by column go silently wrong.
"""

import io
import signal
import zipfile

import numpy as np
import pandas as pd
import pytest

from kmixup.lab.data import load
from kmixup.lab.data.own import OwnOptions
from kmixup.lab.data.tables import read_table, samples_of
from kmixup.tables import reading


def write(tmp_path, content, name="own.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def table(columns, delimiter=","):
    """A file with these columns, and a target that none of them copies."""
    rows = max(map(len, columns.values()))
    lines = [delimiter.join([*columns, "target"])]
    for i in range(12):
        cells = [cells[i % len(cells)] for cells in columns.values()]
        quoted = [f'"{cell}"' if delimiter in cell else cell for cell in cells]
        lines.append(delimiter.join([*quoted, "xy"[i // rows % 2]]))
    return "\n".join(lines) + "\n"


def samples(path, **options):
    return samples_of(read_table(path), OwnOptions(**options))


def first(own, name, count):
    return [v if isinstance(v, str) else float(v) for v in own.frame[name].iloc[:count]]


# files that are read right

NBSP, NARROW, APOSTROPHE = "\u00a0", "\u202f", "\u2019"
RIGHT = {
    "German thousands beside a decimal comma": (
        ",",
        {"a": ["950", "1.234", "12.500"], "b": ["3,5", "2", "7,25"]},
        {},
        {"a": [950, 1234, 12500], "b": [3.5, 2, 7.25]},
    ),
    "German thousands, stated": (
        ";",
        {"a": ["950", "1.234", "12.500"]},
        {"decimal": ","},
        {"a": [950, 1234, 12500]},
    ),
    "three decimals beside two": (
        ",",
        {"a": ["1.234", "12.500", "3.125"], "b": ["0.5", "1.25", "2"]},
        {},
        {"a": [1.234, 12.5, 3.125]},
    ),
    "English thousands": (
        ",",
        {"a": ["1,234.5", "999", "1,234,567"]},
        {},
        {"a": [1234.5, 999, 1234567]},
    ),
    "thousands apart by a space": (
        ",",
        {"a": ["7 107", "12", "1 000 000"]},
        {},
        {"a": [7107, 12, 1e6]},
    ),
    "thousands apart by a no-break space": (
        ";",
        {"a": [f"7{NBSP}107,5", "12", f"1{NARROW}000,25"]},
        {},
        {"a": [7107.5, 12, 1000.25]},
    ),
    "Swiss thousands": (
        ",",
        {"a": ["1'234.5", "7", f"12{APOSTROPHE}000"]},
        {},
        {"a": [1234.5, 7, 12000]},
    ),
    "a minus sign of typesetters": (",", {"a": ["\u22125", "3", "4"]}, {}, {"a": [-5, 3, 4]}),
    "exponents": (",", {"a": ["1e3", "2.5E-2", "4"]}, {}, {"a": [1000, 0.025, 4]}),
    "one unit": (",", {"a": ["12 kg", "7.5 kg", "8 kg"]}, {}, {"a": [12, 7.5, 8]}),
    "percents": (",", {"a": ["5%", "7.5%", "80 %"]}, {}, {"a": [5, 7.5, 80]}),
    "a currency": (",", {"a": ["$1,000.50", "$20", "$3"]}, {}, {"a": [1000.5, 20, 3]}),
    "euros with a comma": (
        ";",
        {"a": ["1.000,50 \u20ac", "20 \u20ac", "3,5 \u20ac"]},
        {},
        {"a": [1000.5, 20, 3.5]},
    ),
    "leading zeros": (
        ",",
        {"a": ["01001", "10115", "00501"]},
        {},
        {"a": ["01001", "10115", "00501"]},
    ),
    "numbers with more digits than floats have": (
        ",",
        {"a": ["12345678901234567", "12345678901234568"] * 3},
        {},
        {"a": ["12345678901234567", "12345678901234568"]},
    ),
    "a zone keeps its local time": (
        ",",
        {"a": ["2021-03-01T00:30:00+02:00", "2021-03-02T00:00:00Z", "2021-03-03"]},
        {},
        {"a": [18687 + 0.5 / 24, 18688, 18689]},
    ),
    "dates with names of months": (
        ",",
        {"a": ["1 Jan 2024", "29 Feb 2024", "31 Dec 2023"]},
        {},
        {"a": [19723, 19782, 19722]},
    ),
    "American dates": (",", {"a": ["01/02/2024", "12/31/2023"]}, {}, {"a": [19724, 19722]}),
    "one date tells the order of all columns": (
        ",",
        {"a": ["31/01/2024", "01/02/2024"], "b": ["03/04/2021", "05/06/2021"]},
        {},
        {"a": [19753, 19754], "b": [18720, 18783]},
    ),
    "dates, stated": (
        ",",
        {"a": ["03/04/2021", "05/06/2021"]},
        {"dayfirst": False},
        {"a": [18690, 18753]},
    ),
    "times of day": (",", {"a": ["14:30", "2:15 pm", "09:00:36"]}, {}, {"a": [14.5, 14.25, 9.01]}),
    "booleans in any case": (",", {"a": ["Yes", "no", "YES"]}, {}, {"a": [1, 0, 1]}),
    "a missing value, stated": (
        ",",
        {"a": ["5", "-999", "7.5"]},
        {"missing": ("-999",)},
        {"a": [5, float("nan"), 7.5]},
    ),
    "spaces around cells": (
        ",",
        {"a": [" 5 ", "7.5 ", " 8"], "b": [" u", "v ", "u"]},
        {},
        {"a": [5, 7.5, 8], "b": ["u", "v", "u"]},
    ),
    "commas in a file of semicolons": (";", {"a": ["1,5", "2,25", "3"]}, {}, {"a": [1.5, 2.25, 3]}),
    "a missing number, stated, in cells with a unit": (
        ",",
        {"a": ["5 kg", "-999 kg", "7.5 kg"]},
        {"missing": ("-999",)},
        {"a": [5, float("nan"), 7.5]},
    ),
    "a missing number, stated, in another form": (
        ";",
        {"a": ["5,5", "-999,0", "7,5"]},
        {"missing": ("-999",)},
        {"a": [5.5, float("nan"), 7.5]},
    ),
    "another form than a decimal comma, stated": (
        ";",
        {"a": ["1.000", "2.000"], "b": ["3.5", "1.25"]},
        {"decimal": ","},
        {"a": [1000, 2000], "b": ["3.5", "1.25"]},
    ),
    "pipes": ("|", {"a": ["1.5", "2", "3"]}, {}, {"a": [1.5, 2, 3]}),
}


@pytest.mark.parametrize("case", RIGHT)
def test_a_file_is_read_right(tmp_path, case):
    delimiter, columns, options, expected = RIGHT[case]
    own = samples(write(tmp_path, table(columns, delimiter)), **options)
    for name, values in expected.items():
        read = first(own, name, len(values))
        if isinstance(values[0], str):
            assert read == values
        else:
            assert read == pytest.approx(values, nan_ok=True, rel=1e-12)


# files of which one sentence says what to do

CONFLICT = "must be given, as columns disagree: 'a' has .*, 'b' has .*: pass"
ERRORS = {
    "only numbers like 1.234, between semicolons": (
        ";",
        {"a": ["950", "1.234", "12.500"]},
        "decimal must be given: 'a' has only numbers like 1.234",
    ),
    "only numbers like 1,234": (
        ",",
        {"a": ["950", "1,234", "12,500"]},
        "decimal must be given: .* may be 1234 or 1.234: pass",
    ),
    "only numbers like 1.200 kg": (
        ";",
        {"a": ["1.200 kg", "7 kg"]},
        "decimal must be given: .* like 1.200 kg, which may be 1.2 or 1200: pass",
    ),
    "a decimal point and a decimal comma": (
        ",",
        {"a": ["1.5", "2.25"], "b": ["3,5", "2"]},
        f"decimal {CONFLICT}",
    ),
    "two separators of thousands": (
        ",",
        {"a": ["7 107", "12"], "b": ["1'234.5", "7"]},
        f"thousands {CONFLICT}",
    ),
    "dates that may have the month first": (
        ",",
        {"a": ["03/04/2021", "05/06/2021"]},
        "dayfirst must be given: .* 'a', such as 03/04/2021, .*: pass --dayfirst or --no-dayfirst",
    ),
    "both orders of day and month": (
        ",",
        {"a": ["31/01/2021", "01/02/2021"], "b": ["01/31/2021", "02/01/2021"]},
        "dayfirst must be given, as columns disagree: the day is first in 'a', the month in 'b'",
    ),
    "a date that is none": (
        ",",
        {"a": [*["2024-02-28"] * 11, "2024-02-30"]},
        "'a' must hold dates .* row 12 has",
    ),
    "infinity": (",", {"a": ["1", "inf", "2"]}, "'a' must hold finite numbers, row 2 has 'inf'"),
    "an error of a spreadsheet": (
        ",",
        {"a": [*["1"] * 11, "#DIV/0!"]},
        "'a' must hold finite numbers, row 12",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_ambiguous_or_damaged_file_raises_one_sentence(tmp_path, case):
    delimiter, columns, message = ERRORS[case]
    with pytest.raises(ValueError, match=message) as error:
        samples(write(tmp_path, table(columns, delimiter)))
    assert "\n" not in str(error.value)


NOTES = {
    "numbers in another form than stated": (
        {"a": ["1.5", "2"], "b": ["3,5", "2"]},
        {"decimal": "."},
        "'b' (numbers like 3,5: --decimal , reads them)",
    ),
    "two units": (
        {"a": ["12 kg", "500 g", "7 kg"]},
        {},
        "'a' (numbers with the units # kg, # g: write one unit)",
    ),
    "years of two digits": (
        {"a": ["03/04/21", "25/06/21"]},
        {},
        "'a' (dates like 03/04/21: write years with four",
    ),
    "dates without separators": (
        {"a": ["20240131", "20231231"]},
        {},
        "'a' (dates like 20240131: write 2024-12-31)",
    ),
    "codes": ({"a": ["01001", "10115"]}, {}, "'a' (codes with leading zeros"),
    "three decimals everywhere": ({"a": ["950", "1.234", "12.500"]}, {}, "--decimal , reads 1234"),
    "ranges": ({"a": ["10-20", "20-30"]}, {}, "'a' (cells with digits like 10-20, read as text)"),
    "negative numbers of accountants": (
        {"a": ["(12)", "7.5", "8"]},
        {},
        "'a' (cells with digits like (12), read as text)",
    ),
    "numbers and words": (
        {"a": ["5", "7", "8", "unknown"]},
        {},
        "'a' (cells with digits like 5, read as text)",
    ),
    "dates in two forms": (
        {"a": ["2021-03-01", "02.03.2021"]},
        {},
        "'a' (cells with digits like 2021-03-01, read as text)",
    ),
    "groups of two digits": (
        {"a": ["1,23,456", "12,34,567", "999"]},
        {},
        "'a' (cells with digits like 1,23,456, read as text)",
    ),
    "numbers in another form than all numbers": (
        {"a": ["1.5", "2"]},
        {"decimal": ","},
        "'a' (numbers like 1.5: --decimal . reads them)",
    ),
    "a sentinel": (
        {"a": ["5", "-999", "7.5", "8", "6"]},
        {},
        "if it means a missing value, use --missing -999",
    ),
    "cases": (
        {"a": ["Red", "red", "blue"]},
        {},
        "'a' has categories that differ only in upper and lower case",
    ),
}


@pytest.mark.parametrize("case", NOTES)
def test_a_suspicious_column_is_named_with_its_remedy(tmp_path, case):
    columns, options, words = NOTES[case]
    own = samples(write(tmp_path, table(columns)), **options)
    assert any(words in note for note in own.notes), own.notes


@pytest.mark.parametrize("words", ["C100 C200", "green blue", "M L", "E10 B2"])
def test_words_and_codes_are_not_suspicious(tmp_path, words):
    notes = samples(write(tmp_path, table({"a": words.split(), "b": ["1", "2", "3"]}))).notes
    assert not [note for note in notes if "look like another kind" in note]


def test_lines_that_a_program_or_a_person_put_above_the_header(tmp_path):
    excel = read_table(write(tmp_path, "sep=;\na;target\n1,5;x\n2,5;y\n"))
    assert (excel.delimiter, list(excel.frame)) == (";", ["a", "target"])
    said = read_table(write(tmp_path, "# by me, in May\na,target\n1,x\n2,y\n")).notes[0]
    assert said == "the first line is read as column names but begins with #: delete a comment"
    said = read_table(write(tmp_path, "5,3,0\n1,2,0\n")).notes[0]
    assert "contains the number 5: if it is data, add a header line" in said


def test_a_schema_leaves_no_doubt(tmp_path):
    path = write(tmp_path, table({"a": ["1.5", "2", "3"]}))
    given = tmp_path / "schema.json"
    given.write_text(samples(path).schema.to_json())
    with pytest.raises(ValueError, match="decimal must not be given with a schema, .*: edit"):
        samples(path, schema=str(given), decimal=".")
    wide = write(tmp_path, table({"a": ["1.5", "2", "3"], "b": ["1", "2"]}), "wide.csv")
    notes = samples(wide, schema=str(given)).notes
    assert f"columns that {given} does not name are left out: 'b'" in notes


def test_classes_that_differ_in_case_are_one_or_insisted_on(tmp_path):
    path = write(tmp_path, "a,target\n" + "1,Yes\n2,yes\n3,no\n" * 4)
    with pytest.raises(
        ValueError, match="in one way, has 'Yes' and 'yes': write them the same way, or"
    ):
        samples(path)
    assert samples(path, task="classes").classes == ("Yes", "no", "yes")


def test_near_ids_are_left_out_and_comments_are_texts_though_some_rows_are_duplicates(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        f"C{i},the {rng.integers(99)} words of comment {i},{i % 7},{'xy'[int(rng.integers(2))]}"
        for i in range(300)
    ]
    path = write(tmp_path, "\n".join(["customer_id,comment,a,target", *lines, *lines[:15]]))
    own = samples(path)
    assert [str(column) for column in own.schema.columns[:3]] == ["ignore", "text", "number"]
    assert "15 of 315 rows repeat the inputs of an earlier row" in own.notes
    assert "left out, as nearly all cells differ or are blank: 'customer_id'" in own.notes
    notes = load(str(path)).notes
    assert any("test rows have the inputs of a training row" in note for note in notes)


def test_copies_of_the_target_are_named(tmp_path):
    lines = [f"{'uv'[i % 3 == 0]},{i},{'xy'[i % 3 == 0]}" for i in range(30)]
    own = samples(write(tmp_path, "\n".join(["copy,row,target", *lines])))
    assert any("the target is a copy of 'copy'" in note for note in own.notes)


# files that are small and would become large


@pytest.fixture(autouse=True)
def _no_hang():
    """End a test in which a file is parsed before its budget is checked."""
    signal.alarm(120)
    yield
    signal.alarm(0)


def test_a_sheet_with_one_cell_far_away_is_not_filled_up(tmp_path):
    import openpyxl

    book = openpyxl.Workbook()
    for i in range(60):
        book.active.append(["a", "target"] if i == 0 else [i, "xy"[i % 2]])
    for row in range(2, 400):
        book.active.cell(row, 16384, 1)
    book.save(tmp_path / "own.xlsx")
    with pytest.raises(ValueError, match="must not have more than .* cells, or be nearly empty"):
        read_table(tmp_path / "own.xlsx")


def test_dimensions_that_a_sheet_declares_are_not_believed(tmp_path):
    frame = pd.DataFrame({"a": range(20), "target": ["x", "y"] * 10})
    frame.to_excel(tmp_path / "plain.xlsx", index=False)
    with zipfile.ZipFile(tmp_path / "plain.xlsx") as plain:
        parts = {name: plain.read(name) for name in plain.namelist()}
    with zipfile.ZipFile(tmp_path / "own.xlsx", "w") as forged:
        for name, content in parts.items():
            forged.writestr(name, content.replace(b'ref="A1:B21"', b'ref="A1:XFD1048576"'))
    assert read_table(tmp_path / "own.xlsx").frame["a"].tolist() == list(range(20))


def test_a_parquet_file_of_many_rows_is_not_unpacked(tmp_path, monkeypatch):
    frame = pd.DataFrame({f"a{i}": np.zeros(100_000) for i in range(10)})
    frame.to_parquet(tmp_path / "own.parquet")
    monkeypatch.setattr(reading, "MAX_CELLS", 999_999)
    with pytest.raises(ValueError, match="at most .* cells, has 10 columns and 100,000 rows"):
        read_table(tmp_path / "own.parquet")


def test_a_long_text_that_parquet_stores_once_is_not_unpacked(tmp_path, monkeypatch):
    frame = pd.DataFrame({"a": ["long" * 1000] * 10_000, "target": ["x", "y"] * 5000})
    frame.to_parquet(tmp_path / "own.parquet")
    assert (tmp_path / "own.parquet").stat().st_size < 100_000
    monkeypatch.setattr(reading, "MAX_TEXT", 1 << 20)
    with pytest.raises(ValueError, match="must hold less text, 'a' has too much"):
        read_table(tmp_path / "own.parquet")


def test_lists_in_parquet_are_named(tmp_path):
    pd.DataFrame({"a": [[1], [2]], "target": ["x", "y"]}).to_parquet(tmp_path / "own.parquet")
    with pytest.raises(ValueError, match="must hold numbers and text, 'a' holds others: drop it"):
        read_table(tmp_path / "own.parquet")


def test_a_table_has_at_most_so_many_columns(tmp_path):
    names = ",".join(f"c{i}" for i in range(100_000))
    with pytest.raises(ValueError, match="must have at most 10,000 columns, has 100,000: select"):
        read_table(write(tmp_path, f"{names}\n{'1,' * 99_999}1\n"))


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".parquet"])
def test_random_bytes_are_one_sentence(tmp_path, suffix):
    content = np.random.default_rng(0).bytes(4000)
    with pytest.raises(ValueError, match="own") as error:
        samples(write(tmp_path, content, f"own{suffix}"))
    assert "\n" not in str(error.value)


def test_a_file_in_utf_16_cut_in_the_middle_of_a_letter_is_one_sentence(tmp_path):
    content = "a,target\n1,x\n".encode("utf-16")[:-1]
    with pytest.raises(ValueError, match="must be a whole table of text in UTF-8, could not"):
        read_table(write(tmp_path, content))


def test_sheets_and_frames_and_text_are_read_alike(tmp_path):
    frame = pd.DataFrame(
        {"n": [1.5, 2, 3] * 4, "d": pd.to_datetime(["2024-01-01", "2024-02-29", "2023-12-31"] * 4),
         "c": ["u", "v", "v"] * 4, "target": ["x", "y"] * 6}
    )  # fmt: skip
    frame.to_excel(tmp_path / "own.xlsx", index=False)
    frame.to_parquet(tmp_path / "own.parquet")
    frame.to_csv(tmp_path / "own.csv", index=False)
    stream = io.StringIO()
    frame.to_csv(stream, index=False, sep=";", decimal=",", date_format="%d.%m.%Y")
    write(tmp_path, stream.getvalue(), "german.csv")
    read = [samples(path).frame.astype(object) for path in sorted(tmp_path.iterdir())]
    for other in read[1:]:
        pd.testing.assert_frame_equal(other, read[0])
