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

from kmixup.lab.data.dataset import Dataset, normalise
from kmixup.lab.data.folders import SUFFIXES, Size, files, read_images
from kmixup.lab.data.own import TABLES, array_in, class_name, read_npz, tensor_of
from kmixup.lab.data.preparation import check_representable
from kmixup.lab.files import check_regular

if TYPE_CHECKING:  # pandas loads slowly, and only tables need it
    from kmixup.columns import TableEncoder


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

    @classmethod
    def of(cls, data: Dataset, resize: Size | None = None) -> InputPipeline:
        """Return the pipeline of a data set."""
        pixels = data.x_train.dtype == torch.uint8
        return cls(data.shape, data.mean, data.std, pixels, data.encoder, resize)

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

            columns = self._table(str(path)).columns
            texts = [column.name for column in columns if column.kind == "category"]
            return self._of_rows(read_table(path, as_text=texts).frame, str(path), target)
        raise ValueError(
            f"{path} must be a table ({', '.join(TABLES)}), an .npz or a folder of images, is a "
            f"{path.suffix or 'nameless'} file"
        )

    def _of_rows(self, rows: Any, source: str, target: str | None = None) -> NewSamples:
        from kmixup.lab.data.tables import named

        encoder = self._table(source)
        with named(source):
            values = encoder.read(rows)
        known = {target, *(column.name for column in encoder.columns)}
        there = rows.columns if hasattr(rows, "columns") else rows[0]
        notes = []
        if extra := [str(name) for name in there if name not in known]:
            notes.append(f"{source} has columns that the network ignores: {', '.join(extra)}")
        notes += [
            f"{count:,} rows of {source} have a category of {name!r} that training did not have: "
            "all its inputs are 0"
            for name, count in encoder.unseen(values).items()
        ]
        x = torch.from_numpy(encoder.encode(values))
        check_representable(x, self.mean, self.std, encoder.names)
        return self._scaled(x, sample_ids(rows, encoder), notes)

    def _table(self, source: str) -> TableEncoder:
        if self.encoder is None:
            raise ValueError(
                f"{source} must hold inputs of the shape {self.shape} as numbers, in an array or "
                "an .npz: the network was not trained on a table"
            )
        return self.encoder

    def _of_images(self, folder: Path) -> NewSamples:
        if not self.pixels:
            raise ValueError(
                f"{folder} must be a table or an .npz: the network was not trained on images"
            )
        inside = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
        paths = [path for place in inside for path in files(place)]
        if not paths:
            raise ValueError(f"{folder} must hold images ({', '.join(sorted(SUFFIXES))}), has none")
        height, width = self.shape[1:]
        size = None if self.resize else (width, height)
        images = read_images(paths, size, resize=self.resize)
        if images.shape[1] != self.shape[0]:
            if images.shape[1] != 1:
                raise ValueError(
                    f"{folder} must hold grey images, as training did, holds images in colour"
                )
            images = images.expand(-1, self.shape[0], -1, -1)
        return self._scaled(images, [str(path.relative_to(folder)) for path in paths])

    def _of_array(self, samples: Any, source: str) -> NewSamples:
        x = tensor_of(samples, source)
        if self.encoder is not None:
            return self._of_columns(x, self.encoder, source)
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
        return self._scaled(x)

    def _of_columns(self, x: Tensor, encoder: TableEncoder, source: str) -> NewSamples:
        """Read numbers in the order of the table's columns, NaN for a blank cell."""
        import pandas as pd

        from kmixup.columns import KINDS

        for column in encoder.columns:
            if column.used and not KINDS[column.kind].numeric:
                raise ValueError(
                    f"{source} must be rows by column name, for {column.name!r} is a "
                    f"{column.kind}: pass a list of dicts, a data frame or the path of a table"
                )
        names = [column.name for column in encoder.columns]
        if x.dim() != 2 or x.shape[1] != len(names) or not len(x):
            listed = ", ".join(names[:10]) + (" …" if len(names) > 10 else "")
            raise ValueError(
                f"{source} must have the shape (n, {len(names)}), a number for each of the columns "
                f"{listed}, got {tuple(x.shape)}"
            )
        return self._of_rows(pd.DataFrame(x.double().numpy(), columns=names), source)

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
    def from_dict(cls, plain: Mapping[str, Any]) -> InputPipeline:
        """Return the pipeline that `to_dict` wrote; ValueError if its parts do not fit."""
        encoder, resize = None, plain["resize"]
        if plain["table"] is not None:
            from kmixup.columns import TableEncoder

            encoder = TableEncoder.from_dict(plain["table"])
        shape = tuple(map(int, plain["shape"]))
        mean, std = (np.array(plain[name], np.float64) for name in ("mean", "std"))
        if encoder is not None and shape != (len(encoder.names),):
            raise ValueError(f"the shape {shape} is not that of {len(encoder.names)} columns")
        if np.broadcast_shapes(mean.shape, std.shape, shape) != shape:
            raise ValueError(f"mean and std must fit the shape {shape}, got {mean.shape}")
        if not (np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()):
            raise ValueError("mean and std must be finite, and std above 0")
        precision = torch.float64 if plain["double"] else torch.float32
        scale, shift = (torch.from_numpy(moment).to(precision) for moment in (std, mean))
        resize = None if resize is None else (int(resize[0]), int(resize[1]))
        return cls(shape, shift, scale, bool(plain["pixels"]), encoder, resize)


