"""How numbers, dates, times, units and blanks are written, and what they mean.

Parsers take a Series of stripped text and return floats, NaN for text in another form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BLANKS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "nat", "?"})
BOOLEANS = {"true": 1, "yes": 1, "t": 1, "y": 1, "false": 0, "no": 0, "f": 0, "n": 0}
LARGEST = float(np.finfo(np.float32).max)  # networks compute in float32
EXACT = 2**53  # whole numbers beyond it lose digits in float64

# what may separate groups of three digits: blanks may be of any width
GROUPS = {"": "", ",": ",", ".": r"\.", " ": "[ \u00a0\u2009\u202f]", "'": "['\u2019]"}
DECIMALS = (".", ",")
MINUS = "\u2212"
PLAIN = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?"  # as most numbers are written

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_YEAR, _MONTH, _DAY = r"(?P<y>[1-9][0-9]{3})", r"(?P<m>[0-9]{1,2})", r"(?P<d>[0-9]{1,2})"
_NAME = rf"(?P<name>(?i:{'|'.join(MONTHS)}))[a-zA-Z]*\.?"
_CLOCK = (
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}(?:\.[0-9]+)?))?"
    r"(?: ?(?P<half>[AaPp])[Mm])?"
)
_ZONE = r" ?(?:Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)?"  # dates keep their local time
DAY_FIRST, MONTH_FIRST = "DD/MM/YYYY", "MM/DD/YYYY"
DATES = {
    "YYYY-MM-DD": rf"{_YEAR}(?P<s>[-/]){_MONTH}(?P=s){_DAY}",
    "DD.MM.YYYY": rf"{_DAY}\.{_MONTH}\.{_YEAR}",
    DAY_FIRST: rf"{_DAY}(?P<s>[-/]){_MONTH}(?P=s){_YEAR}",
    MONTH_FIRST: rf"{_MONTH}(?P<s>[-/]){_DAY}(?P=s){_YEAR}",
    "DD Mon YYYY": rf"{_DAY}[ -]{_NAME}[ -]{_YEAR}",
    "Mon DD, YYYY": rf"{_NAME} {_DAY},? {_YEAR}",
}
SHORT_YEAR = r"[0-9]{1,2}([-/.])[0-9]{1,2}\1[0-9]{2}"  # 31/12/24 may be three dates
COMPACT_DATE = r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"

# a unit follows its number; a currency may precede it, but C100 is a code
UNIT = (
    r"(?P<before>[$\u20ac\u00a3\u00a5\u20b9]|[A-Z]{3} )?(?P<space> ?)(?P<number>[^A-Za-z$\u20ac"
    r"\u00a3\u00a5\u20b9%\u00b0]*[0-9])(?P<after> ?(?:%|[A-Za-z$\u20ac\u00a3\u00a5\u20b9"
    r"\u00b0\u00b5\u03bc][^0-9\s]{0,9}[\u00b2\u00b32-3]?))?"
)


@dataclass(frozen=True)
class Form:
    """How all numbers and dates of one file are written."""

    decimal: str = "."
    thousands: str = ""  # separates groups of three digits
    dayfirst: bool | None = None  # in dates such as 03/04/2021; None if there are none
    missing: tuple[str, ...] = ()  # texts that stand for a missing value, besides `BLANKS`

    @property
    def example(self) -> str:
        """A number in this form.

        >>> Form(",", ".").example
        '1.234,5'
        """
        return f"1{self.thousands}234{self.decimal}5"


def fits(text: pd.Series, pattern: str) -> Any:
    """Return which texts match a pattern as a whole, as a Boolean array."""
    return text.str.fullmatch(pattern).to_numpy(dtype=bool, na_value=False)


# how numbers may be written, likeliest first
FORMS = [
    Form(decimal, thousands)
    for thousands in ("", ",", ".", " ", "'")
    for decimal in DECIMALS
    if decimal != thousands
]


def number_pattern(form: Form) -> str:
    """Return the pattern of numbers; 007 is no number but a code."""
    whole, point = "(?:0|[1-9][0-9]*)", re.escape(form.decimal)
    if form.thousands:
        whole = rf"(?:0|[1-9][0-9]*|[1-9][0-9]{{0,2}}(?:{GROUPS[form.thousands]}[0-9]{{3}})+)"
    exponent = r"(?:[eE][+-]?[0-9]+)?"
    finite = rf"(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+){exponent}"
    return rf"[+\-{MINUS}]?(?:{finite}|(?i:inf(?:inity)?))"


def parse_numbers(text: pd.Series, form: Form) -> Floats:
    """Parse numbers in this form.

    >>> parse_numbers(pd.Series(["1.234,5", "950", "1.5"]), Form(",", "."))
    array([1234.5,  950. ,     nan])
    """
    if form.decimal != "." or not fits(text, PLAIN).all():
        matching = fits(text, number_pattern(form))
        text = text.where(matching, "nan").str.replace(MINUS, "-", regex=False)
        if form.thousands:
            text = text.str.replace(GROUPS[form.thousands], "", regex=True)
        if form.decimal != ".":
            text = text.str.replace(form.decimal, ".", regex=False)
    fast = getattr(text.dtype, "storage", "") == "pyarrow"  # parses ten times as many a second
    return np.asarray(text.astype("double[pyarrow]" if fast else float), np.float64)


def split_unit(text: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Return the numbers in texts, and the texts with # in their place.

    >>> numbers, units = split_unit(pd.Series(["12 kg", "7.5 kg"]))
    >>> list(numbers), list(units)
    (['12', '7.5'], ['# kg', '# kg'])
    """
    found = text.astype(object).str.extract(f"^{UNIT}$").fillna("")
    return found["number"], found["before"] + found["space"] + "#" + found["after"]


