"""Rows of trials and the store that keeps them.

A row is `Done` or `Failed`. A store is a folder with the file `rows.jsonl`: a header and one line
of JSON for every trial that ended. One process at a time appends to it, and a line is on the disk
before the next is begun. A torn last line, left by a crash, is dropped. Of several rows of one
trial the latest counts.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import filelock

from kmixup.lab.data import ENTRIES
from kmixup.lab.evaluate.scores import (
    PERCENT,
    AnyScores,
    ClassScores,
    Measure,
    NumberScores,
    Scores,
)
from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.files import check_folder, sync_folder
from kmixup.lab.train.config import Trial
from kmixup.lab.train.record import CLEAN

CHECKSUM = "checksum"  # the last key of a row
# data sets that a seed splits, for rows of earlier versions, which do not tell
TABLES = frozenset(name for name, entry in ENTRIES.items() if entry.kind == "table")

Plain = dict[str, Any]  # a JSON object
ShiftScores = Mapping[str, Mapping[float, Scores]]  # scores by the name and the level of a shift


@dataclass(frozen=True, kw_only=True)
class TrialRow(ABC):
    """What `Done` and `Failed` have in common.

    Attributes:
        id: the id of the trial.
        trial: what was run.
        versions: of kmixup, Python and the packages that a result depends on.
        machine: where the trial was run.
        finished: when the trial ended, in UTC and ISO 8601.
    """

    id: str
    trial: Trial
    versions: Mapping[str, str]
    machine: Mapping[str, Any]
    finished: str
    # Rows of earlier versions lack some of today's keys, and rows of later versions may have
    # more. A row that was read keeps its JSON object, and is written again as it was.
    _source: Plain | None = field(default=None, init=False, repr=False, compare=False)

    def to_dict(self) -> Plain:
        """Plain values, fit for JSON. A row that was read comes out as it was read."""
        if self._source is not None:
            return self._source
        plain = self._plain()
        return plain | {CHECKSUM: _checksum(plain)}

    @abstractmethod
    def _plain(self) -> Plain: ...


@dataclass(frozen=True)
class DataUsed:
    """The data that a trial was run on.

    Attributes:
        name: of the data set.
        part: in words, which part of the data set was used; None for all of it.
        train: the number of training samples.
        test: the number of samples that the network was tested on.
        classes: the number of classes.
        shape: of one sample.
        scaling: how the inputs were scaled.
        split_by_seed: whether the seed decided which sample was trained and which was tested on.
    """

    name: str
    part: str | None
    train: int
    test: int
    classes: int
    shape: tuple[int, ...]
    scaling: str
    split_by_seed: bool = False


@dataclass(frozen=True)
class TrainingCurve:
    """The course of a training at some of its epochs.

    Attributes:
        epoch: the numbers of these epochs, from 1.
        loss: the mean training loss of each.
        error: the test error after each, as `Done.error`.
    """

    epoch: tuple[int, ...]
    loss: tuple[float, ...]
    error: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Done(TrialRow):
    """The row of a trial that ended well.

    Attributes:
        alpha: that the network was trained with; infinite where lam was always one half.
        xi: the strength of mixing, None where it is not known.
        data: the data that the trial was run on.
        scores: of the last weights, on the samples that the network was tested on.
        shifts: the scores under each shift of the trial, by name and level.
        clean: the scores with statistics of batch norm from clean training samples; None where
            they were not asked for, or the network has no batch norm.
        seconds: of training.
        curve: the course of the training.
    """

    alpha: float
    xi: float | None
    data: DataUsed
    scores: AnyScores
    shifts: ShiftScores = field(default_factory=dict)
    clean: AnyScores | None = None
    seconds: float
    curve: TrainingCurve

    @property
    def error(self) -> float:
        """The test error: a share in [0, 1] of classes, the RMSE of a regression."""
        return self.scores.error

    @property
    def measure(self) -> Measure:
        """How the test error is called and written."""
        return self.scores.measure

    def _plain(self) -> Plain:
        return {
            "id": self.id,
            "status": "done",
            "trial": self.trial.to_dict(),
            "alpha": _finite(self.alpha),
            "xi": _finite(self.xi),
            "data": asdict(self.data) | {"shape": list(self.data.shape)},
            "result": _plain_scores(self.scores),
            "seconds": self.seconds,
            "versions": dict(self.versions),
            "machine": dict(self.machine),
            **{
                name: [{"eps": level, **_plain_scores(scores)} for level, scores in levels.items()]
                for name, levels in self.shifts.items()
            },
            **({} if self.clean is None else {CLEAN: _plain_scores(self.clean)}),
            "curves": {
                name: list(map(_finite, values)) for name, values in vars(self.curve).items()
            },
            "finished": self.finished,
        }


@dataclass(frozen=True, kw_only=True)
class Failed(TrialRow):
    """The row of a trial that could not be run to its end.

    Attributes:
        reason: the error, in one line.
        traceback: where the error was raised, empty for a worker that was lost.
    """

    reason: str
    traceback: str

    def _plain(self) -> Plain:
        return {
            "id": self.id,
            "status": "failed",
            "trial": self.trial.to_dict(),
            "error": self.reason,
            "traceback": self.traceback,
            "versions": dict(self.versions),
            "machine": dict(self.machine),
            "finished": self.finished,
        }


Row = Done | Failed


class DamagedError(ValueError):
    """A row that is not as it was written."""


def read_row(plain: Plain) -> Row:
    """The row that `to_dict` wrote; KeyError or TypeError where something is missing."""
    # rows of earlier versions have no checksum
    rest = {key: value for key, value in plain.items() if key != CHECKSUM}
    if CHECKSUM in plain and plain[CHECKSUM] != _checksum(rest):
        raise DamagedError("its checksum is wrong")
    if plain["status"] not in READERS:
        raise ValueError(f"status must be {' or '.join(READERS)}, got {plain['status']!r}")
    row = READERS[plain["status"]](plain)
    if row.id != row.trial.id:
        raise DamagedError(f"its id is {row.id} and that of its trial {row.trial.id}")
    object.__setattr__(row, "_source", plain)
    return row


def _done(plain: Plain) -> Done:
    return Done(
        **_common(plain),
        alpha=_figure(plain["alpha"]),
        xi=plain["xi"],
        data=read_data(plain["data"]),
        scores=read_scores(plain["result"]),
        shifts=read_shifts(plain),
        clean=read_clean(plain),
        seconds=plain["seconds"],
        curve=_curve(plain["curves"]),
    )


def _failed(plain: Plain) -> Failed:
    return Failed(**_common(plain), reason=plain["error"], traceback=plain["traceback"])


READERS: dict[str, Callable[[Plain], Row]] = {"done": _done, "failed": _failed}  # by status


def done_of(rows: Iterable[Row]) -> list[Done]:
    """The rows of trials that ended well."""
    return [row for row in rows if isinstance(row, Done)]


def measure_of(rows: Iterable[Row]) -> Measure:
    """How the errors of rows are called and written; per cent where none ended well."""
    return next((row.measure for row in done_of(rows)), PERCENT)


def failed_of(rows: Iterable[Row]) -> list[Failed]:
    """The rows of trials that failed."""
    return [row for row in rows if isinstance(row, Failed)]


def read_data(plain: Mapping[str, Any]) -> DataUsed:
    """The data of a record or a row."""
    return DataUsed(
        plain["name"],
        plain["part"],
        plain["train"],
        plain["test"],
        plain["classes"],
        tuple(plain["shape"]),
        plain["scaling"],
        plain.get("split_by_seed", plain["name"] in TABLES),
    )


def read_scores(plain: Mapping[str, Any]) -> AnyScores:
    """The scores of a record or a row on the samples as they are."""
    if "r2" in plain:
        return NumberScores(plain["error"], plain["baseline"], plain["r2"])
    scores = _class_scores(plain)
    if "baseline" not in plain:  # rows of earlier versions have no more than that
        return scores
    names = ("baseline", "balanced_accuracy", "auc", "answers")
    return ClassScores(**vars(scores), **{name: plain[name] for name in names})


def read_shifts(plain: Mapping[str, Any]) -> ShiftScores:
    """The scores under shift of a record or a row."""
    return {
        name: {float(entry["eps"]): _class_scores(entry) for entry in plain[name]}
        for name in SHIFTS
        if name in plain
    }


def read_clean(plain: Mapping[str, Any]) -> AnyScores | None:
    """The scores of a record or a row with clean statistics of batch norm."""
    return read_scores(plain[CLEAN]) if CLEAN in plain else None


def _class_scores(plain: Mapping[str, Any]) -> Scores:
    return Scores(plain["error"], _figure(plain["nll"]), _figure(plain["ece"]))


def _curve(plain: Mapping[str, Any]) -> TrainingCurve:
    loss, error = (_figures(plain[name]) for name in ("loss", "error"))
    return TrainingCurve(tuple(plain["epoch"]), loss, error)


def _figures(values: Sequence[float | None]) -> tuple[float, ...]:
    return tuple(math.inf if value is None else value for value in values)


def _common(plain: Plain) -> Plain:
    """The fields of every row."""
    names = ("id", "versions", "machine", "finished")
    return {name: plain[name] for name in names} | {"trial": Trial.from_dict(plain["trial"])}


def _checksum(plain: Plain) -> str:
    """Of a row without its checksum, however the JSON is spaced."""
    text = json.dumps(plain, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain_scores(scores: AnyScores) -> Plain:
    return {name: _finite(value) for name, value in vars(scores).items()}


def _finite(figure: float | None) -> float | None:
    """None in the place of infinity, which JSON does not know."""
    return figure if figure is not None and math.isfinite(figure) else None


def _figure(value: float | None) -> float:
    """The figure that `_finite` wrote: an alpha or a loss may be infinite, none is NaN."""
    return math.inf if value is None else value


NAME = "rows.jsonl"
VERSION = 1
HEADER = {"format": "kmixup rows", "version": VERSION}

# The lock is on the rows themselves, since a file beside them could be deleted alone. Windows
# does not let anybody read what is locked, so there the lock is on a file beside them.
CAN_READ_LOCKED = os.name != "nt"


def read(folder: str | Path) -> list[Row]:
    """The latest row of every trial, in the order in which they were written."""
    path = Path(folder).expanduser() / NAME
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} must be the folder of a sweep, it has no {NAME}")
    latest: dict[str, Row] = {}
    for row in _rows(path, _whole(path.read_bytes())):
        latest.pop(row.id, None)
        latest[row.id] = row
    return list(latest.values())


class Store:
    """A store that is open for writing, to be used with `with`. A second writer is refused."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser()
        self.path = self.folder / NAME

    def __enter__(self) -> Store:
        check_folder(self.folder)
        try:
            _make(self.folder)
            self._file = _open(self.path, os.O_APPEND)
            self._lock = self._file if CAN_READ_LOCKED else _open(self.path.with_suffix(".lock"))
        except OSError as error:
            raise OSError(
                f"{self.folder} cannot be written to ({error.strerror}): choose another folder"
            ) from error
        try:
            self._claim()
            self._mend()
        except BaseException:
            self._close()
            raise
        return self

    def _claim(self) -> None:
        """Refuse a second writer. The system lifts the lock when this process ends, however."""
        try:
            claimed = filelock.lock_descriptor(self._lock, blocking=False)
        except OSError as error:
            raise OSError(
                f"{self.path} cannot be locked ({error.strerror}): choose a folder on another disk"
            ) from error
        if not claimed:
            raise ValueError(
                f"{self.folder} is being written by another sweep: wait for its end, "
                "or choose another folder"
            )

    def _mend(self) -> None:
        """Refuse a file that is not a store, and cut off a torn last line."""
        contents = self.path.read_bytes()
        whole = _whole(contents)
        for _ in _rows(self.path, whole):
            pass
        if len(whole) < len(contents):
            os.ftruncate(self._file, len(whole))
        if not whole:
            self._write(_line(HEADER))
            sync_folder(self.folder)
        elif not whole.endswith(b"\n"):
            self._write("\n")

    def append(self, rows: Iterable[Row]) -> None:
        """Add rows; they are on the disk when this returns."""
        self._write("".join(_line(row.to_dict()) for row in rows))

    def _write(self, text: str) -> None:
        self._check_place()
        data = text.encode()
        start = os.fstat(self._file).st_size
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError as error:
            # half a line would spoil the next line; if even this fails, the next opening of
            # the store cuts it off
            with suppress(OSError):
                os.ftruncate(self._file, start)
            raise OSError(
                f"the rows could not be written to {self.path} ({error.strerror}): all earlier "
                "ones are safe; mend that and start again"
            ) from error

    def _check_place(self) -> None:
        """Refuse to write if the file is no longer at its path."""
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(self.path), os.fstat(self._file)):
                return
        raise OSError(
            f"{self.path} was removed or replaced while the sweep was writing it: put it back "
            "and start again"
        )

    def __exit__(self, *raised: object) -> None:
        self._close()

    def _close(self) -> None:
        """Let go of the file and its lock."""
        for handle in {self._file, self._lock}:
            os.close(handle)


