"""A Lightning callback that mixes the training batches of any `LightningModule`."""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Generator

from kmixup._nests import Keys, over_packed
from kmixup._randomness import Source
from kmixup.collate import check_mixer
from kmixup.mixed import Mixed
from kmixup.mixer import Mixing, mixers_in


class MixCallback(Callback):
    """Mix every training batch on its device, before `training_step` sees it.

    `training_step` gets soft targets, which `F.cross_entropy` takes. Batches for validation, test
    and prediction stay clean.

    A mixer without a generator gets one when training starts, seeded with a random number from
    torch's: `seed_everything` repeats a run, and the members of an ensemble differ. The state of
    the generator is saved with every checkpoint, so that a resumed run continues bit for bit. In a
    distributed job every rank draws differently.

    Batches are mixed after all transfer hooks of the module and the data module. A `training_step`
    that takes the loader's iterator moves its batches itself; they are not mixed.

    Args:
        mixer: e.g. `KMixup(k=16, num_classes=10)`.
        keys: where inputs and targets are in a batch, as in a call of the mixer.
        off_epoch: the epoch, counted from 0, that sets the mixer to eval mode. Mixing stops, and
            targets are one-hot from then on.

    Attributes:
        mixed: the `Mixed` record of the last training batch, with its `accuracy` and `loss`.

    >>> from kmixup import KMixup
    >>> import lightning as L
    >>> callback = MixCallback(KMixup(k=16, num_classes=10), off_epoch=80)
    >>> trainer = L.Trainer(max_epochs=90, accelerator="cpu", callbacks=[callback], logger=False)
    >>> callback in trainer.callbacks
    True
    """

    def __init__(self, mixer: Mixing, *, keys: Keys = (0, 1), off_epoch: int | None = None) -> None:
        super().__init__()
        check_mixer(mixer)
        mixer.check_targets_suffice()
        self.mixer = mixer
        self.keys = keys
        self.off_epoch = off_epoch
        self.mixed: Mixed | None = None

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if stage != "fit":
            return
        unseeded = [module for module in mixers_in(self.mixer) if module.generator is None]
        if unseeded:
            # the same on all ranks, so that one checkpoint resumes all of them
            seed = trainer.strategy.broadcast(int(torch.randint(2**62, ())))
            source = Source(Generator().manual_seed(seed))
            for module in unseeded:
                module._source = source
        transfer = trainer.strategy.batch_to_device

        @wraps(transfer)
        def transfer_and_mix(batch: Any, *more: Any, **named: Any) -> Any:
            batch = transfer(batch, *more, **named)
            if trainer.training and batch is not None:
                if self.off_epoch is not None:
                    self.mixer.train(trainer.current_epoch < self.off_epoch)
                return over_packed(self._mix, batch, self.keys)
            return batch

        trainer.strategy.batch_to_device = transfer_and_mix

    def _mix(self, x: Any, y: Any) -> tuple[Any, Any]:
        self.mixed = self.mixer.mix(x, y)
        return self.mixed.x, self.mixed.y

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        trainer.strategy.__dict__.pop("batch_to_device", None)
        self.mixed = None

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        self.teardown(trainer, pl_module, "fit")

    def state_dict(self) -> dict[str, Any]:
        return {"mixer": self.mixer.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.mixer.load_state_dict(state_dict["mixer"])
