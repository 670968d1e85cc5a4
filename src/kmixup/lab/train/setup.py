"""Set up a trial, alone or in a fleet: data, initial weights, alpha and optimiser."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple, get_args

import torch
from torch import Generator, Tensor, nn

from kmixup._checks import SettingError
from kmixup.calibration import Calibration, calibrate
from kmixup.coefficient import Beta
from kmixup.lab.data import Dataset, Holdout, load
from kmixup.lab.evaluate.tasks import objective_of
from kmixup.lab.imports import is_import_path
from kmixup.lab.models import build, layers_of
from kmixup.lab.train.step import gather
from kmixup.lab.train.streams import Streams, drawing_from
from kmixup.lab.trial import Protocol, Trial, what_changed
from kmixup.methods.stackmix import Stack

Device = Literal["auto", "cpu", "cuda"]
DEVICES = get_args(Device)


class DivergedError(RuntimeError):
    """The loss or the network's outputs became NaN or infinite."""


def diverged(epoch: int, rate: float) -> DivergedError:
    """Return the error of a run that diverged in `epoch`, counted from 0."""
    return DivergedError(
        f"the loss became NaN or infinite in epoch {epoch + 1}, at the learning rate {rate:g}: "
        f"try a lower one, e.g. {rate / 10:g}, or another scaling of the inputs"
    )


def load_data(trial: Trial) -> Dataset:
    """Load a trial's data, split as its seeds say; raise if its code or data were edited since."""
    now = trial.with_method(trial.method) if trial.code else trial
    if now != trial:
        raise ValueError(
            f"your own code must not change during a sweep, {what_changed(trial, now)} was "
            "edited: start again, in another folder (--out)"
        )
    holdout = None
    if trial.validation is not None:
        holdout = Holdout(trial.validation, trial.seed, keep_test=bool(trial.temperature))
    data = load(
        trial.data,
        seed=trial.seed if trial.split is None else trial.split,
        holdout=holdout,
        **trial.data_options(),
    )
    # a function may round differently in another process, so that only its driver checks it
    if trial.digest not in (None, data.digest) and not is_import_path(trial.data):
        raise ValueError(
            f"data must not change between the trials of a sweep, {trial.data} has changed: start "
            "again, which trains all of them on the new contents"
        )
    return data


def check_data(trial: Trial, data: Dataset) -> None:
    """Raise if the trial's method or protocol cannot be applied to the data."""
    objective_of(data, trial.class_weights)  # raises on class weights without classes
    method, n = trial.method, len(data.x_train)
    if n < (least := max(2, method.smallest)):
        raise SettingError(
            "k",
            f"must be lower: {method.k} needs {least} training samples with pairing "
            f"{method.pairing!r}, {data.title} has {n}",
        )
    if trial.protocol.layout is not None and len(data.shape) != 3:
        raise SettingError("layout", f"is for images, {data.title} has none: leave it out")
    if trial.protocol.augment:
        check_augment(data)
    if not method.entry.suits(data.shape, data.task):
        images, numbers = method.entry.needs_images, method.entry.needs_numbers
        needs = f"images {images}" if images else f"numbers as targets {numbers}"
        raise SettingError("method", f"{method.name} needs {needs}, {data.title} has none")
    if method.layers is not None:
        layers_of(trial.model, method.layers)  # raises on layers that the model does not have
    for_classes = {
        "temperature": trial.temperature,
        "label_smoothing": trial.protocol.label_smoothing,
    }
    for name, value in for_classes.items():
        if value is not None and data.task == "regression":
            raise SettingError(
                name, f"is for classes, {data.title} is a regression, got {value}: leave it out"
            )
    if trial.shifts:
        data.pixel_step(1)  # raises on data without pixels


def check_augment(data: Dataset) -> None:
    """Raise if the data are not images that can be cropped and flipped."""
    if data.pixel_range is None or len(data.shape) != 3:
        raise SettingError("augment", f"needs images to crop and flip, {data.title} has none")


def network(trial: Trial, data: Dataset, streams: Streams) -> nn.Module:
    """Build the trial's network with its initial weights."""
    entry = trial.method.entry
    shape = entry.seen_shape(data.shape)
    with drawing_from(streams.initialise):
        try:
            net = build(trial.model, in_shape=shape, num_classes=data.outputs)
        except TypeError as error:
            raise ValueError(str(error)) from error
    net = net if entry.encoding is None else CleanEncoder(net, entry.encoding(data.shape))
    # torch's stubs lack the call with only a memory format
    return net if trial.protocol.layout is None else net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


class CleanEncoder(nn.Module):
    """A network that encodes clean samples in eval mode; mixed ones are encoded already."""

    def __init__(self, net: nn.Module, interpolation: Stack) -> None:
        super().__init__()
        self.net = net
        self.interpolation = interpolation

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.net(x if self.training else self.interpolation.twice(x))
        return outputs


class Inputs:
    """The network's training inputs, augmented and normalised only as they are read."""

    def __init__(self, data: Dataset, augment: Generator | None = None) -> None:
        self.data, self.augment = data, augment

    def __len__(self) -> int:
        return len(self.data.x_train)

    def __getitem__(self, index: int) -> Tensor:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[int]) -> Tensor:
        return gather(torch.tensor(indices), self.data, self.augment)[0]


class Strength(NamedTuple):
    """How strongly a trial mixes."""

    alpha: float  # to train with
    xi: float | None  # root mean square distance by which mixing moves the inputs, if known


def strengths(trials: Sequence[Trial], data: Sequence[Dataset]) -> list[Strength]:
    """Return the strength of each trial on its data; equal pairings share sampled distances."""
    measured: dict[tuple[object, ...], Calibration] = {}
    mixing = []
    for trial, dataset in zip(trials, data, strict=True):
        method, augment = trial.method, trial.protocol.augment
        if method.alpha == 0 or not method.has_xi:
            mixing.append(Strength(method.alpha, None if method.alpha else 0.0))
            continue
        key = (trial.seed, method.k, method.pairing, method.metric, augment)
        if key not in measured:
            streams = Streams(trial.seed)
            measured[key] = calibrate(
                Inputs(dataset, streams.augment if augment else None),
                k=method.k,
                alpha=0,
                disjoint=method.pairing == "batch",
                metric=method.metric or "sqeuclidean",
                generator=streams.calibrate,
            )
        distances, alpha = measured[key], method.alpha
        if method.alpha_rule == "xi":
            alpha = distances.at(alpha).alpha
        xi = math.sqrt(Beta(alpha).mean_square_step * distances.square_distance)
        mixing.append(Strength(alpha, xi))
    return mixing


def device_of(name: str) -> torch.device:
    """Return the device of that name; "auto" is a GPU if there is one."""
    if name != "auto":
        return torch.device(name)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


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
    """Return SGD with the protocol's settings."""
    return torch.optim.SGD(
        parameters,
        lr=protocol.rate,
        momentum=protocol.momentum,
        weight_decay=protocol.weight_decay,
        nesterov=bool(protocol.nesterov),
    )
