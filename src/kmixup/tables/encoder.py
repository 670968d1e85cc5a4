"""Encode the values of a table as a network's inputs, fitted on the training rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kmixup.tables.schema import MIN_ROWS, TEXTS, Column, Schema, is_called_id

Array = NDArray[Any]
Rows = pd.DataFrame | Iterable[Mapping[str, Any]]  # a data frame, or rows by column name

MAX_CATEGORIES = 100  # with more, a category becomes what its rows' targets are on average
MAX_CLASSES = 20  # with more, only the most frequent categories have an input each
MAX_ONE_HOT = 100
WORDS = 256  # inputs that the words of a text are hashed into
SMOOTHING = 10.0  # rows by which a category's mean is drawn to that of all rows
CHUNK = 1024  # rows that are joined at a time
FOLDS = 5  # a training row's category mean is that of other rows
REPORT_HEAD = ("column", "read as", "becomes", "remarks")


@dataclass(frozen=True)
class Fitted:
    """A column and what was fitted to the training rows."""

    column: Column
    fill: float = 0.0  # replaces a blank number, Boolean, date or time
    indicator: bool = False  # whether an additional input is 1 where the cell is blank
    categories: tuple[str, ...] = ()  # texts known from training
    means: tuple[tuple[float, ...], ...] = ()  # of each category and, last, of all rows
    used: bool = True  # whether the column is an input
    remarks: tuple[str, ...] = ()  # notes for the user

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def inputs(self) -> dict[str, bool]:
        """Names of the inputs that the column becomes, and whether they are always 0 or 1."""
        if not self.used:
            return {}
        name, kind, binary = self.name, self.column.kind, False
        names = [name]
        if kind == "date":
            names = [name, f"{name} month", f"{name} weekday"]
        elif kind == "text":
            names, binary = [f"{name} word {i}" for i in range(WORDS)], True
        elif self.means:
            names = [f"{name} mean {i}" if i else f"{name} mean" for i in range(len(self.means[0]))]
        elif kind == "category":
            names, binary = [f"{name}={text}" for text in self.categories], True
        inputs = dict.fromkeys(names, binary or kind == "boolean")
        return inputs | {f"{name} blank": True} if self.indicator else inputs

    @property
    def is_plain(self) -> bool:
        """Whether the column holds ordinary numbers, with nothing to report."""
        return self == Fitted(Column(self.name), fill=self.fill)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, fit for JSON."""
        return {
            "name": self.name, "fill": self.fill, "indicator": self.indicator, "used": self.used,
            "categories": list(self.categories), "means": list(map(list, self.means)),
            "remarks": list(self.remarks),
        }  # fmt: skip

    def report(self) -> tuple[str, str, str, str]:
        """Return a row of a report, under the heads `REPORT_HEAD`."""
        kind, count = self.column.kind, len(self.categories)
        becomes = {
            "date": "days, month, weekday", "boolean": "0 or 1", "time": "hours",
            "text": f"{WORDS} columns of hashed words",
        }.get(kind, "number")  # fmt: skip
        read_as = str(self.column).replace(": ", " like ")
        if kind == "category" and count:
            read_as = f"category of {count}"
            becomes = f"{count} column{'' if count == 1 else 's'} of 0 and 1"
        if self.means:
            becomes = "mean target of its rows"
        becomes += ", blank" if self.indicator else ""
        return self.name, read_as, becomes if self.used else "left out", "; ".join(self.remarks)

    def encode(self, values: Any) -> Array:
        """Return the inputs `(n, len(inputs))` for values `(n,)`."""
        blank = np.asarray(pd.isna(values))
        kind = self.column.kind
        if kind == "text":
            inputs = _hashed(values)
        elif kind == "category":
            inputs = self._categories(values)
        else:
            filled = np.where(blank, self.fill, np.asarray(values, np.float64))
            inputs = _dates(filled) if kind == "date" else filled[:, None]
        return np.column_stack([inputs, blank]) if self.indicator else np.asarray(inputs)

    def _categories(self, values: Any) -> Array:
        codes = _codes(values, self.categories)
        if self.means:
            means: Array = np.array(self.means)[codes]  # -1 is the last, the mean of all rows
            return means
        return np.asarray(codes[:, None] == np.arange(len(self.categories)), np.float64)


def _codes(values: Any, categories: Sequence[str]) -> NDArray[np.int64]:
    """Return the positions of texts among categories; -1 for blanks and unseen ones."""
    texts = pd.Categorical(values)
    known = pd.Index(np.array(categories, object)).get_indexer(texts.categories.astype(object))
    codes: NDArray[np.int64] = np.append(known, -1)[texts.codes]
    return codes


def _dates(days: Array) -> Array:
    dates = pd.DatetimeIndex(np.floor(days).astype("datetime64[D]").astype("datetime64[s]"))
    return np.column_stack([days, dates.month, dates.day_of_week])


