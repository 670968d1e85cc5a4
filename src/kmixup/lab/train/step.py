"""One training step: gather the samples, mix them, and run the network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor, nn

from kmixup._batch import Extras, Features
from kmixup._randomness import Source
from kmixup.importance import saliency
from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.tasks import objective_of, smoothed
from kmixup.lab.methods import Ingredients, MatchOn
from kmixup.lab.models import layers_of
from kmixup.lab.train.features import FeatureTable
from kmixup.lab.train.streams import BatchRows, Streams, drawing_from
from kmixup.lab.trial import Layout, Method, Trial
from kmixup.matching._assignment import Indices
from kmixup.mixed import Draw, Mixed
from kmixup.mixer import Mixing
from kmixup.wrappers.hidden import HiddenMixup

PADDING = 4


def crop_and_flip(x: Tensor, generator: Generator) -> Tensor:
    """Shift images `(n, channels, height, width)` by up to 4 pixels, padded with 0; flip half."""
    n, channels, height, width = x.shape
    offset = torch.randint(2 * PADDING + 1, (n, 2), generator=generator)
    flip = torch.randint(2, (n, 1), generator=generator).bool()
    rows = offset[:, :1] + torch.arange(height)
    columns = offset[:, 1:] + torch.arange(width)
    columns = torch.where(flip, columns.flip(1), columns)
    padded = nn.functional.pad(x, [PADDING] * 4)
    sample, channel = torch.arange(n), torch.arange(channels)
    index = (sample[:, None, None, None], channel[:, None, None], rows[:, None, :, None])
    return padded[tuple(i.to(x.device) for i in (*index, columns[:, None, None, :]))]


def gather(
    rows: Tensor, data: Dataset, augment: Generator | None, layout: Layout | None = None
) -> tuple[Tensor, Tensor]:
    """Return the inputs of the given training samples, augmented and normalised, and targets."""
    rows = rows.to(data.x_train.device)
    x = data.x_train.index_select(0, rows)
    if augment is not None:
        x = crop_and_flip(x, augment)
    x = data.normalise(x)
    if layout is not None:
        x = x.contiguous(memory_format=torch.channels_last)
    return x, data.y_train.index_select(0, rows)


def mixer_of(
    method: Method,
    alpha: float,
    classes: int | None,
    shape: tuple[int, ...] = (),
    net: nn.Module | None = None,
) -> Mixing:
    """Build the library's mixer for a method, with the alpha to train with."""
    ingredients = Ingredients(
        method.k, alpha, classes, shape, net,
        memory=method.memory, labels=method.labels or 0.0, metric=method.metric or "sqeuclidean",
    )  # fmt: skip
    return method.entry.build(ingredients)


class StreamSource(Source):
    """The draws of a step that the trial's streams have made; boxes and the like from `place`."""

    def __init__(self, u: Tensor, place: Generator | None = None) -> None:
        super().__init__(place)
        self.u = u

    def coin(self) -> float:
        return 0.0

    def order(self, n: int) -> Indices:
        return np.arange(n)  # an epoch is in random order already

    def quantiles(self, size: tuple[int, ...]) -> Tensor:
        known = self.u.numel() == math.prod(size)
        return self.u.view(size) if known else super().quantiles(size)


def draw_of(batch: BatchRows, mixer: Mixing, place: Generator | None = None) -> Draw:
    """Return the mixer's draw for a step, within the batch or across two."""
    within = batch.second is None and batch.again is None
    return mixer.draw(len(batch.first), within=within, source=StreamSource(batch.u, place))


