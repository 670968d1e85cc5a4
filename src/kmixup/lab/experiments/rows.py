"""Rows of trials, and the store that keeps them.

A row is `Done` or `Failed`. A store is a folder with the file `rows.jsonl`: a header, then one
line of JSON for each trial that ended. Only one process at a time appends to it, and a line is
synced to disk before the next one is written. A torn last line, left by a crash, is dropped.
Published rows are in `rows.jsonl.gz`, which is only read. If a trial has several rows, the latest
counts.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import filelock

from kmixup.lab.evaluate.scores import (
    PERCENT,
    AnyScores,
    ClassScores,
    Measure,
    NumberScores,
    Scores,
    metrics_of,
)
from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.files import check_folder, sync_folder
from kmixup.lab.train.config import Trial
from kmixup.lab.train.record import CLEAN

NAME, PUBLISHED = "rows.jsonl", "rows.jsonl.gz"
VERSION = 1
HEADER = {"format": "kmixup rows", "version": VERSION}
CHECKSUM = "checksum"  # the last key of a row

# The lock is on the rows themselves, because a lock file beside them could be deleted. On Windows
# a locked file cannot be read, so there the lock is on a file beside the rows.
CAN_READ_LOCKED = os.name != "nt"

Plain = dict[str, Any]  # a JSON object
AnyKind = TypeVar("AnyKind", Scores, ClassScores, NumberScores)
ShiftScores = Mapping[str, Mapping[float, Scores]]  # scores by the name and the level of a shift


@dataclass(frozen=True)
class DataUsed:
    """The data that a trial was run on.

    Attributes:
        name: of the data set.
        part: description of the part of the data set that was used; None for all of it.
        train: number of training samples.
        test: number of samples that the network was tested on.
        classes: number of classes.
        shape: of one sample.
        scaling: how the inputs were scaled.
        split_by_seed: whether the seed decided which samples were trained and tested on.
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
    """Training loss and test error at some epochs; empty in published rows.

    Attributes:
        epoch: the numbers of these epochs, from 1.
        loss: the mean training loss of each.
        error: the test error after each, as `Done.error`.
    """

    epoch: tuple[int, ...] = ()
    loss: tuple[float, ...] = ()
    error: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TrialRow:
    """Base class of `Done` and `Failed`.

    Attributes:
        trial: what was run.
        versions: of kmixup, Python and the packages that a result depends on.
        machine: where the trial was run; empty in published rows.
        finished: when the trial ended, in UTC and ISO 8601.
    """

    trial: Trial
    versions: Mapping[str, str]
    machine: Mapping[str, Any]
    finished: str

    @cached_property
    def id(self) -> str:
        return self.trial.id

    def to_dict(self) -> Plain:
        """The row as a JSON object, which `read_row` reads."""
        plain = {"id": self.id, **self._plain()}
        return plain | {CHECKSUM: _checksum(plain)}

    def _plain(self) -> Plain:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Done(TrialRow):
    """The row of a trial that succeeded.

    Attributes:
        alpha: that the network was trained with; infinite if lam was always one half.
        xi: the strength of mixing, None if it is not known.
        data: the data that the trial was run on.
        scores: of the final weights, on the test samples.
        shifts: the scores under each shift of the trial, by name and level.
        clean: the scores with batch-norm statistics recomputed on clean training samples; None if
            they were not requested, or the network has no batch norm.
        seconds: of training.
        curve: loss and error during training.
    """

    alpha: float
    xi: float | None
    data: DataUsed
    scores: AnyScores
    shifts: ShiftScores = field(default_factory=dict)
    clean: AnyScores | None = None
    seconds: float
    curve: TrainingCurve

    @classmethod
    def of(cls, trial: Trial, record: Mapping[str, Any]) -> Done:
        """The row of a trial from its record, with `curves` and `finished` added."""
        curves = record["curves"].items()
        curve: Plain = {name: tuple(map(_number, values)) for name, values in curves}
        return cls(
            trial=trial,
            alpha=_number(record["alpha"]),
            xi=record["xi"],
            data=DataUsed(**record["data"] | {"shape": tuple(record["data"]["shape"])}),
            scores=read_scores(record["result"]),
            shifts=read_shifts(record),
            clean=read_scores(record[CLEAN]) if CLEAN in record else None,
            seconds=record["seconds"],
            curve=TrainingCurve(**curve),
            versions=record["versions"],
            machine=record["machine"],
            finished=record["finished"],
        )

    @property
    def error(self) -> float:
        """The test error: a share in [0, 1] for classes, the RMSE for a regression."""
        return self.scores.error

    @property
    def measure(self) -> Measure:
        """Name, unit and format of the test error."""
        return self.scores.measure

    def _plain(self) -> Plain:
        plain: Plain = {
            "status": "done",
            "trial": self.trial.to_dict(),
            "alpha": _finite(self.alpha),
            "xi": _finite(self.xi),
            "data": asdict(self.data) | {"shape": list(self.data.shape)},
            "result": _plain_scores(self.scores),
            "seconds": self.seconds,
            "versions": dict(self.versions),
            "machine": dict(self.machine),
        }
        for name, levels in self.shifts.items():
            plain[name] = [
                {"eps": level, **_plain_scores(scores)} for level, scores in levels.items()
            ]
        if self.clean is not None:
            plain[CLEAN] = _plain_scores(self.clean)
        curve = vars(self.curve).items()
        plain["curves"] = {name: list(map(_finite, values)) for name, values in curve}
        return plain | {"finished": self.finished}