def _hashed(values: Any) -> Array:
    """Return the words of texts, hashed into `WORDS` inputs."""
    from sklearn.feature_extraction.text import HashingVectorizer  # on first use: it loads slowly

    hashing = HashingVectorizer(n_features=WORDS, ngram_range=(1, 2), alternate_sign=True)
    texts = pd.Categorical(values)
    distinct = hashing.transform([*map(str, texts.categories), ""]).toarray()
    # of mean square 1, as standardised inputs: the network would not see smaller ones
    return np.asarray(np.sqrt(WORDS) * distinct[texts.codes])


@dataclass(frozen=True)
class TableEncoder:
    """Encoder of a table's columns, fitted on training rows.

    >>> frame = pd.DataFrame({"age": [41.0, 35.0, None], "city": ["Bern", "Dover", "Bern"]})
    >>> schema, _ = Schema.infer(frame)
    >>> encoder, x = TableEncoder.fit(schema, schema.read(frame))
    >>> encoder.names
    ('age', 'age blank', 'city=Bern', 'city=Dover')
    >>> encoder.transform([{"age": 28, "city": "Zug"}])
    array([[28.,  0.,  0.,  0.]])
    """

    schema: Schema
    columns: tuple[Fitted, ...] = field(default=())  # one for each column but the target

    @classmethod
    def fit(cls, schema: Schema, values: pd.DataFrame, y: Any = None) -> tuple[TableEncoder, Array]:
        """Fit to the values of training rows; return the encoder and their inputs.

        Args:
            schema: how the table is read.
            values: what `Schema.read` returned.
            y: classes by number, or the numbers of a regression, for categories of many texts:
                they become mean targets. For the training rows these are means of other rows.
        """
        targets = None if y is None else _outputs(np.asarray(y))
        columns, parts = [], []
        for column in schema.columns:
            if column.name == schema.target:
                continue
            if column.kind == "ignore":
                columns.append(Fitted(column, used=False, remarks=("left out",)))
                continue
            fitted, inputs = _fit(column, values[column.name].array, targets)
            columns.append(fitted)
            if fitted.used:
                parts.append(inputs)
        if not parts:
            raise ValueError(
                "the table must have a column to learn from, all are empty or have only "
                "different texts"
            )
        return cls(schema, tuple(columns)), _joined(parts)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(name for column in self.columns for name in column.inputs)

    @property
    def binary(self) -> tuple[bool, ...]:
        """Which inputs are 0 or 1, or hashed words, and are not to be scaled."""
        return tuple(flag for column in self.columns for flag in column.inputs.values())

    def encode(self, values: pd.DataFrame) -> Array:
        """Return the inputs `(n, len(names))` for values."""
        return _joined([c.encode(values[c.name].array) for c in self.columns if c.used])

    def read(self, rows: Rows) -> pd.DataFrame:
        """Return the values of a data frame or of rows by column name; ignore other columns."""
        frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
        used = {column.name for column in self.columns if column.used}
        inputs = tuple(column for column in self.schema.columns if column.name in used)
        return Schema(inputs, self.schema.form).read(frame)

    def transform(self, rows: Rows) -> Array:
        """Return the inputs for new rows, text or typed."""
        return self.encode(self.read(rows))

    def notes(self, values: pd.DataFrame, source: str) -> list[str]:
        """Report rows with categories or blanks that the training set did not have."""
        notes = []
        for column in self.columns:
            if not column.used:
                continue
            cells = values[column.name]
            if column.categories:
                unseen = int((cells.notna() & ~cells.isin(column.categories)).sum())
                if unseen:
                    notes.append(
                        f"{unseen:,} rows of {source} have a category of {column.name!r} that has "
                        "no input (new, or rare in training): it counts as unknown"
                    )
            if not column.indicator and (blanks := int(cells.isna().sum())):
                notes.append(
                    f"{blanks:,} rows of {source} have no {column.name!r}, which every training "
                    "row had"
                )
        return notes

    def to_dict(self) -> list[dict[str, Any]]:
        """Return what was fitted as plain values, fit for JSON; the schema is stored next to it."""
        return [column.to_dict() for column in self.columns]

    @classmethod
    def from_dict(cls, schema: Schema, plain: Any) -> TableEncoder:
        """Return the encoder that `to_dict` wrote; ValueError if an entry is of another kind."""
        columns = [c for c in schema.columns if c.name != schema.target]
        if not isinstance(plain, list) or len(plain) != len(columns):
            raise ValueError("the table must have an entry for each column of its schema")
        return cls(schema, tuple(map(_checked, columns, plain)))


def _joined(parts: list[Array]) -> Array:
    """Return columns side by side; in chunks that fit in a cache, which is much faster."""
    joined: Array = np.empty((len(parts[0]), sum(part.shape[1] for part in parts)))
    for start in range(0, len(joined), CHUNK):
        rows = slice(start, start + CHUNK)
        np.concatenate([part[rows] for part in parts], axis=1, out=joined[rows])
    return joined