class MixedPrecision(nn.Module):
    """A network that computes in bf16, with outputs in float32."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, torch.bfloat16):
            outputs: Tensor = self.module(x)
        return outputs.float()


class Step:
    """Maps the rows of a step to the network's outputs and the mixed targets.

    `model` is the network in the protocol's precision, `net` the network itself, and `learned` are
    the mixer's parameters next to the network's.
    """

    def __init__(
        self, net: nn.Module, trial: Trial, data: Dataset, streams: Streams, alpha: float
    ) -> None:
        self.net = net
        self.model = net if trial.protocol.precision == "fp32" else MixedPrecision(net)
        self.data, self.streams, self.alpha = data, streams, alpha
        self.augment = streams.augment if trial.protocol.augment else None
        self.layout = trial.protocol.layout
        self.smoothing = trial.protocol.label_smoothing
        self.clean_pass = trial.protocol.clean_pass is not None and trial.method.k > 1
        self.objective = objective_of(data, trial.class_weights)
        classes = self.objective.num_classes
        with drawing_from(streams.initialise):
            mixer = mixer_of(trial.method, alpha, classes, data.shape, self.net)
        self.mixer = mixer.to(data.x_train.device)
        shared = set(self.net.parameters())
        self.learned = [
            parameter
            for parameter in self.mixer.parameters()
            if parameter.requires_grad and parameter not in shared
        ]
        self.table: FeatureTable | None = None
        if alpha > 0 and (on := MatchOn.read(trial.method.match_on or "pixels")):
            self.table = FeatureTable(on, data, self.net)
        self.by_saliency = trial.method.entry.by_saliency and alpha > 0
        self.hidden: HiddenMixup | None = None
        if trial.method.layers is not None and alpha > 0:
            layers = layers_of(trial.model, trial.method.layers)
            self.hidden = HiddenMixup(self.model, layers, mixer=self.mixer)

    def __call__(self, batch: BatchRows) -> tuple[Tensor, Tensor]:
        """Return outputs `(n, outputs)` and mixed, weighted targets."""
        outputs, mixed = self.run(batch)
        return outputs, self.weighted(mixed)

    def run(self, batch: BatchRows) -> tuple[Tensor, Mixed]:
        """Return outputs `(n, outputs)` and a record of the mixing."""
        if self.hidden is None:
            mixed = self.mix(batch)
            return self.model(mixed.x), mixed
        x, y = self._clean(batch)
        draw = self.hidden.draw(len(x), source=StreamSource(batch.u, self.streams.place))
        return self.hidden.mix(x, y, draw)

    def mix(self, batch: BatchRows) -> Mixed:
        """Mix the inputs of a step, before the network."""
        x, y = self._clean(batch)
        other = None if batch.second is None else self.gather(batch.second)
        facing = batch.second
        if batch.again is not None:
            other, facing = (x[batch.again], y[batch.again]), batch.first[batch.again]
        features: Features | None = None
        if self.table is not None:
            own = self.table[batch.first]
            features = own if facing is None else (own, self.table[facing])
        importance = None
        if self.by_saliency:
            importance = saliency(self.net, x, y, criterion=self.objective.criterion)
        draw = draw_of(batch, self.mixer, self.streams.place)
        extras = Extras(other=other, features=features, importance=importance)
        return self.mixer.mix(x, y, draw, **extras)

    def weighted(self, mixed: Mixed) -> Tensor:
        """Return mixed targets, smoothed, times the weights of classes and pairs."""
        targets = smoothed(mixed.y, self.smoothing)
        if self.objective.class_weights is not None:
            targets = targets * self.objective.class_weights
        return targets if mixed.weight is None else self.objective.weigh(targets, mixed.weight)

    def gather(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the network's inputs and the mixer's targets of some training samples."""
        x, y = gather(rows, self.data, self.augment, self.layout)
        return x, self.objective.targets(y)

    def _clean(self, batch: BatchRows) -> tuple[Tensor, Tensor]:
        """Return the first side of a step, after a clean pass if the protocol has one."""
        x, y = self.gather(batch.first)
        if self.clean_pass:
            with torch.no_grad():
                self.model(self.mixer.encode_clean(x))
        return x, y

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs but network and mixer: generators and features."""
        features = {} if self.table is None else self.table.state_dict()
        return {"generators": self.streams.state(), "features": features}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if self.table is not None:
            self.table.load_state_dict(state["features"])
        self.streams.restore(state["generators"])
