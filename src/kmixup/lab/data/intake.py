"""New samples for a trained network: read, checked and scaled as the training samples were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kmixup.lab.data.arrays import read_inputs, tensor_of
from kmixup.lab.data.columns import COMMA, Column
from kmixup.lab.data.dataset import Dataset
from kmixup.lab.data.delimited import open_delimited
from kmixup.lab.data.folders import files
from kmixup.lab.data.pictures import SUFFIXES, Size, read_images
from kmixup.lab.data.preparation import Preparation
from kmixup.lab.data.safety import check_regular

Rows = Sequence[Mapping[str, object]]


@dataclass(frozen=True, eq=False)
class Taken:
    """New samples as a network is given them.

    Attributes:
        x: the inputs, `(n, *shape)` in float32.
        names: what each sample is called: the number of its row, from 1, or its file.
        notes: what a user should know of the reading.
    """

    x: Tensor
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Intake:
    """How new samples become a network's inputs, all that training fitted included.

    Attributes:
        shape: of one input.
        mean, std: of the map from raw inputs to a network's, as in `Dataset`.
        pixels: whether raw inputs are images of bytes.
        preparation: how the columns of a table become inputs; None for other data.
        resize: height and width that images are stretched to; None to refuse other sizes.
    """

    shape: tuple[int, ...]
    mean: Tensor
    std: Tensor
    pixels: bool = False
    preparation: Preparation | None = None
    resize: Size | None = None

    @classmethod
    def of(cls, data: Dataset, resize: Size | None = None) -> Intake:
        """How the samples of a data set became inputs."""
        pixels = data.x_train.dtype == torch.uint8
        return cls(data.shape, data.mean, data.std, pixels, data.preparation, resize)

    def take(self, samples: Any) -> Taken:
        """Inputs of new samples.

        Args:
            samples: the path of a `.csv`, of an `.npz` with an array x or of a folder of
                images; an array or a tensor of raw inputs `(n, *shape)`; of a table also a
                data frame, or a list of rows by the names of their columns.
        """
        if isinstance(samples, str | Path):
            return self._read(Path(samples).expanduser())
        if hasattr(samples, "to_dict") and hasattr(samples, "columns"):
            samples = samples.to_dict("records")
        if _are_rows(samples):
            return self._of_rows(samples)
        return self._of_array(samples, "X")

    def _read(self, path: Path) -> Taken:
        if path.is_dir():
            return self._of_images(path)
        check_regular(path)
        kind = path.suffix.lower()
        if kind == ".csv":
            return self._of_csv(path)
        if kind == ".npz":
            return self._of_array(read_inputs(path), str(path))
        raise ValueError(
            f"{path} must be a .csv, an .npz or a folder of images, is a "
            f"{path.suffix or 'nameless'} file"
        )

    def _of_csv(self, path: Path) -> Taken:
        preparation = self._table(str(path))
        table = open_delimited(path)
        _check_columns(table.header, preparation, str(path))
        rows = [
            dict(zip(table.header, row, strict=True)) for _, part in table.parts() for row in part
        ]
        if not rows:
            raise ValueError(f"{path} must have a row below its header, has none")
        return self._of_cells(rows, str(path))

    def _of_rows(self, rows: Rows) -> Taken:
        preparation = self._table("X")
        _check_columns(rows[0], preparation, "X")
        columns = {feature.column.name: feature.column for feature in preparation.features}
        cells = [
            {name: _text(row[name], columns[name]) for name in columns if name in row}
            | {name: "" for name in row if name not in columns}
            for row in rows
        ]
        return self._of_cells(cells, "X")

    def _of_cells(self, rows: Sequence[Mapping[str, str]], source: str) -> Taken:
        preparation = self._table(source)
        try:
            raw = preparation.read(rows)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from None
        notes = _extra(rows[0], preparation, source)
        notes += [
            f"{count:,} rows of {source} have a category of {name!r} that training did not have: "
            "for them all its inputs are 0"
            for name, count in preparation.unseen(raw).items()
        ]
        return self._taken(preparation.encode(raw), _numbers(len(raw)), notes)

    def _table(self, source: str) -> Preparation:
        if self.preparation is None:
            raise ValueError(
                f"{source} must hold inputs of the shape {self.shape} as numbers, in an array or "
                "an .npz: the network was not trained on a .csv"
            )
        return self.preparation

    def _of_images(self, folder: Path) -> Taken:
        if not self.pixels:
            raise ValueError(
                f"{folder} must be a .csv or an .npz: the network was not trained on images"
            )
        inside = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
        paths = [path for place in inside for path in files(place)]
        if not paths:
            raise ValueError(f"{folder} must hold images ({', '.join(sorted(SUFFIXES))}), has none")
        height, width = self.shape[1:]
        size = None if self.resize else (width, height)
        images = read_images(paths, size=size, resize=self.resize)
        if images.shape[1] != self.shape[0]:
            if images.shape[1] != 1:
                raise ValueError(
                    f"{folder} must hold grey images, as training did, holds images in colour"
                )
            images = images.expand(-1, self.shape[0], -1, -1)
        return self._taken(images, [str(path.relative_to(folder)) for path in paths], [])

    def _of_array(self, samples: Any, source: str) -> Taken:
        x = tensor_of(samples, source)
        if self.preparation is not None:
            return self._of_columns(x.float(), self.preparation, source)
        if self.pixels and x.dim() == 3 and self.shape[0] == 1:
            x = x.unsqueeze(1)
        if tuple(x.shape[1:]) != self.shape or not len(x):
            raise ValueError(
                f"{source} must have the shape (n, {', '.join(map(str, self.shape))}), as in "
                f"training, got {tuple(x.shape)}"
                + (": a single sample is X[None]" if tuple(x.shape) == self.shape else "")
            )
        if self.pixels != (x.dtype == torch.uint8):
            kind = "bytes (uint8), pixels of 0 to 255," if self.pixels else "numbers, not bytes,"
            raise ValueError(f"{source} must hold {kind} as in training, got {x.dtype}")
        if not bool(x.isfinite().all()):
            raise ValueError(f"{source} must hold finite numbers, got NaN or an infinite one")
        return self._taken(x, _numbers(len(x)), [])

    def _of_columns(self, x: Tensor, preparation: Preparation, source: str) -> Taken:
        """Numbers in the order of the table's columns, NaN for a blank cell."""
        used = [feature.column for feature in preparation.features if feature.used]
        if texts := [column.name for column in used if column.kind in ("category", "date")]:
            raise ValueError(
                f"{source} must be rows by the names of their columns, for {texts[0]!r} is a "
                f"{next(c.kind for c in used if c.name == texts[0])}: pass a list of dicts, a data "
                "frame or the path of a .csv"
            )
        names = [feature.column.name for feature in preparation.features]
        if x.dim() != 2 or x.shape[1] != len(names) or not len(x):
            raise ValueError(
                f"{source} must have the shape (n, {len(names)}), a number for each of the columns "
                f"{', '.join(names[:10])}{' …' * (len(names) > 10)}, got {tuple(x.shape)}"
            )
        return self._taken(preparation.encode(x), _numbers(len(x)), [])

    def _taken(self, raw: Tensor, names: Iterable[str], notes: Iterable[str]) -> Taken:
        return Taken((raw.float() - self.mean) / self.std, tuple(names), tuple(notes))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, fit for JSON."""
        return {
            "shape": list(self.shape),
            "mean": self.mean.tolist(),
            "std": self.std.tolist(),
            "pixels": self.pixels,
            "preparation": None if self.preparation is None else self.preparation.to_dict(),
            "resize": None if self.resize is None else list(self.resize),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Intake:
        """The intake that `to_dict` wrote."""
        preparation, resize = plain["preparation"], plain["resize"]
        return cls(
            tuple(plain["shape"]),
            torch.tensor(plain["mean"], dtype=torch.float32),
            torch.tensor(plain["std"], dtype=torch.float32),
            bool(plain["pixels"]),
            None if preparation is None else Preparation.from_dict(preparation),
            None if resize is None else (int(resize[0]), int(resize[1])),
        )


def _are_rows(samples: Any) -> bool:
    return isinstance(samples, Sequence) and len(samples) > 0 and isinstance(samples[0], Mapping)


def _check_columns(names: Iterable[str], preparation: Preparation, source: str) -> None:
    there = set(names)
    wanted = [feature.column.name for feature in preparation.features if feature.used]
    if absent := [name for name in wanted if name not in there]:
        raise ValueError(
            f"{source} must have the columns of the training rows, lacks {', '.join(absent)}"
        )


def _extra(names: Iterable[str], preparation: Preparation, source: str) -> list[str]:
    known = {feature.column.name for feature in preparation.features}
    extra = [name for name in names if name not in known]
    if not extra:
        return []
    return [f"{source} has columns that the network does not look at: {', '.join(extra)}"]


def _text(value: object, column: Column) -> str:
    """A cell as a `.csv` would have it."""
    if value is None or str(value) == "NaT":  # no date, as a data frame has it
        return ""
    if column.kind == "number" and isinstance(value, int | float | np.number):
        text = np.format_float_positional(float(value), trim="-")
        return text.replace(".", ",") if column.form == COMMA else text
    if column.kind == "date" and isinstance(value, date):
        return _written(value, column.form)
    return str(value).strip()


def _written(day: date, form: str) -> str:
    """A date as a column has it, with the time of day if there is one.

    >>> _written(date(2024, 3, 31), "DD.MM.YYYY")
    '31.03.2024'
    """
    order = {"YYYY": f"{day.year:04d}", "MM": f"{day.month:02d}", "DD": f"{day.day:02d}"}
    for letters, digits in order.items():
        form = form.replace(letters, digits)
    return f"{form} {day.timetz().isoformat()}" if isinstance(day, datetime) else form


def _numbers(n: int) -> list[str]:
    return [str(i) for i in range(1, n + 1)]
