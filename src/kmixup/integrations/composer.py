"""An `Algorithm` for MosaicML's Composer."""

from __future__ import annotations

from composer.core import Algorithm, Event, State
from composer.loggers import Logger

from kmixup._nests import Keys
from kmixup.collate import check_mixer
from kmixup.mixed import Mixed
from kmixup.mixer import Mixing


class MixAlgorithm(Algorithm):
    """Mix training batches, as Composer's `MixUp` does: `Trainer(..., algorithms=[...])`.

    The model's `forward` gets mixed inputs, and its `loss` soft targets. Training metrics are
    computed with the labels of the samples themselves, so mixers that add clean rows (`RegMixup`,
    `WithClean`) need a model without training metrics. In a distributed job every rank draws
    differently.

    Args:
        mixer: e.g. `KMixup(k=16, num_classes=10)`.
        keys: where inputs and targets are in a batch.

    >>> from kmixup import KMixup
    >>> algorithm = MixAlgorithm(KMixup(k=16, num_classes=10))
    >>> trainer = Trainer(model, loader, algorithms=[algorithm])  # doctest: +SKIP
    """

    def __init__(self, mixer: Mixing, *, keys: Keys = (0, 1)) -> None:
        check_mixer(mixer)
        mixer.check_targets_suffice()
        self.mixer = mixer
        self.keys = keys
        self._mixed: Mixed | None = None

    def match(self, event: Event, state: State) -> bool:
        """Run before the forward pass, and before the loss."""
        return event in (Event.BEFORE_FORWARD, Event.BEFORE_LOSS)

    def apply(self, event: Event, state: State, logger: Logger) -> None:
        """Mix the inputs before the forward pass, and set soft targets before the loss."""
        if event == Event.BEFORE_FORWARD:
            x, y = (state.batch_get_item(key) for key in self.keys)
            self._mixed = self.mixer.mix(x, y)
            state.batch_set_item(self.keys[0], self._mixed.x)
        elif self._mixed is not None:
            state.batch_set_item(self.keys[1], self._mixed.y)
            self._mixed = None
