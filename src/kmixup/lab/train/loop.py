"""Train a network as a trial says, and write down its results.

All randomness comes from the trial's streams. So the same trial gives the same result, and a
resumed run ends as if it had never stopped: bitwise identical on the same CPU model and number of
threads.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn
from torch.optim import Optimizer

from kmixup._checks import SettingError, check_choice
from kmixup.batchnorm import clean_batchnorm, has_batchnorm
from kmixup.lab import _provenance
from kmixup.lab._files import check_folder
from kmixup.lab._terminal import SafeConsole
from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.shifts import SHIFTS, score_test_under
from kmixup.lab.train import checkpoint, record, setup
from kmixup.lab.train.model import SETTINGS, WEIGHTS, Model
from kmixup.lab.train.step import Step, gather
from kmixup.lab.train.streams import BatchRows, Streams, batch_lengths, drawing_from, epoch
from kmixup.lab.trial import CLEAN, Trial

TEST_BATCH = 512
SHOWN = "loss {task.fields[loss]:.4f}  {task.fields[error]}  lr {task.fields[rate]:g}"
Saved = nn.Module | Optimizer | Step  # has a state_dict


@dataclass(frozen=True)
class Trained:
    """A trained network on the CPU, and its record, as `record.describe` makes it."""

    net: nn.Module
    record: dict[str, Any]


def train(
    trial: Trial,
    *,
    data: Dataset | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    device: str = "auto",
    progress: bool | None = None,
) -> Trained:
    """Run a trial.

    Args:
        trial: what to run.
        data: the trial's data, if they are loaded already.
        out: folder for the record, the model, and a checkpoint after every tested epoch. Only one
            run at a time can use it.
        resume: continue from the checkpoint in `out`, if there is one.
        overwrite: start afresh, and delete what an earlier run left in `out`.
        device: "auto", "cpu" or "cuda".
        progress: show a progress bar; by default if standard error is a terminal.

    >>> from kmixup.lab.trial import Protocol
    >>> trained = train(Trial("iris", "mlp-iris", protocol=Protocol(epochs=2)), device="cpu")
    >>> sorted(trained.record["result"])
    ['answers', 'auc', 'balanced_accuracy', 'baseline', 'brier', 'ece', 'error', 'nll']
    """
    folder = None if out is None else Path(out).expanduser()
    _check_options(folder, device, resume=resume, overwrite=overwrite)
    data = setup.load_data(trial) if data is None else data
    setup.check_data(trial, data)
    streams = Streams(trial.seed)
    net = setup.network(trial, data, streams)
    config = trial.to_dict() | {checkpoint.DIGEST: data.digest}
    with checkpoint.locked(folder) as check_lock:
        if folder is not None and overwrite:
            _clear(folder)
        elif folder is not None:
            checkpoint.check(folder, config, resume=resume)
            _check_free(folder)
        (strength,) = setup.strengths([trial], [data])
        # products as small as those of a table are fastest on one thread
        threads = 1 if len(data.shape) == 1 else torch.get_num_threads()
        with setup.computing_on(threads):
            moved = _moved(data, setup.device_of(device))
            step = Step(net.to(moved.x_train.device), trial, moved, streams, strength.alpha)
            history = _fit(trial, step, folder, config, check_lock, progress)
            written = _results(trial, step, history, strength)
        net.cpu()
        if folder is not None:
            check_lock()
            record.write(written, folder)
            Model.of(net, trial, data, written).save(folder)
    return Trained(net, written)


def _fit(
    trial: Trial,
    step: Step,
    out: Path | None,
    config: Mapping[str, Any],
    check_lock: Callable[[], None],
    shown: bool | None,
) -> record.History:
    """Train to the last epoch, from the checkpoint in `out` if there is one."""
    protocol, data = trial.protocol, step.data
    optimiser = setup.optimiser_of([*step.net.parameters(), *step.learned], protocol)
    parts: dict[str, Saved] = {"model": step.net, "mixer": step.mixer}
    parts |= {"optimiser": optimiser, "step": step}
    path = None if out is None else out / checkpoint.NAME
    history = _restored(path, config, parts) if path is not None and path.is_file() else []
    measure = step.objective.measure
    with _bar(shown=shown) as bar:
        task = bar.add_task(data.name, total=protocol.epochs, loss=math.nan, rate=0.0, error="")
        for number in range(len(history), protocol.epochs):
            start = time.perf_counter()
            if step.table is not None:
                step.table.refresh(number)
            steps = epoch(trial, len(data.x_train), step.alpha, step.streams)
            rates = [
                protocol.rate_at(number * len(steps) + i, len(steps)) for i in range(len(steps))
            ]
            with drawing_from(step.streams.network):
                loss, accuracy = _epoch(step, optimiser, rates, steps, number, bar)
            error = None
            if protocol.tests(number):
                logits = _logits(step.model, data, data.x_test)
                if not logits.isfinite().all():
                    raise setup.diverged(number, rates[-1])
                error = float(step.objective.error(logits, data.y_test))
            seconds = time.perf_counter() - start
            history.append(record.entry(number + 1, rates[-1], loss, accuracy, error, seconds))
            if error is not None:
                bar.update(task, error=f"{measure.name} {measure.text(error)}")
            if error is not None and path is not None:
                states = {name: part.state_dict() for name, part in parts.items()}
                check_lock()
                checkpoint.save(path, {"config": config, "history": history, **states})
    return history


def _epoch(
    step: Step,
    optimiser: Optimizer,
    rates: list[float],
    steps: list[BatchRows],
    number: int,
    bar: Progress,
) -> tuple[float, float]:
    """Train for one epoch; return the mean loss and accuracy over its mixed samples."""
    step.model.train()
    objective = step.objective
    total, count = 0.0, 0
    met = whole = torch.zeros((), device=step.data.x_train.device)
    for i, (rate, rows) in enumerate(zip(rates, steps, strict=True)):
        optimiser.param_groups[0]["lr"] = rate
        outputs, mixed = step.run(rows)
        y = step.weighted(mixed)
        optimiser.zero_grad()
        loss = objective.loss(outputs, y, len(outputs))
        loss = loss if mixed.penalty is None else loss + mixed.penalty
        loss.backward()
        optimiser.step()
        if step.table is not None:
            step.table.update_average()
        value = float(loss.detach())
        if not math.isfinite(value):
            raise setup.diverged(number, rate)
        total += value * len(rows.first)
        count += len(rows.first)
        part_met, part = objective.fit(outputs, y.detach())
        met, whole = met + part_met, whole + part
        done = number + (i + 1) / len(steps)
        bar.update(bar.task_ids[0], completed=done, loss=value, rate=rate)
    return total / count, float(met / whole)


def _bar(*, shown: bool | None) -> Progress:
    """Return a progress bar; by default it is shown if standard error is a terminal."""
    console = SafeConsole(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        MofNCompleteColumn(),
        TextColumn(SHOWN, markup=False),
        BarColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not (console.is_terminal if shown is None else shown),
    )


def _logits(model: nn.Module, data: Dataset, x: Tensor) -> Tensor:
    """Return the network's outputs for clean samples `x`, in eval mode."""
    model.eval()
    with torch.no_grad():
        return torch.cat([model(data.normalise(part)) for part in torch.split(x, TEST_BATCH)])


