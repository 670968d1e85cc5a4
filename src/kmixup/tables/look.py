"""A look at a table before training: what people should know before they trust a result."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kmixup.tables.schema import Schema

Hashes = NDArray[np.uint64]

SENTINEL = re.compile(r"-?9{2,}|-?1e\+?[0-9]{2}|-1")  # that often stand for a missing number
LISTED = 8  # columns in a note
FEWEST = 10  # rows by which a copy can be told


def duplicates(values: pd.DataFrame) -> list[str]:
    """Return a note on rows that occur more than once."""
    copies = len(values) - len(distinct(row_hashes(values)))
    if not copies:
        return []
    return [f"{copies:,} of {len(values):,} rows repeat the inputs of an earlier row"]


def look(values: pd.DataFrame, y: NDArray[Any], schema: Schema) -> list[str]:
    """Return notes on columns: those left out, texts, copies of the target and sentinels.

    `values` are those of rows with a target, as `Schema.read` returned them; `y` are class indices
    or numbers.
    """
    notes = []
    ignored = [c.name for c in schema.columns if c.kind == "ignore" and c.name != schema.target]
    if ignored:
        notes.append(f"left out, as nearly all cells differ or are blank: {listed(ignored)}")
    if texts := [column.name for column in schema.inputs if column.kind == "text"]:
        notes.append(f"texts, of which words are hashed: {listed(texts)}")
    copied = [name for name in map(str, values) if len(y) >= FEWEST and _is_copy(values[name], y)]
    if copied:
        notes.append(
            f"the target is a copy of {listed(copied)}: leave out (--drop) what is not known "
            "when predicting"
        )
    return notes + [note for name in map(str, values) for note in _column_notes(values[name])]


def _column_notes(values: pd.Series) -> list[str]:
    """Return notes on categories in several spellings and on numbers that may be missing ones."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        words = [str(word) for word in values.cat.categories]
        if len({word.casefold() for word in words}) < len(words):
            return [f"{values.name!r} has categories that differ only in upper and lower case"]
    elif (found := _sentinel(values.to_numpy())) is not None:
        number, times = found
        return [
            f"{values.name!r} has {number:g} in {times:,} rows, far from all others: if it means "
            f"a missing value, use --missing {number:g}"
        ]
    return []


def across(train: pd.DataFrame, test: pd.DataFrame) -> list[str]:
    """Return a note on test rows whose inputs also occur in training."""
    seen = count_seen(test, distinct(row_hashes(train)))
    if not seen:
        return []
    return [f"{seen:,} of {len(test):,} test rows have the inputs of a training row"]


def distinct(hashes: Hashes) -> Hashes:
    """Return the distinct hashes, sorted; several times as fast as `np.unique`."""
    ordered: Hashes = np.sort(hashes)
    is_first = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    return np.asarray(ordered[is_first])


def count_seen(values: pd.DataFrame, known: Hashes) -> int:
    """Return how many rows have one of the `known` hashes, which are sorted."""
    if not len(known):
        return 0
    hashes = row_hashes(values)
    places = np.searchsorted(known, hashes).clip(max=len(known) - 1)
    return int((known[places] == hashes).sum())


def row_hashes(values: pd.DataFrame) -> Hashes:
    """Return a hash of each row, the same in every process."""
    return np.asarray(pd.util.hash_pandas_object(values, index=False), np.uint64)


def listed(names: list[str]) -> str:
    """Return the names in quotes, the first ones of many."""
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(repr(name) for name in names[:LISTED]) + more


def _is_copy(values: pd.Series, y: NDArray[Any]) -> bool:
    """Return whether a column and the target have the same values, under other names."""
    if y.dtype.kind == "f":
        if isinstance(values.dtype, pd.CategoricalDtype):
            return False
        known = values.notna().to_numpy()
        x, target = values.to_numpy()[known], y[known]
        if len(x) < 3 or not x.std() or not target.std():
            return False
        return bool(abs(np.corrcoef(x, target)[0, 1]) > 1 - 1e-9)
    head = pd.factorize(values[:1000])[0]
    if head.max(initial=0) > y.max():  # most columns have more values than there are classes
        return False
    codes = pd.factorize(values)[0]
    pairs = len(np.unique(codes * (int(y.max()) + 1) + y))
    return bool(codes.min() >= 0 and pairs == codes.max() + 1 == len(np.unique(y)))


def _sentinel(values: NDArray[np.float64]) -> tuple[float, int] | None:
    """Return a repeated extreme value such as -999 that lies far from all others, and how often."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    for extreme in (known.min(), known.max()):
        if not SENTINEL.fullmatch(f"{extreme:g}"):
            continue
        others = known[known != extreme]
        times = len(known) - len(others)
        if times < 2 or len(np.unique(others[:1000])) < 3:
            continue
        gap = min(abs(others.min() - extreme), abs(others.max() - extreme))
        if gap > others.max() - others.min() and gap > 1:
            return float(extreme), times
    return None
