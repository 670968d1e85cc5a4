"""Estimators for scikit-learn: small networks trained on mixed batches, with skorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.utils import check_array, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from skorch.callbacks import EarlyStopping
from skorch.helper import predefined_split
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from kmixup._checks import check_whole
from kmixup.integrations.skorch import MixedNet
from kmixup.methods.kmixup import KMixup
from kmixup.mixer import Mixer, Mixing

Array = NDArray[Any]
FLOATS = (np.float64, np.float32)  # others become float64, as in scikit-learn's own networks
STEPS = 1000  # training steps that small tables get at least, if max_iter is "auto"


class WeightedNet(MixedNet):
    """`MixedNet` for inputs, targets and, if given, weights of the losses at these targets."""

    def get_iterator(self, dataset: TensorDataset, training: bool = False) -> Batches:
        return Batches(dataset, self.batch_size, shuffle=training)

    def get_loss(self, y_pred: Any, y_true: Any, X: Any = None, training: bool = False) -> Tensor:
        target, *weight = y_true if isinstance(y_true, (tuple, list)) else (y_true,)
        losses: Tensor = self.criterion_(y_pred, target.to(self.device))
        losses = losses.reshape(len(losses), -1).mean(1)
        for factor in weight:
            losses = factor.to(self.device) * losses
        return losses if training else losses.mean()


@dataclass(frozen=True)
class Batches:
    """Batches of nearly equal size, so that none is too short for its blocks of k."""

    data: TensorDataset
    size: int
    shuffle: bool

    def __iter__(self) -> Iterator[Any]:
        n = len(self.data)
        order = torch.randperm(n) if self.shuffle else torch.arange(n)
        for rows in order.tensor_split(-(-n // self.size)):
            x, y, *weight = self.data[rows]
            yield x, (y, *weight) if weight else y


@dataclass(repr=False, eq=False)
class KMixupEstimator(BaseEstimator):
    """Base class of both estimators; `KMixupClassifier` documents the parameters.

    `mixer__k` and the like are separate parameters, so that a grid finds them although `mixer`
    is a class and not an estimator.
    """

    criterion: ClassVar[type[nn.Module]]

    hidden_layer_sizes: int | Sequence[int] = (100,)
    _: KW_ONLY
    mixer: Callable[..., Mixing] = KMixup
    mixer__k: int = 16
    mixer__alpha: float = 0.2
    learning_rate_init: float = 1e-3
    weight_decay: float = 1e-4
    batch_size: int | Literal["auto"] = "auto"
    max_iter: int | Literal["auto"] = "auto"
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    device: str = "cpu"
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, those of the mixer among them."""
        known = self.get_params(deep=False)
        if unknown := sorted(set(params) - set(known)):
            raise ValueError(
                f"{type(self).__name__} has no parameter {', '.join(unknown)}: "
                f"it has {', '.join(known)}"
            )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on samples `(n, d)`; samples of weight 0 count as absent."""
        self._check_settings()
        X, _ = validate_data(self, X, y, multi_output=True, dtype=FLOATS)
        if is_classifier(self):
            targets = column_or_1d(y, warn=True)
            check_classification_targets(targets)
        else:
            targets = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        self._dtype = torch.float32 if X.dtype == np.float32 else torch.float64
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        kept = np.flatnonzero(weight)
        X, targets, weight = X[kept], targets[kept], weight[kept]
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        train, valid = self._split(targets, seed)
        # column by column: the order of the sums decides the last digits of published scores
        self.scaler_ = StandardScaler().fit(np.asfortranarray(X[train]))
        encoded, outputs = self._encoded(targets, train)
        parts = [self._tensor(X), encoded]
        if sample_weight is not None:
            parts.append(torch.from_numpy(weight / weight[train].mean()).to(self._dtype))
        data = TensorDataset(*parts)
        device = torch.device(self.device)
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            sets = TensorDataset(*data[train]), TensorDataset(*data[valid])
            self.net_ = self._trained(*sets, outputs)
        self.n_iter_ = len(self.net_.history)
        self.loss_curve_ = list(self.net_.history[:, "train_loss"])
        return self

    def _trained(self, train: TensorDataset, valid: TensorDataset, outputs: int) -> MixedNet:
        n, batch_size = len(train), self.batch_size
        if batch_size == "auto":
            at_least = min(64, max(32, n // 16))
            batch_size = -(-n // max(1, n // at_least))
        batches = -(-n // batch_size)
        epochs = max(200, -(-STEPS // batches)) if self.max_iter == "auto" else self.max_iter
        mixer = self.mixer(k=self.mixer__k, alpha=self.mixer__alpha)
        if isinstance(mixer, Mixer):
            mixer.k = min(mixer.k, max(1, n // batches // 2))  # half of the smallest batch
        stops = EarlyStopping(patience=self.n_iter_no_change, load_best=True)
        net = WeightedNet(
            self._network(train.tensors[0].shape[1], outputs).to(self._dtype),
            self.criterion,
            criterion__reduction="none",
            mixer=mixer,
            optimizer=torch.optim.AdamW,
            optimizer__weight_decay=self.weight_decay,
            lr=self.learning_rate_init,
            max_epochs=epochs,
            batch_size=batch_size,
            train_split=predefined_split(valid) if len(valid) else None,
            callbacks=[stops] if len(valid) else None,
            device=self.device,
            verbose=self.verbose,
        )
        net.fit(train)
        net.train_split = None  # it would keep the validation samples in pickles
        return net

    def _check_settings(self) -> None:
        for name in ("batch_size", "max_iter", "n_iter_no_change"):
            value = getattr(self, name)
            if value != "auto":
                check_whole(name, value)
        if min(self._widths(), default=1) < 1:
            raise ValueError(
                "hidden_layer_sizes must be widths of at least 1, got "
                f"{self.hidden_layer_sizes}: use (100,)"
            )

    def _split(self, targets: Array, seed: int) -> tuple[Array, Array]:
        """Return the rows to train on, and the rows for early stopping."""
        rows = np.arange(len(targets))
        if not self.early_stopping:
            return rows, rows[:0]
        train, valid = train_test_split(
            rows,
            test_size=self.validation_fraction,
            stratify=targets if is_classifier(self) else None,
            random_state=seed,
        )
        return train, valid

    def _widths(self) -> list[int]:
        sizes = self.hidden_layer_sizes
        return [sizes] if isinstance(sizes, int) else list(sizes)

    def _network(self, inputs: int, outputs: int) -> nn.Module:
        layers: list[nn.Module] = []
        for width in self._widths():
            layers += [nn.Linear(inputs, width), nn.ReLU()]
            inputs = width
        return nn.Sequential(*layers, nn.Linear(inputs, outputs))

    def _forward(self, X: Any) -> Tensor:
        """Return the network's outputs for new samples, `(n, outputs)`."""
        check_is_fitted(self)
        inputs = self._tensor(validate_data(self, X, reset=False, dtype=FLOATS))
        none = torch.empty(len(inputs), 0)
        outputs: Tensor = self.net_.forward(TensorDataset(inputs, none, none))
        return outputs

    def _tensor(self, X: Array) -> Tensor:
        return torch.from_numpy(self.scaler_.transform(np.asfortranarray(X))).to(self._dtype)

    def _encoded(self, targets: Array, train: Array) -> tuple[Tensor, int]:
        """Return targets for the criterion, scaled by the rows `train`, and the outputs' number."""
        raise NotImplementedError


