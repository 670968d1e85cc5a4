"""The training loop behind the estimators: a network of skorch that is fed mixed batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from skorch import NeuralNet
from skorch.utils import to_tensor
from torch import Tensor
from torch.utils.data import TensorDataset

from kmixup.mixer import Mixing

Batch = tuple[Tensor, tuple[Tensor, Tensor]]  # inputs; targets and weights


class MixedNet(NeuralNet):
    """A network whose training steps are on mixed batches.

    The data are a `TensorDataset` of inputs, targets and weights of the samples, and the
    criterion returns a loss per sample. Targets are not mixed: the loss is taken at both of
    them, each with the weight of its own sample. Other arguments are those of `NeuralNet`.
    """

    def __init__(self, *args: Any, mixer: Mixing, **options: Any) -> None:
        self.mixer = mixer  # before the rest: later skorch would take it for a network to train
        super().__init__(*args, **options)

    def get_iterator(self, dataset: TensorDataset, training: bool = False) -> Batches:
        return Batches(dataset, self.batch_size, shuffle=training)

    def train_step_single(self, batch: Batch, **fit_params: Any) -> dict[str, Tensor]:
        self._set_training(True)
        mixed = self.mixer.draw(*batch)
        output = self.infer(mixed.x, **fit_params)
        loss = mixed.loss(self._losses, output).mean()
        loss.backward()
        return {"loss": loss, "y_pred": output}

    def get_loss(
        self, y_pred: Tensor, y_true: Any, X: Any = None, training: bool = False
    ) -> Tensor:
        return self._losses(y_pred, y_true).mean()

    def _losses(self, output: Tensor, targets: Any) -> Tensor:
        """Weighted loss of every sample, `(n,)`."""
        target, weight = to_tensor(targets, device=self.device)
        losses: Tensor = self.criterion_(output, target)
        weighted: Tensor = weight * losses.reshape(len(losses), -1).mean(1)
        return weighted


class Batches:
    """Batches of nearly equal size, so that none is too short for its blocks of k."""

    def __init__(self, data: TensorDataset, size: int, *, shuffle: bool) -> None:
        self.data = data
        self.size = size
        self.shuffle = shuffle

    def __iter__(self) -> Iterator[Batch]:
        n = len(self.data)
        order = torch.randperm(n) if self.shuffle else torch.arange(n)
        for rows in order.tensor_split(batch_count(n, self.size)):
            x, y, weight = self.data[rows]
            yield x, (y, weight)


def batch_count(n: int, size: int) -> int:
    """The number of batches of at most `size` that `n` samples fill."""
    return -(-n // size)
