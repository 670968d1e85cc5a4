"""Columns of a table: how the text of their cells becomes numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["number", "boolean", "date", "category"]

BLANKS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?"})
TRUE, FALSE = frozenset({"true", "yes", "t", "y"}), frozenset({"false", "no", "f", "n"})
UNKNOWN = -1.0  # the number of a category that is not in the list
# A column with so many numbers among its values is one of numbers: other cells are mistakes.
MOSTLY = 0.9

POINT, COMMA, THOUSANDS = "1234.5", "1.234,5", "1,234.5"
ISO, DOTS, DAY_FIRST, MONTH_FIRST = "YYYY-MM-DD", "DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY"

_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?(\d+|\d{1,3}(,\d{3})+)(\.\d+)?")
_DATE = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})([T ].*)?")
_EPOCH = datetime(1970, 1, 1)
_LARGEST = 3.4028235e38  # of float32


def is_blank(cell: str) -> bool:
    """
    >>> is_blank(""), is_blank("NaN"), is_blank("0")
    (True, True, False)
    """
    return cell.lower() in BLANKS


@dataclass(frozen=True)
class Column:
    """How the cells of a column become numbers.

    Attributes:
        name: as in the header.
        kind: "number", "boolean" (0 or 1), "date" (days since 1970-01-01) or "category"
            (a position in `categories`).
        form: how numbers or dates are written, e.g. "1.234,5" or "DD/MM/YYYY"; else empty.
        categories: the texts of a category.
    """

    name: str
    kind: Kind = "number"
    form: str = POINT
    categories: tuple[str, ...] = ()

    def number(self, cell: str) -> float:
        """The number of a cell, NaN for a blank one; ValueError where it is none."""
        if self.kind == "category":
            return float("nan") if is_blank(cell) else self._positions.get(cell, UNKNOWN)
        return float("nan") if is_blank(cell) else FORMS[self.kind, self.form](cell)

    def numbers(self, cells: Sequence[str], first: int = 1) -> NDArray[np.float32]:
        """The numbers `(n,)` of cells in rows that count from `first`."""
        if self.kind == "number" and self.form == POINT:
            values = plain_numbers(cells)
            if values is not None and not np.isinf(values).any():
                return values
        known: dict[str, float] = {}  # cells repeat
        for i, cell in enumerate(cells):
            try:
                if cell not in known:
                    known[cell] = self.number(cell)
            except ValueError:
                like = "" if self.form in ("", POINT) else f" like {self.form}"
                raise ValueError(
                    f"the column {self.name!r} must hold {_NOUNS[self.kind]}{like}, row "
                    f"{first + i} has {cell!r}: correct it or leave it blank"
                ) from None
        return np.array([known[cell] for cell in cells], np.float32)

    @cached_property
    def _positions(self) -> dict[str, float]:
        return {text: float(i) for i, text in enumerate(self.categories)}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, fit for JSON."""
        return asdict(self) | {"categories": list(self.categories)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Column:
        """The column that `to_dict` wrote."""
        values = {field.name: plain[field.name] for field in fields(cls)}
        return cls(**values | {"categories": tuple(plain["categories"])})


def plain_numbers(cells: Sequence[str] | Sequence[Sequence[str]]) -> NDArray[np.float32] | None:
    """Cells as numbers of float32, or None where one of them is none."""
    try:
        with np.errstate(over="ignore"):
            return np.array(cells, dtype=np.float32)
    except ValueError:
        return None


def _point(cell: str) -> float:
    return _finite(float(cell))


def _comma(cell: str) -> float:
    if not _COMMA.fullmatch(cell):
        raise ValueError
    return _finite(float(cell.replace(".", "").replace(",", ".")))


def _thousands(cell: str) -> float:
    if not _THOUSANDS.fullmatch(cell):
        raise ValueError
    return _finite(float(cell.replace(",", "")))


def _finite(value: float) -> float:
    if not abs(value) <= _LARGEST:
        raise ValueError
    return value


def _boolean(cell: str) -> float:
    word = cell.lower()
    if word not in TRUE | FALSE:
        raise ValueError
    return float(word in TRUE)


def _date(order: str, separators: str) -> Callable[[str], float]:
    """Days since 1970-01-01 of dates whose year, month and day stand in an `order`."""

    def days(cell: str) -> float:
        match = _DATE.fullmatch(cell)
        if match is None or match[2] not in separators:
            raise ValueError
        parts = (match[1], match[3], match[4])
        year, month, day = (int(parts[order.index(letter)]) for letter in "ymd")
        if year < 1000:
            raise ValueError
        moment = datetime(year, month, day)
        if match[5]:
            clock = datetime.fromisoformat(f"{year:04d}-{month:02d}-{day:02d}{match[5]}")
            moment = clock.astimezone(UTC).replace(tzinfo=None) if clock.tzinfo else clock
        return (moment - _EPOCH).total_seconds() / 86400

    return days


FORMS: dict[tuple[Kind, str], Callable[[str], float]] = {
    ("number", POINT): _point,
    ("number", COMMA): _comma,
    ("number", THOUSANDS): _thousands,
    ("boolean", ""): _boolean,
    ("date", ISO): _date("ymd", "-/"),
    ("date", DOTS): _date("dmy", "."),
    ("date", DAY_FIRST): _date("dmy", "/-"),
    ("date", MONTH_FIRST): _date("mdy", "/-"),
}
_NOUNS = {"number": "finite numbers", "boolean": "yes or no", "date": "dates"}
# Forms that a file between such delimiters may have, the likeliest first: the first one that
# all cells of a column have is taken. A comma between commas, in quotes, groups thousands
# where it can; between semicolons it is a decimal comma where it can be.
LIKELY: dict[str, list[tuple[Kind, str]]] = {
    ",": sorted(FORMS, key=lambda key: key[1] == COMMA),
    ";": sorted(FORMS, key=lambda key: key[1] == THOUSANDS),
    "\t": sorted(FORMS, key=lambda key: key[1] == COMMA),
}


class Guess:
    """Guesses the kind of a column from all of its cells and from the delimiter of the table.

    Attributes:
        name: of the column.
        values: how many cells are not blank.
        ambiguous: whether its dates may as well be month first.
    """

    def __init__(self, name: str, delimiter: str = ",") -> None:
        self.name = name
        self.values = 0
        self._numeric = 0  # values that are numbers in some form, infinite ones too
        self._fitting = list(LIKELY[delimiter])
        # how many values each form of numbers reads, the likeliest form first
        self._readable = {key: 0 for key in self._fitting if key[0] == "number"}

    def see(self, cells: Iterable[str]) -> None:
        """Take more cells into account."""
        # cells repeat: each text is looked at once
        filled = {cell: times for cell, times in Counter(cells).items() if not is_blank(cell)}
        values = sum(filled.values())
        self.values += values
        if not filled:
            return
        if plain_numbers(list(filled)) is not None:
            self._numeric += values
            self._readable = {key: n + values for key, n in self._readable.items()}
            # infinite ones are refused when they are read
            self._fitting = [key for key in self._fitting if key[0] == "number"]
            return
        for cell, times in filled.items():
            forms = [key for key in self._readable if _reads(key, cell)]
            self._numeric += times * bool(forms)
            for key in forms:
                self._readable[key] += times
        self._fitting = [key for key in self._fitting if all(_reads(key, cell) for cell in filled)]

    @property
    def ambiguous(self) -> bool:
        return [form for _, form in self._fitting] == [DAY_FIRST, MONTH_FIRST]

    def column(self) -> Column:
        """The column; a category has no texts as yet."""
        if self._fitting:
            return Column(self.name, *self._fitting[0])
        if self._numeric >= MOSTLY * self.values:
            return Column(self.name, *max(self._readable, key=self._readable.__getitem__))
        return Column(self.name, "category", "")


def _reads(key: tuple[Kind, str], cell: str) -> bool:
    try:
        FORMS[key](cell)
    except ValueError:
        return False
    return True
