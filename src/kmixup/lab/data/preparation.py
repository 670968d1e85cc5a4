"""How the columns of a user's table become a network's inputs, fitted on the training rows alone.

What is fitted is plain data: it is stored with a model, and new rows are treated alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kmixup.lab.data.columns import POINT, UNKNOWN, Column

ACCOUNT = ("column", "read as", "becomes", "remarks")


@dataclass(frozen=True)
class Feature:
    """A column with what was fitted to it.

    A date becomes its days since 1970-01-01, its month (1 to 12) and its weekday (Monday is
    0); a category one column of 0 and 1 for each of its texts; anything else one number. An
    unknown category is 0 everywhere.

    Attributes:
        column: how its cells are read; its categories are those of the training rows.
        fill: the number that a blank gets: the median, or the most frequent boolean or category.
        indicator: whether a column tells blanks by a 1, as there were some in training.
        used: whether it is an input at all.
        remarks: what a user should know of it.
    """

    column: Column
    fill: float = 0.0
    indicator: bool = False
    used: bool = True
    remarks: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the inputs that it becomes."""
        name = self.column.name
        if not self.used:
            return ()
        names: tuple[str, ...] = (name,)
        if self.column.kind == "date":
            names = (name, f"{name} month", f"{name} weekday")
        elif self.column.kind == "category":
            names = tuple(f"{name}={text}" for text in self.column.categories)
        return (*names, f"{name} blank") if self.indicator else names

    @property
    def binary(self) -> tuple[bool, ...]:
        """Which of the inputs are 0 or 1 by construction, and so are not scaled."""
        count = len(self.names)
        if self.column.kind in ("category", "boolean"):
            return (True,) * count
        return tuple(self.indicator and i == count - 1 for i in range(count))

    def encode(self, raw: Tensor) -> Tensor:
        """Inputs `(n, len(names))` of numbers `(n,)` as `Column.numbers` gives them."""
        if not self.used:
            return raw.new_empty(len(raw), 0)
        blank = raw.isnan()
        values = torch.where(blank, self.fill, raw)
        if self.column.kind == "category":
            places = torch.arange(len(self.column.categories), dtype=raw.dtype)
            inputs = (values.unsqueeze(1) == places).to(raw.dtype)
        elif self.column.kind == "date":
            inputs = _calendar(values)
        else:
            inputs = values.unsqueeze(1)
        if not self.indicator:
            return inputs
        return torch.cat([inputs, blank.to(raw.dtype).unsqueeze(1)], dim=1)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, fit for JSON."""
        plain = {"fill": self.fill, "indicator": self.indicator, "used": self.used}
        return plain | {"column": self.column.to_dict(), "remarks": list(self.remarks)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Feature:
        """The feature that `to_dict` wrote."""
        return cls(
            Column.from_dict(plain["column"]),
            float(plain["fill"]),
            bool(plain["indicator"]),
            bool(plain["used"]),
            tuple(plain["remarks"]),
        )


@dataclass(frozen=True)
class Preparation:
    """All columns of a table, with what was fitted to them.

    Attributes:
        features: one for each column, in the order of the table.
        names: names of the inputs that they become, one for each column of `encode`.
        binary: which of these are 0 or 1 by construction.
    """

    features: tuple[Feature, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for feature in self.features for name in feature.names)

    @property
    def binary(self) -> tuple[bool, ...]:
        return tuple(flag for feature in self.features for flag in feature.binary)

    def read(self, rows: Iterable[Mapping[str, str]]) -> Tensor:
        """Numbers `(n, columns)` of rows of text by the names of their columns.

        Columns that training did not have, the target's for one, are not looked at.
        """
        listed = list(rows)
        used = [feature.column for feature in self.features if feature.used]
        for number, row in enumerate(listed, 1):
            absent = [column.name for column in used if column.name not in row]
            if absent:
                raise ValueError(
                    f"row {number} must have the columns of the training rows, lacks "
                    f"{', '.join(absent)}"
                )
        matrix = np.full((len(listed), len(self.features)), np.nan, np.float32)
        for i, feature in enumerate(self.features):
            if feature.used:
                cells = [row[feature.column.name].strip() for row in listed]
                matrix[:, i] = feature.column.numbers(cells)
        return torch.from_numpy(matrix)

    def encode(self, raw: Tensor) -> Tensor:
        """Inputs `(n, len(names))` of numbers `(n, columns)` as `read` gives them."""
        if all(feature.names == (feature.column.name,) for feature in self.features) and not bool(
            raw.isnan().any()
        ):
            return raw
        return torch.cat(
            [feature.encode(raw[:, i]) for i, feature in enumerate(self.features)], dim=1
        )

    def transform(self, rows: Iterable[Mapping[str, str]]) -> Tensor:
        """Inputs of new rows of text, raw ones as in `Dataset.x_train`.

        >>> column = Column("colour", "category", "", ("blue", "red"))
        >>> Preparation((Feature(column),)).transform([{"colour": "red"}, {"colour": "pink"}])
        tensor([[0., 1.],
                [0., 0.]])
        """
        return self.encode(self.read(rows))

    def unseen(self, raw: Tensor) -> dict[str, int]:
        """How many rows have a category that the training rows did not have, by column."""
        counts = {
            feature.column.name: int((raw[:, i] == UNKNOWN).sum())
            for i, feature in enumerate(self.features)
            if feature.used and feature.column.kind == "category"
        }
        return {name: count for name, count in counts.items() if count}

    def account(self) -> list[tuple[str, str, str, str]]:
        """What was done: a row for each column, under the heads of `ACCOUNT`."""
        return [
            (
                feature.column.name,
                _read_as(feature.column),
                _becomes(feature),
                "; ".join(feature.remarks),
            )
            for feature in self.features
        ]

    def with_remarks(self, remarks: Mapping[str, str]) -> Preparation:
        """The same with further remarks on columns, by their names."""
        return Preparation(
            tuple(
                replace(feature, remarks=(*feature.remarks, remarks[feature.column.name]))
                if feature.column.name in remarks
                else feature
                for feature in self.features
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, fit for JSON."""
        return {"features": [feature.to_dict() for feature in self.features]}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Preparation:
        """The preparation that `to_dict` wrote."""
        return cls(tuple(map(Feature.from_dict, plain["features"])))


def _calendar(days: Tensor) -> Tensor:
    """Days since 1970-01-01 `(n,)`, with their month and weekday `(n, 3)`."""
    dates = np.floor(days.numpy()).astype("datetime64[D]")
    month = dates.astype("datetime64[M]").astype(np.int64) % 12 + 1
    weekday = (dates.astype(np.int64) + 3) % 7  # 1970-01-01 was a Thursday
    return torch.stack(
        [days, torch.from_numpy(month).to(days), torch.from_numpy(weekday).to(days)], dim=1
    )


def _read_as(column: Column) -> str:
    if column.kind == "category":
        return f"category of {len(column.categories)}" if column.categories else "text"
    return column.kind if column.form in ("", POINT) else f"{column.kind} like {column.form}"


def _becomes(feature: Feature) -> str:
    kind, count = feature.column.kind, len(feature.column.categories)
    if not feature.used:
        return "left out"
    words = {
        "date": "days, month, weekday",
        "category": f"{count} column{'s' * (count != 1)} of 0 and 1",
        "boolean": "0 or 1",
    }
    text = words.get(kind, "number")
    return f"{text}, blank" if feature.indicator else text
