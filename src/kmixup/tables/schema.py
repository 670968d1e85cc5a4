"""The schema of a table: how its cells are read, decided once for the whole file.

One form of numbers and one order of day and month hold for all columns. Both are inferred from
evidence in all columns together, or given. What stays ambiguous raises, and columns that look
like numbers or dates in another form are named with the option that reads them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kmixup._checks import CONTROLS, SettingError
from kmixup.tables.forms import (
    BLANKS,
    BOOLEANS,
    COMPACT_DATE,
    DATES,
    DAY_FIRST,
    DECIMALS,
    EXACT,
    FORMS,
    GROUPS,
    LARGEST,
    MONTH_FIRST,
    PLAIN,
    SHORT_YEAR,
    Form,
    days_of,
    fits,
    number_pattern,
    parse_dates,
    parse_numbers,
    parse_times,
    split_unit,
)

FORMAT = 1
NAME = "schema.json"
MOSTLY = 0.9  # with this fraction of numbers, a column holds numbers and other text is a mistake
KINDS = {  # and what their cells must hold
    "number": "finite numbers",
    "boolean": "yes or no",
    "date": "dates",
    "time": "times of day",
    "category": "text",
    "text": "text",
    "ignore": "anything",
}
TEXTS = ("category", "text")  # kinds whose values are text; the values of others are floats
MANY_WORDS = 3  # a column with so many words in most cells holds texts, not categories
MIN_ROWS = 10  # with fewer rows, distinct texts are no sign of an id
UNIQUE = 0.5  # above this fraction of distinct texts, categories say little about other rows
HEAD = 1000  # cells that are tried first
SEPARATED = r"[-+\u2212]?[0-9.,' \u00a0\u2009\u202f\u2019]+"  # numbers in any form
DIGITS = r"[-+(<>~\u2212]{0,2}[0-9.][-0-9.,:/() '\u2019%]*"  # no letters: not a code such as C100


@dataclass(frozen=True)
class Column:
    """How the cells of one column are read.

    `form` is a key of `DATES` for dates, and for numbers with a unit the text with # for the
    number, such as "# kg".
    """

    name: str
    kind: str = "number"
    form: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.form}" if self.form else self.kind


@dataclass(frozen=True)
class Schema:
    """How the cells of a table are read.

    >>> frame = pd.DataFrame({"size": ["1.234", "950"], "price": ["3,5", "2"]})
    >>> schema, notes = Schema.infer(frame)
    >>> schema.form.example
    '1.234,5'
    >>> schema.read(pd.DataFrame({"price": ["7,25"], "size": ["12.500"]}))["size"].tolist()
    [12500.0]
    """

    columns: tuple[Column, ...]
    form: Form = field(default_factory=Form)
    target: str | None = None

    @classmethod
    def infer(
        cls, frame: pd.DataFrame, *, given: Form | None = None, delimiter: str = ","
    ) -> tuple[Schema, list[str]]:
        """Infer the schema of a table of text or typed cells; also return notes for the user.

        Args:
            frame: the table.
            given: the forms that the user states; `decimal`, `thousands` and `dayfirst` are
                inferred if they are None.
            delimiter: between the cells of the file.
        """
        stated = given or Form(None, None)  # type: ignore[arg-type]
        columns = [_Cells.of(frame[name], stated.missing) for name in frame.columns]
        notes: list[str] = []
        form = replace(_number_form(columns, stated, delimiter, notes), missing=stated.missing)
        form = replace(form, dayfirst=_day_first(columns, stated.dayfirst))
        if (form.decimal, form.thousands) != (".", ""):
            notes.append(f"numbers are read like {form.example}")
        inferred = tuple(cells.column(form) for cells in columns)
        suspects = [
            f"{column.name!r} ({reason})"
            for column, cells in zip(inferred, columns, strict=True)
            if (reason := cells.suspicion(column, form))
        ]
        if suspects:
            notes.append(f"columns that look like another kind: {', '.join(suspects)}")
        return cls(inferred, form), notes

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    @property
    def inputs(self) -> tuple[Column, ...]:
        """The columns that a network may learn from."""
        return tuple(c for c in self.columns if c.kind != "ignore" and c.name != self.target)

    def read(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the values of all inputs: floats, or text as categorical; others are left out."""
        if missing := [column.name for column in self.inputs if column.name not in frame]:
            raise ValueError(
                f"the table must have the columns of the training rows, lacks {', '.join(missing)}"
            )
        values = {c.name: read_column(frame[c.name], c, self.form) for c in self.inputs}
        return pd.DataFrame(values, index=range(len(frame)))

    def to_json(self) -> str:
        """Return the text of a `schema.json`."""
        columns = {column.name: str(column) for column in self.columns}
        plain = {"format": FORMAT, **vars(self.form), "target": self.target, "columns": columns}
        return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str, source: str = NAME) -> Schema:
        """Return the schema that `to_json` wrote or a user has edited; check every entry."""
        try:
            plain = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{source} must hold JSON, could not be read: {error}") from error
        if not isinstance(plain, dict) or plain.keys() != ENTRIES.keys():
            raise ValueError(f"{source} must have the entries {', '.join(ENTRIES)}: restore them")
        for name, kind in ENTRIES.items():
            if not isinstance(plain[name], kind):
                raise ValueError(f"{source} has {plain[name]!r} as {name}: correct it")
        if plain["format"] != FORMAT:
            raise ValueError(f"{source} must be of format {FORMAT}, is of {plain['format']}")
        if not all(isinstance(text, str) for text in plain["missing"]):
            raise ValueError(f"{source} must list texts in missing, has {plain['missing']}")
        form = check_form(*(plain[name] for name in vars(Form())))
        columns = tuple(_parsed(name, word, source) for name, word in plain["columns"].items())
        return cls(columns, form, plain["target"])


