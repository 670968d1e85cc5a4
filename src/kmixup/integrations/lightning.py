"""A Lightning callback that mixes the training batches of any `LightningModule`."""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Generator

from kmixup.batchnorm import check_batchnorm, clean_batchnorm
from kmixup.integrations.data import Key, check_mixer, draw_batch
from kmixup.mixed import Mixed
from kmixup.mixer import Mixing
from kmixup.randomness import Source


class MixCallback(Callback):
    """Mix every training batch on its device, before `training_step` sees it.

    `training_step` gets soft targets, which `F.cross_entropy` takes. Batches for validation, test
    and prediction stay clean. `kmixup/lam` and `kmixup/distance`, the mean distance of partners,
    are logged.

    A mixer without a generator gets one when training starts, seeded with a random number from
    torch's: `seed_everything` repeats a run, and the members of an ensemble differ. The state of
    the generator is saved with every checkpoint, so that a resumed run continues bit for bit. In a
    distributed job every rank draws differently.

    Batches are mixed after all transfer hooks of the module and the data module. A `training_step`
    that takes the loader's iterator moves its batches itself; they are not mixed.

    Args:
        mixer: e.g. `KMixup(k=16, num_classes=10)`.
        input_key: where the inputs of a batch are.
        target_key: where the targets are; None mixes only inputs.
        off_epoch: the epoch, counted from 0, at which mixing stops; targets are one-hot from then
            on.
        clean_batchnorm: recompute batch-norm statistics when training ends, by the module's
            `forward` on unmixed training batches (see `kmixup.clean_batchnorm`). Earlier
            checkpoints do not have them.

    Attributes:
        mixed: the `Mixed` record of the last training batch, with its `accuracy` and `loss`.

    >>> from kmixup import KMixup
    >>> import lightning as L
    >>> callback = MixCallback(KMixup(k=16, num_classes=10), off_epoch=80)
    >>> trainer = L.Trainer(max_epochs=90, accelerator="cpu", callbacks=[callback], logger=False)
    >>> callback in trainer.callbacks
    True
    """

    def __init__(
        self,
        mixer: Mixing,
        *,
        input_key: Key = 0,
        target_key: Key | None = 1,
        off_epoch: int | None = None,
        clean_batchnorm: bool = False,
    ) -> None:
        super().__init__()
        check_mixer(mixer)
        mixer.check_targets_suffice()
        if off_epoch is not None and off_epoch < 0:
            raise ValueError(f"off_epoch must be an epoch, 0 or more, or None, got {off_epoch}")
        self.mixer = mixer
        self.input_key = input_key
        self.target_key = target_key
        self.off_epoch = off_epoch
        self.clean_batchnorm = clean_batchnorm
        self.mixed: Mixed | None = None

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if stage != "fit":
            return
        modules = [module for module in self.mixer.modules() if isinstance(module, Mixing)]
        unseeded = [module for module in modules if module.generator is None]
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
                return self._mix(batch, trainer.current_epoch)
            return batch

        trainer.strategy.batch_to_device = transfer_and_mix

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        trainer.strategy.__dict__.pop("batch_to_device", None)
        self.mixed = None

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        self.teardown(trainer, pl_module, "fit")

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not self.clean_batchnorm:
            return
        check_batchnorm(pl_module)
        if type(pl_module).forward is LightningModule.forward:
            raise ValueError(
                f"clean_batchnorm=True needs a forward, {type(pl_module).__name__} has none: "
                "define it, or call kmixup.clean_batchnorm(net, loader) after training"
            )

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        if self.mixed is None or not trainer.loggers:
            return
        pl_module.log("kmixup/lam", self.mixed.lam.mean())
        # distances cost half as much as mixing, so they are only measured when they are logged
        several = len(trainer.optimizers) > 1  # each of them counts steps
        if several or (trainer.global_step + 1) % trainer.log_every_n_steps == 0:
            pl_module.log("kmixup/distance", self.mixed.distance.mean())

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not self.clean_batchnorm or trainer.train_dataloader is None:
            return

        def call(batch: Any) -> None:
            # that of the class does not mix
            batch = type(trainer.strategy).batch_to_device(trainer.strategy, batch)
            pl_module(batch[self.input_key])

        clean_batchnorm(pl_module, trainer.train_dataloader, call=call)

    def state_dict(self) -> dict[str, Any]:
        return {"mixer": self.mixer.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.mixer.load_state_dict(state_dict["mixer"])

    def _mix(self, batch: Any, epoch: int) -> Any:
        training = self.mixer.training
        off = self.off_epoch is not None and epoch >= self.off_epoch
        self.mixer.train(training and not off)
        try:
            batch, self.mixed = draw_batch(self.mixer, batch, self.input_key, self.target_key)
        finally:
            self.mixer.train(training)
        return batch
