"""What a trial starts from, alone or in a fleet: its data, first weights, alpha and optimiser."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from kmixup.calibration import Calibration, calibrate
from kmixup.coefficient import Beta
from kmixup.lab.data import ENTRIES, Dataset, Holdout, load
from kmixup.lab.models import build, layers_of
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


def usual_for(name: str, data: Dataset | None = None) -> tuple[str, str]:
    """The kind of a data set, which chooses its protocol, and the paper's network for it.

    For the user's own `data` both follow from their shape.

    >>> usual_for("iris"), usual_for("cifar10")
    (('table', 'mlp-iris'), ('image', 'preact-resnet18'))
    """
    if name in ENTRIES:
        kind, shape = ENTRIES[name].kind, ENTRIES[name].shape
    elif data is None:
        raise ValueError(f"data {name!r} have no name of their own: load them first")
    else:
        shape = data.shape
        kind = "table" if len(shape) == 1 else "speech" if data.pixel_range is None else "image"
    if len(shape) == 1:
        own = "mlp-toy" if kind == "toy" else f"mlp-{name}"
        return kind, own if name in ENTRIES else "mlp-phishing"
    return kind, "lenet" if shape[0] == 1 else "preact-resnet18"


def load_data(trial: Trial) -> Dataset:
    """The data of a trial, divided as its seeds say."""
    return load(
        trial.data,
        limit=trial.limit,
        scaling=trial.scaling,  # type: ignore[arg-type]
        seed=trial.seed if trial.split is None else trial.split,
        size=trial.size,
        target=trial.target,
        holdout=None if trial.validation is None else Holdout(trial.validation, trial.seed),
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
    if trial.method.name == "cutmix" and len(data.shape) != 3:
        raise ValueError(f"cutmix needs images to cut boxes from, {data.title} has none")
    if trial.method.layers is not None:
        layers_of(trial.model, trial.method.layers)  # refuses what is not known of the model


def network(trial: Trial, data: Dataset, streams: Streams) -> nn.Module:
    """The trial's network with its first weights."""
    with drawing_from(streams.initialise):
        try:
            return build(trial.model, in_shape=data.shape, num_classes=data.num_classes)
        except TypeError as error:
            raise ValueError(str(error)) from error


class Inputs:
    """The network's training inputs, normalised only as they are read."""

    def __init__(self, data: Dataset) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data.x_train)

    def __getitem__(self, index: int) -> Tensor:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[int]) -> Tensor:
        return self.data.normalise(self.data.x_train[indices])


@dataclass(frozen=True)
class Strength:
    """How strongly a trial mixes: the `alpha` to train with, and the `xi` that it has.

    `xi` is the root mean square way that a training input moves; None where it is not known.
    """

    alpha: float
    xi: float | None


def strengths(trials: Sequence[Trial], data: Sequence[Dataset]) -> list[Strength]:
    """The strength of each trial, on its data.

    Trials that share their seed and pairing share the sampling of distances as well, and
    get what each would get alone.
    """
    measured: dict[tuple[int, int, str], Calibration] = {}
    found = []
    for trial, one in zip(trials, data, strict=True):
        method = trial.method
        if method.alpha == 0 or not method.has_xi:
            found.append(Strength(method.alpha, 0.0 if method.alpha == 0 else None))
            continue
        key = (trial.seed, method.k, method.pairing)
        if key not in measured:
            measured[key] = calibrate(
                Inputs(one),
                k=method.k,
                alpha=0,
                disjoint=method.pairing == "batch",
                generator=Streams(trial.seed).calibrate,
            )
        distances = measured[key]
        alpha = distances.at(method.alpha).alpha if method.alpha_rule == "xi" else method.alpha
        xi = math.sqrt(Beta(alpha).mean_square_step * distances.square_distance)
        found.append(Strength(alpha, xi))
    return found


def threads_for(data: Dataset, devices: int) -> int:
    """Threads of each process: products as small as those of a table are fastest on one."""
    return 1 if len(data.shape) == 1 else max(1, torch.get_num_threads() // devices)


@contextmanager
def computing_on(threads: int) -> Iterator[None]:
    """Let torch compute on so many threads meanwhile."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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