ENTRIES: dict[str, Any] = {
    "format": int, "decimal": str, "thousands": str, "dayfirst": bool | None, "missing": list,
    "target": str | None, "columns": dict,
}  # fmt: skip


def check_form(
    decimal: str | None, thousands: str | None, dayfirst: bool | None, missing: Iterable[str] = ()
) -> Form:
    """Return a form; raise `SettingError` if no file can be written in it."""
    if decimal not in (None, *DECIMALS):
        raise SettingError("decimal", f"must be . or , got {decimal!r}")
    if thousands not in (None, *GROUPS) or (thousands and thousands == decimal):
        raise SettingError(
            "thousands",
            "must be a comma, point, space or apostrophe, or nothing, and not the decimal "
            f"separator, got {thousands!r}",
        )
    return Form(decimal, thousands, dayfirst, tuple(missing))  # type: ignore[arg-type]


def _parsed(name: str, word: object, source: str) -> Column:
    kind, _, form = str(word).partition(": ")
    allowed = {"date": form in DATES, "number": not form or form.count("#") == 1}
    if not isinstance(word, str) or kind not in KINDS or not allowed.get(kind, not form):
        raise ValueError(
            f"{source} must have one of {', '.join(KINDS)} for the column {name!r}, a date with "
            f"its form, such as date: YYYY-MM-DD, has {word!r}"
        )
    return Column(name, kind, form)


# reading


def read_column(cells: pd.Series, column: Column, form: Form) -> Any:
    """Return a column's values; ValueError names the first row with another kind of cell."""
    cells = cells.reset_index(drop=True)
    if column.kind in TEXTS:
        return _read_texts(cells, form)
    is_text = _text_mask(cells)
    values: NDArray[Any] = np.full(len(cells), np.nan)
    if is_text.any():
        text = cells if is_text.all() else cells[is_text].astype("str")
        values[is_text] = _parse(text, column, form)
    if not is_text.all():
        values[~is_text] = _convert(cells[~is_text], column.kind)
    if form.missing:
        values[cells.map(label).isin(form.missing).to_numpy()] = np.nan
    _check_values(values, cells, column, form)
    if form.missing and column.kind == "number":  # -999 may be written as -999,0 or -999 kg
        stated = pd.Series(form.missing, dtype="str")
        ours, plain = (parse_numbers(stated, each) for each in (form, Form()))
        values[np.isin(values, np.where(np.isnan(ours), plain, ours))] = np.nan
    return values


