"""skorch networks that train on mixed batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skorch import NeuralNet, NeuralNetClassifier, NeuralNetRegressor
from skorch.dataset import unpack_data
from skorch.utils import to_tensor
from torch import Tensor

from kmixup.methods.kmixup import KMixup
from kmixup.mixer import Mixing


class MixedTraining:
    """Mixin for `skorch.NeuralNet` and its subclasses: training steps are on mixed batches.

    The criterion is computed at the targets of every sample and of its partner, and averaged with
    the weights lam and 1 - lam, so it may take class indices. Inputs are any nest of tensors.
    Validation and prediction are on clean batches. The mixer is a component of the net like
    `module`: `mixer__k` and the like can be set, searched and cloned, and `mixer_` is the
    initialised one.

    Args:
        args, options: those of the net.
        mixer: a class or function that makes the mixer from `mixer__...`, or a mixer. With
            `lam_per="sample"`, or weights as in `LocalMixup`, the criterion must return one loss
            per sample: `criterion__reduction="none"`.
    """

    def __init__(
        self, *args: Any, mixer: Callable[..., Mixing] | Mixing = KMixup, **options: Any
    ) -> None:
        self.mixer = mixer  # first: later skorch raises on modules that it has not initialised
        super().__init__(*args, **options)

    def initialize_module(self) -> Any:
        """Initialise the module and the mixer."""
        super().initialize_module()  # type: ignore[misc]
        net: Any = self
        self.mixer_ = net.initialized_instance(self.mixer, net.get_params_for("mixer"))
        return self

    def train_step_single(self, batch: Any, **fit_params: Any) -> dict[str, Tensor]:
        net: Any = self
        net._set_training(True)
        x, y = (to_tensor(part, device=net.device) for part in unpack_data(batch))
        mixed = self.mixer_.mix(x, y)
        output = net.infer(mixed.x, **fit_params)
        loss = mixed.loss(
            lambda logits, targets: net.get_loss(logits, targets, X=mixed.x, training=True), output
        ).mean()
        loss.backward()
        return {"loss": loss, "y_pred": output}

    def get_loss(self, y_pred: Any, y_true: Any, X: Any = None, training: bool = False) -> Tensor:
        """Return the criterion's loss, averaged in validation."""
        loss: Tensor = super().get_loss(y_pred, y_true, X, training)  # type: ignore[misc]
        return loss if training else loss.mean()


class MixedNet(MixedTraining, NeuralNet):
    """`skorch.NeuralNet` that trains on mixed batches.

    The arguments are those of `MixedTraining`; `MixedNetClassifier` has an example.
    """


class MixedNetClassifier(MixedTraining, NeuralNetClassifier):
    """`skorch.NeuralNetClassifier` that trains on mixed batches.

    The arguments are those of `MixedTraining`.

    >>> import torch
    >>> from sklearn.model_selection import GridSearchCV
    >>> x, y = torch.randn(64, 1, 4, 4).numpy(), torch.arange(64).numpy() % 2
    >>> net = MixedNetClassifier(
    ...     torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 2)),
    ...     criterion=torch.nn.CrossEntropyLoss, max_epochs=1, verbose=0,
    ... )
    >>> search = GridSearchCV(net, {"mixer__k": [1, 4]}, cv=2).fit(x, y)
    >>> search.best_estimator_.mixer_.k == search.best_params_["mixer__k"]
    True
    """


class MixedNetRegressor(MixedTraining, NeuralNetRegressor):
    """`skorch.NeuralNetRegressor` that trains on mixed batches.

    The arguments are those of `MixedTraining`.

    >>> import torch
    >>> x = torch.randn(64, 4).numpy()
    >>> net = MixedNetRegressor(torch.nn.Linear(4, 1), max_epochs=1, verbose=0, mixer__k=4)
    >>> net.fit(x, x[:, :1]).predict(x).shape
    (64, 1)
    """
