"""One plain loop: train a network as a trial says, and write down what came of it.

The data stay in memory. All chance comes from the trial's own streams, so that a run is
repeated by its trial alone, and goes on from a checkpoint as if it had never stopped:
on the CPU of one machine, with as many threads, to the last bit.
"""

from __future__ import annotations

import io
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from kmixup.lab import checkpoint, record
from kmixup.lab.batches import agreement, error_rate, soft_cross_entropy
from kmixup.lab.data import Dataset
from kmixup.lab.evaluate import score_logits, score_under_fgsm, score_under_noise
from kmixup.lab.forward import Forward
from kmixup.lab.prepare import (
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
from kmixup.lab.progress import Bar, Curves, check_curves
from kmixup.lab.protocol import Trial
from kmixup.lab.streams import Step, Streams, batch_lengths, drawing_from, epoch

if TYPE_CHECKING:
    from lightning_fabric import Fabric

DEVICES = ("auto", "cpu", "cuda", "mps")
PRECISION = {"fp32": "32-true", "bf16": "bf16-mixed"}
TEST_BATCH = 512


@dataclass(frozen=True)
class Trained:
    """A trained network on the CPU, and the record of its training."""

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
        out: folder for the record, and for a checkpoint after every epoch.
        resume: go on from the checkpoint in `out`, if there is one.
        device: "auto", "cpu", "cuda" or "mps".
        devices: how many of them. Each process takes its share of every batch and pairs
            inside it.
        progress: show a bar; by default where standard error is a terminal.
        tensorboard: write curves into `out`.

    >>> from kmixup.lab.protocol import Protocol
    >>> trained = train(Trial("iris", "mlp-iris", protocol=Protocol(epochs=2)), device="cpu")
    >>> sorted(trained.record["result"])
    ['ece', 'error', 'nll']
    """
    folder = None if out is None else Path(out).expanduser()
    _check_circumstances(folder, resume, device, devices, tensorboard)
    data = load_data(trial) if data is None else data
    check_data(trial, data)
    if (share := trial.protocol.batch_size // devices) < max(2, trial.method.smallest):
        raise ValueError(
            f"batch_size must give each of {devices} devices at least "
            f"{max(2, trial.method.smallest)} samples for k={trial.method.k}, gives {share}: "
            "raise batch_size or lower k"
        )
    if trial.noise or trial.fgsm:
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
    ended = fabric.launch(partial(_run, job, data))
    if isinstance(ended, DivergedError):
        raise ended
    written, weights = ended
    net.load_state_dict(torch.load(io.BytesIO(weights), weights_only=True))
    return Trained(net, written)


# The record, and the weights as a file: tensors themselves do not outlive their process.
Ended = tuple[dict[str, Any], bytes]


def _run(job: _Job, data: Dataset, fabric: Fabric) -> Ended | DivergedError:
    """The whole training in one process; its failure is returned, to come back from others."""
    try:
        with computing_on(job.threads):
            return _train(fabric, job, data)
    except DivergedError as error:
        return error


def _train(fabric: Fabric, job: _Job, data: Dataset) -> Ended:
    trial, protocol = job.trial, job.trial.protocol
    rank, ranks = fabric.global_rank, fabric.world_size
    streams = Streams(trial.seed, rank)
    net = network(trial, data, streams)
    model, optimiser = fabric.setup(net, optimiser_of(net.parameters(), protocol))
    data = _moved(data, fabric.device)
    forward = Forward(model, trial, data, streams)
    config = _config(trial, ranks)
    path = None if job.out is None else job.out / checkpoint.NAME
    history: record.History = []
    if path is not None and job.resume and path.is_file():
        history = _restore(checkpoint.load(path, config), net, optimiser, streams, rank)

    first = rank == 0
    n = len(data.x_train)
    bar = Bar(
        data.name,
        protocol.epochs,
        len(batch_lengths(n, protocol.batch_size, least=2 * ranks)),
        shown=job.progress if first else False,
    )
    curves = Curves(job.out / "tensorboard" if first and job.tensorboard and job.out else None)
    with bar:
        for number in range(len(history), protocol.epochs):
            rate = protocol.rates()[number]
            start = time.perf_counter()
            set_rate(optimiser, rate)
            steps = epoch(trial, n, job.strength.alpha, streams, rank=rank, ranks=ranks)
            with drawing_from(streams.network):
                loss, accuracy = _epoch(fabric, forward, optimiser, steps, bar, number)
            logits = _logits(model, data)
            if not logits.isfinite().all():
                raise diverged(number, rate)
            error = float(error_rate(logits, data.y_test))
            seconds = time.perf_counter() - start
            history.append(record.figures(number + 1, rate, loss, accuracy, error, seconds))
            bar.scored(number, history[-1])
            curves.scored(number + 1, history[-1])
            generators = _gathered(fabric, streams)
            if path is not None and first:
                state = {
                    "config": config,
                    "history": history,
                    "model": net.state_dict(),
                    "optimiser": optimiser.state_dict(),
                    "generators": generators,
                }
                checkpoint.save(path, state)
    curves.close()
    result = score_logits(_logits(model, data), data.y_test)
    written = record.describe(
        trial, data, history, result, strength=job.strength, device=fabric.device, devices=ranks
    )
    written |= _robustness(model, data, trial)
    if job.out is not None and first:
        record.write(written, job.out)
    weights = io.BytesIO()
    torch.save({name: value.cpu() for name, value in net.state_dict().items()}, weights)
    return written, weights.getvalue()


def _epoch(
    fabric: Fabric,
    forward: Forward,
    optimiser: torch.optim.Optimizer,
    steps: list[Step],
    bar: Bar,
    number: int,
) -> tuple[float, float]:
    """Train for one epoch; the mean loss and accuracy over its samples, as mixed."""
    forward.model.train()
    rate = optimiser.param_groups[0]["lr"]
    total, count = 0.0, 0
    right = weight = torch.zeros((), device=fabric.device)
    for i, step in enumerate(steps, 1):
        logits, y = forward(step)
        optimiser.zero_grad()
        # processes average their gradients, so each divides by an equal share of the samples
        loss = soft_cross_entropy(logits, y, step.size / fabric.world_size)
        fabric.backward(loss)
        optimiser.step()
        value = float(loss.detach())
        # in a job of several processes all must stop at once: after the epoch, by the logits
        if not math.isfinite(value) and fabric.world_size == 1:
            raise diverged(number, rate)
        total += value * step.size
        count += step.size
        right = right + agreement(logits, y)
        weight = weight + y.sum()  # the number of samples, but where losses have weights
        bar.step(number, i, rate, value)
    return total / count, float(right / weight)


def _logits(model: nn.Module, data: Dataset) -> Tensor:
    """Logits of the test part, as it is."""
    model.eval()
    with torch.no_grad():
        batches = torch.split(data.x_test, TEST_BATCH)
        return torch.cat([model(data.normalise(x)) for x in batches])


def _robustness(model: nn.Module, data: Dataset, trial: Trial) -> dict[str, list[dict[str, float]]]:
    """Scores under noise and under attack, where they were asked for."""
    if data.pixel_range is None or not (trial.noise or trial.fgsm):
        return {}
    low, high = data.pixel_range
    x, y = (data.x_test.float() - low) / (high - low), data.y_test

    def normalise(pixels: Tensor) -> Tensor:
        return data.normalise(low + (high - low) * pixels)

    found: dict[str, list[dict[str, float]]] = {"noise": [], "fgsm": []}
    for eps in trial.noise:
        generator = Streams(trial.seed).noise
        scores = score_under_noise(model, x, y, eps=eps, generator=generator, normalise=normalise)
        found["noise"].append({"eps": eps, **vars(scores)})
    for eps in trial.fgsm:
        scores = score_under_fgsm(model, x, y, eps=eps, normalise=normalise)
        found["fgsm"].append({"eps": eps, **vars(scores)})
    return found


def _config(trial: Trial, devices: int) -> dict[str, Any]:
    """What a run must share with another to be continued by it."""
    return trial.to_dict() | {"devices": devices}


def _moved(data: Dataset, device: torch.device) -> Dataset:
    names = ("x_train", "y_train", "x_test", "y_test", "mean", "std")
    return replace(data, **{name: getattr(data, name).to(device) for name in names})


def _gathered(fabric: Fabric, streams: Streams) -> Tensor:
    """States of the generators of all processes, `(processes, streams, bytes)`."""
    states = [streams.state()] * fabric.world_size
    if fabric.world_size > 1:
        torch.distributed.all_gather_object(states, states[0])
    return torch.stack(states)


def _restore(
    state: dict[str, Any],
    net: nn.Module,
    optimiser: torch.optim.Optimizer,
    streams: Streams,
    rank: int,
) -> record.History:
    net.load_state_dict(state["model"])
    optimiser.load_state_dict(state["optimiser"])
    streams.restore(state["generators"][rank])
    history: record.History = state["history"]
    return history


def _check_circumstances(
    out: Path | None, resume: bool, device: str, devices: int, tensorboard: bool
) -> None:
    if device not in DEVICES:
        raise ValueError(f"device must be one of {', '.join(DEVICES)}, got {device!r}")
    present: dict[str, Callable[[], bool]] = {
        "cuda": torch.cuda.is_available,
        "mps": torch.backends.mps.is_available,
    }
    if device in present and not present[device]():
        raise ValueError(f"device {device!r} is not there on this machine: use auto or cpu")
    if isinstance(devices, bool) or not isinstance(devices, int) or devices < 1:
        raise ValueError(f"devices must be a whole number, at least 1, got {devices!r}")
    if out is None:
        if resume or tensorboard:
            what = "resume" if resume else "tensorboard"
            raise ValueError(f"{what} needs the folder of the run: pass out")
        return
    checkpoint.check_folder(out)
    path = out / checkpoint.NAME
    if path.is_file() and not resume:
        done = checkpoint.completed_epochs(path)
        raise ValueError(
            f"{out} holds a run already, with {done} epochs done: go on with resume, or choose "
            "another out"
        )
    if tensorboard:
        check_curves()
