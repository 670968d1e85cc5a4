"""Results as one tidy data frame: a line for each trial, test and metric.

Reading results imports neither networks nor training.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd

from kmixup.lab.evaluate.baseline import is_constant
from kmixup.lab.evaluate.scores import AnyScores, NumberScores, metrics_of
from kmixup.lab.experiments import rows as store
from kmixup.lab.experiments.rows import Done, Row
from kmixup.lab.trial import CLEAN, SCALED, TEST, Method, Protocol, Trial

VALIDATION = "validation"  # the test of trials that choose among settings
SCORE = ("test", "level", "metric", "value")  # the last columns
RENAMED = {"name": "method", "metric": "cost", "test": "test_file"}  # fields, as columns
LEFT_OUT = ("shifts", "code", "temperature", "method", "protocol")  # fields that are no columns
OUTCOME = (
    "part", "train_samples", "test_samples", "classes", "shape", "scaled_by", "split_by_seed",
    "regression", "constant", "trained_alpha", "xi", "temperature", "training_error",
    "linear_error", "fitted", "failure", "seconds",
)  # fmt: skip
PROTOCOL = tuple(field.name for field in fields(Protocol))
METHOD = [RENAMED.get(field.name, field.name) for field in fields(Method)]


def read(folder: str | Path) -> pd.DataFrame:
    """Read the results of a sweep as a tidy data frame.

    Args:
        folder: folder of a sweep, with `rows.jsonl` or published rows.

    Returns:
        A line for each trial, test and metric. Settings of the trial, its data, versions and
        machine are columns of numbers and texts by their own names; a setting at its default may
        be missing (NaN), such as `data`, `method`, `k`, `alpha`, `alpha_rule` and `seed`. After
        training are `trained_alpha`, `xi`, `training_error`, `fitted` and `seconds`; lines whose
        `digest` or `code_…` differ are versions of edited files. The last columns are

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
    columns = None if rows else [*settings_of(Trial("", "")), "id", *OUTCOME]
    trials = pd.DataFrame([_trial(row) for row in rows], columns=columns, dtype=object)
    trials = trials.apply(_typed)
    return pd.concat([trials.loc[lines.pop("row")].reset_index(drop=True), lines], axis=1)


def _typed(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column of objects as one of numbers or texts; whole numbers stay so with blanks."""
    kinds = {type(value) for value in column.dropna()}
    if kinds == {int}:
        return column.astype("Int64" if column.isna().any() else int)
    return column.astype(float) if kinds and kinds <= {int, float} else column.infer_objects()


def lines_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each trial and test, with a column for each metric, sorted by trial."""
    test = frame.groupby(["id", "test", "level"], dropna=False, sort=False).ngroup()
    metrics = frame.assign(line=test).pivot(index="line", columns="metric", values="value")
    first = frame[~test.duplicated()].drop(columns=["metric", "value"])
    lines = first.set_index(test[first.index]).join(metrics)
    lines = lines if "error" in lines else lines.assign(error=math.nan)  # if there is no trial
    return lines.sort_values("id", kind="stable", ignore_index=True)


def settings_of(trial: Trial) -> dict[str, Any]:
    """Return the settings of a trial as columns."""
    columns: dict[str, Any] = {}
    for part in (trial, trial.method, trial.protocol):
        for name, value in vars(part).items():
            if part is not trial or name not in LEFT_OUT:
                columns[RENAMED.get(name, name)] = scalar(value)
    return columns | {f"code_{part}": digest for part, digest in trial.code}


def methods_of(lines: pd.DataFrame) -> pd.Series[Any]:
    """Return the method of each line."""
    known: dict[tuple[Any, ...], Method] = {}
    methods = []
    for values in lines[METHOD].astype(object).itertuples(index=False, name=None):
        if values not in known:
            given: list[Any] = [None if pd.isna(value) else value for value in values]
            known[values] = Method(*given)
        methods.append(known[values])
    return pd.Series(methods, lines.index, dtype=object)


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
    line = {"id": row.id} | settings_of(row.trial)
    if isinstance(row, Done):
        line |= _outcome(row)
    else:
        line |= dict.fromkeys(OUTCOME) | {"failure": row.reason}
    line["finished"] = row.finished
    line |= {f"version_{name}": value for name, value in row.versions.items()}
    return line | {f"machine_{name}": scalar(value) for name, value in row.machine.items()}


def _outcome(row: Done) -> dict[str, Any]:
    data, training = row.data, row.training or {}
    values = (
        data.part, data.train, data.test, data.classes, scalar(data.shape), data.scaling,
        data.split_by_seed, isinstance(row.scores, NumberScores), is_constant(row.scores),
        row.alpha, row.xi, row.temperature, training.get("error"), training.get("linear"),
        training.get("fitted"), None, row.seconds,
    )  # fmt: skip
    return dict(zip(OUTCOME, values, strict=True))


def scalar(value: Any) -> Any:
    """Return a number or a text; the entries of a list become one text."""
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return str(dict(value)) if isinstance(value, Mapping) else value