def _results(
    trial: Trial, step: Step, history: record.History, strength: setup.Strength
) -> dict[str, Any]:
    """Score the trained network, and return the record."""
    model, data, objective = step.model, step.data, step.objective
    device = data.x_train.device
    rows = record.training_rows(len(data.x_train)).to(device)
    on_test, on_training = (_logits(model, data, x) for x in (data.x_test, data.x_train[rows]))
    on_final = _logits(model, data, data.x_final) if len(data.x_final) else None
    outputs = on_test, on_training, on_final
    written = record.describe(
        trial, data, history, objective, *outputs, strength, _provenance.machine(device)
    )
    for shift in SHIFTS if trial.shifts else ():
        written[shift] = []
        for eps in trial.levels(shift):
            generator = Streams(trial.seed).noise
            scores = score_test_under(shift, model, data, eps=eps, generator=generator)
            written[shift].append({"eps": eps, **vars(scores)})
    if trial.clean_statistics and has_batchnorm(step.net):
        clean_batchnorm(step.net, _clean_batches(data, trial))
        logits = _logits(model, data, data.x_test)
        written[CLEAN] = asdict(objective.scores(logits, data.y_test))
    return written


def _clean_batches(data: Dataset, trial: Trial) -> Iterator[Tensor]:
    """Yield the training inputs in random order, augmented as in training, and not mixed."""
    streams = Streams(trial.seed)
    order = torch.randperm(len(data.x_train), generator=streams.order)
    augment = streams.augment if trial.protocol.augment else None
    # batch norm of a table cannot take the variance of one sample
    for rows in torch.split(order, batch_lengths(len(order), TEST_BATCH)):
        yield gather(rows, data, augment, trial.protocol.layout)[0]


def _restored(path: Path, config: Mapping[str, Any], parts: Mapping[str, Saved]) -> record.History:
    """Continue from a checkpoint; return its history."""
    state = checkpoint.load(path, config)
    try:
        for name, part in parts.items():
            part.load_state_dict(state[name])
    except (KeyError, RuntimeError, ValueError) as error:
        raise checkpoint.UnusableError(
            "the checkpoint must be of the network that is trained, it does not fit "
            f"({' '.join(str(error).split())}): delete it, or choose another folder"
        ) from error
    history: record.History = state["history"]
    return history


def _moved(data: Dataset, device: torch.device) -> Dataset:
    names = ("x_train", "y_train", "x_test", "y_test", "x_final", "y_final", "mean", "std")
    return replace(data, **{name: getattr(data, name).to(device) for name in names})


def _clear(folder: Path) -> None:
    """Delete what an earlier run has written."""
    for name in (checkpoint.NAME, record.NAME, SETTINGS, WEIGHTS):
        (folder / name).unlink(missing_ok=True)


def _check_free(folder: Path) -> None:
    """Raise if a folder has the results of a run without its checkpoint: they would be replaced."""
    results = [name for name in (record.NAME, SETTINGS, WEIGHTS) if (folder / name).exists()]
    if results and not (folder / checkpoint.NAME).is_file():
        raise SettingError(
            "out",
            f"must be a new folder, {folder} holds {results[0]} of a run without its checkpoint: "
            "choose another folder, or overwrite it (--overwrite)",
        )


def _check_options(out: Path | None, device: str, *, resume: bool, overwrite: bool) -> None:
    check_choice("device", device, setup.DEVICES)
    if device == "cuda" and not torch.cuda.is_available():
        raise SettingError(
            "device", f"must be one that this machine has, got {device!r}: use auto or cpu"
        )
    if out is not None:
        check_folder(out)
    if resume and overwrite:
        raise SettingError(
            "overwrite", "starts afresh, and resume (--resume) continues: set one of them"
        )
