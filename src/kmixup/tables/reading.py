"""Read a table from the bytes of a file: text (.csv, .tsv), Excel or Parquet.

All cells of a text file stay text: `Schema` decides what they mean. A file is parsed only after
its size once parsed is known to be within a budget.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from kmixup._checks import CONTROLS

DELIMITERS = ",;\t|"
DECIMAL = re.compile(r"[+-]?\d*[.,]\d+")  # never the name of a column
MAX_COLUMNS = 10_000
MAX_CELLS = 1 << 28  # 2 GiB as floats
MAX_SHEET = 20_000_000  # cells of an Excel sheet, which is read cell by cell
SMALL = 1_000_000  # cells that any sheet may have, however sparse
MAX_TEXT = 1 << 31  # characters of a Parquet file's texts
CONTROL_BYTES = bytes(sorted(code for code in CONTROLS if code < 128))


@dataclass(frozen=True)
class Table:
    """A table as it was read."""

    frame: pd.DataFrame  # cells: text, or typed if the file has types
    source: str  # its name in messages
    delimiter: str = ","  # between the cells of a text file
    notes: tuple[str, ...] = ()  # what a user should know about the reading

    def __post_init__(self) -> None:
        if not len(self.frame):
            raise ValueError(f"{self.source} must have a row below its header, has none")


def parse_table(content: bytes, suffix: str, source: str) -> Table:
    """Parse the content of a file with a header; `source` names it in messages."""
    if suffix in (".csv", ".tsv"):
        return _text(content, source)
    try:
        frame = (_parquet if suffix == ".parquet" else _sheet)(content, source)
    except ImportError as error:
        raise ValueError(f"{source} could not be read: {error}") from error
    except (BudgetError, MemoryError):
        raise
    except Exception as error:  # parsers raise errors of many kinds on damaged files
        raise ValueError(
            f"{source} must be a whole {suffix} file, could not be read: {error}"
        ) from error
    return table_of(frame, source)


def table_of(frame: pd.DataFrame, source: str) -> Table:
    """Return a data frame as a table."""
    header = _header([str(name) for name in frame.columns], source)
    return Table(frame.set_axis(header, axis=1).reset_index(drop=True), source)


class BudgetError(ValueError):
    """A file would take far more memory than its size suggests."""


def _header(names: Sequence[str], source: str) -> list[str]:
    """Name columns without a name after their place; ValueError if a name occurs twice."""
    if len(names) > MAX_COLUMNS:
        raise BudgetError(
            f"{source} must have at most {MAX_COLUMNS:,} columns, has {len(names):,}: select "
            "some, or save the numbers as an .npz"
        )
    names = [name.translate(CONTROLS).strip() for name in names]
    header = [name or f"column {i}" for i, name in enumerate(names, 1)]
    if not header:
        raise ValueError(f"{source} must have a header and rows below it, is empty")
    name, times = Counter(header).most_common(1)[0]
    if times > 1:
        raise ValueError(
            f"{source} must have a header of different names, has {name!r} {times} times: rename "
            "them, or add a header if the first line is none"
        )
    return header


# text


def _text(content: bytes, source: str) -> Table:
    content, notes = _utf8(content, source)
    content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    content = content.translate(None, CONTROL_BYTES)
    if b"\xc2" in content:  # the control characters beyond ASCII
        content = re.sub(b"\xc2[\x80-\x9f]", b"", content)
    content = re.sub(rb"^sep=.\n", b"", content)  # a line that Excel writes
    first = re.search(rb"[^\s,;|].*", content)
    line = re.sub(r'"[^"]*"', "", first.group().decode() if first else "")
    delimiter = max(DELIMITERS, key=line.count)
    names: list[str] = []
    skipped = 0
    for _, names in _rows(content, delimiter, source):
        skipped += 1
        if any(map(str.strip, names)):
            break
    header = _header(names, source)
    frame = _cells(content, delimiter, header, skipped, source)
    whole = header if all(map(str.isdecimal, header)) else []
    if numbers := [*filter(DECIMAL.fullmatch, header), *whole]:
        notes.append(
            f"the first line is read as column names but contains the number {numbers[0]}: if it "
            "is data, add a header line"
        )
    if header[0].startswith("# "):
        notes.append("the first line is read as column names but begins with #: delete a comment")
    return Table(frame, source, delimiter, tuple(notes))


def _utf8(content: bytes, source: str) -> tuple[bytes, list[str]]:
    """Return a file's text in UTF-8, and a note if it is in an encoding without a mark."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _decoded(content, "utf-16", source), []
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        content.isascii() or content.decode()
        return content, []
    except UnicodeDecodeError:
        text = _decoded(content, "cp1252", source)
        return text, ["the file is not UTF-8 and is read as cp1252, Western European"]


def _decoded(content: bytes, encoding: str, source: str) -> bytes:
    try:
        return content.decode(encoding).encode()
    except UnicodeError as error:
        raise ValueError(
            f"{source} must be a whole table of text in UTF-8, could not be read: {error}"
        ) from error


