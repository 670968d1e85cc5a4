"""Train a network as a trial says, and write down its results.

All randomness comes from the trial's streams. So the same trial gives the same result, and a
resumed run ends as if it had never stopped: bitwise identical on the same CPU model and number of
threads.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from kmixup.batchnorm import clean_batchnorm, has_batchnorm
from kmixup.lab.checks import SettingError, check_choice, check_whole
from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.shifts import SHIFTS, score_test_under
from kmixup.lab.files import check_folder
from kmixup.lab.train import checkpoint, precision, ranks, record, setup
from kmixup.lab.train.config import Device, Trial
from kmixup.lab.train.model import SETTINGS, WEIGHTS, Model
from kmixup.lab.train.progress import Progress
from kmixup.lab.train.step import Step, gather
from kmixup.lab.train.streams import BatchRows, Streams, batch_lengths, drawing_from, epoch

if TYPE_CHECKING:
    from lightning_fabric import Fabric

DEVICES = get_args(Device)
PRECISION = {"fp32": "32-true", "bf16": "bf16-mixed"}
TEST_BATCH = 512
Saved = nn.Module | Optimizer  # has a state_dict


@dataclass(frozen=True)
class Trained:
    """A trained network on the CPU, and its record, as `record.describe` makes it."""

    net: nn.Module
    record: dict[str, Any]


@dataclass(frozen=True)
class _Run:
    """A trial and how it is run; sent to every process."""

    trial: Trial
    data: Dataset
    strength: setup.Strength
    config: Mapping[str, Any]
    threads: int
    out: Path | None
    progress: bool | None


def train(
    trial: Trial,
    *,
    data: Dataset | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    device: str = "auto",
    devices: int = 1,
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
        device: "auto", "cpu", "cuda" or "mps".
        devices: how many of them. Each process pairs within its share of every batch.
        progress: show a progress bar; by default if standard error is a terminal.

    >>> from kmixup.lab.train.config import Protocol
    >>> trained = train(Trial("iris", "mlp-iris", protocol=Protocol(epochs=2)), device="cpu")
    >>> sorted(trained.record["result"])
    ['answers', 'auc', 'balanced_accuracy', 'baseline', 'ece', 'error', 'nll']
    """
    folder = None if out is None else Path(out).expanduser()
    into_out = {"resume": resume, "overwrite": overwrite}
    _check_options(trial, folder, device, devices, into_out)
    data = setup.load_data(trial) if data is None else data
    setup.check_data(trial, data)
    net = setup.network(trial, data, Streams(trial.seed))
    config = trial.to_dict() | {"devices": devices, checkpoint.DIGEST: data.digest}
    with checkpoint.locked(folder):
        if folder is not None and overwrite:
            _clear(folder)
        elif folder is not None:
            checkpoint.check(folder, config, resume=resume)
        (strength,) = setup.strengths([trial], [data])
        # products as small as those of a table are fastest on one thread
        threads = 1 if len(data.shape) == 1 else max(1, torch.get_num_threads() // devices)
        run = _Run(trial, data, strength, config, threads, folder, progress)
        from lightning_fabric import Fabric  # here, because it takes as long to import as torch

        logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
        fabric = Fabric(
            accelerator=device,
            devices=devices,
            strategy="ddp_spawn" if devices > 1 else "auto",
            precision=PRECISION[trial.protocol.precision],  # type: ignore[arg-type]
        )
        launch = fabric.launch if devices == 1 else partial(ranks.launch, fabric)
        with setup.computing_on(threads):
            written, weights = launch(partial(_train, run))
        net.load_state_dict(weights)
        if folder is not None:
            Model.of(net, trial, data, written).save(folder)
    return Trained(net, written)


def _train(run: _Run, fabric: Fabric) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Train in one process; return the record and the weights."""
    torch.set_num_threads(run.threads)
    trial, protocol, alpha = run.trial, run.trial.protocol, run.strength.alpha
    rank, size = fabric.global_rank, fabric.world_size
    streams = Streams(trial.seed, rank)
    data = _moved(run.data, fabric.device)
    net = setup.network(trial, data, streams)
    step = Step(fabric.setup_module(net), trial, data, streams, alpha)
    learned = [*net.parameters(), *step.learned]
    optimiser = cast(Optimizer, fabric.setup_optimizers(setup.optimiser_of(learned, protocol)))
    saved: dict[str, Saved] = {"model": net, "mixer": step.mixer, "optimiser": optimiser}
    history = _restore(run, step, saved, rank)

    shown = run.progress if rank == 0 else False
    bar = Progress(data.name, protocol.epochs, step.objective.measure, shown=shown)
    with bar as progress:
        for number in range(len(history), protocol.epochs):
            start = time.perf_counter()
            if step.table is not None:
                step.table.refresh(number)
            steps = epoch(trial, len(data.x_train), alpha, streams, rank=rank, ranks=size)
            rates = [
                protocol.rate_at(number * len(steps) + i, len(steps)) for i in range(len(steps))
            ]
            with drawing_from(streams.network):
                loss, accuracy = _epoch(fabric, step, optimiser, rates, steps, progress, number)
            error = None
            if protocol.tests(number):
                logits = _logits(step.model, data, data.x_test)
                if not logits.isfinite().all():
                    raise setup.diverged(number, rates[-1])
                error = float(step.objective.error(logits, data.y_test))
            seconds = time.perf_counter() - start
            history.append(record.entry(number + 1, rates[-1], loss, accuracy, error, seconds))
            if error is not None:
                progress.step(number + 1, rates[-1], loss, error)
                _save(run, fabric, step, saved, history)

    written = _results(run, fabric, step, history)
    if run.out is not None and rank == 0:
        record.write(written, run.out)
    return written, {name: value.cpu() for name, value in net.state_dict().items()}


def _epoch(
    fabric: Fabric,
    step: Step,
    optimiser: Optimizer,
    rates: list[float],
    steps: list[BatchRows],
    progress: Progress,
    number: int,
) -> tuple[float, float]:
    """Train for one epoch; return the mean loss and accuracy over its mixed samples."""
    step.model.train()
    objective = step.objective
    total, count = 0.0, 0
    met = whole = torch.zeros((), device=fabric.device)
    for i, (rate, rows) in enumerate(zip(rates, steps, strict=True)):
        optimiser.param_groups[0]["lr"] = rate
        outputs, mixed = step.run(rows)
        y = step.weighted(mixed)
        optimiser.zero_grad()
        # ranks average their gradients, so each divides by an equal share of the samples
        copies = len(outputs) / len(rows.first)  # 2 with clean rows beside the mixed ones
        loss = objective.loss(outputs, y, copies * rows.size / fabric.world_size)
        loss = loss if mixed.penalty is None else loss + mixed.penalty
        fabric.backward(loss)
        _average(fabric, step.learned)
        optimiser.step()
        if step.table is not None:
            step.table.update_average()
        value = float(loss.detach())
        # several ranks must stop together: after the epoch, by the logits
        if not math.isfinite(value) and fabric.world_size == 1:
            raise setup.diverged(number, rate)
        total += value * rows.size
        count += rows.size
        part_met, part = objective.fit(outputs, y.detach())
        met, whole = met + part_met, whole + part
        progress.step(number + (i + 1) / len(steps), rate, value)
    return total / count, float(met / whole)


def _average(fabric: Fabric, learned: list[nn.Parameter]) -> None:
    """Average the gradients of what a mixer learns over all ranks; DDP does the network's."""
    if fabric.world_size > 1:
        for parameter in learned:
            grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parameter.grad = fabric.all_reduce(grad, reduce_op="mean")  # type: ignore[assignment]


def _logits(model: nn.Module, data: Dataset, x: Tensor) -> Tensor:
    """Return the network's outputs for clean samples `x`, in eval mode."""
    model.eval()
    with torch.no_grad():
        return torch.cat([model(data.normalise(part)) for part in torch.split(x, TEST_BATCH)])


def _results(run: _Run, fabric: Fabric, step: Step, history: record.History) -> dict[str, Any]:
    """Score the trained network, and return the record."""
    trial, model, data, objective = run.trial, step.model, step.data, step.objective
    rows = record.training_rows(len(data.x_train)).to(fabric.device)
    on_test, on_training = (_logits(model, data, x) for x in (data.x_test, data.x_train[rows]))
    on_machine = record.machine(fabric.device, fabric.world_size)
    written = record.describe(
        trial, data, history, objective, on_test, on_training, run.strength, on_machine
    )
    for shift in SHIFTS if trial.shifts else ():
        written[shift] = []
        for eps in trial.levels(shift):
            generator = Streams(trial.seed).noise
            with fabric.autocast():  # Fabric's wrapper forbids gradients for the inputs only
                scores = score_test_under(shift, step.net, data, eps=eps, generator=generator)
            written[shift].append({"eps": eps, **vars(scores)})
    if trial.clean_statistics and has_batchnorm(step.net):
        clean_batchnorm(step.net, _clean_batches(data, trial))
        logits = _logits(model, data, data.x_test)
        written[record.CLEAN] = asdict(objective.scores(logits, data.y_test))
    return written


def _clean_batches(data: Dataset, trial: Trial) -> Iterator[Tensor]:
    """Yield the training inputs in random order, augmented as in training, and not mixed."""
    streams = Streams(trial.seed)
    order = torch.randperm(len(data.x_train), generator=streams.order)
    augment = streams.augment if trial.protocol.augment else None
    # batch norm of a table cannot take the variance of one sample
    for rows in torch.split(order, batch_lengths(len(order), TEST_BATCH, 2)):
        yield gather(rows, data, augment, trial.protocol.layout)[0]


def _save(
    run: _Run, fabric: Fabric, step: Step, saved: Mapping[str, Saved], history: record.History
) -> None:
    """Let rank 0 write a checkpoint with the state of every rank."""
    if run.out is None:
        return
    states = [step.rank_state()] * fabric.world_size
    if fabric.world_size > 1:
        torch.distributed.all_gather_object(states, states[0])
    if fabric.global_rank == 0:
        state = {"config": run.config, "history": history, "ranks": states}
        state |= {name: part.state_dict() for name, part in saved.items()}
        checkpoint.save(run.out / checkpoint.NAME, state)


def _restore(run: _Run, step: Step, saved: Mapping[str, Saved], rank: int) -> record.History:
    """Continue from the checkpoint, if there is one; return its history."""
    if run.out is None or not (run.out / checkpoint.NAME).is_file():
        return []
    state = checkpoint.load(run.out / checkpoint.NAME, run.config)
    try:
        for name, part in saved.items():
            part.load_state_dict(state[name])
        step.load_rank_state(state["ranks"][rank])
    except (KeyError, IndexError, RuntimeError, ValueError) as error:
        raise checkpoint.UnusableError(
            "the checkpoint must be of the network that is trained, it does not fit "
            f"({' '.join(str(error).split())}): delete it, or choose another folder"
        ) from error
    history: record.History = state["history"]
    return history


def _moved(data: Dataset, device: torch.device) -> Dataset:
    names = ("x_train", "y_train", "x_test", "y_test", "mean", "std")
    return replace(data, **{name: getattr(data, name).to(device) for name in names})


def _clear(folder: Path) -> None:
    """Delete what an earlier run has written."""
    for name in (checkpoint.NAME, record.NAME, SETTINGS, WEIGHTS):
        (folder / name).unlink(missing_ok=True)


def _check_options(
    trial: Trial, out: Path | None, device: str, devices: int, into_out: Mapping[str, bool]
) -> None:
    check_choice("device", device, DEVICES)
    accelerators = {"cuda": torch.cuda, "mps": torch.backends.mps}
    if device in accelerators and not accelerators[device].is_available():
        raise SettingError(
            "device", f"must be one that this machine has, got {device!r}: use auto or cpu"
        )
    check_whole("devices", devices)
    for name, given in into_out.items():
        if given and out is None:
            raise SettingError(name, "needs a folder: set out (--out)")
    if out is not None:
        check_folder(out)
    if into_out["resume"] and into_out["overwrite"]:
        raise SettingError(
            "overwrite", "starts afresh, and resume (--resume) continues: set one of them"
        )
    precision.check(trial.protocol.precision, device)
    least = max(2, trial.method.smallest)
    if (share := trial.protocol.batch_size // devices) < least:
        raise SettingError(
            "batch_size",
            f"must give each of {devices} devices at least {least} samples for "
            f"k = {trial.method.k}, gives {share}: raise it or lower k",
        )
