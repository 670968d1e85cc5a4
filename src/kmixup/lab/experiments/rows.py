"""Rows of trials, and the store that keeps them.

A row is `Done` or `Failed`. A store is a folder with the file `rows.jsonl`: a header, then one
line of JSON for each trial that ended. Only one process at a time appends to it, and a line is
synced to disk before the next one is written. A torn last line, left by a crash, is dropped; any
other damaged line is moved to `rows.damaged` when the store is opened for writing. Published rows
are in `rows.jsonl.gz`, which is only read. If a trial has several rows, the latest counts.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import math
import os
import warnings
import zlib
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import filelock

from kmixup._checks import check_whole
from kmixup.lab._files import (
    check_folder,
    in_place,
    locked,
    read_bytes,
    read_gzip,
    remove_partial,
    replace_content,
)
from kmixup.lab.checks import check_types
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
from kmixup.lab.trial import CLEAN, SCALED, TEST, TRAINING, Trial

NAME, PUBLISHED, DAMAGED, LOCK = "rows.jsonl", "rows.jsonl.gz", "rows.damaged", ".lock"
VERSION = 1
HEADER = {"format": "kmixup rows", "version": VERSION}
CHECKSUM = "checksum"  # the last key of a row
MOST = 1 << 20  # bytes of a row; most have two thousand

Plain = dict[str, Any]  # a JSON object
AnyKind = TypeVar("AnyKind", Scores, ClassScores, NumberScores)


@dataclass(frozen=True)
class DataUsed:
    """The data that a trial was run on."""

    name: str
    part: str | None  # description of the part that was used; None for all of the data
    train: int  # number of training samples
    test: int  # number of samples that the network was tested on
    classes: int  # their number
    shape: tuple[int, ...]  # of one sample
    scaling: str
    split_by_seed: bool = False  # whether the seed decided which samples were trained on


@dataclass(frozen=True)
class TrainingCurve:
    """Numbers of some epochs, their training loss and test error; empty in published rows."""

    epoch: tuple[int, ...] = ()
    loss: tuple[float, ...] = ()
    error: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TrialRow:
    """Base class of `Done` and `Failed`."""

    trial: Trial  # what was run
    versions: Mapping[str, str]  # of kmixup, Python and the packages that a result depends on
    machine: Mapping[str, Any]  # where the trial was run; empty in published rows
    finished: str  # when the trial ended, in UTC and ISO 8601

    @cached_property
    def id(self) -> str:
        return self.trial.id

    def to_dict(self) -> Plain:
        """Return the row as a JSON object, which `read_row` reads."""
        where = {"versions": dict(self.versions), "machine": dict(self.machine)}
        plain = {"id": self.id, **self._plain(where), "finished": self.finished}
        return plain | {CHECKSUM: _checksum(plain)}

    def _plain(self, where: Plain) -> Plain:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Done(TrialRow):
    """The row of a trial that succeeded."""

    alpha: float  # that the network was trained with; infinite if lam was always one half
    xi: float | None  # the strength of mixing, None if it is not known
    data: DataUsed
    scores: AnyScores  # of the final weights, on the test samples
    shifts: Mapping[str, Mapping[float, Scores]] = field(default_factory=dict)  # by name and level
    # the scores with batch-norm statistics recomputed on clean training samples, on request
    clean: AnyScores | None = None
    # the training error, and whether the network has fitted the training data; None in older rows
    training: Mapping[str, Any] | None = None
    # with a temperature, `scores` are of the validation samples, and these of the test set
    temperature: float | None = None
    test: AnyScores | None = None  # as trained
    scaled: AnyScores | None = None  # with the temperature
    seconds: float  # of training
    curve: TrainingCurve

    @classmethod
    def of(cls, trial: Trial, record: Mapping[str, Any]) -> Done:
        """Return the row of a trial from its record, with `curves` and `finished` added."""
        shifts = {
            name: {float(entry["eps"]): _read_as(Scores, entry) for entry in record[name]}
            for name in SHIFTS
            if name in record
        }
        for name, levels in trial.shifts:
            if missing := set(levels) - shifts.get(name, {}).keys():
                raise ValueError(f"{name} must have scores at {min(missing):g}")
        data = DataUsed(**record["data"] | {"shape": tuple(record["data"]["shape"])})
        check_whole("train", data.train)
        training = record.get(TRAINING)
        if training is not None and not {"error", "fitted"} <= {*training}:
            raise ValueError(f"{TRAINING} must have error and fitted")
        curves: Plain = {
            name: tuple(map(_number, values)) for name, values in record["curves"].items()
        }
        return cls(
            trial=trial,
            alpha=_number(record["alpha"]),
            data=data,
            scores=read_scores(record["result"]),
            shifts=shifts,
            clean=read_scores(record[CLEAN]) if CLEAN in record else None,
            training=training,
            temperature=record.get("temperature"),
            test=read_scores(record[TEST]) if TEST in record else None,
            scaled=read_scores(record[SCALED]) if SCALED in record else None,
            curve=TrainingCurve(**curves),
            **{name: record[name] for name in ("xi", "seconds", *COMMON)},
        )

    @property
    def error(self) -> float:
        """The test error: a share in [0, 1] for classes, the RMSE for a regression."""
        return self.scores.error

    @property
    def measure(self) -> Measure:
        """Name, unit and format of the test error."""
        return self.scores.measure

    def _plain(self, where: Plain) -> Plain:
        plain: Plain = {
            "status": "done",
            "trial": self.trial.to_dict(),
            "alpha": _finite(self.alpha),
            "xi": _finite(self.xi),
            "data": asdict(self.data) | {"shape": list(self.data.shape)},
            "result": _plain_scores(self.scores),
            "seconds": self.seconds,
            **where,
        }
        for name, levels in self.shifts.items():
            plain[name] = [
                {"eps": level, **_plain_scores(scores)} for level, scores in levels.items()
            ]
        for name in (CLEAN, TEST, SCALED):
            if (scores := getattr(self, name)) is not None:
                plain[name] = _plain_scores(scores)
        if self.temperature is not None:
            plain["temperature"] = self.temperature
        if self.training is not None:
            plain[TRAINING] = dict(self.training)
        curve = vars(self.curve).items()
        return plain | {"curves": {name: list(map(_finite, values)) for name, values in curve}}


@dataclass(frozen=True, kw_only=True)
class Failed(TrialRow):
    """The row of a trial that failed."""

    reason: str  # the error, in one line
    traceback: str  # where the error was raised, empty if the worker was lost

    def _plain(self, where: Plain) -> Plain:
        trial = self.trial.to_dict()
        error = {"error": self.reason, "traceback": self.traceback}
        return {"status": "failed", "trial": trial, **error, **where}


Row = Done | Failed
COMMON = ("versions", "machine", "finished")


def done_of(rows: Iterable[Row]) -> list[Done]:
    """Return the rows of trials that succeeded."""
    return [row for row in rows if isinstance(row, Done)]


def failed_of(rows: Iterable[Row]) -> list[Failed]:
    """Return the rows of trials that failed."""
    return [row for row in rows if isinstance(row, Failed)]


def measure_of(rows: Iterable[Row]) -> Measure:
    """Return name, unit and format of the test errors; per cent if no trial succeeded."""
    return next((row.measure for row in done_of(rows)), PERCENT)


class DamagedError(ValueError):
    """A line that is no row, or a row whose content does not match its checksum."""


def read_row(plain: Plain) -> Row:
    """Return the row that `to_dict` wrote."""
    content = {key: value for key, value in plain.items() if key != CHECKSUM}
    try:
        whole = plain.get(CHECKSUM) == _checksum(content)
    except (RecursionError, ValueError) as error:  # NaN, infinity or half a character
        raise DamagedError("it is no JSON") from error
    if not whole:
        raise DamagedError("its checksum is wrong")
    trial = Trial.from_dict(plain["trial"])
    if plain["status"] not in ("done", "failed"):
        raise ValueError(f"status must be done or failed, got {plain['status']!r}")
    row: Row
    if plain["status"] == "done":
        row = Done.of(trial, plain)
    else:
        common = {name: plain[name] for name in COMMON}
        row = Failed(trial=trial, reason=plain["error"], traceback=plain["traceback"], **common)
    check_types(row)
    return row


def read_scores(plain: Mapping[str, Any]) -> AnyScores:
    """Return the scores of a record or a row on unshifted samples."""
    if "r2" in plain:
        return _read_as(NumberScores, plain)
    return _read_as(ClassScores if "baseline" in plain else Scores, plain)


def _read_as(kind: type[AnyKind], plain: Mapping[str, Any]) -> AnyKind:
    """Return scores of a kind; an optional metric may be missing in old rows."""
    values: Plain = {
        name: plain.get(name) if metric.optional else _number(plain[name])
        for name, metric in metrics_of(kind).items()
    }
    return kind(**values)


def _plain_scores(scores: AnyScores) -> Plain:
    late = {name for name, entry in metrics_of(scores).items() if entry.later}
    return {
        name: _finite(value)
        for name, value in vars(scores).items()
        if value is not None or name not in late
    }


def _finite(value: float | None) -> float | None:
    """Return None for infinity, which JSON does not have."""
    return value if value is not None and math.isfinite(value) else None


def _number(value: float | None) -> float:
    """Return the number that `_finite` wrote: an alpha or a loss may be infinite, none is NaN."""
    return math.inf if value is None else value


def _json(plain: Mapping[str, Any]) -> str:
    return json.dumps(plain, allow_nan=False, separators=(",", ":"))


def _checksum(plain: Plain) -> str:
    """Return the checksum of a row, whatever the spacing of its JSON."""
    return hashlib.sha256(_json(plain).encode()).hexdigest()[:16]


def has_rows(folder: Path) -> bool:
    """Whether a folder is a store."""
    return (folder / NAME).is_file() or (folder / PUBLISHED).is_file()


def _check_rows(folder: str | Path) -> Path:
    folder = Path(folder).expanduser()
    if not has_rows(folder):
        raise FileNotFoundError(f"{folder} must be the folder of a sweep, it has no {NAME}")
    return folder


def read(folder: str | Path) -> list[Row]:
    """Return the latest row of each trial, in the order in which they were written.

    Damaged lines of `rows.jsonl` are skipped with a warning; published rows must be whole.
    """
    folder = _check_rows(folder)
    latest: dict[str, Row] = {}
    for path in (folder / PUBLISHED, folder / NAME):
        if not path.is_file():
            continue
        contents = _Contents(path, _bytes(path))
        if contents.damaged and path.name == PUBLISHED:
            raise ValueError(f"{contents.problem}: restore the file")
        if contents.damaged:
            warnings.warn(
                f"{contents.problem} and skipped: run the sweep again, which repairs the "
                "file and trains what is missing",
                stacklevel=2,
            )
        for row in contents.rows:
            latest.pop(row.id, None)
            latest[row.id] = row
    return list(latest.values())


def repair(folder: str | Path) -> str | None:
    """Move damaged lines to `rows.damaged`; return a sentence about them, None without any."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Store(_check_rows(folder)) as store:
            return store.repaired


