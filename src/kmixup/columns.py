"""Encode the columns of a table as numbers.

Reading turns cells into values: floats for numbers, booleans and dates, text for categories,
and missing values for blanks. Fitting learns medians and categories from the training rows,
and encoding turns values into a network's inputs. Everything that is fitted is plain data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from shlex import quote
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kmixup._checks import CONTROLS

Array = NDArray[Any]
Rows = pd.DataFrame | Iterable[Mapping[str, Any]]  # a data frame, or rows by column name
Parser = Callable[[pd.Series], Array]  # text to values, missing where it has another form

BLANKS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?"})
BOOLEANS = {"true": 1, "yes": 1, "t": 1, "y": 1, "false": 0, "no": 0, "f": 0, "n": 0}
LARGEST = float(np.finfo(np.float32).max)  # networks compute in float32
MAX_CATEGORIES = 100  # only the most frequent categories get an input
MOSTLY = 0.9  # with this share of numbers, a column holds numbers and other text is a mistake
MIN_ROWS = 10  # with fewer training rows, distinct values are no sign of an id
ID_WORDS = frozenset({"id", "ids", "uuid", "guid", "key", "index", "idx", "no", "nr", "number"})

POINT, COMMA, THOUSANDS = "1234.5", "1.234,5", "1,234.5"
DAY_FIRST, MONTH_FIRST = "DD/MM/YYYY", "MM/DD/YYYY"
REPORT_HEAD = ("column", "read as", "becomes", "remarks")


@dataclass(frozen=True)
class Column:
    """A column: how its cells are read, and what was fitted to the training rows."""

    name: str
    kind: str = "number"  # a key of `KINDS`
    form: str = POINT  # how its numbers or dates are written; a key of `Kind.forms`
    categories: tuple[str, ...] = ()  # texts that have an input each
    fill: float | str = 0.0  # replaces a blank
    indicator: bool = False  # whether an additional input is 1 where the cell is blank
    used: bool = True  # whether the column is an input at all
    remarks: tuple[str, ...] = ()  # notes for the user

    @property
    def inputs(self) -> dict[str, bool]:
        """Names of the inputs that the column becomes, and whether they are always 0 or 1."""
        if not self.used:
            return {}
        kind = KINDS[self.kind]
        inputs = dict.fromkeys(kind.inputs(self), kind.binary)
        return inputs | {f"{self.name} blank": True} if self.indicator else inputs

    @property
    def is_plain(self) -> bool:
        """Whether the column holds ordinary numbers, with nothing to report."""
        return self == Column(self.name, fill=self.fill)

    def report(self) -> tuple[str, str, str, str]:
        """Return a row of a report, under the heads `REPORT_HEAD`."""
        count, kind = len(self.categories), KINDS[self.kind]
        read_as = self.kind if self.form in ("", POINT) else f"{self.kind} like {self.form}"
        if kind.is_text:
            read_as = f"category of {count}" if count else "text"
        becomes = f"{count} column{'' if count == 1 else 's'} of {kind.becomes}"
        if not count:
            becomes = kind.becomes
        if self.indicator:
            becomes += ", blank"
        return self.name, read_as, becomes if self.used else "left out", "; ".join(self.remarks)

    def read(self, cells: pd.Series) -> Array:
        """Return the values of cells, text or typed; ValueError names the first unreadable row."""
        kind = KINDS[self.kind]
        cells = cells.reset_index(drop=True)
        if isinstance(cells.dtype, pd.CategoricalDtype):
            cells = cells.astype(object)
        text = np.zeros(len(cells), bool)
        if _may_be_text(cells):
            text = cells.map(lambda cell: isinstance(cell, str)).to_numpy(dtype=bool)
        values = np.full(
            len(cells), None if kind.is_text else np.nan, object if kind.is_text else float
        )
        values[~text] = kind.convert(cells[~text])
        codes, found = pd.factorize(cells[text].astype(object).str.strip())
        distinct = pd.Series(found, dtype=object)
        values[text] = kind.forms[self.form](distinct.where(~_is_blank(distinct)))[codes]
        wrong = pd.isna(values)
        if not kind.is_text:
            wrong |= np.abs(values) > LARGEST
        wrong &= ~_is_blank(cells).to_numpy()
        if wrong.any():
            row = int(wrong.argmax())
            like = "" if self.form in ("", POINT) else f" like {self.form}"
            raise ValueError(
                f"the column {self.name!r} must hold {kind.noun}{like}, row {row + 1} has "
                f"{str(cells[row]).strip()!r}: correct it or leave it blank"
            )
        return values

    def fit(self, values: Array) -> Column:
        """Return the column fitted to the values of the training rows."""
        kind, filled = KINDS[self.kind], values[~pd.isna(values)]
        blanks = len(values) - len(filled)
        counts = pd.Series(filled).value_counts(sort=False)
        if not len(filled):
            return self.remarked("no value in the training rows", used=False)
        if kind.is_text and len(counts) == len(filled) >= MIN_ROWS:
            remark = f"all {len(counts):,} texts are different and say nothing about other rows"
            return self.remarked(remark, used=False)
        fill, words = kind.typical(filled)
        drop = f"--drop {quote(self.name)} leaves it out"
        remarks: list[str] = []
        categories: tuple[str, ...] = ()
        if blanks:
            remarks.append(f"{blanks:,} blanks, filled with {words}")
        elif len(counts) == 1:
            remarks.append(f"constant: {drop}")
        if self.kind == "number" and looks_like_id(self.name, filled):
            remarks.append(f"looks like an id: {drop}")
        if kind.is_text:
            kept = counts.sort_values(ascending=False, kind="stable")[:MAX_CATEGORIES]
            categories = tuple(sorted(kept.index))
            if len(counts) > len(kept):
                remarks.append(
                    f"the {len(kept)} most frequent of {len(counts):,}, others are 0 everywhere"
                )
        return self.remarked(*remarks, fill=fill, indicator=blanks > 0, categories=categories)

    def encode(self, values: Array) -> NDArray[np.float64]:
        """Return the inputs `(n, len(inputs))` for values `(n,)`."""
        blank = pd.isna(values)
        inputs = KINDS[self.kind].encode(self, np.where(blank, self.fill, values))
        return np.column_stack([inputs, blank]) if self.indicator else inputs

    def remarked(self, *remarks: str, **changes: Any) -> Column:
        """Return the column with further remarks, and other changes."""
        return replace(self, remarks=(*self.remarks, *remarks), **changes)


class Kind:
    """A kind of column, by default of numbers. To add one, subclass it and list it in `KINDS`."""

    noun: str  # what its cells must hold, for error messages
    becomes = "number"  # what its inputs are, for reports
    inferred: frozenset[str]  # results of `pandas.api.types.infer_dtype` that mean this kind
    forms: ClassVar[Mapping[str, Parser]]  # how its values are written as text, likeliest first
    binary = False  # whether its inputs are 0 or 1
    is_text = False  # whether its values are text, not floats

    def convert(self, cells: pd.Series) -> Array:
        """Return the values of cells that are not text."""
        if cells.dtype.kind in "mM":  # pandas would count the microseconds of times
            return np.full(len(cells), np.nan)
        numbers = pd.to_numeric(cells, errors="coerce")
        return np.asarray(numbers.to_numpy(np.float64, na_value=np.nan))

    def typical(self, filled: Array) -> tuple[Any, str]:
        """Return the value that replaces blanks, and what it is."""
        return float(np.median(filled)), "the median"

    def inputs(self, column: Column) -> tuple[str, ...]:
        """Return the names of a column's inputs, without the indicator of blanks."""
        return (column.name,)

    def encode(self, column: Column, values: Array) -> NDArray[np.float64]:
        """Return the inputs for values without blanks."""
        return values.astype(np.float64)[:, None]


