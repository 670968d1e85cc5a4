"""Read your own tables with pandas: text (.csv, .tsv), Excel, Parquet, or a data frame."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from kmixup.columns import (
    BLANKS,
    CONTROLS,
    KINDS,
    LARGEST,
    POINT,
    REPORT_HEAD,
    TableEncoder,
    infer,
    label,
)
from kmixup.lab.checks import SettingError
from kmixup.lab.data.dataset import Dataset, Parts, Samples, UnfittedTable
from kmixup.lab.data.own import OwnOptions
from kmixup.lab.data.targets import Task, decide
from kmixup.lab.files import check_expansion, check_regular, replace_content
from kmixup.lab.formatting import TextTable, count

USUAL = ("target", "label", "class", "y")  # names of targets, tried in this order
DELIMITERS = ",;\t"
NA_VALUES = [spelt for word in BLANKS for spelt in (word, word.upper(), word.title(), "NaN")]
LISTED = 12  # column names in an error message


@dataclass(frozen=True)
class Table:
    """A table as it was read.

    Attributes:
        frame: its cells, as text where pandas finds no type.
        source: its name in messages.
        delimiter: between the cells of a text file.
        notes: what a user should know about the reading.
    """

    frame: pd.DataFrame
    source: str
    delimiter: str = ","
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.frame):
            raise ValueError(f"{self.source} must have a row below its header, has none")


def read_table(path: Path, *, as_text: Sequence[str] | None = None) -> Table:
    """Read a table with a header.

    In text files, pandas finds the types of all columns but those in `as_text`, which are
    read as they are written; by default this is every column that may be the target.
    """
    check_regular(path)
    if path.suffix.lower() in (".csv", ".tsv"):
        return _read_text(path, as_text)
    package, size, read = BINARY[path.suffix.lower()]
    with _whole(path, package):
        declared = size(path)
    check_expansion(path, packed=path.stat().st_size, declared=declared)
    with _whole(path, package):
        frame = read(path)
    names = ["" if str(name).startswith("Unnamed: ") else name for name in frame.columns]
    return table_of(frame.set_axis(names, axis=1), str(path))


def table_of(frame: pd.DataFrame, source: str) -> Table:
    """Return a data frame as a table."""
    frame = frame.set_axis(_header([str(name) for name in frame.columns], source), axis=1)
    return Table(frame.reset_index(drop=True), source)


def write_table(frame: pd.DataFrame, y: Any, path: Path) -> Path:
    """Write a data frame, and its targets as the column "target", whole or not at all."""
    if y is not None:
        frame = frame.assign(target=np.asarray(y))
    stream = io.BytesIO()
    with _whole(path, "pyarrow"):
        frame.to_parquet(stream, index=False)
    replace_content(path, stream.getvalue())
    return path


def samples_of(table: Table, options: OwnOptions, y: Any = None) -> Samples | Parts:
    """Return the samples of a table, without rows that have no target.

    Args:
        table: as `read_table` returns it.
        options: target, columns to drop, task, and the path of a test part.
        y: the targets, where they are not a column of the table.
    """
    frame, notes = table.frame, list(table.notes)
    if y is None:
        target = target_name(table, options.target, notes)
        y, frame = frame[target], frame.drop(columns=target)
    else:
        target, y = options.target or "y", pd.Series(np.asarray(y))
    for name in options.drop:
        if name == target:
            raise SettingError("drop", f"must leave the target, got {name!r}: name another target")
        if name not in frame:
            raise SettingError(
                "drop",
                f"must name columns of {table.source}, got {name!r}: "
                f"{did_you_mean(name, table.frame.columns)}",
            )
    frame = frame.drop(columns=list(options.drop))
    if not len(frame.columns):
        raise ValueError(
            f"{table.source} must have a column beside its target to learn from, has none"
        )
    encoder = TableEncoder.infer(frame, delimiter=table.delimiter)
    values = _values(encoder, frame, table.source, ", or leave the column out (--drop)")
    reader = TargetReader.infer(y, target, options.task, table.delimiter, notes)
    rows, targets = reader.read(y, table.source)
    if options.test is None:
        unfitted = UnfittedTable(encoder, values)
        return Samples(rows, targets, reader.classes, unfitted, tuple(notes))
    test = read_table(Path(options.test).expanduser(), as_text=[target])
    if target not in test.frame:
        raise ValueError(
            f"{test.source} must have the target {target!r}, has no such column: "
            f"{did_you_mean(target, test.frame.columns)}"
        )
    test_rows, test_targets = reader.read(test.frame[target], test.source)
    both = pd.concat([values, _values(encoder, test.frame, test.source)], ignore_index=True)
    return Parts(
        rows, targets, len(values) + test_rows, test_targets, reader.classes,
        UnfittedTable(encoder, both), tuple(notes),
    )  # fmt: skip


def column_report(data: Dataset) -> str:
    """Return notes on the reading, and a row for every column that is not just a number."""
    lines = list(data.notes)
    if data.encoder is not None:
        rows = [
            row
            for column, row in zip(data.encoder.columns, data.encoder.report(), strict=True)
            if not column.is_plain
        ]
        if rows:
            lines.append(TextTable(list(REPORT_HEAD), rows).aligned())
        plain = len(data.encoder.columns) - len(rows)
        if rows and plain:
            verb = "is a number" if plain == 1 else "are numbers"
            lines.append(f"{count(plain, 'other column')} {verb}")
    return "\n".join(lines)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest known names like a name, in any case of letters, or else list the first ones.

    >>> did_you_mean("tumor", ["age", "Tumour"]), did_you_mean("x", ["age", "Tumour"])
    ("did you mean 'Tumour'?", 'there are age, Tumour')
    """
    names = list(known)
    lower = {each.lower(): each for each in reversed(names)}
    if close := get_close_matches(name.lower(), lower, n=3):
        return f"did you mean {' or '.join(repr(lower[each]) for each in close)}?"
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return f"there are {', '.join(names[:LISTED])}{more}"


