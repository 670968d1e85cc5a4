"""The lab for programs: networks trained and searched on arrays, tensors, data sets and files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kmixup._checks import SettingError
from kmixup.lab.checks import known_settings
from kmixup.lab.data import Dataset
from kmixup.lab.data.loading import from_memory, write_samples
from kmixup.lab.experiments.driver import sweep
from kmixup.lab.experiments.engines import Local
from kmixup.lab.experiments.rows import Row
from kmixup.lab.experiments.tuning import STUDY, Tuned, make_plan, tune_plan
from kmixup.lab.experiments.units import run as run_unit
from kmixup.lab.experiments.units import units
from kmixup.lab.train.defaults import capped, defaults_for
from kmixup.lab.train.loop import train
from kmixup.lab.train.model import Model, load
from kmixup.lab.train.record import training_note
from kmixup.lab.train.setup import computing_on, load_data
from kmixup.lab.trial import Method, Protocol, Trial, TrialData

__all__ = ["Model", "Tuned", "fit", "load", "tune_data"]

IN_MEMORY = ("target", "drop", "task", "scaling", "test_size")  # options of data in memory


def fit(
    data: Any,
    y: Any = None,
    *,
    method: str = "kmixup",
    k: int = 16,
    alpha: float | None = None,
    model: str | None = None,
    protocol: Mapping[str, Any] | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    overwrite: bool = False,
    device: str = "auto",
    progress: bool | None = None,
    **settings: Any,
) -> Model:
    """Train a network on your own data, with a third of the samples to test it on.

    Args:
        data: inputs `(n, ...)` as an array or a tensor, with their targets `y`; a data frame; a
            data set of torch or of the lab; a name from `kmixup data list`; or the path of a
            table, an `.npz` or a folder.
        y: classes or numbers `(n,)`, where `data` are inputs only.
        method: mixing method, such as "kmixup", "cutmix" or "erm"; `kmixup train --help` lists all.
        k: number of samples in a block.
        alpha: parameter of lam's distribution; 0 mixes nothing. By default the method's own.
        model: a name or `package.module:name`; by default one for the shape of the data.
        protocol: training settings to replace, e.g. `{"epochs": 50}`.
        seed: of the split, the weights and all random draws.
        out: folder for the record and the model, which `load` reads.
        overwrite: replace what an earlier run left in `out`.
        device: "auto", "cpu" or "cuda".
        progress: whether to show a bar; by default where standard error is a terminal.
        settings: options of `kmixup train` by name, such as `alpha_rule` and `match_on` of the
            method, or `target`, `drop`, `task`, `scaling`, `test_size` and `class_weights` of the
            data.

    Returns:
        A model that predicts new samples and has the record of the test.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(90, 4))
    >>> model = fit(x, x[:, 0] > 0, k=4, protocol={"epochs": 2, "batch_size": 32})
    >>> model.predict_proba(x[:3]).shape
    (3, 2)
    """
    names = {field.name for field in fields(Method)} & set(settings)
    of_method = {name: settings.pop(name) for name in names}
    if alpha is not None:
        of_method["alpha"] = alpha
    reading = TrialData(**known_settings(TrialData, settings))
    named = _is_named(data, y)
    name = os.fspath(data) if named else data.name if isinstance(data, Dataset) else "arrays"
    trial = Trial(name, "", Method(method, k, **of_method), seed=seed, **vars(reading))
    loaded = load_data(trial) if named else _in_memory(data, y, trial)
    usual = defaults_for(name, loaded)
    changes = known_settings(Protocol, protocol or {}, "protocol.")
    mixing, notes = capped(trial.method, len(loaded.x_train))
    for lowered in notes:
        warnings.warn(lowered, stacklevel=2)
    trial = replace(
        trial,
        method=mixing,
        model=model or usual.model,
        protocol=replace(usual.protocol, **changes),
    )
    trained = train(
        trial, data=loaded, out=out, overwrite=overwrite, device=device, progress=progress
    )
    if note := training_note(trained.record):
        warnings.warn(note, stacklevel=2)
    return Model.of(trained.net, trial, loaded, trained.record)


def _in_memory(data: Any, y: Any, trial: Trial) -> Dataset:
    """Return data in memory as a data set; raise on options that are for files only."""
    given = {name: value for name, value in trial.data_options().items() if value is not None}
    read = isinstance(data, Dataset)
    for name, value in given.items():
        if read or name not in IN_MEMORY:
            what = "a Dataset, which is read already" if read else "data in memory"
            raise SettingError(name, f"must not be given for {what}, got {value!r}: leave it out")
    return data if read else from_memory(data, y, seed=trial.seed, **given)


def _is_named(data: Any, y: Any) -> bool:
    """Return whether data are a name or a path; raise on a `y` that would be ignored."""
    named = isinstance(data, str | os.PathLike)
    if y is not None and (named or isinstance(data, Dataset)):
        raise ValueError("y must not be given with data that have targets: leave it out")
    return named


def tune_data(
    data: Any,
    y: Any = None,
    *,
    out: str | Path | None = None,
    budget: int | None = None,
    workers: int | None = None,
    device: str = "auto",
    **settings: Any,
) -> Tuned:
    """Choose k and alpha for your own data on validation samples, as `kmixup tune` does.

    Args:
        data, y: as in `fit`.
        out: folder for the rows of all trials, where an interrupted search resumes; arrays are
            stored there too. Without it all trials run in this process.
        budget: the most trials, e.g. 60.
        workers: number of processes, only with `out`; a program that uses them must start under
            `if __name__ == "__main__":`.
        device: "auto", "cpu" or "cuda".
        settings: options of `kmixup tune` by name, such as `strategy`, `k`, `alpha`, `trials`,
            `validation`, `metric`, `target` and `class_weights`; `protocol` as in `fit`.

    Returns:
        The search with its winner, and the trial that trains with it.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(60, 4))
    >>> few = {"strategy": "simple", "k": [1, 2], "trials": 1}
    >>> tuned = tune_data(x, x[:, 0] > 0, **few, protocol={"epochs": 1, "batch_size": 16})
    >>> [tried.setting.label for tried in tuned.search.table]
    ['ERM', 'mixup alpha=0.2', 'k=2 alpha=0.2']
    """
    if workers is not None and out is None:
        raise ValueError(f"workers need a folder for their rows, got workers={workers}: pass out=…")
    with ExitStack() as stack:
        folder = Path(out or stack.enter_context(TemporaryDirectory())).expanduser()
        path = data if _is_named(data, y) else write_samples(data, y, folder)
        plan = make_plan(os.fspath(path), **settings)
        local = Local() if workers is None else Local(workers)
        engine = stack.enter_context(local.kept())

        def run(trials: Sequence[Trial]) -> list[Row]:
            if out is not None:
                return sweep(trials, folder, engine=engine, device=device).rows
            with computing_on(1):
                return [row for unit in units(trials) for row in run_unit(unit, device=device)]

        study = None if out is None else folder / STUDY
        return tune_plan(plan, run, budget=budget, study=study)
