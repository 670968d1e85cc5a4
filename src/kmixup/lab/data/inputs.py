"""New samples for a trained network: read, checked and scaled as the training samples were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kmixup._checks import SettingError
from kmixup.lab._files import check_regular
from kmixup.lab.data.dataset import Dataset, normalise
from kmixup.lab.data.folders import SUFFIXES, Size, files, read_images, subfolders
from kmixup.lab.data.own import TABLES, array, array_in, class_name, read_npz, targets_in
from kmixup.lab.data.preparation import MOST_ROWS

if TYPE_CHECKING:  # pandas loads slowly, and only tables need it
    import pandas as pd

    from kmixup.tables.encoder import TableEncoder
    from kmixup.tables.schema import Schema


class NewSamples(NamedTuple):
    """New samples as a network takes them."""

    x: Tensor  # inputs `(n, *shape)` in float32
    names: tuple[str, ...]  # ids (see `sample_ids`), numbers of rows from 1, or files
    notes: tuple[str, ...] = ()  # what a user should know about the reading


@dataclass(frozen=True, eq=False)
class InputPipeline:
    """How new samples become a network's inputs, with everything that training fitted."""

    shape: tuple[int, ...]  # of one input
    mean: Tensor  # of the map from raw inputs to a network's, as in `Dataset`
    std: Tensor
    pixels: bool = False  # whether raw inputs are images of bytes
    encoder: TableEncoder | None = None  # of a table's columns
    resize: Size | None = None  # height and width that images are stretched to
    seen: NDArray[np.uint64] | None = None  # hashes of a table's training rows

    @classmethod
    def of(cls, data: Dataset, resize: Size | None = None) -> InputPipeline:
        """Return the pipeline of a data set."""
        pixels = data.x_train.dtype == torch.uint8
        return cls(data.shape, data.mean, data.std, pixels, data.encoder, resize, data.rows)

    def read(self, samples: Any, *, target: str | None = None) -> NewSamples:
        """Return the inputs of new samples.

        Args:
            samples: the path of a table, of an `.npz` with an array x or of a folder of images;
                an array or a tensor of raw inputs `(n, *shape)`; for a table also a data frame,
                or a list of rows by column name.
            target: a column of a table that is read elsewhere.
        """
        if not isinstance(samples, str | Path):
            by_name = isinstance(samples, Sequence) and samples and isinstance(samples[0], Mapping)
            if hasattr(samples, "columns") or by_name:
                return self._of_rows(samples, "X")
            return self._of_array(samples, "X")
        path = Path(samples).expanduser()
        if path.is_dir():
            return self._of_images(path)
        check_regular(path)
        kind = path.suffix.lower()
        if kind == ".npz":
            return self._of_array(array_in(read_npz(path), "x", path), str(path))
        if kind in TABLES:
            from kmixup.lab.data.tables import read_table

            return self._of_rows(read_table(path).frame, str(path), target)
        raise ValueError(
            f"{path} must be a table ({', '.join(TABLES)}), an .npz or a folder of images, is a "
            f"{path.suffix or 'nameless'} file"
        )

    def _of_rows(self, rows: Any, source: str, target: str | None = None) -> NewSamples:
        import pandas as pd

        from kmixup.lab.data.tables import named
        from kmixup.tables.reading import table_of

        if (encoder := self.encoder) is None:
            raise self._mismatch(source, "a table")
        frame = table_of(pd.DataFrame(rows), source).frame
        with named(source):
            values = encoder.read(frame)
        known = {target, encoder.schema.target, *(column.name for column in encoder.columns)}
        notes = encoder.notes(values, source)
        notes += self._seen(values, source)
        if extra := [str(name) for name in frame.columns if name not in known]:
            notes.append(f"{source} has columns that the network ignores: {', '.join(extra)}")
        x = torch.from_numpy(encoder.encode(values))
        return self._scaled(x, sample_ids(frame, encoder), notes)

    def _seen(self, values: pd.DataFrame, source: str) -> list[str]:
        """Report rows that were in the training set: they say little about new ones."""
        from kmixup.tables.look import count_seen

        if self.seen is None:
            return []
        if not (count := count_seen(values, self.seen)):
            return []
        known = "at least " if len(self.seen) > MOST_ROWS // 2 else ""  # some, of large tables
        rows = f"{known}{count:,} of {len(values):,} rows of {source}"
        return [f"{rows} have the inputs of a training row"]

    def _of_images(self, folder: Path) -> NewSamples:
        if not self.pixels:
            raise self._mismatch(folder, "a folder")
        inside = [folder, *subfolders(folder)]
        paths = [path for place in inside for path in files(place)]
        if not paths:
            raise ValueError(f"{folder} must hold images ({', '.join(sorted(SUFFIXES))}), has none")
        height, width = self.shape[1:]
        size = None if self.resize else (width, height)
        images = read_images(paths, size, resize=self.resize)
        if images.shape[1] > self.shape[0]:
            raise ValueError(f"{folder} must hold grey images, as in training, got some in colour")
        images = images.expand(-1, self.shape[0], -1, -1)
        return self._scaled(images, [str(path.relative_to(folder)) for path in paths])

    def _of_array(self, samples: Any, source: str) -> NewSamples:
        values = array(samples)
        if self.pixels and values.ndim == 3 and self.shape[0] == 1:
            values = values[:, None]
        is_image = values.dtype == np.uint8 and values.ndim in (3, 4)
        numeric = values.dtype.kind in "buif" and self.pixels == is_image
        if self.encoder or not numeric or not values.size or values.shape[1:] != self.shape:
            raise self._mismatch(source, f"{values.dtype} {values.shape}")
        x = torch.from_numpy(np.ascontiguousarray(values))
        if not bool(x.isfinite().all()):
            raise ValueError(f"{source} must hold finite numbers, got NaN or an infinite one")
        return self._scaled(x)

    def _mismatch(self, source: object, found: str) -> ValueError:
        numbers = "bytes (uint8), pixels of 0 to 255," if self.pixels else "numbers, not bytes,"
        wanted = f"{numbers} of the shape (n, {', '.join(map(str, self.shape))})"
        if self.encoder:
            wanted = "rows by column name: a list of dicts, a data frame or the path of a table"
        return ValueError(f"{source} must hold {wanted}, as in training, got {found}")

    def _scaled(
        self, raw: Tensor, names: Sequence[str] | None = None, notes: Sequence[str] = ()
    ) -> NewSamples:
        names = names or [str(number) for number in range(1, len(raw) + 1)]
        return NewSamples(normalise(raw, self.mean, self.std), tuple(names), tuple(notes))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, fit for JSON."""
        return {
            "shape": self.shape,
            "mean": self.mean.tolist(),
            "std": self.std.tolist(),
            "double": self.mean.dtype == torch.float64,
            "pixels": self.pixels,
            "table": self.encoder and self.encoder.to_dict(),
            "resize": self.resize,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], schema: Schema | None = None) -> InputPipeline:
        """Return the pipeline that `to_dict` wrote; a table's `schema` is stored next to it."""
        encoder, resize = None, plain["resize"]
        if schema is not None:
            from kmixup.tables.encoder import TableEncoder

            encoder = TableEncoder.from_dict(schema, plain["table"])
        precision = torch.float64 if plain["double"] else torch.float32
        mean, std = (torch.tensor(plain[name], dtype=precision) for name in ("mean", "std"))
        if not torch.cat([mean.flatten(), std.flatten()]).isfinite().all():
            raise ValueError("mean and std must be finite")
        shape = tuple(map(int, plain["shape"]))
        resize = None if resize is None else (int(resize[0]), int(resize[1]))
        return cls(shape, mean, std, bool(plain["pixels"]), encoder, resize)


