"""The library's mixers inside the lab's training.

A trial's streams determine which samples meet and the quantile of lam. The mixer of the trial's
method draws the rest and mixes: the lab mixes nothing itself.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Generator, Tensor, nn

from kmixup.features import Features
from kmixup.importance import saliency
from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.tasks import objective_of
from kmixup.lab.models import layers_of
from kmixup.lab.train.batches import gather
from kmixup.lab.train.config import Layout, Method, Trial
from kmixup.lab.train.methods import Ingredients
from kmixup.lab.train.metric import FeatureTable, MatchOn
from kmixup.lab.train.streams import BatchRows, Streams, drawing_from
from kmixup.layers import unwrapped
from kmixup.matching.assignment import Indices
from kmixup.mixed import Mixed
from kmixup.mixer import AnyDraw, Mixing
from kmixup.randomness import Source
from kmixup.wrappers.hidden import HiddenMixup
from kmixup.wrappers.memory import Memory


def mixer_of(
    method: Method,
    alpha: float,
    classes: int | None,
    shape: tuple[int, ...] = (),
    net: nn.Module | None = None,
) -> Mixing:
    """The library's mixer for a method.

    Args:
        method: what is mixed.
        alpha: the alpha to train with.
        classes: their number; None where targets are numbers.
        shape: of one input.
        net: the network that is trained.
    """
    return method.entry.build(
        Ingredients(method.k, alpha, classes, shape, net, method.memory, method.labels or 0.0)
    )


def trained_mixer(
    trial: Trial, data: Dataset, net: nn.Module, streams: Streams, alpha: float
) -> Mixing:
    """The mixer of a trial. First weights of what the mixer itself learns are drawn here."""
    classes = objective_of(data, trial.class_weights).num_classes
    with drawing_from(streams.initialise):
        return mixer_of(trial.method, alpha, classes, data.shape, net)


class StepSource(Source):
    """The draws of one training step, which its streams have made already.

    The order of an epoch is random, so a batch that is paired with itself is taken in order.
    Everything else that a mixer needs, such as boxes, comes from `place`.
    """

    def __init__(self, batch: BatchRows, place: Generator | None = None) -> None:
        super().__init__(place)
        self.u = batch.u

    def coin(self) -> float:
        return 0.0

    def order(self, n: int) -> Indices:
        return np.arange(n)

    def quantiles(self, size: tuple[int, ...]) -> Tensor:
        return self.u if size == tuple(self.u.shape) else super().quantiles(size)


def draw_of(batch: BatchRows, mixer: Mixing, place: Generator | None = None) -> AnyDraw:
    """Return the draw of one step inside or across batches, as `batch` says."""
    within = batch.second is None and batch.again is None
    return mixer.sample(len(batch.first), within=within, source=StepSource(batch, place))


def memory_of(mixer: Mixing) -> Memory | None:
    """Return the memory among the wrappers of a mixer."""
    return next((part for part in mixer.modules() if isinstance(part, Memory)), None)


def laid_out(x: Tensor, layout: Layout | None) -> Tensor:
    """Inputs in the memory layout of a protocol."""
    return x if layout is None else x.contiguous(memory_format=torch.channels_last)


class Forward:
    """Outputs `(n, outputs)` and mixed targets of a trial's steps, weighted as the trial says.

    Args:
        model: the network.
        trial: says what is mixed, and whether images are augmented.
        data: where the samples are.
        streams: of the trial; crops, boxes and layers are drawn from them.
        alpha: the alpha to train with.
        mixer: that of `trained_mixer`, which is made here by default.
    """

    def __init__(
        self,
        model: nn.Module,
        trial: Trial,
        data: Dataset,
        streams: Streams,
        alpha: float,
        mixer: Mixing | None = None,
    ) -> None:
        self.model, self.data = model, data
        self.augment = streams.augment if trial.protocol.augment else None
        self.place = streams.place
        self.layout = trial.protocol.layout
        clean_pass, matched = trial.protocol.clean_pass, trial.method.k > 1
        self.clean_pass = clean_pass == "always" or (clean_pass == "matched" and matched)
        self.objective = objective_of(data, trial.class_weights)
        self.mixer = trained_mixer(trial, data, model, streams, alpha) if mixer is None else mixer
        self.table: FeatureTable | None = None
        if trial.method.match_on is not None and alpha > 0:
            on = MatchOn.read(trial.method.match_on)
            self.table = None if on is None else FeatureTable(on, data, unwrapped(model))
        self.by_saliency = trial.method.entry.by_saliency and alpha > 0
        self.hidden: HiddenMixup | None = None
        if trial.method.layers is not None and alpha > 0:
            layers = layers_of(trial.model, trial.method.layers)
            self.hidden = HiddenMixup(model, layers, mixer=self.mixer)

    def __call__(self, batch: BatchRows) -> tuple[Tensor, Tensor]:
        outputs, mixed = self.run(batch)
        return outputs, self.weighted(mixed)

    def run(self, batch: BatchRows) -> tuple[Tensor, Mixed]:
        """The outputs of a step, and a record of its mixing."""
        if self.hidden is None:
            mixed = self.mix(batch)
            return self.model(mixed.x), mixed
        x, y = self._first(batch)
        draw = self.hidden.sample(len(x), source=StepSource(batch, self.place))
        return self.hidden.mix(x, y, draw)

    def mix(self, batch: BatchRows) -> Mixed:
        """The inputs of a step, mixed before the network."""
        x, y = self._first(batch)
        other = None if batch.second is None else self._gather(batch.second)
        if batch.again is not None:
            other = x[batch.again], y[batch.again]
        importance = self._saliency(x, y) if self.by_saliency else None
        features = None if self.table is None else self._features(batch, self.table)
        checked = self.mixer.batch(x, y, other=other, features=features, importance=importance)
        mixed = self.mixer.mix_batch(checked, draw_of(batch, self.mixer, self.place))
        self.mixer.remember(checked)
        return mixed

    def _features(self, batch: BatchRows, table: FeatureTable) -> Features:
        """What the samples of a step are matched on."""
        own = table[batch.first]
        if batch.again is not None:
            return own, own[batch.again]
        return own if batch.second is None else (own, table[batch.second])

    def _saliency(self, x: Tensor, y: Tensor) -> Tensor:
        """Saliency of the pixels of a batch, by the network as it is before the step."""
        # without its wrappers: they would wait for a backward pass of all parameters
        net = unwrapped(self.model)
        return saliency(net, x, y, criterion=self.objective.criterion)

    def _first(self, batch: BatchRows) -> tuple[Tensor, Tensor]:
        """The first side of a step, which the network may have to see as it is."""
        x, y = self._gather(batch.first)
        if self.clean_pass:
            with torch.no_grad():
                self.model(self.mixer.encode_clean(x))
        return x, y

    def _gather(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        x, y = gather(rows, self.data, self.augment)
        return laid_out(x, self.layout), self.objective.targets(y)

    def weighted(self, mixed: Mixed) -> Tensor:
        """Mixed targets with the weights of their losses: of classes, and of pairs."""
        targets: Tensor = mixed.y
        if self.objective.class_weights is not None:
            targets = targets * self.objective.class_weights
        return targets if mixed.weight is None else self.objective.weigh(targets, mixed.weight)
