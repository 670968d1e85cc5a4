"""What came of a trial, as a row: its fields, and how they are written as JSON.

A row is `Done` or `Failed`. No other module knows the keys of the JSON object.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

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