def _check_values(values: NDArray[Any], cells: pd.Series, column: Column, form: Form) -> None:
    """Raise if a cell has no finite value and is not blank."""
    wrong = ~(np.abs(values) <= LARGEST)
    if wrong.any():
        rest = cells[wrong].astype(object)
        wrong[wrong] = [not (pd.isna(c) or _is_blank(label(c), form.missing)) for c in rest]
    if wrong.any():
        row = int(wrong.argmax())
        noun, like = KINDS[column.kind], column.form
        if column.kind == "number" and (form.decimal, form.thousands) != (".", ""):
            like = column.form.replace("#", form.example) or form.example
        raise ValueError(
            f"the column {column.name!r} must hold {noun}{like and f' like {like}'}, row "
            f"{row + 1} has {str(cells[row]).strip()!r}: correct it or leave it blank"
        )


def _parse(text: pd.Series, column: Column, form: Form) -> NDArray[np.float64]:
    if column.kind == "number" and not column.form:
        values = parse_numbers(text, form)
        if not (bad := np.isnan(values)).any():
            return values
        values = values.copy()  # pyarrow's arrays cannot be written to
        values[bad] = parse_numbers(text[bad].str.strip(), form)
        return values
    codes, found = pd.factorize(text.str.strip())  # few are distinct
    distinct = pd.Series(found, dtype="str")
    if column.kind == "number":
        numbers, units = split_unit(distinct)
        same = (units.str.replace(" ", "") == column.form.replace(" ", "")).to_numpy()
        values = np.where(same, parse_numbers(numbers.astype("str"), form), np.nan)
    elif column.kind == "date":
        values = parse_dates(distinct, column.form)
    elif column.kind == "time":
        values = parse_times(distinct)
    else:
        values = np.asarray(distinct.str.lower().map(BOOLEANS), np.float64)
    return np.asarray(values[codes])


def _convert(cells: pd.Series, kind: str) -> NDArray[np.float64]:
    """Return the values of typed cells."""
    dates = cells.dtype.kind in "mM" or isinstance(cells.dtype, pd.DatetimeTZDtype)
    if kind == "date":
        if not dates:
            cells = cells.astype(object).where(cells.map(lambda cell: hasattr(cell, "isoformat")))
        return days_of(cells) if dates or cells.notna().any() else np.full(len(cells), np.nan)
    if kind == "time":
        return np.array([_hours(cell) for cell in cells], np.float64)
    if dates:  # pandas would count the microseconds
        return np.full(len(cells), np.nan)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(object)
    if cells.dtype == object:  # pandas raises on whole numbers beyond float64
        cells = cells.where(~cells.map(lambda cell: isinstance(cell, int) and cell > LARGEST))
    numbers = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    if kind == "boolean":
        numbers = np.where(np.isin(numbers, (0, 1)), numbers, np.nan)
    return np.asarray(numbers)


def _hours(cell: Any) -> float:
    if not hasattr(cell, "hour"):
        return np.nan
    return float(cell.hour + cell.minute / 60 + cell.second / 3600)


def _read_texts(cells: pd.Series, form: Form) -> pd.Categorical:
    codes, found = pd.factorize(cells)  # NA has the code -1
    words = [None if _is_blank(word, form.missing) else word for word in map(label, found)]
    merged, distinct = pd.factorize(np.array(words, object))  # " x" and "x" are one text
    codes = np.where(codes < 0, -1, merged[codes] if len(merged) else -1)
    return pd.Categorical.from_codes(codes, categories=pd.Index(distinct, dtype=object))


