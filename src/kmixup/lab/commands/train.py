"""`kmixup train`: one run."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from kmixup.lab.commands import options
from kmixup.lab.data import Dataset, load
from kmixup.lab.evaluate.baseline import constant_sentence, figures
from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.experiments.rows import read_scores
from kmixup.lab.formatting import count
from kmixup.lab.train import checkpoint, record
from kmixup.lab.train.defaults import capped, defaults_for
from kmixup.lab.train.record import training_note
from kmixup.lab.train.setup import Device
from kmixup.lab.trial import CLEAN, Method, Trial, TrialData, code_of, shifts_from
from kmixup_command import INTERRUPTED


def train(
    data: options.DataName,
    *,
    model: options.ModelName = None,
    method: options.MethodOptions = options.NONE_GIVEN,
    protocol: options.TrainingOptions = options.NONE_GIVEN,
    reading: options.DataOptions = options.NONE_GIVEN,
    tests: options.TestOptions = options.NONE_GIVEN,
    seed: int = 0,
    out: Path | None = None,
    resume: options.Flag = False,
    overwrite: options.Flag = False,
    device: Device = "auto",
    quiet: options.Flag = False,
) -> None:
    """Train a network and report its test error.

    Network, learning rate and number of epochs default to the paper's for the data set. The
    result is that of the last epoch.

    ```
    # without any download
    kmixup train iris --method mixup --alpha 0.5 --epochs 50
    # your own data and network
    kmixup train table.csv --target species --drop id --model my_package.nets:small
    # another method, as published with k = 1, and with optimal pairs
    kmixup train mnist --method cutmix --k 1
    kmixup train mnist --method cutmix --k 16
    # resume after the last saved epoch
    kmixup train mnist --epochs 3 --resume
    ```

    Args:
        seed: Seed of the split, the weights and all random draws.
        out: Folder of the run. By default one in out/, named after the main settings.
        resume: Continue after the last saved epoch.
        overwrite: Replace the run in the folder.
        device: Device to train on.
        quiet: Show no progress.
    """
    from kmixup.lab.train.loop import train as run

    mixing = Method.given(method)
    options.import_from_here(data, model, mixing.name)
    read_as = TrialData(**reading)
    with options.spinner(f"reading {data}", quiet=quiet):
        loaded = load(data, seed=seed, **read_as.data_options())
    options.print_columns(loaded)
    usual = defaults_for(data, loaded)
    mixing, notes = capped(mixing, len(loaded.x_train))
    for note in notes:
        options.print_status(note)
    network = model or usual.model
    trial = Trial(
        data, network, mixing, replace(usual.protocol, **protocol), seed,
        shifts=shifts_from({name: tests[name] for name in SHIFTS if name in tests}),
        clean_statistics=tests.get("clean_statistics"),
        code=code_of(data, network, mixing.name),
        **vars(read_as),
    )  # fmt: skip
    folder = out or Path("out") / folder_name(trial)
    if resume and not (folder / checkpoint.NAME).is_file():
        options.print_status(f"{folder} has no checkpoint: starting from the beginning")
    try:
        trained = run(
            trial, data=loaded, out=folder, resume=resume, overwrite=overwrite, device=device,
            progress=False if quiet else None,
        )  # fmt: skip
    except KeyboardInterrupt:
        done = checkpoint.completed_epochs(folder / checkpoint.NAME)
        options.print_status(
            f"stopped with {done} of {trial.protocol.epochs} epochs saved in {folder}; "
            f"resume with\n  {options.typed('--resume', '--overwrite')} --resume"
        )
        sys.exit(INTERRUPTED)
    print(summary(trial, loaded, trained.record))
    print(f"model: kmixup predict {shlex.quote(str(folder))} NEW")
    print(f"record: {folder / record.NAME}")


def folder_name(trial: Trial) -> str:
    """Return a name of the main settings; a run with other settings needs its own folder.

    >>> from kmixup.lab.trial import Method
    >>> folder_name(Trial("own/table.csv", "mlp-iris", Method("kmixup", k=16)))
    'table.csv-mlp-iris-kmixup-k16-alpha0.2-seed0'
    """
    words = f"{Path(trial.data).name} {trial.model} {trial.method.label} seed{trial.seed}"
    return re.sub(r"[^\w.+-]+", "-", words.replace("=", ""))


def summary(trial: Trial, data: Dataset, record: dict[str, Any]) -> str:
    """Return the results of a run, and those of a constant answer."""
    scores, method = read_scores(record["result"]), trial.method.label
    if trial.method.alpha_rule != "same":
        method += f", alpha {record['alpha']:.4g} at k = {trial.method.k}"
    measure = scores.measure
    lines = [
        f"{data.title}, {trial.model}, {method}: test {measure.name} "
        f"{measure.text(scores.error)} on {count(len(data.y_test), 'sample')}, "
        f"{', '.join(figures(scores))} "
        f"after {count(len(record['epochs']), 'epoch')} in {record['seconds']:.1f} s",
        f"training {measure.name} {measure.text(record['training']['error'])}",
        constant_sentence([scores]),
    ]
    if note := training_note(record):
        lines.append(f"note: {note}")
    if trial.clean_statistics and CLEAN not in record:
        lines.append("note: the network has no batch norm, so --clean-statistics changes nothing")
    if CLEAN in record:
        clean = measure.text(read_scores(record[CLEAN]).error)
        lines.append(
            f"with clean batch-norm statistics, which the model keeps: test {measure.name} {clean}"
        )
    for name, shift in SHIFTS.items():
        for level in record.get(name, ()):
            lines.append(f"under {shift.title} of {level['eps']:g}/255: error {level['error']:.2%}")
    return "\n".join(lines)