def _number(pattern: str, characters: dict[str, int | str | None]) -> Parser:
    """Parse numbers of this pattern, once these characters are replaced or deleted."""

    def parse(text: pd.Series) -> Array:
        matching = text.where(text.str.fullmatch(pattern, na=False))
        return matching.str.translate(str.maketrans(characters)).to_numpy(np.float64)

    return parse


class Number(Kind):
    """Numbers, with a decimal point or comma."""

    noun = "finite numbers"
    inferred = frozenset({"integer", "floating", "mixed-integer-float", "decimal", "empty"})
    forms: ClassVar[Mapping[str, Parser]] = {
        POINT: _number(r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:inf(inity)?))", {}),
        COMMA: _number(
            r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?", {".": None, ",": "."}
        ),
        THOUSANDS: _number(r"[+-]?(\d+|\d{1,3}(,\d{3})+)(\.\d+)?", {",": None}),
    }


class Boolean(Kind):
    """Yes or no, as 1 or 0."""

    noun = "yes or no"
    becomes = "0 or 1"
    inferred = frozenset({"boolean"})
    forms: ClassVar[Mapping[str, Parser]] = {
        "": lambda text: text.str.lower().map(BOOLEANS).to_numpy(np.float64)
    }
    binary = True

    def convert(self, cells: pd.Series) -> Array:
        numbers = super().convert(cells)
        return np.where(np.isin(numbers, (0, 1)), numbers, np.nan)

    def typical(self, filled: Array) -> tuple[float, str]:
        mostly = bool(filled.mean() > 0.5)
        return float(mostly), "yes" if mostly else "no"