def label(value: Any) -> str:
    """Return a cell as text; whole numbers have no decimals, whatever their type."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).translate(CONTROLS).strip()


def _is_blank(text: str, missing: Sequence[str]) -> bool:
    return text.lower() in BLANKS or text in missing


def _text_mask(cells: pd.Series) -> NDArray[np.bool_]:
    if pd.api.types.is_string_dtype(cells.dtype) and cells.dtype != object:
        return np.ones(len(cells), bool) if not cells.hasnans else cells.notna().to_numpy()
    if cells.dtype == object or isinstance(cells.dtype, pd.CategoricalDtype):
        return cells.map(lambda cell: isinstance(cell, str)).to_numpy(dtype=bool)
    return np.zeros(len(cells), bool)


# inference


TYPED = {
    "integer": "number", "floating": "number", "mixed-integer-float": "number",
    "decimal": "number", "boolean": "boolean", "datetime64": "date", "datetime": "date",
    "date": "date", "time": "time", "categorical": "category", "empty": "number",
}  # fmt: skip


@dataclass
class _Cells:
    """What the cells of a column look like: their texts, and the kind of those that are typed."""

    name: str
    text: pd.Series  # stripped and not blank; distinct unless all are plain numbers
    counts: NDArray[Any]  # rows of each text
    typed: str  # kind of the cells that are not text
    rows: int  # that are not blank
    plain: bool  # whether all cells are numbers without separators but a decimal point
    forms: set[Form] = field(default_factory=set)

    @classmethod
    def of(cls, cells: pd.Series, missing: Sequence[str]) -> _Cells:
        name, typed = str(cells.name), isinstance(cells.dtype, pd.CategoricalDtype)
        is_text = np.zeros(len(cells), bool) if typed else _text_mask(cells)
        text, others = cells[is_text].astype("str"), cells[~is_text].dropna()
        if is_text.all() and fits(text.head(HEAD), PLAIN).all() and fits(text, PLAIN).all():
            return cls(name, text, np.ones(len(text), int), "number", len(text), plain=True)
        type_name = pd.api.types.infer_dtype(others)
        if type_name not in TYPED and not len(text):
            raise ValueError(f"the column {name!r} holds {type_name}: leave it out (--drop)")
        if type_name == "integer" and max(others.max(), -int(others.min())) > EXACT:
            return cls.of(cells.dropna().astype("str"), missing)  # as numbers they lose digits
        codes, found = pd.factorize(text)
        whole = pd.Series(found, dtype="str").str.strip()
        counts = pd.Series(np.bincount(codes)).groupby(whole.to_numpy(object), sort=False).sum()
        counts = counts[[not _is_blank(word, missing) for word in counts.index]]
        distinct, rows = pd.Series(counts.index, dtype="str"), int(counts.sum()) + len(others)
        kind = TYPED.get(type_name, "category")
        return cls(name, distinct, counts.to_numpy(), kind, rows, plain=False)

    def fraction(self, matches: NDArray[np.bool_], kind: str = "") -> float:
        """Return the fraction of rows whose text matches, or whose cell is typed of a kind."""
        typed = self.rows - self.counts.sum() if self.typed == kind else 0
        return float((self.counts[matches].sum() + typed) / max(1, self.rows))

    def mostly(self, matches: NDArray[np.bool_], kind: str = "") -> bool:
        return self.rows > 0 and self.fraction(matches, kind) >= MOSTLY

    def matching(self, pattern: str) -> bool:
        """Return whether most texts match; a few cells decide for most columns."""
        return bool(len(self.text)) and (
            fits(self.text.head(HEAD), pattern).mean() > 0.5
            and self.mostly(fits(self.text, pattern))
        )

    def column(self, form: Form) -> Column:
        """Return how the column is read in a file of this form."""
        if not len(self.text):
            form_of_text = "YYYY-MM-DD" if self.typed == "date" else ""
            return Column(self.name, self.typed if self.rows else "ignore", form_of_text)
        return self.words() if self.is_code else self.parsed(form)

    def parsed(self, form: Form) -> Column:
        """Return a column of the first kind that most texts have."""
        if self.plain and form.decimal == ".":
            return Column(self.name)
        text = self.text
        lower = text.str.lower()
        if self.fraction(lower.isin(list(BOOLEANS)).to_numpy(), "boolean") == 1:
            return Column(self.name, "boolean")
        if self.mostly(fits(text, number_pattern(form)), "number"):
            return Column(self.name)
        if self.mostly(~np.isnan(parse_times(text)), "time"):
            return Column(self.name, "time")
        excluded = MONTH_FIRST if form.dayfirst else DAY_FIRST
        for date in (name for name in DATES if name != excluded):
            if self.mostly(~np.isnan(parse_dates(text, date)), "date"):
                return Column(self.name, "date", date)
        numbers, units = split_unit(text)
        parsed = ~np.isnan(parse_numbers(numbers.astype("str"), form))
        if self.mostly(parsed) and units[parsed].str.replace(" ", "").nunique() == 1:
            return Column(self.name, "number", str(units[parsed].mode()[0]))
        return self.words()

    @cached_property
    def is_code(self) -> bool:
        """Whether whole numbers have leading zeros or more digits than a float keeps."""
        if self.plain and self.text.str.len().max() < 16:
            return False
        if not self.matching("-?[0-9]+"):
            return False
        long = fits(self.text, "-?[1-9][0-9]{15,}")
        beyond = any(abs(int(text)) > EXACT for text in self.text[long])
        return beyond or bool(fits(self.text, "0[0-9]+").any())

    def words(self) -> Column:
        """Return a column of categories, texts of several words, or ids, which say nothing."""
        words = np.average(self.text.str.count(r"\S+").to_numpy(), weights=self.counts)
        if self.rows >= MIN_ROWS and self.text.nunique() > UNIQUE * self.rows:
            return Column(self.name, "text" if words >= MANY_WORDS else "ignore")
        return Column(self.name, "text" if words >= 2 * MANY_WORDS else "category")

    def suspicion(self, column: Column, form: Form) -> str:
        """Return why a column may be read wrongly, and the remedy."""
        if column.kind == "number" and self.plain and self.matching(COMPACT_DATE):
            return f"dates like {self.text[0]}: write 2024-12-31"
        if column.kind not in (*TEXTS, "ignore") or not len(self.text):
            return ""
        if self.is_code:
            return "codes with leading zeros or many digits, which stay text"
        return self._other_form()

    def _other_form(self) -> str:
        """Return which other form the cells of a text column look like, and the remedy."""
        if self.typed != "number" and self.text.head(HEAD).str.contains("[0-9]").mean() < 0.5:
            return ""
        if self.matching(SHORT_YEAR):
            return f"dates like {self.text[0]}: write years with four digits"
        numbers, units = split_unit(self.text)
        for form in FORMS:
            pattern = number_pattern(form)
            whole = fits(self.text, pattern)
            if not self.mostly(parsed := whole | fits(numbers.astype("str"), pattern)):
                continue
            if len(several := list(dict.fromkeys(units.where(~whole, "#")[parsed]))) > 1:
                return f"numbers with the units {', '.join(several[:3])}: write one unit"
            options = f"--decimal {form.decimal}"
            options += f" --thousands {form.thousands!r}" if form.thousands else ""
            return f"numbers like {self.text[0]}: {options} reads them"
        if self.fraction(digits := fits(self.text, DIGITS), "number") < 0.5:
            return ""
        like = f"like {self.text[digits].iloc[0]}" if digits.any() else "next to words"
        return f"cells with digits {like}, read as text"


def _number_form(columns: list[_Cells], given: Form, delimiter: str, notes: list[str]) -> Form:
    """Return the form in which all columns of numbers are written."""
    check_form(given.decimal, given.thousands, None)
    forms = [f for f in FORMS if given.decimal in (None, f.decimal)]
    forms = [f for f in forms if given.thousands in (None, f.thousands)]
    # columns that cannot be in the form that is stated are text
    evidence = [
        cells for cells in columns if _find_forms(cells) and cells.forms.intersection(forms)
    ]
    if possible := [form for form in forms if all(form in cells.forms for cells in evidence)]:
        return _usual_form(evidence, possible, delimiter, notes)
    return _best_form(evidence, forms, given)


def _best_form(evidence: list[_Cells], forms: list[Form], given: Form) -> Form:
    """Return the form of most columns if the user has decided, or raise as they disagree."""
    best = max(forms, key=lambda form: sum(form in cells.forms for cells in evidence))
    agree = any(all(d in {f.decimal for f in c.forms} for c in evidence) for d in DECIMALS)
    setting = "thousands" if agree else "decimal"
    if getattr(given, setting) is not None:
        return best
    first = next((c for c in evidence if best in c.forms), evidence[0])
    other = next(c for c in evidence if best not in c.forms)
    raise SettingError(
        setting,
        f"must be given, as columns disagree: {first.name!r} has {_telling(first)}, "
        f"{other.name!r} has {_telling(other)}: pass the separator (columns in another form are "
        "then read as text), or drop one of them (--drop)",
    )


def _usual_form(
    evidence: list[_Cells], possible: list[Form], delimiter: str, notes: list[str]
) -> Form:
    """Return the usual of the possible forms, with a note or an error if numbers may mean two."""
    marked = [cells for cells in evidence if any(_has(cells, mark) for mark in DECIMALS)]
    if not marked or {form.decimal for form in possible} < set(DECIMALS):
        return possible[0]
    usual, other = (next(f for f in possible if f.decimal == decimal) for decimal in DECIMALS)
    name, example = marked[0].name, _telling(marked[0])
    number = split_unit(pd.Series([example]))[0].astype("str")
    first, second = (parse_numbers(number, form)[0] for form in (usual, other))
    if delimiter == ";" or any(_has(cells, ",") for cells in marked):
        raise SettingError(
            "decimal",
            f"must be given: {name!r} has only numbers like {example}, which may be {first:g} or "
            f"{second:g}: pass . or ,",
        )
    notes.append(
        f"all numbers with a point are like {example} in {name!r}, read as {first:g}: "
        f"--decimal , reads {second:g}"
    )
    return usual


def _has(cells: _Cells, mark: str) -> bool:
    return bool(cells.text.str.contains(mark, regex=False).any())


def _telling(cells: _Cells) -> str:
    """Return a number with a separator."""
    separated = cells.text[fits(cells.text, r".*[0-9][.,' \u00a0\u2009\u202f\u2019][0-9].*")]
    return str(separated.iloc[0] if len(separated) else cells.text.iloc[0])


def _find_forms(cells: _Cells) -> bool:
    """Store the forms of a column's numbers; return whether it is evidence for some of them."""
    if not len(cells.text) or cells.is_code:
        return False
    if (cells.plain or cells.matching(number_pattern(Form()))) and not _has(cells, "."):
        return False
    known = {form for form in FORMS if cells.plain and form.decimal == "."}
    numbers = _numbers(cells)
    cells.forms = known | {
        form for form in FORMS if form not in known and numbers.matching(number_pattern(form))
    }
    return 0 < len(cells.forms) < len(FORMS)