def target_in(path: Path, target: str | None) -> str | None:
    """Return the column of a table to score; None for other data."""
    if path.suffix.lower() not in TABLES:
        return None
    if target is None:
        raise SettingError("target", f"must name the column of {path} with the true values")
    return target


def read_targets(
    path: Path,
    names: Sequence[str],
    classes: tuple[str, ...],
    target: str | None,
    schema: Schema | None = None,
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the numbers of the labelled samples in a file or folder, and their targets.

    `path` is a table with the column `target`, an `.npz` with an array y, or a folder of images
    in a sub-folder for each class; `names` are those of all samples, as `InputPipeline.read`
    returns them. A regression has no `classes`; its table writes numbers as the `schema` says.
    """
    if target is not None:
        from kmixup.lab.data.tables import read_table
        from kmixup.tables.schema import Column, Schema
        from kmixup.tables.targets import read_target, target_name

        schema = schema or Schema(())
        frame = read_table(path).frame
        target_name(list(frame.columns), target, str(path), [])
        known = {column.name: column for column in schema.columns}
        column = known.get(target, Column(target))
        return read_target(frame[target], column, classes, schema.form, str(path))
    rows = np.arange(len(names), dtype=np.int64)
    if path.is_dir():
        labels = [Path(name).parent.name for name in names]
    else:
        y = targets_in(read_npz(path), "y", len(names), path)
        if not classes:
            if y.dtype.kind == "U":
                raise ValueError(
                    f"{path} must hold numbers in y, as in training, has {str(y[0])!r}"
                )
            return rows, y.astype(np.float64)
        labels = [class_name(value) for value in y]
    if unknown := sorted(set(labels) - set(classes)):
        raise ValueError(
            f"{path} must have labels among {', '.join(classes[:12])}, has {unknown[0]!r}"
        )
    return rows, np.array([classes.index(label) for label in labels])


def sample_ids(frame: pd.DataFrame, encoder: TableEncoder) -> list[str] | None:
    """Return the ids of a table's rows; None where it has no column of them.

    Ids are in a column that is no input, is called like an id or holds only different texts,
    and names each row once.
    """
    from kmixup.tables.schema import is_called_id, label

    used = {column.name for column in encoder.columns if column.used}
    texts = {c.name for c in encoder.columns if c.column.kind == "ignore"}
    for name in frame.columns:
        is_id = name not in used and (name in texts or is_called_id(str(name)))
        if is_id and frame[name].is_unique:
            return [label(cell) for cell in frame[name]]
    return None
