"""Estimators for scikit-learn: small networks that are trained on mixed batches, with skorch.

>>> from sklearn.datasets import load_iris
>>> from sklearn.model_selection import GridSearchCV
>>> X, y = load_iris(return_X_y=True)
>>> search = GridSearchCV(KMixupClassifier(max_iter=5), {"mixer__k": [1, 16]}, cv=2)
>>> search.fit(X, y).best_params_.keys()
dict_keys(['mixer__k'])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from skorch.callbacks import EarlyStopping
from skorch.helper import predefined_split
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from kmixup.batchnorm import clean_batchnorm, has_batchnorm
from kmixup.columns import TableEncoder
from kmixup.integrations.skorch import MixedNet, batch_count
from kmixup.matching import LamPer, Metric
from kmixup.methods import KMixup
from kmixup.mixer import Mixer, Mixing

Array = NDArray[Any]
FLOATS = (np.float64, np.float32)  # others become float64, as in scikit-learn's own networks


class _Estimator(BaseEstimator):
    """Base of both estimators: columns, weights, the validation part, and the network.

    `mixer__k` and its like are parameters by themselves, so that a grid finds them although
    `mixer` is a class and not an estimator.

    Attributes:
        criterion: the loss that the network is trained with.
    """

    criterion: ClassVar[type[nn.Module]]

    def __init__(
        self,
        hidden_layer_sizes: int | Sequence[int] = (100,),
        *,
        mixer: Callable[..., Mixing] = KMixup,
        mixer__k: int = 16,
        mixer__alpha: float = 1.0,
        mixer__metric: Metric = "sqeuclidean",
        mixer__lam_per: LamPer = "batch",
        mixer__prob: float = 1.0,
        network: Callable[[int, int], nn.Module] | None = None,
        categorical_features: Literal["from_dtype"] | ArrayLike | None = "from_dtype",
        learning_rate_init: float = 1e-3,
        weight_decay: float = 1e-4,
        batch_size: int = 64,
        max_iter: int = 200,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        device: str = "cpu",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.mixer = mixer
        self.mixer__k = mixer__k
        self.mixer__alpha = mixer__alpha
        self.mixer__metric = mixer__metric
        self.mixer__lam_per = mixer__lam_per
        self.mixer__prob = mixer__prob
        self.network = network
        self.categorical_features = categorical_features
        self.learning_rate_init = learning_rate_init
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

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
        frame = self._checked_inputs(X, y)
        targets = self._checked_targets(y)
        weight = _check_sample_weight(
            sample_weight, frame, dtype=np.float64, ensure_non_negative=True
        )
        kept = np.flatnonzero(weight)
        frame, targets, weight = frame.iloc[kept], targets[kept], weight[kept]
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        train, valid = self._split(targets, seed)
        encoder = TableEncoder.infer(frame)
        self.columns_ = encoder.fit(encoder.read(frame.iloc[train]))
        self.scaler_ = StandardScaler().fit(self.columns_.transform(frame.iloc[train]))
        data = TensorDataset(
            self._tensor(frame),
            self._encoded(targets, train),
            torch.from_numpy(weight / weight[train].mean()).to(self._dtype),
        )
        device = torch.device(self.device)
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            self.net_ = self._trained(TensorDataset(*data[train]), TensorDataset(*data[valid]))
        self.n_iter_ = len(self.net_.history)
        self.loss_curve_ = list(self.net_.history[:, "train_loss"])
        return self

    def _trained(self, train: TensorDataset, valid: TensorDataset) -> MixedNet:
        stops = EarlyStopping(patience=self.n_iter_no_change, load_best=True)
        net = MixedNet(
            self._network(train.tensors[0].shape[1]).to(self._dtype),
            self.criterion,
            criterion__reduction="none",
            mixer=self._mixer(len(train)),
            optimizer=torch.optim.AdamW,
            optimizer__weight_decay=self.weight_decay,
            lr=self.learning_rate_init,
            max_epochs=self.max_iter,
            batch_size=self.batch_size,
            train_split=predefined_split(valid) if len(valid) else None,
            callbacks=[stops] if len(valid) else None,
            device=self.device,
            verbose=self.verbose,
        )
        net.fit(train)
        if has_batchnorm(net.module_):
            shuffled = train.tensors[0][torch.randperm(len(train))]
            batches = shuffled.tensor_split(batch_count(len(train), self.batch_size))
            clean_batchnorm(net.module_, batches, device=self.device)
        net.train_split = None  # it would keep the validation samples in pickles
        return net

    def _check_settings(self) -> None:
        for name in ("batch_size", "max_iter", "n_iter_no_change"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if min(self._widths(), default=1) < 1:
            raise ValueError(
                "hidden_layer_sizes must be widths of at least 1, got "
                f"{self.hidden_layer_sizes}: use (100,)"
            )
        if not 0 < self.validation_fraction < 1:
            raise ValueError(
                f"validation_fraction must be between 0 and 1, got {self.validation_fraction}"
            )

    def _checked_inputs(self, X: Any, y: Any) -> pd.DataFrame:
        """Check the inputs of `fit`, and return them as a data frame."""
        self._categories = self._categorical(X)
        if self._categories:
            validate_data(self, X, y, skip_check_array=True)
            check_consistent_length(X, y)
        else:
            X = validate_data(self, X, y, multi_output=True, dtype=FLOATS)[0]
        self._dtype = torch.float32 if getattr(X, "dtype", None) == np.float32 else torch.float64
        return self._frame(X)

    def _frame(self, X: Any) -> pd.DataFrame:
        """Return checked inputs as a data frame of floats and categories."""
        names = list(map(str, getattr(self, "feature_names_in_", range(self.n_features_in_))))
        frame = pd.DataFrame(X).reset_index(drop=True).set_axis(names, axis=1)
        categories = [names[i] for i in self._categories]
        numbers = [name for name in names if name not in categories]
        if numbers:
            floats = check_array(frame[numbers], input_name="X", dtype=FLOATS)
            frame = frame.drop(columns=numbers).join(pd.DataFrame(floats, columns=numbers))
        return frame[names].astype(dict.fromkeys(categories, "category"))

    def _categorical(self, X: Any) -> list[int]:
        """Positions of the columns that hold categories."""
        chosen: Any = self.categorical_features
        if isinstance(chosen, str) and chosen == "from_dtype":
            framed = hasattr(X, "select_dtypes")
            kinds = ["category", "object", "string"]
            chosen = X.select_dtypes(include=kinds).columns if framed else None
        labels = np.asarray([] if chosen is None else chosen)
        if labels.dtype == bool:
            return [int(position) for position in np.flatnonzero(labels)]
        names = list(getattr(X, "columns", ()))
        for label in labels.tolist():
            if label not in names and not isinstance(label, int):
                raise ValueError(
                    "categorical_features must be positions, names of columns, a mask or "
                    f'"from_dtype", got {label!r}, and the columns are {names}'
                )
        return [names.index(label) if label in names else label for label in labels.tolist()]

    def _split(self, targets: Array, seed: int) -> tuple[Array, Array]:
        """Rows to train on, and rows for early stopping."""
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

    def _tensor(self, frame: pd.DataFrame) -> Tensor:
        """Return a network's inputs: numbers are standardised, categories are one-hot."""
        x = self.columns_.transform(frame)
        x = np.where(self.columns_.binary, x, self.scaler_.transform(x))
        return torch.from_numpy(x).to(self._dtype)

    def _mixer(self, n: int) -> Mixing:
        """The mixer for `n` samples; its k is at most half of the smallest batch."""
        names = ("k", "alpha", "metric", "lam_per", "prob")
        mixer = self.mixer(**{name: getattr(self, f"mixer__{name}") for name in names})
        if isinstance(mixer, Mixer):
            mixer.k = min(mixer.k, max(1, n // batch_count(n, self.batch_size) // 2))
        return mixer

    def _widths(self) -> list[int]:
        sizes = self.hidden_layer_sizes
        return [sizes] if isinstance(sizes, int) else list(sizes)

    def _network(self, inputs: int) -> nn.Module:
        if self.network is not None:
            return self.network(inputs, self._outputs)
        widths = [inputs, *self._widths()]
        hidden = [(nn.Linear(width, following), nn.ReLU()) for width, following in pairwise(widths)]
        layers = [layer for pair in hidden for layer in pair]
        return nn.Sequential(*layers, nn.Linear(widths[-1], self._outputs))

    def _forward(self, X: Any) -> Tensor:
        """Outputs of the network for new samples, `(n, outputs)`."""
        check_is_fitted(self)
        if self._categories:
            validate_data(self, X, reset=False, skip_check_array=True)
        else:
            X = validate_data(self, X, reset=False, dtype=FLOATS)
        inputs = self._tensor(self._frame(X))
        none = torch.empty(len(inputs), 0)
        outputs: Tensor = self.net_.forward(TensorDataset(inputs, none, none))
        return outputs

    @property
    def _outputs(self) -> int:
        """The number of outputs of the network."""
        raise NotImplementedError

    def _checked_targets(self, y: ArrayLike) -> Array:
        """Targets as an array that can be trained on."""
        raise NotImplementedError

    def _encoded(self, targets: Array, train: Array) -> Tensor:
        """Targets as the criterion takes them; what is to be fitted is fitted to `train`."""
        raise NotImplementedError


class KMixupClassifier(ClassifierMixin, _Estimator):
    """A network that is trained on mixed batches, as an estimator of classes.

    Args:
        hidden_layer_sizes: widths of the hidden layers, with ReLU after each.
        mixer: what makes the mixer, a class or a function of the arguments `mixer__...`.
        mixer__k: size of the blocks; it is cut to half of a batch where samples are few.
        mixer__alpha: lam is drawn from Beta(alpha, alpha); 0 is plain training.
        mixer__metric: cost of the match.
        mixer__lam_per: what has a lam of its own: "batch", "block" or "sample".
        mixer__prob: the chance that a batch is mixed.
        network: a function of the numbers of inputs and outputs, in place of the hidden
            layers. It returns a module whose outputs are logits. If it has batch norm, the
            statistics are computed once more on unmixed samples after training, as
            `kmixup.clean_batchnorm` does.
        categorical_features: which columns are categories: positions, names or a mask. With
            "from_dtype" these are the columns of a data frame that hold categories, objects
            or strings. Categories become one-hot as in the lab: at most the 100 most frequent
            ones, zeros for unknown ones, and an indicator if some are missing. Other columns
            are standardised.
        learning_rate_init: learning rate of AdamW.
        weight_decay: weight decay of AdamW.
        batch_size: upper bound of the size of a batch; all batches are of nearly equal size.
        max_iter: number of epochs, at most.
        early_stopping: whether to hold out samples, to stop when their loss does not improve,
            and to keep the best weights.
        validation_fraction: share of the samples that early stopping holds out.
        n_iter_no_change: number of epochs without improvement before early stopping.
        device: where to train, e.g. "cuda".
        random_state: seed of the weights, of the batches, of the mixing and of the split.
        verbose: whether to print a line per epoch.

    Attributes:
        classes_: labels of the classes, sorted.
        n_features_in_: number of columns seen in `fit`.
        feature_names_in_: names of the columns, where all are strings.
        columns_: the fitted `kmixup.columns.TableEncoder`.
        scaler_: the fitted `StandardScaler` of the encoder's numbers.
        net_: the fitted network, a `skorch.NeuralNet` with `module_` and `history`.
        n_iter_: number of epochs that were trained.
        loss_curve_: training loss of every epoch, on mixed batches.

    Float32 inputs are computed with in float32, all others in float64. Sample weights scale
    the loss at the label of each sample; samples of weight 0 are left out.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KMixupClassifier(max_iter=5, random_state=0).fit(X, y)
    >>> model.predict_proba(X[:2]).shape
    (2, 3)
    """

    criterion = nn.CrossEntropyLoss

    @property
    def _outputs(self) -> int:
        return len(self.classes_)

    def _checked_targets(self, y: ArrayLike) -> Array:
        labels: Array = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        return labels

    def _encoded(self, targets: Array, train: Array) -> Tensor:
        encoder = LabelEncoder().fit(targets)
        self.classes_ = encoder.classes_
        return torch.from_numpy(encoder.transform(targets)).long()

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, `(n, classes)`."""
        probabilities: Array = self._forward(X).softmax(1).numpy()
        return probabilities

    def predict(self, X: Any) -> Array:
        """The most probable class of every sample, `(n,)`."""
        chosen = self._forward(X).argmax(1).numpy()
        labels: Array = self.classes_[chosen]
        return labels


class KMixupRegressor(RegressorMixin, _Estimator):
    """A network that is trained on mixed batches, as an estimator of numbers.

    Targets are standardised inside. Parameters and attributes are those of
    `KMixupClassifier`, without `classes_`; `network` returns a module of numbers.

    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> KMixupRegressor(max_iter=2, random_state=0).fit(X, y).predict(X[:2]).shape
    (2,)
    """

    criterion = nn.MSELoss

    @property
    def _outputs(self) -> int:
        return int(self._scale.n_features_in_)

    def _checked_targets(self, y: ArrayLike) -> Array:
        targets: Array = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        return targets

    def _encoded(self, targets: Array, train: Array) -> Tensor:
        self._flat = targets.ndim == 1
        columns = targets.reshape(len(targets), -1)
        self._scale = StandardScaler().fit(columns[train])
        return torch.from_numpy(self._scale.transform(columns)).to(self._dtype)

    def predict(self, X: Any) -> Array:
        """The predicted numbers, `(n,)` or `(n, outputs)` like the targets."""
        outputs = self._forward(X).numpy()
        predicted: Array = self._scale.inverse_transform(outputs)
        return predicted[:, 0] if self._flat else predicted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
