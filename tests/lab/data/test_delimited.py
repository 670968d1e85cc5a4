import pytest

from kmixup.lab.data.delimited import Delimited, encoding_of, open_delimited


def write(tmp_path, content):
    path = tmp_path / "own.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows(path):
    return [row for _, part in open_delimited(path).parts() for row in part]


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"a,b\n", "utf-8"),
        ("größe\n".encode(), "utf-8"),
        ("größe\n".encode("utf-8-sig"), "utf-8-sig"),
        ("größe\n".encode("utf-16"), "utf-16"),
        (b"\xfe\xff" + "größe\n".encode("utf-16-be"), "utf-16"),
        ("größe\n".encode("cp1252"), "cp1252"),
        (b"gr\xf6\x81e\n", "latin-1"),
        (b"a" * ((1 << 20) - 1) + "ö".encode(), "utf-8"),
        (b"a" * 10 + "ö".encode()[:1], "cp1252"),
    ],
)
def test_the_encoding_is_found_out(tmp_path, content, encoding):
    assert encoding_of(write(tmp_path, content)) == encoding


@pytest.mark.parametrize("content", [b"a,b\n\0\n", "a".encode("utf-16") + b"\0"])
def test_what_is_no_text_is_refused(tmp_path, content):
    with pytest.raises(ValueError, match="must be a table of text, could not be read: save it as"):
        encoding_of(write(tmp_path, content))


@pytest.mark.parametrize(
    ("text", "delimiter", "header"),
    [
        ("a,b,c\n", ",", ("a", "b", "c")),
        ("a;b;c\n1,5;2,5;x\n", ";", ("a", "b", "c")),
        ("a\tb, c\td\n", "\t", ("a", "b, c", "d")),
        ('"a; b",c\n', ",", ("a; b", "c")),
        ("\n\n a , b \n", ",", ("a", "b")),
        (",a,,b\n", ",", ("column 1", "a", "column 3", "b")),
        ("", ",", ()),
    ],
)
def test_the_delimiter_is_what_divides_the_header_most(tmp_path, text, delimiter, header):
    table = open_delimited(write(tmp_path, text))
    assert (table.delimiter, table.header) == (delimiter, header)


def test_cells_are_stripped_and_empty_lines_left_out(tmp_path):
    assert rows(write(tmp_path, ",\na,b\n1, 2 \n\n   \n , \n 3,4\n")) == [["1", "2"], ["3", "4"]]


def test_a_header_of_numbers_that_repeat_may_be_none(tmp_path):
    with pytest.raises(ValueError, match="has '1' 2 times: rename them, or add a header if the"):
        open_delimited(write(tmp_path, "1,2,1\n3,4,5\n"))


def test_quotes_hold_delimiters_and_a_text_of_two_lines(tmp_path):
    text = 'a,b,c\n1,"x, y",2\n3,"two\nlines",4\n5,"say ""hi""",6\n'
    assert [row[1] for row in rows(write(tmp_path, text))] == ["x, y", "two\nlines", 'say "hi"']


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # the quote of line 3 is never closed
        ('a,b,c\n1,x,2\n3,"y,4\n5,z,6\n7,w,8\n', "read from line 3 on: unexpected end of data; is"),
        # two quotes without a counterpart make one cell of all that is between
        ('a,b,c\n1,"x,2\n3,y,4\n5,z,6\n7,w",8\n', "one that opens in line 2 runs on to line 5 and"),
        ('a,b,c\n1,"x,2\n3,y",4\n', "one that opens in line 2 runs on to line 3 and takes"),
        ('a,b,c\n1,"x"y,2\n', "read from line 2 on: ',' expected after"),
    ],
)
def test_an_unbalanced_quote_does_not_swallow_rows(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        rows(write(tmp_path, text))


def test_rows_come_in_parts_with_the_number_of_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr("kmixup.lab.data.delimited.ROWS", 2)
    table = open_delimited(write(tmp_path, "a\tb\n1\t2\n3\t4\n5\t6\n"))
    assert isinstance(table, Delimited)
    assert list(table.parts()) == [(1, [["1", "2"], ["3", "4"]]), (3, [["5", "6"]])]