def _checked(column: Column, plain: Any) -> Fitted:
    """Return what was fitted to a column; ValueError unless `to_dict` would write the same."""
    try:
        means = tuple(tuple(map(float, row)) for row in plain["means"])
        fitted = Fitted(
            column, float(plain["fill"]), bool(plain["indicator"]),
            tuple(map(str, plain["categories"])), means, bool(plain["used"]),
            tuple(map(str, plain["remarks"])),
        )  # fmt: skip
        same = json.dumps(fitted.to_dict(), allow_nan=False) == json.dumps(plain)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        same = False
    if same and (fitted.categories or means):
        same = column.kind == "category"
    if same and means:  # of each category and of all rows, and of as many targets
        same = len(means) == len(fitted.categories) + 1 and len({*map(len, means), 0}) == 2
    if not same:
        raise ValueError(f"the column {column.name!r} must have entries as training wrote them")
    return fitted


def _fit(column: Column, values: Any, targets: Array | None) -> tuple[Fitted, Array]:
    """Return a column fitted to the values of the training rows, and its inputs."""
    blank = np.asarray(pd.isna(values))
    blanks, n = int(blank.sum()), len(blank)
    remarks: list[str] = []
    settings: dict[str, Any] = {"indicator": blanks > 0}
    if blanks == n:
        remark = ("no value in the training rows",)
        return Fitted(column, used=False, remarks=remark), np.empty((n, 0))
    if blanks:
        remarks.append(f"{blanks:,} blanks")
    filled = values[~blank]
    drop = f"--drop {quote(column.name)} leaves it out"
    if column.kind not in TEXTS:
        numbers = np.asarray(filled, np.float64)
        boolean = column.kind == "boolean"
        settings["fill"] = float(numbers.mean() > 0.5 if boolean else np.median(numbers))
        if column.kind == "number" and looks_like_id(column.name, numbers):
            remarks.append(f"looks like an id: {drop}")
    if not blanks and bool((filled == filled[0]).all()):
        remarks.append(f"constant: {drop}")
    if column.kind != "category":
        fitted = Fitted(column, **settings, remarks=tuple(remarks))
        return fitted, fitted.encode(values)
    distinct = pd.Series(filled).astype(object).value_counts(sort=False)
    many = len(distinct) > MAX_CATEGORIES
    if many and targets is not None:
        categories = tuple(sorted(distinct.index))
        codes = _codes(values, categories)
        means = tuple(map(tuple, _means(codes, targets, len(categories)).tolist()))
        fitted = Fitted(column, **settings, categories=categories, means=means)
        inputs = _cross_fitted(codes, targets, len(categories))
        return fitted, np.column_stack([inputs, blank]) if blanks else inputs
    kept = distinct.sort_values(ascending=False, kind="stable")[:MAX_ONE_HOT]
    if len(distinct) > len(kept):
        remarks.append(
            f"the {len(kept)} most frequent of {len(distinct):,}, others are 0 everywhere"
        )
    categories = tuple(sorted(kept.index))
    fitted = Fitted(column, **settings, categories=categories, remarks=tuple(remarks))
    return fitted, fitted.encode(values)


def _outputs(y: Array) -> Array | None:
    """Return targets `(n, outputs)` whose means describe a category; None for many classes."""
    if y.dtype.kind == "f":
        return y.astype(np.float64)[:, None]
    classes = int(y.max()) + 1
    if classes > MAX_CLASSES:
        return None
    first = 1 if classes == 2 else 0  # one probability describes two classes
    return np.asarray(y[:, None] == np.arange(first, classes), np.float64)


def _means(codes: Array, targets: Array, count: int) -> Array:
    """Return the mean target of each category, drawn to that of all rows, which comes last."""
    overall = targets.mean(0)
    known, rows = codes[codes >= 0], targets[codes >= 0]
    sums = np.column_stack([np.bincount(known, column, count) for column in rows.T])
    sizes = np.bincount(known, minlength=count)[:, None]
    means: Array = (sums + SMOOTHING * overall) / (sizes + SMOOTHING)
    return np.asarray(np.vstack([means, overall]))


def _cross_fitted(codes: Array, targets: Array, count: int) -> Array:
    """Return each row's category mean over rows of other folds, which its target does not enter."""
    fold = np.random.default_rng(0).permutation(len(codes)) % FOLDS
    inputs: Array = np.empty(targets.shape)
    for i in range(FOLDS):
        others = fold != i
        if others.any():
            inputs[~others] = _means(codes[others], targets[others], count)[codes[~others]]
    return inputs


def looks_like_id(name: str, values: Array) -> bool:
    """Return whether whole numbers are all different, and consecutive or named like ids."""
    if len(values) < MIN_ROWS or (values[:MIN_ROWS] != np.rint(values[:MIN_ROWS])).any():
        return False
    if (values != np.rint(values)).any() or len(pd.unique(values)) < len(values):
        return False
    return is_called_id(name) or float(np.ptp(values)) < 2 * len(values)