# text files


def _read_text(path: Path, as_text: Sequence[str] | None) -> Table:
    text, encoding = _decode(path)
    text = text.translate(CONTROLS)
    heads = {delimiter: _first_row(text, delimiter) for delimiter in DELIMITERS}
    delimiter = max(DELIMITERS, key=lambda each: len(heads[each][0]))
    cells, end = heads[delimiter]
    if not cells:
        raise ValueError(f"{path} must have a header and rows below it, is empty")
    header = _header(cells, str(path))
    _check_rows(path, text, delimiter, len(header))
    if as_text is None:
        as_text = [name for name in header if name.lower() in USUAL] + header[-1:]
    frame = pd.read_csv(
        io.StringIO(text[end:], newline=""),
        sep=delimiter,
        header=None,
        names=header,
        index_col=False,
        dtype=dict.fromkeys(as_text, str),
        keep_default_na=False,
        na_values={name: NA_VALUES for name in header if name not in as_text},
        skipinitialspace=True,
        low_memory=False,
    )
    empty = (frame.isna() | (frame == "")).all(axis=1)
    notes = []
    if encoding in ("cp1252", "latin-1"):
        notes.append(f"the file is not UTF-8 and is read as {encoding}, Western European")
    if (value := _value_in(header)) is not None:
        notes.append(
            f"the first line is taken for the names of the columns, and has the number {value}: "
            "if it is a row like the others, write a line of names above it"
        )
    frame = frame[~empty].reset_index(drop=True)
    return Table(frame, str(path), delimiter, tuple(notes))


def _decode(path: Path) -> tuple[str, str]:
    """Return a file's text and its encoding: by its first bytes, else UTF-8, else Western."""
    raw = path.read_bytes()
    marked = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    encodings = ["utf-16"] if marked else ["utf-8-sig", "cp1252", "latin-1"]
    if marked or b"\0" not in raw:
        for encoding in encodings:
            try:
                return raw.decode(encoding), encoding
            except UnicodeDecodeError:
                continue
    raise ValueError(f"{path} must be a table of text, could not be read: save it as UTF-8")


