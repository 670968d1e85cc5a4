"""Your own tables as samples: files and data frames, read by `kmixup.tables`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from kmixup._checks import SettingError, did_you_mean
from kmixup.lab._files import check_expansion, open_regular, parsing, read_bytes
from kmixup.lab.data.dataset import Dataset, Samples
from kmixup.lab.data.own import OwnOptions
from kmixup.lab.formatting import TextTable, count
from kmixup.tables.encoder import REPORT_HEAD
from kmixup.tables.look import duplicates, listed, look
from kmixup.tables.reading import Table, parse_table
from kmixup.tables.schema import TEXTS, Schema, check_form
from kmixup.tables.targets import classes_of, read_target, target_name

SHOWN = 20  # columns of a report


def read_table(path: Path) -> Table:
    """Read a table with a header."""
    suffix = path.suffix.lower()
    if suffix == ".xlsx":
        with open_regular(path) as stream, parsing(path, ".xlsx file"):
            check_expansion(path, stream)
    return parse_table(read_bytes(path), suffix, str(path))


def samples_of(table: Table, options: OwnOptions, y: Any = None) -> Samples:
    """Return the samples of a table that have a target, which is `y` or else a column."""
    frame, notes = table.frame, list(table.notes)
    if y is None:
        target = target_name(list(frame.columns), options.target, table.source, notes)
    else:
        target, y = options.target or "y", pd.Series(np.asarray(y))
        if len(y) != len(frame):
            raise ValueError(
                f"y must have a target for each of the {count(len(frame), 'row')}, has {len(y):,}"
            )
        if target in frame:
            raise ValueError(f"data must not have a column {target!r} and y: rename or drop it")
        frame = frame.assign(**{target: y})
    for name in options.drop:
        if name not in frame or name == target:
            raise SettingError(
                "drop",
                f"must name columns of {table.source} in addition to the target {target!r}, got "
                f"{name!r}: {did_you_mean(name, frame.columns.drop(target))}",
            )
    frame = frame.drop(columns=list(options.drop))
    if len(frame.columns) < 2:
        raise ValueError(
            f"{table.source} must have a column next to its target {target!r}, between commas, "
            "semicolons or tabs, has none"
        )
    schema = schema_of(frame, table, options, target, notes)
    with named(table.source, ", or leave the column out (--drop)"):
        values = schema.read(frame)
    column = schema[target]
    with named(table.source):
        classes = classes_of(frame[target], column, schema.form, options.task, notes)
    rows, targets = read_target(frame[target], column, classes, schema.form, table.source)
    with_target = values.iloc[rows]
    notes += duplicates(with_target) + look(with_target, targets, schema)
    samples = Samples(
        torch.from_numpy(rows), torch.from_numpy(targets), classes, schema=schema, frame=values,
        notes=tuple(notes),
    )  # fmt: skip
    if options.test is None:
        return samples
    test = read_table(Path(options.test).expanduser())
    if target not in test.frame:
        raise ValueError(
            f"{test.source} must have the target {target!r}, has no such column: "
            f"{did_you_mean(target, test.frame.columns)}"
        )
    later, y_test = read_target(test.frame[target], column, classes, schema.form, test.source)
    with named(test.source):
        both = pd.concat([values, schema.read(test.frame)], ignore_index=True)
    for column in schema.inputs:
        if column.kind in TEXTS:  # the categories of two files differ
            both[column.name] = both[column.name].astype("category")
    x_test = torch.from_numpy(len(values) + later)
    return replace(samples, frame=both, x_test=x_test, y_test=torch.from_numpy(y_test))


def schema_of(
    frame: pd.DataFrame, table: Table, options: OwnOptions, target: str, notes: list[str]
) -> Schema:
    """Return the schema of a table: the one that is given, or an inferred one."""
    if options.schema is not None:
        for name in ("decimal", "thousands", "dayfirst", "missing"):
            if (value := getattr(options, name)) not in (None, ()):
                raise SettingError(
                    name, f"must not be given with a schema, got {value!r}: edit the schema"
                )
        path = Path(options.schema).expanduser()
        schema = Schema.from_json(
            read_bytes(path, most=1 << 24).decode("utf-8", "replace"), str(path)
        )
        known = {column.name for column in schema.columns}
        if lacking := sorted(known - set(frame.columns) - set(options.drop)):
            raise SettingError(
                "schema", f"must have columns of {table.source} only, has {', '.join(lacking)}"
            )
        if target not in known:
            raise SettingError("schema", f"must have the target {target!r}, {path} lacks it")
        if unnamed := [str(name) for name in frame if name not in known]:
            notes.append(f"columns that {path} does not name are left out: {listed(unnamed)}")
        columns = tuple(column for column in schema.columns if column.name not in options.drop)
        return replace(schema, columns=columns, target=target)
    given = check_form(options.decimal, options.thousands, options.dayfirst, options.missing)
    with named(table.source):
        schema, more = Schema.infer(frame, given=given, delimiter=table.delimiter)
    notes += more
    column = schema[target]
    if column.kind not in ("number", "category"):  # words of any kind are classes
        columns = tuple(
            replace(c, kind="category", form="") if c is column else c for c in schema.columns
        )
        schema = replace(schema, columns=columns)
    return replace(schema, target=target)


@contextmanager
def named(source: str, remedy: str = "") -> Iterator[None]:
    """Name the table in the errors of its columns."""
    try:
        yield
    except SettingError:
        raise
    except ValueError as error:
        raise ValueError(f"{source}: {error}{remedy}") from None


def column_report(data: Dataset) -> str:
    """Return notes on the reading, and a row for every column that is not just a number."""
    lines = list(data.notes)
    columns = () if data.encoder is None else data.encoder.columns
    if rows := [column.report() for column in columns if not column.is_plain]:
        lines.append(TextTable(list(REPORT_HEAD), rows[:SHOWN]).aligned())
        if more := len(rows) - SHOWN:
            lines += [f"and {more:,} more such columns"] if more > 0 else []
        if plain := len(columns) - len(rows):
            verb = "is a number" if plain == 1 else "are numbers"
            lines.append(f"{count(plain, 'other column')} {verb}")
    return "\n".join(lines)
