"""The library's mixers inside the lab's training.

A trial's streams say which samples meet and at which quantile of lam. Here this becomes a
`Draw`, and the mixer of the trial's method does the rest: the lab mixes nothing itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Generator, Tensor, nn

from kmixup.blocks import Blocks
from kmixup.hidden import HiddenMixup
from kmixup.importance import saliency
from kmixup.inputs import Features
from kmixup.lab.data import Dataset
from kmixup.lab.evaluate.tasks import objective_of
from kmixup.lab.models import layers_of
from kmixup.lab.train.batches import gather
from kmixup.lab.train.config import Layout, Method, Trial
from kmixup.lab.train.methods import Ingredients
from kmixup.lab.train.metric import FeatureTable, MatchOn
from kmixup.lab.train.streams import BatchRows, Streams, drawing_from
from kmixup.layers import unwrapped
from kmixup.mixed import Draw, Mixed
from kmixup.mixer import Mixer
from kmixup.randomness import uniforms


def mixer_of(
    method: Method,
    alpha: float,
    classes: int | None,
    shape: tuple[int, ...] = (),
    net: nn.Module | None = None,
) -> Mixer:
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
) -> Mixer:
    """The mixer of a trial. First weights of what the mixer itself learns are drawn here."""
    classes = objective_of(data, trial.class_weights).num_classes
    with drawing_from(streams.initialise):
        return mixer_of(trial.method, alpha, classes, data.shape, net)


def draw_of(batch: BatchRows, mixer: Mixer, place: Generator | None = None) -> Draw:
    """The draw of one step: `batch` says who may meet whom, and has the quantile of lam.

    What else the mixer needs, such as boxes, a lam for each sample, or samples of its memory, is
    drawn from `place`. The order of an epoch is random already, so a batch that meets itself is
    taken as it comes, and what fills it up comes last.
    """
    n, fill = len(batch.first), None
    within = batch.second is None and batch.again is None
    if mixer.memory is not None and mixer.coefficient.mixes:
        fill = mixer.memory.draw(n, mixer.pairing.k, within=within, generator=place)
    whole = n if fill is None else n + fill.shape[1]
    if within:
        blocks = mixer.pairing.blocks_in(np.arange(whole))
    else:
        blocks = Blocks(whole, min(mixer.pairing.k, whole))
    if (quantiles := mixer.pairing.sample(n, place)) is not None:
        blocks = replace(blocks, u=quantiles)
    size = () if mixer.lam_per == "batch" else (n,)
    spot = mixer.interpolation.sample(size, place) if mixer.coefficient.mixes else None
    u = batch.u if mixer.lam_per == "batch" else uniforms((n,), place)
    return Draw(0.0, blocks, u, spot, fill)


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
        mixer: Mixer | None = None,
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
        """The outputs of a step, and the account of its mixing."""
        if self.hidden is None:
            mixed = self.mix(batch)
            return self.model(mixed.x), mixed
        x, y = self._first(batch)
        return self.hidden.mix(x, y, self._draw_inside(batch, self.hidden))

    def mix(self, batch: BatchRows) -> Mixed:
        """The inputs of a step, mixed before the network."""
        x, y = self._first(batch)
        other = None if batch.second is None else self._gather(batch.second)
        if batch.again is not None:
            other = x[batch.again], y[batch.again]
        importance = self._saliency(x, y) if self.by_saliency else None
        features = None if self.table is None else self._features(batch, self.table)
        draw = draw_of(batch, self.mixer, self.place)
        mixed = self.mixer.mix(x, y, draw, other=other, features=features, importance=importance)
        self.mixer.remember(x, y, features=features, importance=importance)
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

    def _draw_inside(self, batch: BatchRows, hidden: HiddenMixup) -> Draw:
        """The draw of one step inside the network, its layer from the stream of places."""
        layer = 0
        if len(hidden.layers) > 1:
            layer = int(torch.randint(len(hidden.layers), (), generator=self.place))
        draw = draw_of(batch, self.mixer, self.place)
        return replace(draw, choices=(layer,))

    def _first(self, batch: BatchRows) -> tuple[Tensor, Tensor]:
        """The first side of a step, which the network may have to see as it is."""
        x, y = self._gather(batch.first)
        if self.clean_pass:
            with torch.no_grad():
                self.model(self.mixer.rest(x))
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
