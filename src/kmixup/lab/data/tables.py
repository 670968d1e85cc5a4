"""Read your own tables with pandas: text (.csv, .tsv), Excel, Parquet, or a data frame."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from kmixup._checks import CONTROLS, LISTED
from kmixup.columns import (
    BLANKS,
    COMMA,
    KINDS,
    POINT,
    REPORT_HEAD,
    Column,
    TableEncoder,
    infer,
    label,
)
from kmixup.lab._files import check_expansion, parsing
from kmixup.lab.checks import SettingError, did_you_mean
from kmixup.lab.data.dataset import Dataset, Samples, Task
from kmixup.lab.data.own import OwnOptions, decide
from kmixup.lab.formatting import TextTable, count

USUAL = ("target", "label", "class", "y")  # names of targets, tried in this order
DELIMITERS = ",;\t"
NA_VALUES = [spelt for word in BLANKS for spelt in (word, word.upper(), word.title(), "NaN")]
DECIMAL = re.compile(r"[+-]?\d*[.,]\d+")  # never the name of a column


@dataclass(frozen=True)
class Table:
    """A table as it was read."""

    frame: pd.DataFrame  # cells, as text where pandas finds no type
    source: str  # its name in messages
    delimiter: str = ","  # between the cells of a text file
    notes: tuple[str, ...] = ()  # what a user should know about the reading

    def __post_init__(self) -> None:
        if not len(self.frame):
            raise ValueError(f"{self.source} must have a row below its header, has none")


def read_table(path: Path, *, as_text: Sequence[str] | None = None) -> Table:
    """Read a table with a header.

    In text files, columns in `as_text` are read as they are written; by default these are all
    that may be the target.
    """
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        return _read_text(path, as_text)
    try:
        with parsing(path, f"{suffix} file"):
            if suffix == ".parquet":
                frame = pd.read_parquet(path, engine="pyarrow")
            else:
                check_expansion(path)
                # with a header, pandas would rename columns of equal names
                cells = pd.read_excel(
                    path, header=None, dtype=object, keep_default_na=False, na_values=[""]
                )
                frame = cells.iloc[1:].dropna(how="all").infer_objects()
                header = cells.iloc[:1].to_numpy().ravel()
                frame.columns = ["" if pd.isna(name) else name for name in header]
    except ImportError as error:
        raise ValueError(f"{path} could not be read: {error}") from error
    return table_of(frame, str(path))


def table_of(frame: pd.DataFrame, source: str) -> Table:
    frame = frame.set_axis(_header([str(name) for name in frame.columns], source), axis=1)
    return Table(frame.reset_index(drop=True), source)


def text_columns(encoder: TableEncoder) -> list[str]:
    """Return the columns to read as text: pandas would read "01" as 1, and "1.250" as 1.25."""
    return [c.name for c in encoder.columns if c.kind == "category" or c.form == COMMA]


def samples_of(table: Table, options: OwnOptions, y: Any = None) -> Samples:
    """Return the samples of a table that have a target, which is `y` or else a column."""
    frame, notes = table.frame, list(table.notes)
    if y is None:
        target = target_name(table, options.target, notes)
        y, frame = frame[target], frame.drop(columns=target)
    else:
        target, y = options.target or "y", pd.Series(np.asarray(y))
        if len(y) != len(frame):
            raise ValueError(
                f"y must have a target for each of the {count(len(frame), 'row')}, has {len(y):,}"
            )
    for name in options.drop:
        if name not in frame:
            raise SettingError(
                "drop",
                f"must name columns of {table.source} beside the target {target!r}, got {name!r}: "
                f"{did_you_mean(name, frame.columns)}",
            )
    frame = frame.drop(columns=list(options.drop))
    if not len(frame.columns):
        raise ValueError(
            f"{table.source} must have a column beside its target {target!r}, between commas, "
            "semicolons or tabs, has none"
        )
    encoder = TableEncoder.infer(frame, delimiter=table.delimiter)
    with named(table.source, ", or leave the column out (--drop)"):
        values = encoder.read(frame)
    column = infer_target(y, target, options.task, table.delimiter, notes)
    rows, targets = read_target(column, y, table.source)
    samples = Samples(
        rows, targets, column.categories, encoder=encoder, frame=values, notes=tuple(notes),
        target=target, target_form=column.form,
    )  # fmt: skip
    if options.test is None:
        return samples
    as_text = [target, *text_columns(encoder)]
    test = read_table(Path(options.test).expanduser(), as_text=as_text)
    if target not in test.frame:
        raise ValueError(
            f"{test.source} must have the target {target!r}, has no such column: "
            f"{did_you_mean(target, test.frame.columns)}"
        )
    test_rows, y_test = read_target(column, test.frame[target], test.source)
    with named(test.source):
        both = pd.concat([values, encoder.read(test.frame)], ignore_index=True)
    return replace(samples, frame=both, x_test=len(values) + test_rows, y_test=y_test)


@contextmanager
def named(source: str, remedy: str = "") -> Iterator[None]:
    """Name the table in the errors of its columns."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{source}: {error}{remedy}") from None


def column_report(data: Dataset) -> str:
    """Return notes on the reading, and a row for every column that is not just a number."""
    lines = list(data.notes)
    columns = () if data.encoder is None else data.encoder.columns
    if rows := [column.report() for column in columns if not column.is_plain]:
        lines.append(TextTable(list(REPORT_HEAD), rows).aligned())
        if plain := len(columns) - len(rows):
            verb = "is a number" if plain == 1 else "are numbers"
            lines.append(f"{count(plain, 'other column')} {verb}")
    return "\n".join(lines)


# text files


