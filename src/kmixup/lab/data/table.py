"""The user's own table: a `.csv` whose cells become one matrix of numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import numpy as np
import torch
from numpy.typing import NDArray

from kmixup.lab.data.columns import LIKELY, POINT, Column, Guess, is_blank, plain_numbers
from kmixup.lab.data.dataset import Samples
from kmixup.lab.data.delimited import Delimited, open_delimited
from kmixup.lab.data.naming import did_you_mean
from kmixup.lab.data.targets import Task, decide

USUAL = ("target", "label", "class", "y")  # names of targets, tried in this order


def read_csv(
    path: Path,
    *,
    target: str | None = None,
    drop: Sequence[str] = (),
    task: Task | None = None,
) -> Samples:
    """A table with a header, whose column `target` is to be learnt from the others.

    Its inputs are one number for each cell, as `Column` says, with NaN for a blank cell;
    `Preparation` makes them a network's. Rows without a target are left out.

    Args:
        path: of the file; its encoding and delimiter are found out.
        target: by default the column called target, label, class or y, else the last one.
        drop: columns to leave out.
        task: "classes" or "regression"; by default as `decide` finds.
    """
    table = open_delimited(path)
    column, notes = _target(table, target)
    _check_drop(table, drop, table.header[column])
    kept = [i for i, name in enumerate(table.header) if i != column and name not in drop]
    if not kept:
        raise ValueError(f"{path} must have a column beside its target to learn from, has none")
    names = tuple(table.header[i] for i in kept)
    labels = _Labels(table.header[column], table.delimiter)
    columns = tuple(map(Column, names))
    matrix = _plain(table, kept, column, labels)
    if matrix is None:
        labels = _Labels(table.header[column], table.delimiter)
        columns, guessed = _guess(table, kept)
        notes += guessed
        matrix, columns = _convert(table, kept, column, labels, columns)
    if len(matrix) == 0:
        raise ValueError(f"{path} must have a row below its header, has none")
    targets = labels.targets(task)
    x = matrix if targets.keep.all() else matrix[targets.keep]
    return Samples(
        torch.from_numpy(x), torch.from_numpy(targets.y), targets.classes, names,
        table=columns, notes=(*_reading(table), *notes, *targets.notes),
    )  # fmt: skip


class _Labels:
    """The cells of the target, as they come, of a table with such a delimiter."""

    def __init__(self, name: str, delimiter: str) -> None:
        self.name = name
        self.delimiter = delimiter
        self.codes: list[int] = []
        self.known: dict[str, int] = {}

    def take(self, cells: Sequence[str]) -> None:
        self.codes += [self.known.setdefault(cell, len(self.known)) for cell in cells]

    def targets(self, task: Task | None) -> _Targets:
        """Class indices, or numbers, of the rows that have a target."""
        texts, codes = list(self.known), np.array(self.codes)
        values, form = _as_numbers(texts, self.delimiter)
        # among numbers "NA" is a blank, among words it may be a class
        blank = np.array([not text for text in texts]) if values is None else np.isnan(values)
        keep = ~blank[codes]
        rows = int(keep.sum())
        if rows == 0:
            raise ValueError(f"a row must have a value of the target {self.name!r}, none has")
        notes = [f"{len(codes) - rows:,} rows without a {self.name!r} are left out"]
        decision = decide(
            None if values is None else values[~blank],
            distinct=int((~blank).sum()), rows=rows, task=task, name=self.name,
        )  # fmt: skip
        notes = notes[: rows < len(codes)] + ([decision.note] if decision.note else [])
        if decision.task == "regression" and values is not None:
            if form != POINT:
                notes.append(f"the numbers of the target {self.name!r} are read like {form}")
            return _Targets(values[codes][keep].astype(np.float32), (), keep, notes)
        classes = sorted(text for text, out in zip(texts, blank, strict=True) if not out)
        rank = np.zeros(len(texts), dtype=np.int64)
        rank[[self.known[name] for name in classes]] = np.arange(len(classes))
        return _Targets(rank[codes][keep], tuple(classes), keep, notes)


@dataclass(frozen=True)
class _Targets:
    """Targets `y` and their classes, the rows to `keep`, and notes."""

    y: NDArray[np.int64] | NDArray[np.float32]
    classes: tuple[str, ...]
    keep: NDArray[np.bool_]
    notes: list[str]


def _as_numbers(cells: Sequence[str], delimiter: str) -> tuple[NDArray[np.float64] | None, str]:
    """Cells as finite numbers, NaN for a blank, with the form they are written in.

    None where one is no number, or all are blank.
    """
    for form in (form for kind, form in LIKELY[delimiter] if kind == "number"):
        column = Column("", "number", form)
        try:
            values = np.array([column.number(cell) for cell in cells], np.float64)
        except ValueError:
            continue
        return (None if np.isnan(values).all() else values), form
    return None, ""


def _target(table: Delimited, target: str | None) -> tuple[int, list[str]]:
    """The place of the target among the columns, with a note where it was guessed."""
    if not table.header:
        raise ValueError(f"{table.path} must have a header and rows below it, is empty")
    if len(table.header) < 2:
        raise ValueError(
            f"{table.path} must have a header with a target and another column, between commas, "
            f"semicolons or tabs, has the column {table.header[0]} alone"
        )
    if target is not None:
        if target not in table.header:
            raise ValueError(
                f"{table.path} must have the column {target!r} as its target, has no "
                f"such: {did_you_mean(target, table.header)}"
            )
        return table.header.index(target), []
    lower = [name.lower() for name in table.header]
    usual = next((lower.index(name) for name in USUAL if name in lower), None)
    if usual is not None:
        note = f"the target is the column {table.header[usual]!r}: --target names another"
        return usual, [] if lower[usual] == USUAL[0] else [note]
    last = len(table.header) - 1
    return last, [f"the target is the last column, {table.header[last]!r}: --target names another"]


def _check_drop(table: Delimited, drop: Sequence[str], target: str) -> None:
    for name in drop:
        if name not in table.header:
            raise ValueError(
                f"drop must name columns of {table.path}, got {name!r}: "
                f"{did_you_mean(name, table.header)}"
            )
        if name == target:
            raise ValueError(f"drop must leave the target, got {name!r}: name another target")


def _plain(
    table: Delimited, kept: Sequence[int], column: int, labels: _Labels
) -> NDArray[np.float32] | None:
    """The matrix of a table that holds finite numbers alone; None at the first other cell."""
    matrices = [np.empty((0, len(kept)), np.float32)]
    for _, rows in table.parts():
        numbers = plain_numbers([[row[i] for i in kept] for row in rows])
        if numbers is None or not np.isfinite(numbers).all():
            return None
        matrices.append(numbers)
        labels.take([row[column] for row in rows])
    return np.concatenate(matrices)


def _guess(table: Delimited, kept: Sequence[int]) -> tuple[tuple[Column, ...], list[str]]:
    guesses = [Guess(table.header[i], table.delimiter) for i in kept]
    for _, rows in table.parts():
        for guess, i in zip(guesses, kept, strict=True):
            guess.see(row[i] for row in rows)
    notes = [
        f"the dates of {guess.name!r} are read with the day first, and could have the month first: "
        "write them as 2024-12-31 to be sure"
        for guess in guesses
        if guess.ambiguous
    ]
    return tuple(guess.column() for guess in guesses), notes


def _convert(
    table: Delimited,
    kept: Sequence[int],
    column: int,
    labels: _Labels,
    columns: tuple[Column, ...],
) -> tuple[NDArray[np.float32], tuple[Column, ...]]:
    """The matrix of a table, and its columns with the categories that occur."""
    known: dict[str, dict[str, int]] = {c.name: {} for c in columns if c.kind == "category"}
    matrices = []
    for first, rows in table.parts():
        matrix = np.empty((len(rows), len(kept)), np.float32)
        for j, (entry, i) in enumerate(zip(columns, kept, strict=True)):
            cells = [row[i] for row in rows]
            try:
                if entry.kind == "category":
                    codes = known[entry.name]
                    for cell in dict.fromkeys(cells):  # in the order of the rows
                        if not is_blank(cell):
                            codes.setdefault(cell, len(codes))
                    matrix[:, j] = [codes.get(cell, np.nan) for cell in cells]
                else:
                    matrix[:, j] = entry.numbers(cells, first)
            except ValueError as error:
                raise ValueError(
                    f"{table.path}: {error}, or leave the column out (--drop {quote(entry.name)})"
                ) from None
        matrices.append(matrix)
        labels.take([row[column] for row in rows])
    categories = (tuple(known.get(c.name, ())) for c in columns)
    named = [
        Column(c.name, c.kind, c.form, texts) for c, texts in zip(columns, categories, strict=True)
    ]
    return np.concatenate(matrices), tuple(named)


def _reading(table: Delimited) -> list[str]:
    """Notes on what was a guess: the encoding, and that the first line is a header."""
    notes = []
    if table.encoding in ("cp1252", "latin-1"):
        notes.append(f"the file is not UTF-8 and is read as {table.encoding}, Western European")
    if (value := _value_in(table.header)) is not None:
        notes.append(
            f"the first line is taken for the names of the columns, and has the number {value}: "
            "if it is a row like the others, write a line of names above it"
        )
    return notes


def _value_in(header: Sequence[str]) -> str | None:
    """A number among the names that is no name; columns may be numbered, in their order.

    >>> _value_in(["5.1", "3.5", "setosa"]), _value_in(["0", "1", "2", "y"])
    ('5.1', None)
    """
    numbers = [name for name in header if re.fullmatch(r"[+-]?[\d.,]*\d([eE][+-]?\d+)?", name)]
    whole = [int(name) for name in numbers if name.isdecimal()]
    if len(whole) == len(numbers) and whole == sorted(set(whole)):
        return None
    return next(name for name in numbers if len(whole) == len(numbers) or not name.isdecimal())