def _date(pattern: str) -> Parser:
    """Parse dates with an optional time and zone into days since 1970-01-01 UTC."""

    def parse(text: pd.Series) -> Array:
        found = text.str.extract(f"^{pattern}(?P<time>[T ].*)?$")
        day = found["y"] + "-" + found["m"].str.zfill(2) + "-" + found["d"].str.zfill(2)
        iso = day + found["time"].fillna("")
        return _days(pd.to_datetime(iso, format="ISO8601", utc=True, errors="coerce"))

    return parse


def _days(times: pd.Series) -> Array:
    epoch = pd.Timestamp("1970-01-01", tz="UTC").as_unit("us")
    return np.asarray((times.dt.as_unit("us") - epoch).dt.total_seconds() / 86400, np.float64)


class Date(Kind):
    """Dates, as days since 1970-01-01, month and weekday (Monday is 0)."""

    noun = "dates"
    becomes = "days, month, weekday"
    inferred = frozenset({"datetime64", "datetime", "date"})
    forms: ClassVar[Mapping[str, Parser]] = {
        "YYYY-MM-DD": _date(r"(?P<y>[1-9]\d{3})(?P<sep>[-/])(?P<m>\d{1,2})(?P=sep)(?P<d>\d{1,2})"),
        "DD.MM.YYYY": _date(r"(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>[1-9]\d{3})"),
        DAY_FIRST: _date(r"(?P<d>\d{1,2})(?P<sep>[-/])(?P<m>\d{1,2})(?P=sep)(?P<y>[1-9]\d{3})"),
        MONTH_FIRST: _date(r"(?P<m>\d{1,2})(?P<sep>[-/])(?P<d>\d{1,2})(?P=sep)(?P<y>[1-9]\d{3})"),
    }

    def convert(self, cells: pd.Series) -> Array:
        dates = cells.where(cells.map(lambda cell: hasattr(cell, "isoformat")))
        return _days(pd.to_datetime(dates.astype(object), utc=True, errors="coerce"))

    def inputs(self, column: Column) -> tuple[str, ...]:
        return (column.name, f"{column.name} month", f"{column.name} weekday")

    def encode(self, column: Column, values: Array) -> NDArray[np.float64]:
        days = values.astype(np.float64)
        dates = pd.DatetimeIndex(np.floor(days).astype("datetime64[D]").astype("datetime64[s]"))
        return np.column_stack([days, dates.month, dates.day_of_week])


class Category(Kind):
    """Any other text, one-hot over the training rows' most frequent texts."""

    noun = "text"
    becomes = "0 and 1"
    inferred = frozenset({"categorical"})
    forms: ClassVar[Mapping[str, Parser]] = {"": lambda text: text.to_numpy(object)}
    binary = True
    is_text = True

    def convert(self, cells: pd.Series) -> Array:
        return np.array([None if pd.isna(cell) else label(cell) for cell in cells], object)

    def typical(self, filled: Array) -> tuple[str, str]:
        most = str(pd.Series(filled).value_counts(sort=False).idxmax())
        return most, f"{most!r}, the most frequent"

    def inputs(self, column: Column) -> tuple[str, ...]:
        return tuple(f"{column.name}={text}" for text in column.categories)

    def encode(self, column: Column, values: Array) -> NDArray[np.float64]:
        positions = pd.Index(column.categories, dtype=object).get_indexer(pd.Index(values))
        return np.asarray(positions[:, None] == np.arange(len(column.categories)), np.float64)


# Kinds are tried in this order: a column is of the first kind that all of its cells have.
KINDS: dict[str, Kind] = {
    "number": Number(),
    "boolean": Boolean(),
    "date": Date(),
    "category": Category(),
}


