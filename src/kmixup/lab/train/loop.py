"""One plain loop: train a network as a trial says, and write down what came of it.

The data stay in memory. All chance comes from the trial's own streams. So the same trial gives
the same result, and a run that goes on from a checkpoint ends as if it had never stopped: to the
last bit, on the CPU of one machine and with the same number of threads.
"""

from __future__ import annotations

import io
import logging
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from kmixup.batchnorm import clean_batchnorm, has_batchnorm
from kmixup.lab.checks import SettingError, check_whole
from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.shifts import SHIFTS, score_test_under
from kmixup.lab.files import check_folder
from kmixup.lab.train import checkpoint, precision, ranks, record
from kmixup.lab.train.batches import gather
from kmixup.lab.train.config import Trial
from kmixup.lab.train.mixing import Forward, laid_out, memory_of, trained_mixer
from kmixup.lab.train.model import Model
from kmixup.lab.train.progress import Bar, Curves, check_curves
from kmixup.lab.train.setup import (
    DivergedError,
    Strength,
    check_data,
    computing_on,
    diverged,
    load_data,
    network,
    optimiser_of,
    set_rate,
    strengths,
    threads_for,
)
from kmixup.lab.train.streams import BatchRows, Streams, batch_lengths, drawing_from, epoch

if TYPE_CHECKING:
    from lightning_fabric import Fabric

DEVICES = ("auto", "cpu", "cuda", "mps")
PRECISION = {"fp32": "32-true", "bf16": "bf16-mixed"}
TEST_BATCH = 512


@dataclass(frozen=True)
class Trained:
    """What training gives.

    Attributes:
        net: the trained network, on the CPU.
        record: of the training, as `record.describe` makes it.
    """

    net: nn.Module
    record: dict[str, Any]


@dataclass(frozen=True)
class _Job:
    """A trial and the circumstances of its run; goes to every process."""

    trial: Trial
    strength: Strength
    threads: int
    out: Path | None
    resume: bool
    progress: bool | None
    tensorboard: bool