def _first_row(text: str, delimiter: str) -> tuple[list[str], int]:
    """Return the first row that is not empty, and the position of its end."""
    stream = io.StringIO(text, newline="")
    try:
        for row in csv.reader(stream, delimiter=delimiter):
            if any(cell.strip() for cell in row):
                return [cell.strip() for cell in row], stream.tell()
    except csv.Error:
        pass
    return [], 0


def _check_rows(path: Path, text: str, delimiter: str, width: int) -> None:
    """Raise where a row has another length or a quote is not closed: pandas pads and joins."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    number, end = -1, 0  # the header is row 0
    try:
        for row in reader:
            start, end = end + 1, reader.line_num
            if not any(cell.strip() for cell in row):
                continue
            number += 1
            if len(row) != width:
                raise ValueError(
                    f"{path} must have {width} values in a row, row {number} has {len(row)}"
                )
            lines = delimiter.join(row).splitlines() if end > start else []
            if sum(line.count(delimiter) >= width - 1 for line in lines) > 1:
                raise ValueError(
                    f"{path} must close every quote, one that opens in line {start} runs on to "
                    f"line {end} and takes the rows between for text: close it, or write the "
                    "text on one line"
                )
    except csv.Error as error:
        raise ValueError(
            f"{path} must be a table of text, could not be read from line {end + 1} on: {error}; "
            "is there a quote without its counterpart?"
        ) from error


def _value_in(header: Sequence[str]) -> str | None:
    """Return a number among the names that is no name; columns may be numbered, in order.

    >>> _value_in(["5.1", "3.5", "setosa"]), _value_in(["0", "1", "2", "y"])
    ('5.1', None)
    """
    numbers = [name for name in header if re.fullmatch(r"[+-]?[\d.,]*\d([eE][+-]?\d+)?", name)]
    whole = [int(name) for name in numbers if name.isdecimal()]
    if len(whole) == len(numbers) and whole == sorted(set(whole)):
        return None
    return next(name for name in numbers if len(whole) == len(numbers) or not name.isdecimal())


# other files


def _excel_size(path: Path) -> int:
    with zipfile.ZipFile(path) as archive:
        return sum(member.file_size for member in archive.infolist())


def _read_excel(path: Path) -> pd.DataFrame:
    """Read the first sheet."""
    return pd.read_excel(path, keep_default_na=False, na_values=[""]).dropna(how="all")


def _parquet_size(path: Path) -> int:
    from pyarrow.parquet import read_metadata

    contents = read_metadata(path)
    return int(8 * contents.num_rows * contents.num_columns)


# by suffix: the package that pandas needs, the bytes that the file unpacks to, and the reader
BINARY: dict[str, tuple[str, Callable[[Path], int], Callable[[Path], pd.DataFrame]]] = {
    ".xlsx": ("openpyxl", _excel_size, _read_excel),
    ".parquet": ("pyarrow", _parquet_size, pd.read_parquet),
}


@contextmanager
def _whole(path: Path, package: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ValueError(
            f"{path} needs the package {package}: run `pip install {package}`"
        ) from error
    except Exception as error:  # a damaged file fails in many ways
        raise ValueError(
            f"{path} must be a whole {path.suffix} file, could not be read: {error}"
        ) from error


def _header(names: Sequence[str], source: str) -> list[str]:
    """Name columns without a name after their place; ValueError if a name occurs twice."""
    names = [name.translate(CONTROLS).strip() for name in names]
    header = [name or f"column {i}" for i, name in enumerate(names, 1)]
    name, times = Counter(header).most_common(1)[0] if header else ("", 1)
    if times > 1:
        raise ValueError(
            f"{source} must have a header of different names, has {name!r} {times} times: rename "
            "them, or add a header if the first line is none"
        )
    return header


def _values(
    encoder: TableEncoder, frame: pd.DataFrame, source: str, remedy: str = ""
) -> pd.DataFrame:
    try:
        return encoder.read(frame)
    except ValueError as error:
        raise ValueError(f"{source}: {error}{remedy}") from None


# targets


def target_name(table: Table, target: str | None, notes: list[str]) -> str:
    """Return the target's name, with a note where it is a guess."""
    header = list(table.frame.columns)
    if len(header) < 2:
        raise ValueError(
            f"{table.source} must have a header with a target and another column, between commas, "
            f"semicolons or tabs, has only the column {', '.join(header) or 'of no name'}"
        )
    if target is not None:
        if target not in header:
            raise ValueError(
                f"{table.source} must have the column {target!r} as its target, has no "
                f"such: {did_you_mean(target, header)}"
            )
        return target
    lower = [name.lower() for name in header]
    usual = next((header[lower.index(name)] for name in USUAL if name in lower), None)
    if usual is None:
        notes.append(f"the target is the last column, {header[-1]!r}: --target names another")
        return header[-1]
    if usual.lower() != USUAL[0]:
        notes.append(f"the target is the column {usual!r}: --target names another")
    return usual


