"""What a trial starts from, alone or in a fleet: its data, first weights, alpha and optimiser."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from kmixup.calibration import Calibration, calibrate
from kmixup.coefficient import Beta
from kmixup.lab.checks import SettingError
from kmixup.lab.data import Dataset, Holdout, load
from kmixup.lab.evaluate.tasks import objective_of
from kmixup.lab.models import build, layers_of
from kmixup.lab.train.batches import gather
from kmixup.lab.train.config import Method, Protocol, Trial
from kmixup.lab.train.streams import Streams, drawing_from
from kmixup.methods.stackmix import Stack


class DivergedError(RuntimeError):
    """Training left the finite numbers."""


def diverged(epoch: int, rate: float) -> DivergedError:
    """The error of a run that diverged in `epoch`, counted from 0."""
    return DivergedError(
        f"the loss became NaN or infinite in epoch {epoch + 1}, at the rate {rate:g}: "
        f"try a lower rate, e.g. {rate / 10:g}, or another scaling of the inputs"
    )


def load_data(trial: Trial) -> Dataset:
    """The data of a trial, divided as its seeds say."""
    data = load(
        trial.data,
        seed=trial.seed if trial.split is None else trial.split,
        holdout=None if trial.validation is None else Holdout(trial.validation, trial.seed),
        **trial.data_options(),
    )
    if trial.digest not in (None, data.digest):
        raise ValueError(
            f"data must not change between the trials of a sweep, {trial.data} has changed: start "
            "again, which trains all of them on the new contents"
        )
    return data


def check_data(trial: Trial, data: Dataset) -> None:
    """Refuse data that the trial's method or protocol cannot be applied to."""
    objective_of(data, trial.class_weights)  # refuses weights of classes where there are none
    n = len(data.x_train)
    if n < max(2, trial.method.smallest):
        raise SettingError(
            "k",
            f"must be lower: {trial.method.k} needs {max(2, trial.method.smallest)} training "
            f"samples with pairing {trial.method.pairing!r}, {data.title} has {n}",
        )
    if trial.protocol.layout is not None and len(data.shape) != 3:
        raise SettingError("layout", f"is for images, {data.title} has none: leave it out")
    if trial.protocol.augment:
        check_augment(data)
    if (purpose := trial.method.entry.needs_images) and len(data.shape) != 3:
        raise ValueError(f"{trial.method.name} needs images {purpose}, {data.title} has none")
    if (purpose := trial.method.entry.needs_numbers) and data.task != "regression":
        raise ValueError(
            f"{trial.method.name} needs numbers as targets {purpose}, {data.title} has classes: "
            "choose another method"
        )
    if trial.method.layers is not None:
        layers_of(trial.model, trial.method.layers)  # refuses what is not known of the model


def check_augment(data: Dataset) -> None:
    """Refuse to crop and flip what is no image."""
    if data.pixel_range is None or len(data.shape) != 3:
        raise SettingError("augment", f"needs images to crop and flip, {data.title} has none")


def network(trial: Trial, data: Dataset, streams: Streams) -> nn.Module:
    """The trial's network with its first weights."""
    entry = trial.method.entry
    with drawing_from(streams.initialise):
        try:
            net = build(
                trial.model, in_shape=entry.seen_shape(data.shape), num_classes=data.outputs
            )
        except TypeError as error:
            raise ValueError(str(error)) from error
    net = net if entry.encoding is None else CleanEncoder(net, entry.encoding(data.shape))
    # torch's stubs lack the call with a memory format alone
    return net if trial.protocol.layout is None else net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


class CleanEncoder(nn.Module):
    """A network for a method that re-encodes clean samples, `StackMix`.

    In eval mode samples are encoded first. In training mode mixed inputs are encoded already.

    Args:
        net: the network inside.
        interpolation: encodes the samples.
    """

    def __init__(self, net: nn.Module, interpolation: Stack) -> None:
        super().__init__()
        self.net = net
        self.interpolation = interpolation

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.net(x if self.training else self.interpolation.twice(x))
        return outputs


class Inputs:
    """The network's training inputs, augmented and normalised only as they are read.

    Args:
        data: where the samples are.
        augment: draws crops and flips; None for the samples as they are.
    """

    def __init__(self, data: Dataset, augment: Generator | None = None) -> None:
        self.data, self.augment = data, augment

    def __len__(self) -> int:
        return len(self.data.x_train)

    def __getitem__(self, index: int) -> Tensor:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[int]) -> Tensor:
        x, _ = gather(torch.tensor(indices), self.data, self.augment)
        return x


@dataclass(frozen=True)
class Strength:
    """How strongly a trial mixes.

    Attributes:
        alpha: the alpha to train with.
        xi: the root mean square distance by which training inputs move; None where it is not
            known.
    """

    alpha: float
    xi: float | None


def strengths(trials: Sequence[Trial], data: Sequence[Dataset]) -> list[Strength]:
    """The strength of each trial, on its data.

    Trials that share their seed and pairing share the sampling of distances as well, and
    get what each would get alone.
    """
    measured: dict[tuple[int, int, str, bool], Calibration] = {}
    mixing = []
    for trial, dataset in zip(trials, data, strict=True):
        method = trial.method
        if method.alpha == 0 or not method.has_xi:
            mixing.append(Strength(method.alpha, 0.0 if method.alpha == 0 else None))
            continue
        key = (trial.seed, method.k, method.pairing, trial.protocol.augment)
        if key not in measured:
            streams = Streams(trial.seed)
            measured[key] = calibrate(
                Inputs(dataset, streams.augment if trial.protocol.augment else None),
                k=method.k,
                alpha=0,
                disjoint=method.pairing == "batch",
                generator=streams.calibrate,
            )
        distances = measured[key]
        alpha = _read_alpha(method, distances)
        xi = math.sqrt(Beta(alpha).mean_square_step * distances.square_distance)
        mixing.append(Strength(alpha, xi))
    return mixing


def _read_alpha(method: Method, distances: Calibration) -> float:
    """The alpha to train with, by the rule of the method."""
    if method.alpha_rule == "xi":
        return distances.at(method.alpha).alpha
    if method.alpha_rule == "root":
        return method.alpha * math.sqrt(distances.square_distance_1 / distances.square_distance)
    return method.alpha


def threads_for(data: Dataset, devices: int) -> int:
    """Threads of each process: products as small as those of a table are fastest on one."""
    return 1 if len(data.shape) == 1 else max(1, torch.get_num_threads() // devices)


@contextmanager
def computing_on(threads: int) -> Iterator[None]:
    """Within this context torch computes on `threads` threads."""
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