def parse_dates(text: pd.Series, name: str) -> Floats:
    """Parse dates with an optional time into days since 1970-01-01, in their local time."""
    found = text.astype(object).str.extract(rf"^{DATES[name]}(?:(?:[T ]| at ){_CLOCK}{_ZONE})?$")
    year, day = (_floats(found[part]) for part in "yd")
    if "name" in found:
        lower = found["name"].str.lower()
        month = _floats(lower.map({word: i for i, word in enumerate(MONTHS, 1)}))
    else:
        month = _floats(found["m"])
    seconds = _seconds(found)
    months = np.nan_to_num(12 * (year - 1970) + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (np.nan_to_num(day) - 1).astype(int)
    valid = (month >= 1) & (month <= 12) & (day >= 1) & (days.astype("datetime64[M]") == months)
    valid &= ~np.isnan(seconds) | found["hour"].isna().to_numpy()
    return np.where(valid, days.astype(np.float64) + np.nan_to_num(seconds) / 86400, np.nan)


def parse_times(text: pd.Series) -> Floats:
    """Parse times of day into hours.

    >>> parse_times(pd.Series(["14:30", "2:30 pm", "24:00"]))
    array([14.5, 14.5,  nan])
    """
    return _seconds(text.astype(object).str.extract(f"^{_CLOCK}$")) / 3600


def _seconds(found: pd.DataFrame) -> Floats:
    hour, minute = _floats(found["hour"]), _floats(found["minute"])
    second = _floats(found["second"].where(found["second"].notna(), 0))
    half = found["half"].str.lower()
    twelve = half.notna().to_numpy()
    valid = (minute < 60) & (second < 60) & np.where(twelve, (hour >= 1) & (hour <= 12), hour < 24)
    hour = np.where(twelve, hour % 12 + 12 * (half == "p").to_numpy(bool), hour)
    return np.where(valid, 3600 * hour + 60 * minute + second, np.nan)


def _floats(values: pd.Series) -> Floats:
    numbers: Floats = pd.to_numeric(values, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    return numbers


def days_of(times: pd.Series) -> Floats:
    """Return dates and times of a program as days since 1970-01-01, in their local time."""
    if isinstance(times.dtype, pd.DatetimeTZDtype):
        times = times.dt.tz_localize(None)
    elif times.dtype.kind != "M" or isinstance(times.dtype, pd.ArrowDtype):
        local = [cell.replace(tzinfo=None) if hasattr(cell, "tzinfo") else cell for cell in times]
        times = pd.to_datetime(pd.Series(local, dtype=object), errors="coerce")
    whole = (times.dt.as_unit("us") - pd.Timestamp(0).as_unit("us")).dt.total_seconds()
    days: Floats = whole.to_numpy(np.float64) / 86400
    return days