@dataclass(frozen=True, kw_only=True)
class Failed(TrialRow):
    """The row of a trial that failed.

    Attributes:
        reason: the error, in one line.
        traceback: where the error was raised, empty if the worker was lost.
    """

    reason: str
    traceback: str

    def _plain(self) -> Plain:
        return {
            "status": "failed",
            "trial": self.trial.to_dict(),
            "error": self.reason,
            "traceback": self.traceback,
            "versions": dict(self.versions),
            "machine": dict(self.machine),
            "finished": self.finished,
        }


Row = Done | Failed


def done_of(rows: Iterable[Row]) -> list[Done]:
    """The rows of trials that succeeded."""
    return [row for row in rows if isinstance(row, Done)]


def failed_of(rows: Iterable[Row]) -> list[Failed]:
    """The rows of trials that failed."""
    return [row for row in rows if isinstance(row, Failed)]


def measure_of(rows: Iterable[Row]) -> Measure:
    """Name, unit and format of the test errors of rows; per cent if no trial succeeded."""
    return next((row.measure for row in done_of(rows)), PERCENT)


class DamagedError(ValueError):
    """A row whose content does not match its checksum."""


def read_row(plain: Plain) -> Row:
    """The row that `to_dict` wrote."""
    content = {key: value for key, value in plain.items() if key != CHECKSUM}
    if plain.get(CHECKSUM) != _checksum(content):
        raise DamagedError("its checksum is wrong")
    trial = Trial.from_dict(plain["trial"])
    if plain["status"] == "done":
        return Done.of(trial, plain)
    if plain["status"] == "failed":
        common = {name: plain[name] for name in ("versions", "machine", "finished")}
        return Failed(trial=trial, reason=plain["error"], traceback=plain["traceback"], **common)
    raise ValueError(f"status must be done or failed, got {plain['status']!r}")


def read_scores(plain: Mapping[str, Any]) -> AnyScores:
    """The scores of a record or a row on unshifted samples."""
    if "r2" in plain:
        return _read_as(NumberScores, plain)
    return _read_as(ClassScores if "baseline" in plain else Scores, plain)


def read_shifts(plain: Mapping[str, Any]) -> ShiftScores:
    """The scores under shift of a record or a row."""
    return {
        name: {float(entry["eps"]): _read_as(Scores, entry) for entry in plain[name]}
        for name in SHIFTS
        if name in plain
    }


def _read_as(kind: type[AnyKind], plain: Mapping[str, Any]) -> AnyKind:
    """Scores of a kind; an optional metric may be missing in old rows."""
    values: Plain = {
        name: plain.get(name) if metric.optional else _number(plain[name])
        for name, metric in metrics_of(kind).items()
    }
    return kind(**values)


