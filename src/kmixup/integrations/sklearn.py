"""Estimators for scikit-learn: small networks trained on mixed batches."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.utils import check_array, check_random_state, column_or_1d
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)
from torch import Tensor
from torch.nn import functional as F

from kmixup._checks import check_choice, check_fraction, check_number, check_whole
from kmixup.matching import Metric
from kmixup.methods.kmixup import KMixup
from kmixup.mixer import Mixing
from kmixup.tables.defaults import HIDDEN, LEAST_EPOCHS, TableRule, TableSettings
from kmixup.tables.fitting import constant_error, error_of, mlp, problem, unmixed_error

if TYPE_CHECKING:  # pandas loads slowly, and only data frames need it
    from kmixup.tables.encoder import TableEncoder

Array = NDArray[Any]
Auto = Literal["auto"]
Method = Literal["kmixup", "mixup", "erm"] | Callable[..., Mixing]
FLOATS = (np.float64, np.float32)  # others become float64, as in scikit-learn's own networks
MILESTONES, MOMENTUM = (0.5, 0.75), 0.9  # of SGD, as in the lab
MAX_CELLS = 1 << 28  # of sparse inputs, once they are dense
CHUNK = 8192  # samples predicted at a time


@dataclass(repr=False, eq=False)
class KMixupEstimator(BaseEstimator):
    """Base class of both estimators; `KMixupClassifier` documents the parameters."""

    hidden_layer_sizes: int | Sequence[int] = HIDDEN
    _: KW_ONLY
    method: Method = "kmixup"
    k: int = 16
    alpha: float = 0.2
    metric: Metric = "sqeuclidean"
    learning_rate_init: float | Auto = "auto"
    weight_decay: float | Auto = "auto"
    batch_size: int | Auto = "auto"
    max_iter: int | Auto = "auto"
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    warm_start: bool = False
    device: str = "cpu"
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on samples `(n, d)`; samples of weight 0 count as absent.

        `X` is an array, a sparse matrix or a data frame. A frame may have text, dates and blanks.
        """
        self._check_settings()
        frame = _as_frame(X)
        if frame is None:
            inputs = _dense(
                validate_data(self, X, y, multi_output=True, dtype=FLOATS, accept_sparse="csr")[0]
            )
        else:
            inputs = np.empty((len(frame), 0))
            _check_feature_names(self, X, reset=True)
            _check_n_features(self, X, reset=True)
        n = len(inputs)
        targets = self._targets(y, n)
        weight = _check_sample_weight(
            sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True
        )
        weight = weight * self._class_weights(targets)
        kept = np.flatnonzero(weight)
        targets, weight = targets[kept], weight[kept]
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        train, valid = self._split(targets, seed)
        encoded = self._encoded(targets, train)
        again = self.warm_start and hasattr(self, "net_")
        encoder: TableEncoder | None = vars(self)["encoder_"] if again else None
        if frame is None:
            inputs = inputs[kept]
        else:
            encoder, inputs = _fit_table(frame.iloc[kept], encoded.numpy(), train, encoder)
        self.encoder_ = encoder
        self._dtype = torch.float32 if inputs.dtype == np.float32 else torch.float64
        if not again:
            # column by column: the order of the sums decides the last digits of published scores
            self.scaler_ = StandardScaler().fit(np.asfortranarray(inputs[train]))
        x = self._scaled(inputs)
        weights = None
        if sample_weight is not None or not np.all(weight == weight[0]):
            weights = torch.from_numpy(weight / weight[train].mean()).to(self._dtype)
        device = torch.device(self.device)
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            outputs = self._outputs(encoded)
            if not again:
                self.net_ = mlp(x.shape[1], self._widths(), outputs).to(device, self._dtype)
            self._train(x, encoded, weights, train, valid)
        self.n_iter_ = len(self.loss_curve_)
        self.net_.to("cpu").eval()
        self._check_fit(x[train], encoded[train], weights is not None)
        return self

    def _train(
        self, x: Tensor, y: Tensor, weights: Tensor | None, train: Array, valid: Array
    ) -> None:
        settings, batches = self._settings(y[train])
        mixer = self._mixer(smallest=len(train) // batches)
        optimiser = torch.optim.SGD(
            self.net_.parameters(), lr=settings.rate, momentum=MOMENTUM,
            weight_decay=settings.weight_decay,
        )  # fmt: skip
        drops = [max(1, round(share * settings.epochs)) for share in MILESTONES]
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, drops)
        rows, held = torch.from_numpy(train), torch.from_numpy(valid)
        self.loss_curve_: list[float] = []
        self.validation_scores_: list[float] | None = [] if len(valid) else None
        best, kept, since = -np.inf, None, 0
        for epoch in range(settings.epochs):
            self.net_.train()
            mixer.train()
            total = 0.0
            for batch in rows[torch.randperm(len(rows))].tensor_split(batches):
                loss = self._loss(
                    mixer, x[batch], y[batch], None if weights is None else weights[batch]
                )
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                total += loss.item() * len(batch)
            schedule.step()
            self.loss_curve_.append(total / len(rows))
            if not np.isfinite(total):
                raise ValueError(
                    f"the loss became NaN or infinite in epoch {epoch + 1}, at learning_rate_init="
                    f"{settings.rate:g}: try a lower one, e.g. {settings.rate / 10:g}"
                )
            if self.verbose:
                print(f"epoch {epoch + 1}: loss {self.loss_curve_[-1]:.4g}", flush=True)
            if self.validation_scores_ is None:
                continue
            self.net_.eval()
            with torch.no_grad():
                outputs = self.net_(x[held].to(self.device)).cpu()
            self.validation_scores_.append(self._score_of(outputs, y[held]))
            reached = -float(self._losses(outputs, y[held]).mean())
            if reached > best:
                best, since, kept = reached, 0, copy.deepcopy(self.net_.state_dict())
            elif (since := since + 1) >= self.n_iter_no_change:
                break
        if kept is not None:
            self.net_.load_state_dict(kept)
        if not all(parameter.isfinite().all() for parameter in self.net_.parameters()):
            raise ValueError(
                "the weights became NaN or infinite, at learning_rate_init="
                f"{settings.rate:g}: try a lower one, e.g. {settings.rate / 10:g}"
            )

    def _loss(self, mixer: Mixing, x: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """Return the mean loss of a mixed batch."""
        x, y = x.to(self.device), y.to(self.device)
        if weight is None:
            mixed = mixer.mix(x, y)
            return mixed.loss(self._losses, self.net_(mixed.x)).mean()
        mixed = mixer.mix(x, (y, weight.to(self.device)))
        return mixed.loss(
            lambda outputs, targets: targets[1] * self._losses(outputs, targets[0]),
            self.net_(mixed.x),
        ).mean()

    def _settings(self, y: Tensor) -> tuple[TableSettings, int]:
        """Return settings of SGD, by default the lab's for so many rows, and batches per epoch."""
        balance, n = 1.0, len(y)
        if not y.is_floating_point():
            counts = y.bincount()
            balance = int(counts.min()) * len(counts) / n
        rule = TableRule()
        settings = rule.settings(n, balance=balance)
        batches = max(1, n // settings.batch_size)  # of nearly equal size
        if self.batch_size != "auto":
            batches = -(-n // self.batch_size)
        settings = settings._replace(epochs=max(LEAST_EPOCHS, -(-rule.steps // batches)))
        given: dict[str, Any] = {
            "epochs": self.max_iter, "rate": self.learning_rate_init,
            "weight_decay": self.weight_decay,
        }  # fmt: skip
        return settings._replace(**{k: v for k, v in given.items() if v != "auto"}), batches

    def _mixer(self, *, smallest: int) -> Any:
        """Return the mixer, with k cut to half of the smallest batch."""
        most = max(1, smallest // 2)
        k = check_whole("k", self.k)
        if self.method in ("mixup", "erm"):
            k = 1
        self.k_ = min(k, most)
        if self.k_ < k:
            warnings.warn(
                f"k={k} needs batches of {2 * k} samples, the smallest has {smallest}: k_="
                f"{self.k_} is used",
                stacklevel=4,
            )
        alpha = 0.0 if self.method == "erm" else self.alpha
        if not isinstance(self.method, str):
            return self.method(k=self.k_, alpha=alpha)
        return KMixup(k=self.k_, alpha=alpha, metric=self.metric)

    def _check_settings(self) -> None:
        for name in ("batch_size", "max_iter", "n_iter_no_change"):
            value = getattr(self, name)
            if value != "auto":
                check_whole(name, value)
        for name, least in (("learning_rate_init", 1e-30), ("weight_decay", 0.0)):
            if (rate := getattr(self, name)) != "auto":
                rule = f"a number of at least {least:g}, or 'auto'"
                check_number(name, rate, rule, least.__le__)
        if self.early_stopping:
            check_fraction("validation_fraction", self.validation_fraction)
        if isinstance(self.method, str):
            check_choice("method", self.method, ("kmixup", "mixup", "erm"))
        if min(self._widths(), default=1) < 1:
            raise ValueError(
                "hidden_layer_sizes must be widths of at least 1, got "
                f"{self.hidden_layer_sizes}: use (100,)"
            )

    def _check_fit(self, x: Tensor, y: Tensor, weighted: bool) -> None:
        """Warn if the network has not fitted its training data."""
        constant = constant_error(y)
        if weighted or not constant or len(y) < 20:
            return
        with torch.no_grad():
            error = error_of(self.net_(x), y)
        found = problem(error, constant, lambda: unmixed_error(x, y, self._widths()))
        if found:
            warnings.warn(
                f"the network has not fitted the training data, {found}: use more epochs "
                "(max_iter), a higher learning_rate_init or a lower alpha",
                ConvergenceWarning,
                stacklevel=3,
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
        widths: list[int] = np.atleast_1d(self.hidden_layer_sizes).tolist()
        return widths

    def _forward(self, X: Any) -> Tensor:
        """Return the network's outputs for new samples, `(n, outputs)`."""
        check_is_fitted(self)
        if self.encoder_ is None:
            checked = validate_data(self, X, reset=False, dtype=FLOATS, accept_sparse="csr")
            inputs = _dense(checked)
        else:
            _check_feature_names(self, X, reset=False)
            values = self.encoder_.read(X)
            for note in self.encoder_.notes(values, "X"):
                warnings.warn(note, stacklevel=3)
            inputs = self.encoder_.encode(values)
        x = self._scaled(inputs)
        with torch.no_grad():
            return torch.cat([self.net_(part) for part in x.split(CHUNK)])

    def _scaled(self, inputs: Array) -> Tensor:
        return torch.from_numpy(self.scaler_.transform(np.asfortranarray(inputs))).to(self._dtype)

    def _class_weights(self, targets: Array) -> Array | float:
        return 1.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _targets(self, y: ArrayLike, n: int) -> Array:
        """Return checked targets of `n` samples."""
        raise NotImplementedError

    def _encoded(self, targets: Array, train: Array) -> Tensor:
        """Return targets for the loss, scaled by the rows `train`."""
        raise NotImplementedError

    def _outputs(self, encoded: Tensor) -> int:
        """Return the number of the network's outputs."""
        raise NotImplementedError

    def _losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return a loss for each sample."""
        raise NotImplementedError

    def _score_of(self, outputs: Tensor, targets: Tensor) -> float:
        """Return the validation score."""
        raise NotImplementedError


@dataclass(repr=False, eq=False)
class KMixupClassifier(ClassifierMixin, KMixupEstimator):
    """A classifier: a network trained on mixed batches.

    Network and training are those of `kmixup train`. Columns of an array are numbers, standardised
    inside; a data frame may have text, dates and blanks too, which are encoded as `kmixup train`
    does. For your own network there is `kmixup.integrations.skorch.MixedNetClassifier`. Float32
    inputs are computed with in float32, all others in float64. Sample weights scale the loss at
    the label of each sample; samples of weight 0 are left out.

    Args:
        hidden_layer_sizes: widths of the hidden layers, with ReLU after each.
        method: "kmixup", "mixup" (k = 1), "erm" (no mixing), or a class or function that makes a
            mixer from `k` and `alpha`.
        k: the number of samples in a block, cut to half of a batch for few samples.
        alpha: lam is drawn from Beta(alpha, alpha); 0 trains without mixing (ERM).
        metric: cost of a pair: "sqeuclidean", "euclidean" or "cosine".
        learning_rate_init, weight_decay: learning rate and weight decay of SGD; "auto" depends on
            the number of samples.
        batch_size: upper bound of the batch size; all batches are of nearly equal size. "auto" is
            32 to 255, growing with the number of samples.
        max_iter: the number of epochs, at most. "auto" is 200, or as many as 2,000 steps need.
        early_stopping: hold out samples, stop when their loss does not improve, and keep the best
            weights.
        validation_fraction: fraction of the samples that early stopping holds out.
        n_iter_no_change: number of epochs without improvement before early stopping.
        warm_start: continue from the weights of the last `fit`.
        device: where to train, e.g. "cuda".
        random_state: seed of the weights, the batches, the mixing and the split.
        verbose: whether to print a line per epoch.
        class_weight: weights of the classes, "balanced" for the inverse of their frequencies.

    Attributes:
        classes_: labels of the classes, sorted.
        k_: the k in use.
        n_features_in_, feature_names_in_: number and names of the columns, if all are strings.
        encoder_: how a data frame is encoded; None for arrays.
        scaler_: the fitted `StandardScaler` of the inputs.
        net_: the trained network.
        n_iter_: number of epochs that were trained.
        loss_curve_: training loss of every epoch, on mixed batches.
        validation_scores_: accuracy on held-out samples after every epoch; None without early
            stopping.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KMixupClassifier(max_iter=100, random_state=0).fit(X, y)
    >>> model.predict_proba(X[:2]).shape
    (2, 3)
    """

    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None

    def _targets(self, y: ArrayLike, n: int) -> Array:
        targets = column_or_1d(y, warn=True)
        check_classification_targets(targets)
        if len(targets) != n:
            raise ValueError(f"y must have a label for each of the {n} samples, has {len(targets)}")
        return np.asarray(targets)

    def _class_weights(self, targets: Array) -> Array | float:
        if self.class_weight is None:
            return 1.0
        weights: Array = compute_sample_weight(self.class_weight, targets)
        return weights

    def _encoded(self, targets: Array, train: Array) -> Tensor:
        encoder = LabelEncoder().fit(targets)
        if self.warm_start and hasattr(self, "net_") and set(targets) != set(self.classes_):
            raise ValueError("y must have the classes of the last fit with warm_start=True")
        self.classes_: Array = encoder.classes_
        return torch.from_numpy(encoder.transform(targets)).long()

    def _outputs(self, encoded: Tensor) -> int:
        return len(self.classes_)

    def _losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(outputs, targets, reduction="none")

    def _score_of(self, outputs: Tensor, targets: Tensor) -> float:
        return 1 - error_of(outputs, targets)

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities of the classes, `(n, classes)`."""
        return np.asarray(self._forward(X).log_softmax(1))

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, `(n, classes)`."""
        return np.asarray(self._forward(X).softmax(1))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of every sample, `(n,)`."""
        chosen = self._forward(X).argmax(1).numpy()  # raises if not fitted
        labels: Array = self.classes_[chosen]
        return labels


@dataclass(repr=False, eq=False)
class KMixupRegressor(RegressorMixin, KMixupEstimator):
    """A regressor: a network trained on mixed batches.

    Targets are standardised inside. Parameters and attributes are those of `KMixupClassifier`,
    without `classes_` and `class_weight`; `validation_scores_` are R².

    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> KMixupRegressor(max_iter=30, random_state=0).fit(X, y).predict(X[:2]).shape
    (2,)
    """

    def _targets(self, y: ArrayLike, n: int) -> Array:
        targets = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        if len(targets) != n:
            raise ValueError(f"y must have a number for each of the {n} samples: {len(targets)}")
        return np.asarray(targets)

    def _encoded(self, targets: Array, train: Array) -> Tensor:
        self._flat = targets.ndim == 1
        columns = targets.reshape(len(targets), -1)
        self._scale = StandardScaler().fit(columns[train])
        return torch.from_numpy(self._scale.transform(columns))

    def _outputs(self, encoded: Tensor) -> int:
        return encoded.shape[1]

    def _losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return F.mse_loss(outputs, targets.to(outputs.dtype), reduction="none").mean(1)

    def _score_of(self, outputs: Tensor, targets: Tensor) -> float:
        spread = float((targets - targets.mean(0)).square().mean())
        return 1 - error_of(outputs, targets) ** 2 / spread if spread else 0.0

    def predict(self, X: Any) -> Array:
        """Return the predicted numbers, `(n,)` or `(n, outputs)` like the targets."""
        outputs = self._forward(X).numpy()
        predicted: Array = self._scale.inverse_transform(outputs)
        return predicted[:, 0] if self._flat else predicted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _as_frame(X: Any) -> Any:
    """Return a data frame with cells other than numbers; None for other inputs."""
    if not hasattr(X, "iloc") or not hasattr(X, "dtypes"):
        return None
    plain = all(dtype.kind in "biuf" for dtype in X.dtypes) and not X.isna().to_numpy().any()
    return None if plain or not len(X) else X.rename(columns=str)


def _fit_table(
    frame: Any, y: Array, train: Array, encoder: TableEncoder | None
) -> tuple[TableEncoder, Array]:
    """Return an encoder, by default one fitted to the rows `train`, and the inputs of all rows."""
    from kmixup.tables.encoder import TableEncoder
    from kmixup.tables.look import look
    from kmixup.tables.schema import Schema

    if encoder is not None:
        return encoder, encoder.transform(frame)
    schema, notes = Schema.infer(frame)
    values = schema.read(frame)
    first = y if y.ndim == 1 else y[:, 0]
    for note in notes + look(values, first, schema):
        warnings.warn(note, stacklevel=3)
    encoder, fitted = TableEncoder.fit(schema, values.iloc[train], first[train])
    inputs = encoder.encode(values)
    inputs[train] = fitted
    return encoder, inputs


def _dense(X: Any) -> Array:
    if not hasattr(X, "toarray"):
        return np.asarray(X)
    if X.shape[0] * X.shape[1] > MAX_CELLS:
        raise ValueError(
            f"sparse X must have at most {MAX_CELLS:,} cells once it is dense, has {X.shape}: "
            "reduce its columns, e.g. with TruncatedSVD"
        )
    return np.asarray(X.toarray())
