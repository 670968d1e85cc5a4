"""The target of a table: which column it is, and whether it is classes or a number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from kmixup._checks import LISTED, SettingError, did_you_mean

if TYPE_CHECKING:  # pandas loads slowly, and arrays need only `decide`
    import pandas as pd

    from kmixup.tables.forms import Form
    from kmixup.tables.schema import Column

Task = Literal["classes", "regression"]

USUAL = ("target", "label", "class", "y")  # names of targets, tried in this order

# Integers are classes unless many are distinct, in total and relative to the rows.
MANY, MANY_FRACTION = 50, 0.05
FEW = 10  # with this few distinct values, the inferred task may be wrong


def target_name(names: list[str], target: str | None, source: str, notes: list[str]) -> str:
    """Return the target's name, with a note where it is a guess."""
    if target is None:
        lower = {name.lower(): name for name in reversed(names)}
        target = next((lower[name] for name in USUAL if name in lower), names[-1])
        if target.lower() != USUAL[0]:
            notes.append(f"the target is the column {target!r}: --target names another")
    if target not in names:
        raise SettingError(
            "target",
            f"must name a column of {source}, got {target!r}: {did_you_mean(target, names)}",
        )
    return target


def decide(
    values: NDArray[Any], *, rows: int, task: Task | None, name: str, notes: list[str]
) -> Task:
    """Decide whether a target is classes or a regression, with a note where that is a guess.

    The target called `name` has the distinct `values`, numbers or texts, in `rows` rows; `task` is
    what the user says.

    >>> decide(np.array([0.5, 1.25]), rows=100, task=None, name="y", notes=[])
    'regression'
    """
    distinct, words = len(values), values.dtype.kind in "OU"
    if distinct == 1:
        raise ValueError(
            f"the target {name!r} must have at least two distinct values, all {rows:,} rows have "
            "the same: name another target"
        )
    if words and task == "regression":
        raise SettingError(
            "task",
            f"must be classes for the target {name!r}, got regression: its values are no numbers",
        )
    if task is not None:
        return task
    if words:
        if distinct > MANY and 2 * distinct > rows:
            raise ValueError(
                f"the target {name!r} must have fewer classes, has {distinct:,} different values "
                f"in {rows:,} rows: name another column (--target), or insist on --task classes"
            )
        return "classes"
    whole = bool((values == np.rint(values)).all())
    many = distinct > MANY and distinct > MANY_FRACTION * rows
    inferred, other = ("classes", "regression") if whole and not many else ("regression", "classes")
    is_clear = distinct <= FEW if whole else distinct > FEW
    if not is_clear:
        notes.append(
            f"the target {name!r} has {distinct:,} distinct numbers and is treated as {inferred}: "
            f"use --task {other} to change that"
        )
    return inferred  # type: ignore[return-value]


def classes_of(
    cells: pd.Series, column: Column, form: Form, task: Task | None, notes: list[str]
) -> tuple[str, ...]:
    """Return the names of a target's classes; none if it is a number."""
    import pandas as pd

    from kmixup.tables.schema import read_column

    name = column.name
    text = _as_text(cells)
    numbers = None
    if column.kind == "number" and not isinstance(cells.dtype, pd.CategoricalDtype):
        numbers = read_column(cells, column, form)
    # among numbers "NA" is a blank, among words it may be a class
    blank = _blank(text, form) if numbers is None else np.isnan(numbers)
    if blank.all():
        raise ValueError(f"a row must have a value of the target {name!r}, none has")
    if blank.any():
        notes.append(f"{int(blank.sum()):,} rows without a {name!r} are left out")
    classes = sorted(map(str, text[~blank].unique()))
    distinct = np.array(classes) if numbers is None else np.unique(numbers[~blank])
    decided = decide(distinct, rows=int((~blank).sum()), task=task, name=name, notes=notes)
    if decided == "regression":
        return ()
    if len(distinct) < len(classes):
        raise ValueError(
            f"the target {name!r} must write each class in one way, has {len(classes)} "
            f"spellings of {len(distinct)} numbers, such as 1 and 1.0: write them the same way"
        )
    lower: dict[str, str] = {}
    for word in classes:
        if (first := lower.setdefault(word.casefold(), word)) != word and task is None:
            raise ValueError(
                f"the target {name!r} must write each class in one way, has {first!r} and "
                f"{word!r}: write them the same way, or insist on --task classes"
            )
    return tuple(classes)


def read_target(
    cells: pd.Series, column: Column, classes: tuple[str, ...], form: Form, source: str
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the numbers of the rows that have a target, and their targets."""
    import pandas as pd

    from kmixup.tables.forms import BLANKS
    from kmixup.tables.schema import read_column

    if not classes:
        try:
            values = read_column(cells, column, form)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from None
        blank = np.isnan(values)
    else:
        text = _as_text(cells)
        values = pd.Index(classes).get_indexer(pd.Index(text))
        unknown = values < 0
        blank = unknown & (text.str.lower().isin(BLANKS).to_numpy() | _blank(text, form))
        if (unknown > blank).any():
            row = int((unknown > blank).argmax())
            raise ValueError(
                f"the target {column.name!r} of {source} must hold one of the classes "
                f"{', '.join(classes[:LISTED])} of the training rows, row {row + 1} has "
                f"{text[row]!r}: correct it"
            )
    rows = np.flatnonzero(~blank)
    if not len(rows):
        raise ValueError(
            f"{source} must have a value of the target {column.name!r} in some row, has none: "
            "fill in the column"
        )
    return rows, values[rows]


def _blank(text: pd.Series, form: Form) -> NDArray[np.bool_]:
    blank: NDArray[np.bool_] = ((text == "") | text.isin(form.missing)).to_numpy(bool)
    return blank


def _as_text(cells: pd.Series) -> pd.Series:
    """Return cells as text, "" for missing ones."""
    import pandas as pd

    from kmixup.tables.schema import label

    codes, found = pd.factorize(cells)
    words = np.array([*map(label, found), ""], object)
    return pd.Series(words[codes], dtype=object)