def _plain_scores(scores: AnyScores) -> Plain:
    return {name: _finite(value) for name, value in vars(scores).items()}


def _finite(value: float | None) -> float | None:
    """None for infinity, which JSON does not have."""
    return value if value is not None and math.isfinite(value) else None


def _number(value: float | None) -> float:
    """The number that `_finite` wrote: an alpha or a loss may be infinite, none is NaN."""
    return math.inf if value is None else value


def _checksum(plain: Plain) -> str:
    """The checksum of a row, whatever the spacing of its JSON."""
    text = json.dumps(plain, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def has_rows(folder: Path) -> bool:
    """Whether a folder is a store."""
    return (folder / NAME).is_file() or (folder / PUBLISHED).is_file()


def read(folder: str | Path) -> list[Row]:
    """The latest row of each trial, in the order in which they were written."""
    folder = Path(folder).expanduser()
    if not has_rows(folder):
        raise FileNotFoundError(f"{folder} must be the folder of a sweep, it has no {NAME}")
    latest: dict[str, Row] = {}
    for path in (folder / PUBLISHED, folder / NAME):
        if path.is_file():
            for row in _rows(path, _whole(_contents(path))):
                latest.pop(row.id, None)
                latest[row.id] = row
    return list(latest.values())


class Store:
    """A store that is open for writing, as a context manager. It has at most one writer."""

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
            self._repair()
        except BaseException:
            self._close()
            raise
        return self

    def _claim(self) -> None:
        """Lock the store. The system lifts the lock when this process ends for any reason."""
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

    def _repair(self) -> None:
        """Check that the file is a store, and cut off a torn last line."""
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
        """Add rows; they are on disk when this returns."""
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
            # half a line would spoil the next one; if even this fails, it is cut off when the
            # store is opened again
            with suppress(OSError):
                os.ftruncate(self._file, start)
            raise OSError(
                f"the rows could not be written to {self.path} ({error.strerror}): all earlier "
                "ones are safe; fix the disk and start again"
            ) from error

    def _check_place(self) -> None:
        """Raise if the file is no longer at its path."""
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
        """Close the file, which lifts its lock."""
        for handle in {self._file, self._lock}:
            os.close(handle)


def _open(path: Path, flags: int = 0) -> int:
    binary = getattr(os, "O_BINARY", 0)  # without it Windows changes line ends
    return os.open(path, os.O_RDWR | os.O_CREAT | binary | flags, 0o644)


def _line(plain: Mapping[str, Any]) -> str:
    return json.dumps(plain, allow_nan=False, separators=(",", ":")) + "\n"


def _make(folder: Path) -> None:
    """Make a folder with its parents, and sync their names to disk."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync_folder(path.parent)


def _contents(path: Path) -> bytes:
    if path.suffix != ".gz":
        return path.read_bytes()
    try:
        return gzip.decompress(path.read_bytes())
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} must be a gzip file, it is damaged: restore it") from error


def _whole(contents: bytes) -> bytes:
    """Everything but a torn last line.

    A line that lacks only its line break is kept, since an editor may have removed it.
    """
    end = contents.rfind(b"\n") + 1
    return contents if _parsed(contents[end:]) is not None else contents[:end]


def _parsed(line: bytes) -> Plain | None:
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
            yield _row(plain or {}, f"line {number} of {path}")


def _row(plain: Plain, where: str) -> Row:
    try:
        return read_row(plain)
    except DamagedError as error:
        raise ValueError(
            f"{where} must be the row of a trial, it is damaged ({error}): restore the file, or "
            "delete that line"
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{where} must be a row that this version can read, {error}: use the kmixup that "
            "wrote it, or delete that line"
        ) from error


def _check_header(path: Path, plain: Plain | None) -> None:
    if plain == HEADER:
        return
    ours = plain is not None and plain.get("format") == HEADER["format"]
    holds = f"version {plain.get('version')}" if plain is not None and ours else "something else"
    raise ValueError(
        f"{path} must hold rows of version {VERSION}, it holds {holds}: choose another folder, "
        "or the kmixup that wrote it"
    )
