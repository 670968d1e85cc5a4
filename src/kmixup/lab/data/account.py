"""What was done to a user's own data, in words for a terminal."""

from __future__ import annotations

from kmixup.lab.data.columns import POINT
from kmixup.lab.data.dataset import Dataset
from kmixup.lab.data.preparation import ACCOUNT, Feature
from kmixup.lab.formatting import TextTable, count


def account(data: Dataset) -> str:
    """Notes on the reading, and a row for every column that is not just a number.

    It is empty where there is nothing to say.
    """
    lines = list(data.notes)
    preparation = data.preparation
    if preparation is None or all(map(_plain, preparation.features)):
        return "\n".join(lines)
    rows = [
        row
        for feature, row in zip(preparation.features, preparation.account(), strict=True)
        if not _plain(feature)
    ]
    lines.append(TextTable(list(ACCOUNT), rows).aligned())
    if plain := len(preparation.features) - len(rows):
        lines.append(
            f"{count(plain, 'other column')} {'is a number' if plain == 1 else 'are numbers'}"
        )
    return "\n".join(lines)


def _plain(feature: Feature) -> bool:
    """Whether a column is one of numbers, with nothing to say of it."""
    return feature == Feature(feature.column, feature.fill) and (
        (feature.column.kind, feature.column.form) == ("number", POINT)
    )