def _open(path: Path, flags: int = 0) -> int:
    binary = getattr(os, "O_BINARY", 0)  # without it Windows writes other ends of lines
    return os.open(path, os.O_RDWR | os.O_CREAT | binary | flags, 0o644)


def _line(plain: Mapping[str, Any]) -> str:
    return json.dumps(plain, allow_nan=False, separators=(",", ":")) + "\n"


def _make(folder: Path) -> None:
    """Make a folder and those above it, and force their names to the disk."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync_folder(path.parent)


def _whole(contents: bytes) -> bytes:
    """All but a torn last line.

    A line that lacks only its line break is kept, as an editor may have left it.
    """
    end = contents.rfind(b"\n") + 1
    return contents if _parsed(contents[end:]) is not None else contents[:end]


def _parsed(line: bytes) -> dict[str, Any] | None:
    """The object that a line holds, or None."""
    try:
        plain = json.loads(line)
    except ValueError:
        return None
    return plain if isinstance(plain, dict) else None


def _rows(path: Path, contents: bytes) -> Iterator[Row]:
    for number, line in enumerate(contents.splitlines(), 1):
        plain = _parsed(line)
        if number == 1:
            _check_header(path, plain)
        else:
            yield _row(plain, f"line {number} of {path}")


def _row(plain: dict[str, Any] | None, where: str) -> Row:
    try:
        return read_row(plain or {})
    except (KeyError, TypeError, AttributeError):
        raise ValueError(
            f"{where} must be the row of a trial, it is damaged: restore the file, or delete "
            "that line"
        ) from None
    except DamagedError as error:
        raise ValueError(
            f"{where} must be the row of a trial, it is damaged ({error}): restore the file, or "
            "delete that line"
        ) from error
    except ValueError as error:
        raise ValueError(
            f"{where} must be a row that this version can read, {error}: take the kmixup that "
            "wrote it, or delete that line"
        ) from error


def _check_header(path: Path, plain: dict[str, Any] | None) -> None:
    if plain == HEADER:
        return
    ours = plain is not None and plain.get("format") == HEADER["format"]
    holds = f"version {plain.get('version')}" if plain is not None and ours else "something else"
    raise ValueError(
        f"{path} must hold rows of version {VERSION}, it holds {holds}: choose another folder, "
        "or the kmixup that wrote it"
    )