class Store:
    """A store that is open for writing, as a context manager. It has at most one writer.

    Opening a store repairs it: a torn last line is cut off, and other damaged lines are moved to
    `rows.damaged` with a warning, which `repaired` has as well.
    """

    repaired: str | None = None

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser()
        self.path = self.folder / NAME

    def __enter__(self) -> Store:
        check_folder(self.folder)
        try:
            with ExitStack() as opened:
                self.folder.mkdir(parents=True, exist_ok=True)
                opened.enter_context(filelock.FileLock(self.folder / LOCK).acquire(timeout=0))
                # the rows themselves are locked too: a lock file can be removed
                self._file = opened.enter_context(locked(self.path))
                remove_partial(self.folder)
                self._repair()
                if not in_place(self._file, self.path):
                    self._file = opened.enter_context(locked(self.path))
                self._opened = opened.pop_all()
        except (filelock.Timeout, BlockingIOError):
            raise ValueError(
                f"{self.folder} is being written by another sweep: wait for its end, "
                "or choose another folder"
            ) from None
        except OSError as error:
            raise OSError(
                f"{self.folder} cannot be written to ({error.strerror}): choose another folder"
            ) from error
        return self

    def __exit__(self, *raised: object) -> None:
        self._opened.close()

    def _repair(self) -> None:
        """Make the file of a new store, or check that of an old one and remove damaged lines."""
        data = read_bytes(self.path, follow=False)
        contents = _Contents(self.path, data)
        if contents.damaged:
            side = self.folder / DAMAGED
            before = read_bytes(side, follow=False) if os.path.lexists(side) else b""
            replace_content(side, before + b"".join(contents.damaged.values()))
            self.repaired = f"{contents.problem} and moved to {side}"
        if (whole := b"".join(contents.kept)) != data:
            replace_content(self.path, whole)
        if self.repaired:
            warnings.warn(f"{self.repaired}: trials without a row are run again", stacklevel=3)

    def append(self, rows: Iterable[Row]) -> None:
        """Add rows; they are on disk when this returns."""
        data = "".join(f"{_json(row.to_dict())}\n" for row in rows).encode()
        try:
            if not in_place(self._file, self.path):
                raise FileNotFoundError(errno.ENOENT, "it was removed or replaced")
            _write(self._file, data)
        except OSError as error:
            raise OSError(
                f"the rows could not be written to {self.path} ({error.strerror}): fix that and "
                "start again, which resumes"
            ) from error


