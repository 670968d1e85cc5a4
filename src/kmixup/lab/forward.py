"""One step through the network: its batch is mixed before the network, or inside of it."""

from __future__ import annotations

from torch import Tensor, nn

from kmixup.hidden import HiddenMixup
from kmixup.lab.batches import batch_of, gather, mix
from kmixup.lab.data import Dataset
from kmixup.lab.models import layers_of
from kmixup.lab.protocol import Method, Trial
from kmixup.lab.streams import Step, Streams
from kmixup.mixing import Mixed, Mixing
from kmixup.nests import Features, Nest


class Forward:
    """Logits `(n, classes)` and soft targets of a trial's steps."""

    def __init__(self, model: nn.Module, trial: Trial, data: Dataset, streams: Streams) -> None:
        self.model, self.method, self.data = model, trial.method, data
        self.augment = streams.augment if trial.protocol.augment else None
        self.place = streams.place
        self.hidden: HiddenMixup | None = None
        if self.method.layers is not None and self.method.alpha > 0:
            self.mixing = StepMixing(self.method, data.num_classes, streams)
            layers = layers_of(trial.model, self.method.layers)
            self.hidden = HiddenMixup(model, layers, mixer=self.mixing)

    def __call__(self, step: Step) -> tuple[Tensor, Tensor]:
        if self.hidden is None:
            x, y = batch_of(step, self.data, self.method, augment=self.augment, place=self.place)
            return self.model(x), y
        x, y = gather(step.first, self.data, self.augment)
        self.mixing.step = step
        logits, mixed = self.hidden.draw(x, y)
        return logits, mixed.y


class StepMixing(Mixing):
    """Mixes as `step` has drawn. The layer is drawn from the stream of places."""

    step: Step

    def __init__(self, method: Method, classes: int, streams: Streams) -> None:
        super().__init__()
        self.method, self.classes = method, classes
        self.generator = streams.place

    @property
    def weighs(self) -> bool:
        return False

    def draw(
        self,
        x: Nest,
        y: Tensor,
        *,
        other: tuple[Nest, Tensor] | None = None,
        features: Features | None = None,
    ) -> Mixed:
        """Mix a batch; it is matched on all of `x`, whatever the `features`."""
        return mix(self.step, self.method, x, y, other=other, classes=self.classes)
