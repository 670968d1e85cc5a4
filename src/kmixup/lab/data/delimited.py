"""Text tables: the encoding and the delimiter of a file, and its rows of cells."""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

ROWS = 1000  # that are held as text at a time: as text a table takes ten times the room
BLOCK = 1 << 20
DELIMITERS = ",;\t"
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class Delimited:
    """A text table with a header.

    Attributes:
        path: of the file.
        encoding: as `encoding_of` finds it.
        delimiter: a comma, a semicolon or a tab, whichever divides the header into most cells.
        header: names of the columns; one without a name is called after its place.
    """

    path: Path
    encoding: str
    delimiter: str
    header: tuple[str, ...]

    def parts(self) -> Iterator[tuple[int, list[list[str]]]]:
        """Rows of stripped cells, `ROWS` at a time, with the number of the first, from 1."""
        rows = self._rows()
        first = 1
        while part := list(islice(rows, ROWS)):
            yield first, part
            first += len(part)

    def _rows(self) -> Iterator[list[str]]:
        with self.path.open(newline="", encoding=self.encoding) as stream:
            lines = _Remembering(stream)
            reader = csv.reader(lines, delimiter=self.delimiter, strict=True)
            number = -1  # the header is row 0
            try:
                for row in reader:
                    if len(lines.taken) > 1:
                        self._check_quotes(lines.taken, reader.line_num)
                    if any(" " in line for line in lines.taken):
                        row = [cell.strip() for cell in row]
                    lines.taken.clear()
                    if not any(row):
                        continue
                    number += 1
                    if number == 0:
                        continue
                    if len(row) != len(self.header):
                        raise ValueError(
                            f"{self.path} must have {len(self.header)} values in a row, row "
                            f"{number} has {len(row)}"
                        )
                    yield row
            except csv.Error as error:
                start = reader.line_num - len(lines.taken) + 1
                raise ValueError(
                    f"{self.path} must be a table of text, could not be read from line {start} on: "
                    f"{error}; is there a quote without its counterpart?"
                ) from error

    def _check_quotes(self, taken: list[str], line: int) -> None:
        """Refuse a row over several lines, two of which would each make a row of their own."""
        width = len(self.header) - 1
        if sum(text.count(self.delimiter) >= width for text in taken) > 1:
            raise ValueError(
                f"{self.path} must close every quote, one that opens in line "
                f"{line - len(taken) + 1} runs on to line {line} and takes the rows between for "
                "text: close it, or write the text on one line"
            )


class _Remembering:
    """Lines of a file that are kept in `taken` until they are forgotten."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream
        self.taken: list[str] = []

    def __iter__(self) -> Iterator[str]:
        for line in self.stream:
            self.taken.append(line)
            yield line


def open_delimited(path: Path) -> Delimited:
    """Find out the encoding, the delimiter and the header of a text table."""
    encoding = encoding_of(path)
    headers = {delimiter: _header(path, encoding, delimiter) for delimiter in DELIMITERS}
    delimiter = max(DELIMITERS, key=lambda delimiter: len(headers[delimiter]))
    header = tuple(name or f"column {i}" for i, name in enumerate(headers[delimiter], 1))
    name, count = Counter(header).most_common(1)[0] if header else ("", 1)
    if count > 1:
        raise ValueError(
            f"{path} must have a header of different names, has {name!r} {count} times: rename "
            "them, or add a header if the first line is none"
        )
    return Delimited(path, encoding, delimiter, header)


def encoding_of(path: Path) -> str:
    """The encoding by the first bytes, else UTF-8 if all bytes are, else one that fits any bytes.

    "cp1252" lacks characters for five bytes, "latin-1" for none; either may be wrong.
    """
    with path.open("rb") as stream:
        start = stream.read(4)
    marked = next((name for mark, name in BYTE_ORDER_MARKS if start.startswith(mark)), None)
    try:
        for name in [marked] if marked else ["utf-8", "cp1252", "latin-1"]:
            if _decodes(path, name, binary=b"\0" if name != "utf-16" else None):
                return name
    except _BinaryError:
        pass
    raise ValueError(f"{path} must be a table of text, could not be read: save it as UTF-8")


class _BinaryError(Exception):
    """The bytes of a file are no text in any of the encodings."""


def _decodes(path: Path, encoding: str, *, binary: bytes | None) -> bool:
    """Whether all bytes of a file are text in an encoding; bytes `binary` occur in no text."""
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as stream:
        try:
            while block := stream.read(BLOCK):
                if binary is not None and binary in block:
                    raise _BinaryError
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _header(path: Path, encoding: str, delimiter: str) -> list[str]:
    """The stripped cells of the first row that is not empty."""
    with path.open(newline="", encoding=encoding) as stream:
        try:
            rows = csv.reader(stream, delimiter=delimiter)
            return [cell.strip() for cell in next(filter(_is_filled, rows), [])]
        except csv.Error:
            return []


def _is_filled(row: list[str]) -> bool:
    return any(cell.strip() for cell in row)