def train(
    trial: Trial,
    *,
    data: Dataset | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    device: str = "auto",
    devices: int = 1,
    progress: bool | None = None,
    tensorboard: bool = False,
) -> Trained:
    """Run a trial.

    Args:
        trial: what to run.
        data: the trial's data where they are loaded already.
        out: folder for the record and the model, and for a checkpoint after every epoch.
        resume: go on from the checkpoint in `out`, if there is one.
        device: "auto", "cpu", "cuda" or "mps".
        devices: how many of them. Each process takes its share of every batch and pairs
            inside it.
        progress: show a bar; by default where standard error is a terminal.
        tensorboard: write curves into `out`.

    >>> from kmixup.lab.train.config import Protocol
    >>> trained = train(Trial("iris", "mlp-iris", protocol=Protocol(epochs=2)), device="cpu")
    >>> sorted(trained.record["result"])
    ['answers', 'auc', 'balanced_accuracy', 'baseline', 'ece', 'error', 'nll']
    """
    folder = None if out is None else Path(out).expanduser()
    _check_circumstances(folder, resume, device, devices, tensorboard)
    make_safe = precision.check if devices == 1 else precision.prepare
    make_safe(trial.protocol.precision, device)
    data = load_data(trial) if data is None else data
    check_data(trial, data)
    if (share := trial.protocol.batch_size // devices) < max(2, trial.method.smallest):
        raise SettingError(
            "batch_size",
            f"must give each of {devices} devices at least {max(2, trial.method.smallest)} "
            f"samples for k = {trial.method.k}, gives {share}: raise it or lower k",
        )
    if trial.shifts:
        data.pixel_step(1)  # refuses data without pixels
    (strength,) = strengths([trial], [data])
    threads = threads_for(data, devices)
    job = _Job(trial, strength, threads, folder, resume, progress, tensorboard)
    net = network(trial, data, Streams(trial.seed))
    if folder is not None and (folder / checkpoint.NAME).is_file():
        checkpoint.load(folder / checkpoint.NAME, _config(trial, devices))  # refuses another run
    from lightning_fabric import Fabric  # here, for it takes as long to import as torch itself

    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    fabric = Fabric(
        accelerator=device,
        devices=devices,
        strategy="ddp_spawn" if devices > 1 else "auto",
        precision=PRECISION[trial.protocol.precision],  # type: ignore[arg-type]
    )
    run = partial(_run, job, data)
    ended = fabric.launch(run) if devices == 1 else ranks.launch(fabric, run)
    if isinstance(ended, DivergedError):
        raise ended
    written, weights = ended
    net.load_state_dict(torch.load(io.BytesIO(weights), weights_only=True))
    if folder is not None:
        Model.of(net, trial, data, written).save(folder)
    return Trained(net, written)


# The record, and the weights as a file: tensors themselves do not outlive their process.
Ended = tuple[dict[str, Any], bytes]


def _run(job: _Job, data: Dataset, fabric: Fabric) -> Ended | DivergedError:
    """The whole training in one process. A divergence is returned: other processes send it so."""
    try:
        with computing_on(job.threads):
            return _train(fabric, job, data)
    except DivergedError as error:
        return error


def _train(fabric: Fabric, job: _Job, data: Dataset) -> Ended:
    trial, protocol = job.trial, job.trial.protocol
    rank, size = fabric.global_rank, fabric.world_size
    streams = Streams(trial.seed, rank)
    net = network(trial, data, streams)
    mixer = trained_mixer(trial, data, net, streams, job.strength.alpha)
    learned = [*net.parameters(), *_own_parameters(mixer, net)]
    model, optimiser = fabric.setup(net, optimiser_of(learned, protocol))
    data = _moved(data, fabric.device)
    mixer = mixer.to(fabric.device)
    forward = Forward(model, trial, data, streams, job.strength.alpha, mixer)
    objective = forward.objective
    config = _config(trial, size)
    path = None if job.out is None else job.out / checkpoint.NAME
    history: record.History = []
    if path is not None and job.resume and path.is_file():
        history = _restore(checkpoint.load(path, config), net, forward, optimiser, streams, rank)

    first = rank == 0
    n = len(data.x_train)
    bar = Bar(
        data.name,
        protocol.epochs,
        len(batch_lengths(n, protocol.batch_size, 2 * size, drop=bool(protocol.drop_last))),
        measure=objective.measure,
        shown=job.progress if first else False,
    )
    curves = Curves(job.out / "tensorboard" if first and job.tensorboard and job.out else None)
    with bar:
        for number in range(len(history), protocol.epochs):
            rate = protocol.rates()[number]
            start = time.perf_counter()
            set_rate(optimiser, rate)
            if forward.table is not None:
                forward.table.refresh(number)
            steps = epoch(trial, n, job.strength.alpha, streams, rank=rank, ranks=size)
            with drawing_from(streams.network):
                loss, accuracy = _epoch(fabric, forward, optimiser, steps, bar, number)
            error = None
            if protocol.tests(number):
                logits = _logits(model, data)
                if not logits.isfinite().all():
                    raise diverged(number, rate)
                error = float(objective.error(logits, data.y_test))
            seconds = time.perf_counter() - start
            history.append(record.figures(number + 1, rate, loss, accuracy, error, seconds))
            if error is None:
                continue
            bar.scored(number, history[-1])
            curves.scored(number + 1, history[-1])
            generators = torch.stack(_gathered(fabric, streams.state()))
            memory = memory_of(mixer)
            memories = _gathered(fabric, {} if memory is None else memory.get_extra_state() or {})
            # batch norm of the moving average has seen the samples of its own process alone
            table = {} if forward.table is None else forward.table.state_dict()
            features = _gathered(fabric, table)
            if path is not None and first:
                state = {
                    "config": config,
                    "history": history,
                    "model": net.state_dict(),
                    "mixer": mixer.state_dict(),
                    "optimiser": optimiser.state_dict(),
                    "generators": generators,
                    "memories": memories,
                    "features": features,
                }
                checkpoint.save(path, state)
    curves.close()
    result = objective.scores(_logits(model, data), data.y_test)
    written = record.describe(
        trial, data, history, result, strength=job.strength, device=fabric.device, devices=size
    )
    written |= _robustness(model, data, trial)
    if trial.clean_statistics and has_batchnorm(net):
        clean_batchnorm(net, _clean_batches(data, trial))
        written[record.CLEAN] = asdict(objective.scores(_logits(model, data), data.y_test))
    if job.out is not None and first:
        record.write(written, job.out)
    weights = io.BytesIO()
    torch.save({name: value.cpu() for name, value in net.state_dict().items()}, weights)
    return written, weights.getvalue()


def _epoch(
    fabric: Fabric,
    forward: Forward,
    optimiser: torch.optim.Optimizer,
    steps: list[BatchRows],
    bar: Bar,
    number: int,
) -> tuple[float, float]:
    """Train for one epoch; the mean loss and accuracy over its samples, as mixed."""
    forward.model.train()
    rate = optimiser.param_groups[0]["lr"]
    total, count = 0.0, 0
    objective = forward.objective
    own = _own_parameters(forward.mixer, forward.model)
    met = whole = torch.zeros((), device=fabric.device)
    for i, step in enumerate(steps, 1):
        outputs, mixed = forward.run(step)
        y = forward.weighted(mixed)
        optimiser.zero_grad()
        # processes average their gradients, so each divides by an equal share of the samples
        rows = len(outputs) / len(step.first)  # 2 with a clean batch beside the mixed one
        loss = objective.loss(outputs, y, rows * step.size / fabric.world_size)
        loss = loss if mixed.penalty is None else loss + mixed.penalty
        fabric.backward(loss)
        _average(fabric, own)
        optimiser.step()
        if forward.table is not None:
            forward.table.follow()
        value = float(loss.detach())
        # in a job of several processes all must stop at once: after the epoch, by the logits
        if not math.isfinite(value) and fabric.world_size == 1:
            raise diverged(number, rate)
        total += value * step.size
        count += step.size
        part_met, part = objective.fit(outputs, y.detach())
        met, whole = met + part_met, whole + part
        bar.step(number, i, rate, value)
    return total / count, float(met / whole)


def _logits(model: nn.Module, data: Dataset) -> Tensor:
    """Logits of the test part, as it is."""
    model.eval()
    with torch.no_grad():
        batches = torch.split(data.x_test, TEST_BATCH)
        return torch.cat([model(data.normalise(x)) for x in batches])


def _clean_batches(data: Dataset, trial: Trial) -> Iterator[Tensor]:
    """The training inputs in random order, augmented as in training, and not mixed."""
    streams = Streams(trial.seed)
    order = torch.randperm(len(data.x_train), generator=streams.order)
    augment = streams.augment if trial.protocol.augment else None
    # batch norm of a table has no variance of one sample
    for rows in torch.split(order, batch_lengths(len(order), TEST_BATCH, 2)):
        x, _ = gather(rows, data, augment)
        yield laid_out(x, trial.protocol.layout)


def _robustness(model: nn.Module, data: Dataset, trial: Trial) -> dict[str, list[dict[str, float]]]:
    """Scores under the shifts of the trial, by their names."""
    if not trial.shifts:
        return {}

    def scores(shift: str, eps: float) -> dict[str, float]:
        generator = Streams(trial.seed).noise
        return vars(score_test_under(shift, model, data, eps=eps, generator=generator))

    return {
        shift: [{"eps": eps, **scores(shift, eps)} for eps in trial.levels(shift)]
        for shift in SHIFTS
    }


def _own_parameters(mixer: nn.Module, net: nn.Module) -> list[nn.Parameter]:
    """What a mixer learns beside the network."""
    shared = set(net.parameters())
    own = (parameter for parameter in mixer.parameters() if parameter.requires_grad)
    return [parameter for parameter in own if parameter not in shared]


def _average(fabric: Fabric, own: list[nn.Parameter]) -> None:
    """Average gradients of a mixer over all processes; those of the network are already."""
    if fabric.world_size > 1:
        for parameter in own:
            grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parameter.grad = fabric.all_reduce(grad, reduce_op="mean")  # type: ignore[assignment]


def _config(trial: Trial, devices: int) -> dict[str, Any]:
    """Settings that must be equal for a run to go on from a checkpoint."""
    return trial.to_dict() | {"devices": devices}


def _moved(data: Dataset, device: torch.device) -> Dataset:
    names = ("x_train", "y_train", "x_test", "y_test", "mean", "std")
    return replace(data, **{name: getattr(data, name).to(device) for name in names})


def _gathered(fabric: Fabric, own: Any) -> list[Any]:
    """What each of the processes has."""
    every = [own] * fabric.world_size
    if fabric.world_size > 1:
        torch.distributed.all_gather_object(every, own)
    return every


def _restore(
    state: dict[str, Any],
    net: nn.Module,
    forward: Forward,
    optimiser: torch.optim.Optimizer,
    streams: Streams,
    rank: int,
) -> record.History:
    try:
        net.load_state_dict(state["model"])
        forward.mixer.load_state_dict(state["mixer"])
        memory = memory_of(forward.mixer)
        if memory is not None and state["memories"][rank]:  # of each process its own
            memory.set_extra_state(state["memories"][rank])
        if forward.table is not None:
            forward.table.load_state_dict(state["features"][rank])
        optimiser.load_state_dict(state["optimiser"])
        streams.restore(state["generators"][rank])
    except (KeyError, IndexError, RuntimeError, ValueError) as error:
        raise checkpoint.UnusableError(
            "the checkpoint must be of the network that is trained, it does not fit "
            f"({' '.join(str(error).split())}): delete it, or choose another folder"
        ) from error
    history: record.History = state["history"]
    return history


def _check_circumstances(
    out: Path | None, resume: bool, device: str, devices: int, tensorboard: bool
) -> None:
    if device not in DEVICES:
        raise SettingError("device", f"must be one of {', '.join(DEVICES)}, got {device!r}")
    present: dict[str, Callable[[], bool]] = {
        "cuda": torch.cuda.is_available,
        "mps": torch.backends.mps.is_available,
    }
    if device in present and not present[device]():
        raise ValueError(f"device {device!r} is not there on this machine: use auto or cpu")
    check_whole("devices", devices)
    if out is None:
        if resume or tensorboard:
            what = "resume" if resume else "tensorboard"
            raise SettingError(what, "needs the folder of the run: set out")
        return
    check_folder(out)
    path = out / checkpoint.NAME
    if path.is_file() and not resume:
        done = checkpoint.completed_epochs(path)
        raise SettingError(
            "out",
            f"must be a new folder, {out} holds a run with {done} epochs done: set resume to "
            "continue it, or choose another folder",
        )
    if tensorboard:
        check_curves()