@dataclass(frozen=True)
class TargetReader:
    """How the cells of a target become class indices or numbers.

    Attributes:
        name: of the column.
        classes: names of the classes; empty for a regression.
        form: how numbers are written, see `kmixup.columns`.
    """

    name: str
    classes: tuple[str, ...]
    form: str = POINT

    @classmethod
    def infer(
        cls, cells: pd.Series, name: str, task: Task | None, delimiter: str, notes: list[str]
    ) -> TargetReader:
        """Infer the reader from all cells, with notes where it is a guess."""
        text = _as_text(cells)
        blank = text.str.lower().isin(BLANKS)
        column = infer(text.rename(name), delimiter=delimiter)
        numbers = None
        if column.kind == "number" and not blank.all():
            numbers = _numbers(text, column.form)
            if (numbers.isna() & ~blank).any():
                numbers = None
        # among numbers "NA" is a blank, among words it may be a class
        present = text != "" if numbers is None else numbers.notna()
        rows = int(present.sum())
        if not rows:
            raise ValueError(f"a row must have a value of the target {name!r}, none has")
        if rows < len(text):
            notes.append(f"{len(text) - rows:,} rows without a {name!r} are left out")
        classes = tuple(sorted(text[present].unique()))
        distinct = None if numbers is None else np.unique(numbers[present])
        decision = decide(distinct, distinct=len(classes), rows=rows, task=task, name=name)
        if decision.note:
            notes.append(decision.note)
        if decision.task == "classes":
            return cls(name, classes)
        if column.form != POINT:
            notes.append(f"the numbers of the target {name!r} are read like {column.form}")
        return cls(name, (), column.form)

    def read(self, cells: pd.Series, source: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the numbers of the rows that have a target, and their targets."""
        text = _as_text(cells)
        blank = (text == "") | (text.str.lower().isin(BLANKS) & ~text.isin(self.classes))
        if self.classes:
            values = text.map({name: i for i, name in enumerate(self.classes)})
            wrong = values.isna() & ~blank
            rule = f"one of the classes {', '.join(self.classes[:LISTED])} of the training rows"
        else:
            values = _numbers(text, self.form)
            wrong = (values.isna() & ~blank) | (values.abs() > LARGEST)
            rule = f"finite numbers up to {LARGEST:.1e}"
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(
                f"the target {self.name!r} of {source} must hold {rule}, row {row + 1} has "
                f"{text[row]!r}: correct it" + ("" if self.classes else ", or change the unit")
            )
        rows = np.flatnonzero(~blank)
        kind = np.int64 if self.classes else np.float64
        return torch.from_numpy(rows), torch.from_numpy(values[rows].to_numpy().astype(kind))


def _as_text(cells: pd.Series) -> pd.Series:
    cells = cells.reset_index(drop=True).astype(object)
    return cells.map(lambda cell: "" if pd.isna(cell) else label(cell))


def _numbers(text: pd.Series, form: str) -> pd.Series:
    blank = text.str.lower().isin(BLANKS)
    return pd.Series(KINDS["number"].forms[form](text.where(~blank)))