def target_in(path: Path, target: str | None) -> str | None:
    """Return the column of a table to predict, by default as `load` does; None for other data."""
    if path.suffix.lower() not in TABLES:
        return None
    from kmixup.lab.data.tables import read_table, target_name

    return target_name(read_table(path), target, [])


def read_targets(
    path: Path, names: Sequence[str], classes: tuple[str, ...], target: str | None
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the numbers of the labelled samples in a file or folder, and their targets.

    `path` is a table with the column `target`, an `.npz` with an array y, or a folder of images
    in a sub-folder for each class; `names` are those of all samples, as `InputPipeline.read`
    returns them. A regression has no `classes`.
    """
    if target is not None:
        from kmixup.columns import Column
        from kmixup.lab.data.tables import infer_target, read_table, read_target

        table = read_table(path, as_text=[target])
        cells = table.frame[target]
        column = Column(target, "category", "", classes)
        if not classes:
            column = infer_target(cells, target, "regression", table.delimiter, [])
        with_target, targets = read_target(column, cells, str(path))
        return with_target.numpy(), targets.numpy()
    rows = np.arange(len(names), dtype=np.int64)
    if path.is_dir():
        labels = [Path(name).parent.name for name in names]
    else:
        y = array_in(read_npz(path), "y", path)
        if not classes:
            return rows, y.astype(np.float64)
        labels = [class_name(value) for value in y]
    if unknown := sorted(set(labels) - set(classes)):
        raise ValueError(
            f"{path} must have labels among {', '.join(classes[:12])}, has {unknown[0]!r}"
        )
    return rows, np.array([classes.index(label) for label in labels])


def sample_ids(rows: Any, encoder: TableEncoder) -> list[str] | None:
    """Return the ids of a table's rows; None where it has no column of them.

    Ids are in a column that is no input, is called like an id or holds only different texts,
    and names each row once; or in the index of a data frame that is not a plain range.
    """
    import pandas as pd

    from kmixup.columns import is_called_id, label

    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
    columns = {column.name: column for column in encoder.columns}
    for name in frame.columns:
        column = columns.get(name)
        unused = column is None or not column.used
        if unused and (is_called_id(str(name)) or (column and column.kind == "category")):
            ids = [label(cell) for cell in frame[name]]
            if len({*ids}) == len(ids):
                return ids
    if isinstance(frame.index, pd.RangeIndex) or not frame.index.is_unique:
        return None
    return [label(cell) for cell in frame.index]