@dataclass(frozen=True)
class TableEncoder:
    """Encoder of a table's columns, fitted on training rows.

    >>> frame = pd.DataFrame({"age": [41.0, 35.0, None], "city": ["Bern", "Dover", "Bern"]})
    >>> encoder = TableEncoder.infer(frame)
    >>> encoder = encoder.fit(encoder.read(frame))
    >>> encoder.names
    ('age', 'age blank', 'city=Bern', 'city=Dover')
    >>> encoder.transform([{"age": 28, "city": "Zug"}])
    array([[28.,  0.,  0.,  0.]])
    """

    columns: tuple[Column, ...]  # one for each column of the table, in its order

    @classmethod
    def infer(cls, frame: pd.DataFrame, *, delimiter: str = ",") -> TableEncoder:
        """Infer the kind of every column, in a file with this `delimiter`; fit nothing yet."""
        return cls(tuple(infer(frame[name], delimiter=delimiter) for name in frame.columns))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(name for column in self.columns for name in column.inputs)

    @property
    def binary(self) -> tuple[bool, ...]:
        """Which inputs are 0 or 1 by construction, and are not to be scaled."""
        return tuple(flag for column in self.columns for flag in column.inputs.values())

    def read(self, rows: Rows) -> pd.DataFrame:
        """Return the values of a data frame or of rows by column name; ignore other columns."""
        frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
        used = [column for column in self.columns if column.used]
        if missing := [column.name for column in used if column.name not in frame]:
            raise ValueError(
                f"the table must have the columns of the training rows, lacks {', '.join(missing)}"
            )
        values = {column.name: column.read(frame[column.name]) for column in used}
        return pd.DataFrame(values, index=range(len(frame)))

    def fit(self, values: pd.DataFrame) -> TableEncoder:
        """Return the encoder fitted to the values of training rows."""
        fitted = TableEncoder(tuple(c.fit(values[c.name].to_numpy()) for c in self.columns))
        if not fitted.names:
            raise ValueError(
                "the table must have a column to learn from, all are empty or have only "
                "different texts"
            )
        return fitted

    def encode(self, values: pd.DataFrame) -> NDArray[np.float64]:
        """Return the inputs `(n, len(names))` for values."""
        inputs = [c.encode(values[c.name].to_numpy()) for c in self.columns if c.used]
        return np.concatenate(inputs, axis=1)

    def transform(self, rows: Rows) -> NDArray[np.float64]:
        """Return the inputs for new rows, text or typed."""
        return self.encode(self.read(rows))

    def unseen(self, values: pd.DataFrame) -> dict[str, int]:
        """Count rows with a category that has no input, by column."""
        counts = {}
        for column in self.columns:
            if column.used and column.categories:
                unseen = ~values[column.name].dropna().isin(column.categories)
                if unseen.any():
                    counts[column.name] = int(unseen.sum())
        return counts

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, fit for JSON."""
        return {"columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> TableEncoder:
        """Return the encoder that `to_dict` wrote."""
        columns = [
            Column(**column | {name: tuple(column[name]) for name in ("categories", "remarks")})
            for column in plain["columns"]
        ]
        return cls(tuple(columns))


def infer(cells: pd.Series, *, delimiter: str = ",") -> Column:
    """Infer the kind of a column, and the form of its text, from all of its cells.

    Between semicolons a lone comma is more likely to be a decimal comma, elsewhere to separate
    thousands.
    """
    name, found = str(cells.name), pd.api.types.infer_dtype(cells, skipna=True)
    for kind_name, kind in KINDS.items():
        if found in kind.inferred:
            return Column(name, kind_name, next(iter(kind.forms)))
    counts = cells[~_is_blank(cells)].map(label).str.strip().value_counts()
    text = pd.Series(counts.index, dtype=object)
    unlikely = THOUSANDS if delimiter == ";" else COMMA
    forms = sorted(
        ((kind, form) for kind in KINDS for form in KINDS[kind].forms),
        key=lambda pair: pair[1] == unlikely or pair[0] == "category",
    )
    read = {(kind, form): ~pd.isna(KINDS[kind].forms[form](text)) for kind, form in forms}
    fitting = [key for key, readable in read.items() if readable.all()]
    if [form for _, form in fitting[:2]] == [DAY_FIRST, MONTH_FIRST]:
        remark = "the day is taken to come first, not the month: write 2024-12-31 to be sure"
        return Column(name, *fitting[0], remarks=(remark,))
    if fitting[0][0] == "category":
        rows = {key: counts[readable].sum() for key, readable in read.items() if key[0] == "number"}
        best = max(rows, key=lambda key: rows[key])
        if rows[best] >= MOSTLY * counts.sum():
            return Column(name, *best)
    return Column(name, *fitting[0])


def looks_like_id(name: str, values: Array) -> bool:
    """Return whether whole numbers are all different, and consecutive or named like ids."""
    if len(values) < MIN_ROWS or (values != np.rint(values)).any():
        return False
    if len(np.unique(values)) < len(values):
        return False
    return is_called_id(name) or float(np.ptp(values)) < 2 * len(values)


def is_called_id(name: str) -> bool:
    """Return whether a column is called like an id: customerId, but not width."""
    words = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
    return bool(ID_WORDS.intersection(words))


def label(value: Any) -> str:
    """Return a cell as text; whole numbers have no decimals, whatever their type."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).translate(CONTROLS).strip()


def _may_be_text(cells: pd.Series) -> bool:
    return bool(pd.api.types.is_string_dtype(cells.dtype) or cells.dtype == object)


def _is_blank(cells: pd.Series) -> pd.Series:
    if _may_be_text(cells):
        return cells.isna() | cells.astype(object).astype(str).str.strip().str.lower().isin(BLANKS)
    return cells.isna()
