"""A callback for fastai's `Learner`, like its `MixUp`."""

from __future__ import annotations

from typing import Any

from fastai.callback.mixup import MixHandler, reduce_loss
from fastai.layers import NoneReduce

from kmixup.collate import check_mixer
from kmixup.methods.kmixup import KMixup
from kmixup.mixed import Mixed
from kmixup.mixer import Mixing


class KMixUp(MixHandler):
    """Mix a `Learner`'s training batches; validation batches stay clean.

    As in fastai's `MixUp`, every sample has its own lam, and a loss that takes class indices
    (`y_int`), such as `CrossEntropyLossFlat`, is computed at both targets. Other losses get
    interpolated targets. In a distributed job every rank draws differently.

    Args:
        alpha: lam is drawn from Beta(alpha, alpha); 0 mixes nothing.
        k: the number of samples in a block; 1 takes random partners.
        mixer: any mixer, in place of `KMixup` with `alpha` and `k`.

    >>> import torch
    >>> from fastai.basics import CrossEntropyLossFlat, DataLoader, DataLoaders, Learner
    >>> data = [(torch.randn(4), torch.tensor(number % 3)) for number in range(32)]
    >>> loaders = DataLoaders(DataLoader(data, bs=16), DataLoader(data, bs=16), device="cpu")
    >>> net, loss = torch.nn.Linear(4, 3), CrossEntropyLossFlat()
    >>> learner = Learner(loaders, net, loss_func=loss, cbs=KMixUp(k=4))  # then learner.fit(1)
    """

    def __init__(self, alpha: float = 0.4, *, k: int = 16, mixer: Mixing | None = None) -> None:
        super(MixHandler, self).__init__()  # MixHandler's own raises on alpha = 0
        self.mixer = KMixup(k, alpha, lam_per="sample") if mixer is None else mixer
        check_mixer(self.mixer)
        self._mixed: Mixed | None = None

    def before_train(self) -> None:
        super().before_train()
        if not self.stack_y:
            self.mixer.check_targets_suffice()

    def before_batch(self) -> None:
        """Mix the inputs, and the targets unless the loss does."""
        self._mixed = self.mixer.mix(self.xb, self.yb)
        self.learn.xb = self._mixed.x
        if not self.stack_y:
            self.learn.yb = self._mixed.y

    def lf(self, pred: Any, *yb: Any) -> Any:
        """Return the learner's loss at the targets of every sample and of its partner."""
        if not self.training or self._mixed is None:
            return self.old_lf(pred, *yb)
        with NoneReduce(self.old_lf) as loss:
            losses = self._mixed.loss(lambda output, targets: loss(output, *targets), pred)
        return reduce_loss(losses, getattr(self.old_lf, "reduction", "mean"))

    def after_batch(self) -> None:
        self._mixed = None
