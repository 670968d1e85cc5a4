"""Results as one tidy data frame: a line for each trial, test and metric.

Reading results imports neither networks nor training.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from kmixup.lab.evaluate.scores import AnyScores, metrics_of
from kmixup.lab.experiments import rows as store
from kmixup.lab.experiments.rows import Done, Row
from kmixup.lab.train.config import CLEAN, SCALED, TEST, Trial

VALIDATION = "validation"  # the test of trials that choose among settings
SCORE = ("test", "level", "metric", "value")  # the last columns
# fields of a trial that are columns under another name, or are tests
RENAMED = {"name": "method", "metric": "cost", "test": "test_file", "validation": "held_out"}
LEFT_OUT = ("shifts", "code", "temperature", "method", "protocol")


def read(folder: str | Path) -> pd.DataFrame:
    """Read the results of a sweep as a tidy data frame.

    Args:
        folder: folder of a sweep, with `rows.jsonl` or published rows.

    Returns:
        A line for each trial, test and metric. Settings of the trial, its data, versions and
        machine are columns of numbers and texts by their own names; a setting at its default may
        be missing (NaN). The last columns are

        - `test`: "test", "validation", "clean" (recomputed batch-norm statistics), "scaled" (with
          a temperature), or a shift such as "noise", with its `level` in 255ths.
        - `metric`: such as "error", "nll" or "ece", and its `value`. Errors are fractions, or the
          RMSE of a regression.

        A trial that failed has its `failure`, and NaN as its errors.

    >>> from tempfile import TemporaryDirectory
    >>> from kmixup.lab.experiments.grid import expand
    >>> from kmixup.lab.experiments.units import run
    >>> trials = expand(data="iris", k=[1, 16], protocol={"epochs": 1})
    >>> with TemporaryDirectory() as folder:
    ...     with store.Store(folder) as opened:
    ...         opened.append(run(tuple(trials)))
    ...     results = read(folder)
    >>> results[results.metric == "error"].k.tolist()
    [1, 16]
    """
    return frame_of(store.read(folder))


def frame_of(rows: Iterable[Row]) -> pd.DataFrame:
    """Return rows as a tidy data frame, as `read` does."""
    rows = list(rows)
    scores = [(number, *score) for number, row in enumerate(rows) for score in _scores(row)]
    lines = pd.DataFrame(scores, columns=["row", *SCORE])
    trials = pd.DataFrame([_trial(row) for row in rows], columns=None if rows else ["id"])
    return pd.concat([trials.loc[lines.pop("row")].reset_index(drop=True), lines], axis=1)


def tests_of(trial: Trial) -> list[tuple[str, float | None]]:
    """Return what a trained network is tested on, each test with the level of a shift."""
    tests: list[tuple[str, float | None]] = [(_plain_test(trial), None)]
    if trial.temperature:
        tests += [(TEST, None), (SCALED, None)]
    if trial.clean_statistics:
        tests.append((CLEAN, None))
    return tests + [(name, level) for name, levels in trial.shifts for level in levels]


def _plain_test(trial: Trial) -> str:
    return TEST if trial.validation is None else VALIDATION


def _scores(row: Row) -> Iterator[tuple[str, float, str, float]]:
    """Yield the values of `SCORE`."""
    for test, level in tests_of(row.trial):
        at = math.nan if level is None else level
        if not isinstance(row, Done):
            yield test, at, "error", math.nan
            continue
        # without batch norm, recomputed statistics change nothing
        plain = test == _plain_test(row.trial)
        scores: AnyScores = row.scores if plain else getattr(row, test, None) or row.scores
        if level is not None:
            scores = row.shifts[test][level]
        for name, metric in metrics_of(scores).items():
            value = getattr(scores, name)
            if value is not None:
                yield test, at, name, value
            elif not metric.later:  # undefined for these samples
                yield test, at, name, math.nan


def _trial(row: Row) -> dict[str, Any]:
    """Return all columns of a row but those of `SCORE`."""
    trial = row.trial
    line: dict[str, Any] = {"id": row.id}
    for part in (trial, trial.method, trial.protocol):
        for name, value in vars(part).items():
            if part is not trial or name not in LEFT_OUT:
                line[RENAMED.get(name, name)] = _scalar(value)
    line |= {f"code_{part}": digest for part, digest in trial.code}
    if isinstance(row, Done):
        line |= _outcome(row)
    else:
        line["failure"] = row.reason
    line["finished"] = row.finished
    line |= {f"version_{name}": value for name, value in row.versions.items()}
    return line | {f"machine_{name}": _scalar(value) for name, value in row.machine.items()}


def _outcome(row: Done) -> dict[str, Any]:
    data, training = row.data, row.training or {}
    return {
        "part": data.part,
        "train_samples": data.train,
        "test_samples": data.test,
        "classes": data.classes,
        "shape": _scalar(data.shape),
        "scaled_by": data.scaling,
        "split_by_seed": data.split_by_seed,
        "trained_alpha": row.alpha,
        "xi": row.xi,
        "temperature": row.temperature,
        "training_error": training.get("error"),
        "linear_error": training.get("linear"),
        "fitted": training.get("fitted"),
        "failure": None,
        "seconds": row.seconds,
    }


def _scalar(value: Any) -> Any:
    """Return a number or a text; the entries of a list become one text."""
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return str(dict(value)) if isinstance(value, Mapping) else value