def _read_text(path: Path, as_text: Sequence[str] | None) -> Table:
    text, notes = _decode(path)
    stream = io.StringIO(text.translate(CONTROLS), newline="")
    first = next(filter(str.strip, stream), "")
    delimiter = max(DELIMITERS, key=first.count)
    stream.seek(0)
    # pandas would fill short rows with blanks, and join rows after a quote that is not closed
    reader = csv.reader(stream, delimiter=delimiter, strict=True, skipinitialspace=True)
    number = 0
    filled: list[bool] = []  # which lines below the header are rows
    try:
        header = _header(next((row for row in reader if any(map(str.strip, row))), []), str(path))
        start = stream.tell()
        for row in reader:
            filled.append(any(map(str.strip, row)))
            number += filled[-1]
            if filled[-1] and len(row) != len(header):
                raise ValueError(
                    f"{path} must have {len(header)} values in a row, row {number} has {len(row)}"
                )
    except csv.Error as error:
        raise ValueError(
            f"{path} must be a table of text, could not be read after row {number}: {error}; "
            "is there a quote without its counterpart?"
        ) from error
    if as_text is None:
        as_text = [name for name in header if name.lower() in USUAL] + header[-1:]
    stream.seek(start)
    frame = pd.read_csv(
        stream,
        sep=delimiter,
        header=None,
        names=header,
        index_col=False,
        dtype=dict.fromkeys(as_text, str),
        keep_default_na=False,
        na_values={name: NA_VALUES for name in header if name not in as_text},
        skipinitialspace=True,
        skip_blank_lines=False,  # as the reader above, so that its lines are these rows
        low_memory=False,
    )
    if numbers := list(filter(DECIMAL.fullmatch, header)):
        notes.append(
            f"the first line is read as column names but contains the number {numbers[0]}: if it "
            "is data, add a header line"
        )
    # a row of blanks such as NA is a row: left out, it would shift the numbers of those below
    frame = frame[np.array(filled, bool)].reset_index(drop=True)
    return Table(frame, str(path), delimiter, tuple(notes))


def _decode(path: Path) -> tuple[str, list[str]]:
    """Return a file's text, and a note where it is not in UTF-8 or UTF-16."""
    raw = path.read_bytes()
    encoding = "utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        return raw.decode(encoding), []
    except UnicodeDecodeError:
        with parsing(path, "table of text in UTF-8"):
            text = raw.decode("cp1252")
        return text, ["the file is not UTF-8 and is read as cp1252, Western European"]


def _header(names: Sequence[str], source: str) -> list[str]:
    """Name columns without a name after their place; ValueError if a name occurs twice."""
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


# targets


def target_name(table: Table, target: str | None, notes: list[str]) -> str:
    """Return the target's name, with a note where it is a guess."""
    header = list(table.frame.columns)
    if target is None:
        lower = {name.lower(): name for name in reversed(header)}
        target = next((lower[name] for name in USUAL if name in lower), header[-1])
        if target.lower() != USUAL[0]:
            notes.append(f"the target is the column {target!r}: --target names another")
    if target not in header:
        raise SettingError(
            "target",
            f"must name a column of {table.source}, got {target!r}: {did_you_mean(target, header)}",
        )
    return target


def infer_target(
    cells: pd.Series, name: str, task: Task | None, delimiter: str, notes: list[str]
) -> Column:
    """Return a target as a column of kind "category" with its classes, or of kind "number"."""
    text = _as_text(cells)
    blank = text.str.lower().isin(BLANKS)
    form, numbers = infer(text.rename(name), delimiter=delimiter).form, None
    if form in KINDS["number"].forms and not blank.all():
        parsed = KINDS["number"].forms[form](text.where(~blank))
        numbers = parsed if (np.isnan(parsed) == blank).all() else None
    # among numbers "NA" is a blank, among words it may be a class
    present = text != "" if numbers is None else ~blank
    rows = int(present.sum())
    if not rows:
        raise ValueError(f"a row must have a value of the target {name!r}, none has")
    if rows < len(text):
        notes.append(f"{len(text) - rows:,} rows without a {name!r} are left out")
    classes = tuple(sorted(text[present].unique()))
    distinct = np.array(classes) if numbers is None else np.unique(numbers[present])
    task = decide(distinct, rows=rows, task=task, name=name, notes=notes)
    if task == "classes":
        if len(distinct) < len(classes):
            raise ValueError(
                f"the target {name!r} must write each class in one way, has {len(classes)} "
                f"spellings of {len(distinct)} numbers, such as 1 and 1.0: write them alike"
            )
        return Column(name, "category", "", classes)
    if form != POINT:
        notes.append(f"the numbers of the target {name!r} are read like {form}")
    return Column(name, "number", form)


def read_target(column: Column, cells: pd.Series, source: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the numbers of the rows that have a target, and their targets."""
    if column.kind == "number":
        with named(source):
            values = column.read(cells)
        blank = np.isnan(values)
    else:
        text = _as_text(cells)
        values = pd.Index(column.categories).get_indexer(pd.Index(text))
        blank = (values < 0) & text.str.lower().isin(BLANKS).to_numpy()
        if ((values < 0) > blank).any():
            row = int(((values < 0) > blank).argmax())
            raise ValueError(
                f"the target {column.name!r} of {source} must hold one of the classes "
                f"{', '.join(column.categories[:LISTED])} of the training rows, row {row + 1} has "
                f"{text[row]!r}: correct it"
            )
    rows = np.flatnonzero(~blank)
    if not len(rows):
        raise ValueError(
            f"{source} must have a value of the target {column.name!r} in some row, has none: "
            "fill in the column"
        )
    return torch.from_numpy(rows), torch.from_numpy(values[rows])


def _as_text(cells: pd.Series) -> pd.Series:
    cells = cells.reset_index(drop=True).astype(object)
    return cells.map(lambda cell: "" if pd.isna(cell) else label(cell))