def _numbers(cells: _Cells) -> _Cells:
    """Return cells without their unit, if they have one."""
    if cells.plain:
        return cells
    numbers, units = split_unit(cells.text)
    if numbers.eq("").any() and not cells.matching(SEPARATED):
        return replace(cells, text=cells.text[:0])
    return replace(cells, text=numbers.astype("str")) if units.nunique() == 1 else cells


def _day_first(columns: list[_Cells], given: bool | None) -> bool | None:
    """Return whether the day comes first in dates such as 03/04/2021; None if there are none."""
    if given is not None:
        return given
    votes: dict[bool | None, _Cells] = {}  # the first column for each order, None if it is open
    for cells in columns:
        if cells.matching(r"[0-9]{1,2}([-/])[0-9]{1,2}\1[0-9]{4}.*"):
            orders = (parse_dates(cells.text, form) for form in (DAY_FIRST, MONTH_FIRST))
            days, months = (cells.fraction(~np.isnan(dates)) for dates in orders)
            votes.setdefault(None if days == months else days > months, cells)
    if True in votes and False in votes:
        raise SettingError(
            "dayfirst",
            f"must be given, as columns disagree: the day is first in {votes[True].name!r}, the "
            f"month in {votes[False].name!r}: correct one of them, or drop it (--drop)",
        )
    if votes.keys() == {None}:
        raise SettingError(
            "dayfirst",
            f"must be given: in the dates of {votes[None].name!r}, such as {votes[None].text[0]}, "
            "the day or the month may come first: pass --dayfirst or --no-dayfirst",
        )
    return next((order for order in votes if order is not None), None)


def is_called_id(name: str) -> bool:
    """Return whether a column is called like an id: customerId, but not width."""
    words = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
    return bool(ID_WORDS.intersection(words))


ID_WORDS = frozenset({"id", "ids", "uuid", "guid", "key", "index", "idx", "no", "nr", "number"})
