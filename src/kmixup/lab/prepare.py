"""What a trial starts from, alone or in a fleet: its data, first weights, alpha and optimiser."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from kmixup.calibration import calibrate
from kmixup.lab.data import Dataset, load
from kmixup.lab.models import build
from kmixup.lab.protocol import Protocol, Trial
from kmixup.lab.streams import Streams, drawing_from


class DivergedError(RuntimeError):
    """Training left the finite numbers."""


def diverged(epoch: int, rate: float) -> DivergedError:
    """What to say of a run that did so in an epoch counted from 0."""
    return DivergedError(
        f"the loss became NaN or infinite in epoch {epoch + 1}, at the rate {rate:g}: "
        f"try a lower rate, e.g. {rate / 10:g}, or another scaling of the inputs"
    )


def load_data(trial: Trial) -> Dataset:
    """The data of a trial, split by its seed."""
    return load(
        trial.data,
        limit=trial.limit,
        scaling=trial.scaling,  # type: ignore[arg-type]
        seed=trial.seed,
        size=trial.size,
        target=trial.target,
    )


def check_data(trial: Trial, data: Dataset) -> None:
    """Refuse data that the trial's method or protocol cannot be applied to."""
    n = len(data.x_train)
    if n < max(2, trial.method.smallest):
        raise ValueError(
            f"k={trial.method.k} with pairing {trial.method.pairing!r} needs "
            f"{max(2, trial.method.smallest)} training samples, {data.title} has {n}: lower k"
        )
    if trial.protocol.augment and (data.pixel_range is None or len(data.shape) != 3):
        raise ValueError(f"augment needs images to crop and flip, {data.title} has none")


def network(trial: Trial, data: Dataset, streams: Streams) -> nn.Module:
    """The trial's network with its first weights."""
    with drawing_from(streams.initialise):
        try:
            return build(trial.model, in_shape=data.shape, num_classes=data.num_classes)
        except TypeError as error:
            raise ValueError(str(error)) from error


class _Inputs:
    """The network's training inputs, normalised only as they are read."""

    def __init__(self, data: Dataset) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data.x_train)

    def __getitem__(self, index: int) -> Tensor:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[int]) -> Tensor:
        return self.data.normalise(self.data.x_train[indices])


def effective_alpha(trial: Trial, data: Dataset) -> float:
    """The alpha to train with: the method's, or the one that keeps its xi at k."""
    method = trial.method
    if method.alpha_rule == "same" or method.alpha == 0:
        return method.alpha
    found = calibrate(
        _Inputs(data),
        k=method.k,
        alpha=method.alpha,
        disjoint=method.pairing == "batch",
        generator=Streams(trial.seed).calibrate,
    )
    return found.alpha


def threads_for(data: Dataset, devices: int) -> int:
    """Threads of each process: products as small as those of a table are fastest on one."""
    return 1 if len(data.shape) == 1 else max(1, torch.get_num_threads() // devices)


def optimiser_of(parameters: Iterable[Tensor], protocol: Protocol) -> torch.optim.SGD:
    """Stochastic gradient descent as the protocol says."""
    return torch.optim.SGD(
        parameters,
        lr=protocol.rate,
        momentum=protocol.momentum,
        weight_decay=protocol.weight_decay,
    )


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Use `rate` from the next step on."""
    for group in optimiser.param_groups:
        group["lr"] = rate