def _write(file: int, data: bytes) -> None:
    """Write data whole or not at all: half a line would spoil the next one."""
    start = os.fstat(file).st_size
    try:
        while data:
            data = data[os.write(file, data) :]
        os.fsync(file)
    except OSError:
        with suppress(OSError):  # it is cut off when the store is opened again
            os.ftruncate(file, start)
        raise


def _bytes(path: Path) -> bytes:
    if path.suffix != ".gz":
        return read_bytes(path)
    try:
        return read_gzip(path)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} must be a gzip file, it is damaged: restore it") from error


class _Contents:
    """The lines of a file of rows."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.path = path
        self.rows: list[Row] = []  # in the order of the file
        self.kept = [f"{_json(HEADER)}\n".encode()]  # the header and the lines of the rows
        self.damaged: dict[int, bytes] = {}  # other lines by number, but not a torn last line
        if self.kept[0].startswith(data):  # no row yet, perhaps not even the whole header
            return
        head, *lines = data.splitlines(keepends=True)
        if _parsed(head) != HEADER:
            raise ValueError(
                f"{path} must hold rows of version {VERSION}, it begins with {head[:60]!r}: choose "
                "another folder, or the kmixup that wrote it"
            )
        self.kept = [_ended(head)]
        for number, line in enumerate(lines, 2):
            try:
                self.rows.append(read_row(_parsed(line)))
                self.kept.append(_ended(line))
            except DamagedError:
                if line == _ended(line):
                    self.damaged[number] = line
            except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
                raise ValueError(
                    f"line {number} of {path} must be a row that this version can read, {error}: "
                    "use the kmixup that wrote it, or delete that line"
                ) from error

    @property
    def problem(self) -> str:
        """Which lines are damaged."""
        numbers = ", ".join(map(str, self.damaged))
        several = len(self.damaged) > 1
        lines, are = (f"lines {numbers}", "are") if several else (f"line {numbers}", "is")
        return f"{lines} of {self.path} {are} damaged"


def _ended(line: bytes) -> bytes:
    """Return a line with its end, which an editor may have removed."""
    return line if line.endswith((b"\n", b"\r")) else line + b"\n"


def _parsed(line: bytes) -> Plain:
    """Return the object that a line holds, empty if it holds none."""
    try:
        plain = json.loads(line) if len(line) <= MOST else {}
    except (RecursionError, ValueError):
        return {}
    return plain if isinstance(plain, dict) else {}