def _rows(content: bytes, delimiter: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a text by number, blank ones with the number 0; raise on bad quotes."""
    stream = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="")
    number = -1
    try:
        for row in csv.reader(stream, delimiter=delimiter, strict=True, skipinitialspace=True):
            filled = any(map(str.strip, row))
            number += filled
            yield (number if filled else 0), row
    except csv.Error as error:
        raise ValueError(
            f"{source} must be a table of text, could not be read after row {max(0, number)}: "
            f"{error}; is there a quote without its counterpart?"
        ) from error


def _cells(
    content: bytes, delimiter: str, header: list[str], skipped: int, source: str
) -> pd.DataFrame:
    """Return all cells as text; a row must have as many as the header."""
    # pyarrow is many times as fast, but lenient about quotes, and strict about spaces in a line
    if b'"' not in content and find_spec("pyarrow"):
        import pyarrow as pa
        from pyarrow import csv as text

        cells = text.ConvertOptions(
            column_types=dict.fromkeys(header, pa.large_string()), strings_can_be_null=False
        )
        rows = text.ReadOptions(column_names=header, skip_rows=skipped, use_threads=False)
        with suppress(pa.ArrowInvalid):  # a row of another width, which may be blank
            table = text.read_csv(
                io.BytesIO(content), rows, text.ParseOptions(delimiter=delimiter), cells
            )
            frame: pd.DataFrame = table.to_pandas(
                types_mapper=lambda kind: pd.StringDtype(na_value=np.nan)
            )
            return _filled(frame)
    for number, row in _rows(content, delimiter, source):
        if number > 0 and len(row) != len(header):
            raise ValueError(
                f"{source} must have {len(header)} values in a row, row {number} has {len(row)}: "
                "correct it, or the first line, which is read as the header"
            )
    frame = pd.read_csv(
        io.BytesIO(content), sep=delimiter, header=None, names=header, skiprows=skipped,
        dtype="str", keep_default_na=False, na_filter=False, index_col=False,
        skipinitialspace=True, skip_blank_lines=False, low_memory=False,
    )  # fmt: skip
    return _filled(frame)


def _filled(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that have a cell with more than spaces."""
    empty = np.ones(len(frame), bool)
    for name in frame.columns:
        empty[empty] = (frame[name][empty].fillna("").str.strip() == "").to_numpy(bool)
        if not empty.any():
            break
    return frame[~empty].reset_index(drop=True) if empty.any() else frame


# Excel and Parquet


def _sheet(content: bytes, source: str) -> pd.DataFrame:
    """Return the first sheet; rows without a cell are left out."""
    import openpyxl  # type: ignore[import-untyped]

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    sheet = book.worksheets[0]
    sheet.reset_dimensions()  # those in the file may be wrong
    rows: list[tuple[Any, ...]] = []
    seen = width = 0
    for cells in sheet.iter_rows(values_only=True):
        seen, width = seen + 1 + len(cells), max(width, len(cells))
        area = max(seen, (len(rows) + 1) * width)
        if area > SMALL and (area > unpacked or area > MAX_SHEET):
            raise BudgetError(
                f"{source} must not have more than {MAX_SHEET:,} cells, or be nearly empty: delete "
                "blank rows and columns, or save it as .csv or .parquet"
            )
        if any(cell is not None for cell in cells):
            rows.append(cells)
    full = [row + (None,) * (width - len(row)) for row in rows]
    header = ["" if name is None else name for name in full[0]] if full else []
    frame = pd.DataFrame(full[1:], columns=range(len(header)), dtype=object).infer_objects()
    return frame.set_axis([str(name) for name in header], axis=1)


def _parquet(content: bytes, source: str) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(content))
    _check_parquet(file, source)
    schema = file.schema_arrow
    kinds = pa.types
    texts = [f.name for f in schema if kinds.is_string(f.type) or kinds.is_large_string(f.type)]
    # each text once, until all of them are known to fit
    table = pq.ParquetFile(io.BytesIO(content), read_dictionary=texts).read()
    for name in texts:
        column = table[name].combine_chunks()
        lengths = np.array([len(word or "") for word in column.dictionary.to_pylist()] or [0])
        if lengths[column.indices.drop_null().to_numpy()].sum() > MAX_TEXT:
            raise BudgetError(f"{source} must hold less text, {name!r} has too much: shorten it")
    frame: pd.DataFrame = table.cast(schema).to_pandas(ignore_metadata=True)
    unnamed = [name for name in frame if re.fullmatch(r"__index_level_\d+__", str(name))]
    return frame.drop(columns=unnamed)


def _check_parquet(file: Any, source: str) -> None:
    """Raise if the metadata of a Parquet file say that it would not fit, or is no table."""
    import pyarrow as pa

    rows, schema = file.metadata.num_rows, file.schema_arrow
    if rows * len(schema) > MAX_CELLS or len(schema) > MAX_COLUMNS:
        raise BudgetError(
            f"{source} must have at most {MAX_COLUMNS:,} columns and {MAX_CELLS:,} cells, has "
            f"{len(schema):,} columns and {rows:,} rows: select some of them"
        )
    for column in schema:
        if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
            raise BudgetError(
                f"{source} must hold numbers and text, {column.name!r} holds others: drop it"
            )