@dataclass(repr=False, eq=False)
class KMixupClassifier(ClassifierMixin, KMixupEstimator):
    """A classifier: a network trained on mixed batches.

    Columns are numbers, standardised inside; encode categories before. For a network of your own
    there is `kmixup.integrations.skorch.MixedNetClassifier`. Float32 inputs are computed
    with in float32, all others in float64. Sample weights scale the loss at the label of each
    sample; samples of weight 0 are left out.

    Args:
        hidden_layer_sizes: widths of the hidden layers, with ReLU after each.
        mixer: a class or function that makes the mixer from `k` and `alpha`.
        mixer__k: the number of samples in a block, cut to half of a batch for few samples.
        mixer__alpha: lam is drawn from Beta(alpha, alpha); 0 trains without mixing (ERM).
        learning_rate_init, weight_decay: learning rate and weight decay of AdamW.
        batch_size: upper bound of the batch size; all batches are of nearly equal size. "auto" is
            32 to 68, or all samples if there are fewer than 64.
        max_iter: the number of epochs, at most. "auto" is 200, or as many as 1,000 steps need.
        early_stopping: hold out samples, stop when their loss does not improve, and keep the best
            weights.
        validation_fraction: fraction of the samples that early stopping holds out.
        n_iter_no_change: number of epochs without improvement before early stopping.
        device: where to train, e.g. "cuda".
        random_state: seed of the weights, the batches, the mixing and the split.
        verbose: whether to print a line per epoch.

    Attributes:
        classes_: labels of the classes, sorted.
        n_features_in_, feature_names_in_: number and names of the columns, if all are strings.
        scaler_: the fitted `StandardScaler` of the inputs.
        net_: the fitted `kmixup.integrations.skorch.MixedNet` with `module_` and `history`.
        n_iter_: number of epochs that were trained.
        loss_curve_: training loss of every epoch, on mixed batches.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KMixupClassifier(max_iter=5, random_state=0).fit(X, y)
    >>> model.predict_proba(X[:2]).shape
    (2, 3)
    """

    criterion = nn.CrossEntropyLoss

    def _encoded(self, targets: Array, train: Array) -> tuple[Tensor, int]:
        encoder = LabelEncoder().fit(targets)
        self.classes_ = encoder.classes_
        return torch.from_numpy(encoder.transform(targets)).long(), len(self.classes_)

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, `(n, classes)`."""
        probabilities: Array = self._forward(X).softmax(1).numpy()
        return probabilities

    def predict(self, X: Any) -> Array:
        """Return the most probable class of every sample, `(n,)`."""
        chosen = self._forward(X).argmax(1).numpy()  # raises if not fitted
        labels: Array = self.classes_[chosen]
        return labels


@dataclass(repr=False, eq=False)
class KMixupRegressor(RegressorMixin, KMixupEstimator):
    """A regressor: a network trained on mixed batches.

    Targets are standardised inside. Parameters and attributes are those of `KMixupClassifier`,
    without `classes_`.

    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> KMixupRegressor(max_iter=2, random_state=0).fit(X, y).predict(X[:2]).shape
    (2,)
    """

    criterion = nn.MSELoss

    def _encoded(self, targets: Array, train: Array) -> tuple[Tensor, int]:
        self._flat = targets.ndim == 1
        columns = targets.reshape(len(targets), -1)
        self._scale = StandardScaler().fit(columns[train])
        return torch.from_numpy(self._scale.transform(columns)).to(self._dtype), columns.shape[1]

    def predict(self, X: Any) -> Array:
        """Return the predicted numbers, `(n,)` or `(n, outputs)` like the targets."""
        outputs = self._forward(X).numpy()
        predicted: Array = self._scale.inverse_transform(outputs)
        return predicted[:, 0] if self._flat else predicted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
