"""A trained network for prediction, saved as plain files.

`model.safetensors` holds the weights, `schema.json` how a table is read, and `model.json` the rest,
with a checksum of all. Loading
runs no code but the lab's own; your own network, `package.module:name`, is loaded only on
request.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kmixup._checks import SettingError
from kmixup._networks import evaluating
from kmixup.lab._files import parsing, read_bytes, read_json, replace_content
from kmixup.lab.data import Dataset
from kmixup.lab.data.dataset import check_class_names
from kmixup.lab.data.inputs import InputPipeline, read_targets, target_in
from kmixup.lab.data.own import class_name
from kmixup.lab.methods import METHODS, MethodEntry
from kmixup.lab.models import OWN, build
from kmixup.lab.train import record
from kmixup.lab.train.setup import CleanEncoder
from kmixup.lab.trial import Trial

if TYPE_CHECKING:
    from kmixup.lab.evaluate.labelled import Evaluation
    from kmixup.tables.schema import Schema

SEEN = "hashes of training rows"
WEIGHTS, SETTINGS, SCHEMA = "model.safetensors", "model.json", "schema.json"
FORMAT = 5
BATCH = 512
# what reading JSON of another kind, or nested too deeply (a RuntimeError), can raise
UNREADABLE = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True, eq=False)
class Predictions:
    """A network's predictions for new samples.

    Attributes:
        names: the id of each sample, the number of its row, from 1, or its file.
        values: predicted classes by name, or numbers in the target's own unit, `(n,)`.
        probabilities: of every class, `(n, classes)`; None in a regression.
        notes: what a user should know about how the samples were read.
    """

    names: tuple[str, ...]
    values: NDArray[Any]
    probabilities: NDArray[np.float64] | None
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Model:
    """A trained network with everything that prediction needs; returned by `fit` and `load`.

    It is a fitted estimator for scikit-learn: with `predict`, `predict_proba` and `score` it works
    in `FrozenEstimator`, `CalibratedClassifierCV` and inspection tools.

    Attributes:
        net: the network, on the CPU.
        name: of the network, as `kmixup.lab.models.build` takes it.
        inputs: how new samples become inputs.
        classes: their names; empty for a regression.
        target_mean: mean of the training targets of a regression.
        target_std: their standard deviation.
        record: of the run: `record["result"]` has the test error and other scores,
            `record["training"]` the training error. Empty if it was not kept.
        encoded_by: the method that re-encodes clean samples for the network; None for the others.
    """

    net: nn.Module
    name: str
    inputs: InputPipeline
    classes: tuple[str, ...]
    target_mean: float
    target_std: float
    record: Mapping[str, Any]
    encoded_by: str | None = None

    @classmethod
    def of(cls, net: nn.Module, trial: Trial, data: Dataset, written: Mapping[str, Any]) -> Model:
        """Return the model of a finished trial, with its record."""
        inputs = InputPipeline.of(data, trial.resize)
        method = trial.method.name if trial.method.entry.encoding else None
        moments = data.target_mean, data.target_std
        return cls(net, trial.model, inputs, data.classes, *moments, written, method)

    @property
    def schema(self) -> Schema | None:
        """How a table is read; None for other data."""
        return None if self.inputs.encoder is None else self.inputs.encoder.schema

    def predict(self, X: Any) -> NDArray[Any]:
        """Return class names, or numbers in the target's own unit, `(n,)`.

        `X` is an array or a tensor, the path of a `.csv`, an `.npz` or a folder of images, a data
        frame, or a list of rows by column name. Warns of categories and blanks that training did
        not have, and of rows that it had.
        """
        return self._warned(X).values

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return probabilities `(n, classes)` in the order of `classes`; `X` as in `predict`."""
        probabilities = self._warned(X).probabilities
        if probabilities is None:
            raise ValueError("a regression has no probabilities: use predict")
        return probabilities

    def _warned(self, X: Any) -> Predictions:
        """Return predictions, with their notes as warnings."""
        predictions = self.predictions(X)
        for note in predictions.notes:
            warnings.warn(note, stacklevel=3)
        return predictions

    @property
    def classes_(self) -> NDArray[Any]:
        """Names of the classes, as scikit-learn's estimators have them."""
        return np.array(self.classes)

    def fit(self, X: Any, y: Any = None) -> Model:
        """Raise: a loaded network is not trained again. scikit-learn asks for this method."""
        raise ValueError(
            "a loaded model is not trained again: use kmixup.lab.fit, or wrap it in "
            "sklearn.frozen.FrozenEstimator"
        )

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy on samples and their classes, or R² for a regression."""
        from sklearn.metrics import accuracy_score, r2_score  # on first use: it loads slowly

        predicted = self.predict(X)
        if not self.classes:
            return float(r2_score(np.asarray(y, np.float64), predicted))
        return float(accuracy_score([class_name(label) for label in np.asarray(y)], predicted))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return no parameters: those of training are in `record["trial"]`."""
        return {}

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, RegressorTags, Tags, TargetTags

        classifies = bool(self.classes)
        return Tags(
            estimator_type="classifier" if classifies else "regressor",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags() if classifies else None,
            regressor_tags=None if classifies else RegressorTags(),
        )

    def predictions(self, X: Any, *, target: str | None = None) -> Predictions:
        """Return predictions with names, probabilities and notes.

        Args:
            X: as in `predict`.
            target: a column of a table that is not an input.
        """
        new = self.inputs.read(X, target=target)
        with evaluating(self.net), torch.no_grad():
            batches = [self.net(batch) for batch in torch.split(new.x, BATCH)]
        outputs = torch.cat(batches).double()
        if not (finite := outputs.isfinite().all(1)).all():
            raise ValueError(
                "the samples must hold numbers as large as those of the training, the sample "
                f"{new.names[int((~finite).int().argmax())]} has some that are too large for the "
                "network: correct them, or leave the sample out"
            )
        if not self.classes:
            numbers = outputs[:, 0] * self.target_std + self.target_mean
            return Predictions(new.names, numbers.numpy(), None, new.notes)
        probabilities = outputs.softmax(1).numpy()
        chosen = np.array(self.classes)[probabilities.argmax(1)]
        return Predictions(new.names, chosen, probabilities, new.notes)

    def evaluate(self, samples: str | Path, *, target: str | None = None) -> Evaluation:
        """Return error, confusion matrix and scores of each class on labelled samples.

        Args:
            samples: the path of a table, of an `.npz` with arrays x and y, or of a folder of
                images with a sub-folder for each class.
            target: the column of a table; by default the one that the network was trained for.
        """
        return self.scored(samples, target=target)[1]

    def scored(
        self, samples: str | Path, *, target: str | None = None
    ) -> tuple[Predictions, Evaluation]:
        """Return the predictions for labelled samples, and their `evaluate`."""
        # here, because pandas loads slowly
        from kmixup.lab.evaluate.labelled import evaluate_classes, evaluate_numbers

        path = Path(samples).expanduser()
        schema = self.schema
        target = target_in(path, target or (None if schema is None else schema.target))
        predictions = self.predictions(path, target=target)
        rows, y = read_targets(path, predictions.names, self.classes, target, schema)
        if predictions.probabilities is not None:
            scored = evaluate_classes(predictions.probabilities[rows], y, self.classes)
        else:
            values = predictions.values[rows]
            scored = evaluate_numbers(values, y, mean=self.target_mean, std=self.target_std)
        return predictions, replace(scored, notes=predictions.notes)

    def save(self, folder: str | Path) -> None:
        """Write the files into a folder, each whole or not at all."""
        from safetensors.torch import save

        folder = Path(folder).expanduser()
        state = self.net.state_dict()
        tensors = {name: value.contiguous().clone() for name, value in state.items()}
        if self.inputs.seen is not None:
            tensors[SEEN] = torch.from_numpy(self.inputs.seen.view(np.int64))
        weights = save(tensors)
        plain = {
            "format": FORMAT,
            "model": self.name,
            "classes": list(self.classes),
            "target": {"mean": self.target_mean, "std": self.target_std},
            "inputs": self.inputs.to_dict(),
            "encoded_by": self.encoded_by,
            "weights": hashlib.sha256(weights).hexdigest(),
            "schema": None,
        }
        if (schema := self.schema) is not None:
            replace_content(folder / SCHEMA, text := schema.to_json())
            plain["schema"] = hashlib.sha256(text.encode()).hexdigest()
        plain["checksum"] = _checksum(plain)
        replace_content(folder / WEIGHTS, weights)
        replace_content(folder / SETTINGS, json.dumps(plain, indent=2) + "\n")


def load(run: str | Path, *, allow_code: bool = False) -> Model:
    """Load the model in the folder of a run, as `kmixup train` or `Model.save` wrote it.

    Args:
        run: the folder.
        allow_code: load your own network as well, `package.module:name`. This imports the
            module that the folder names, so set it only for folders that you trust.

    Returns:
        The trained network with everything that prediction needs.

    Raises:
        ValueError: if the folder has no model, a damaged one, or one of another format.

    >>> from tempfile import TemporaryDirectory
    >>> from kmixup.lab import fit
    >>> x = np.random.default_rng(0).normal(size=(60, 4))
    >>> with TemporaryDirectory() as folder:
    ...     quick = {"epochs": 1, "batch_size": 16}
    ...     model = fit(x, x[:, 0] > 0, k=4, protocol=quick, out=folder, progress=False)
    ...     load(folder).predict(x[:3]).shape
    (3,)
    """
    from safetensors.torch import load as read

    folder = Path(run).expanduser()
    plain = _settings(folder)
    with _reading(folder):
        schema = _schema(folder, plain["schema"])
        inputs, target = InputPipeline.from_dict(plain["inputs"], schema), plain["target"]
        name, classes = str(plain["model"]), tuple(map(str, plain["classes"]))
        check_class_names(classes)
        mean, std = float(target["mean"]), float(target["std"])
        method = plain["encoded_by"]
        entry = METHODS["erm" if method is None else method]
        written = {}
        if os.path.lexists(folder / record.NAME):
            written = dict(read_json(folder / record.NAME))
    if OWN in name and not allow_code:
        raise SettingError(
            "allow_code",
            f"must be set to load {folder}, whose network is the code {name!r}: set it if you "
            "trust the folder",
        )
    contents = read_bytes(folder / WEIGHTS)
    if hashlib.sha256(contents).hexdigest() != plain["weights"]:
        raise ValueError(
            f"{folder / WEIGHTS} must hold the weights that were written with {SETTINGS}, holds "
            "others, or is damaged: train again, or copy both files"
        )
    with parsing(folder / WEIGHTS, "file of weights"):
        weights = read(contents)
    if (seen := weights.pop(SEEN, None)) is not None:
        inputs = replace(inputs, seen=seen.long().flatten().numpy().view(np.uint64))
    try:
        net = _network(name, inputs.shape, len(classes) or 1, entry, weights)
    except (RuntimeError, ValueError) as error:
        raise ValueError(
            f"{folder / WEIGHTS} must fit the network {name!r} for inputs of the shape "
            f"{inputs.shape}: {error}"
        ) from error
    return Model(net, name, inputs, classes, mean, std, written, method)


def _schema(folder: Path, digest: str | None) -> Schema | None:
    """Return the schema next to a model, which must be the one that it was trained with."""
    if digest is None:
        return None
    from kmixup.tables.schema import Schema  # here, because pandas loads slowly

    content = read_bytes(folder / SCHEMA, most=1 << 24)
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(
            f"{SCHEMA} was edited after training: pass it to kmixup train --schema, or restore it"
        )
    return Schema.from_json(content.decode(), str(folder / SCHEMA))


def network_of(run: str | Path) -> str:
    """Return the name of the network in the folder of a run, without building it."""
    return str(_settings(Path(run).expanduser()).get("model"))


def _settings(folder: Path) -> dict[str, Any]:
    """Return what the settings of a model hold, if they are whole."""
    if not (folder / SETTINGS).is_file() or not (folder / WEIGHTS).is_file():
        raise ValueError(
            f"{folder} must be the folder of a run that has ended, it has no {SETTINGS} and "
            f"{WEIGHTS}: train with `kmixup train --out {folder}`"
        )
    with _reading(folder):
        plain: dict[str, Any] = read_json(folder / SETTINGS)
        if plain["format"] != FORMAT:
            raise ValueError(f"format {plain['format']}, not {FORMAT}")
        if plain.pop("checksum") != _checksum(plain):
            raise ValueError("a wrong checksum")
        return plain


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Turn the errors of reading JSON of another form into one sentence."""
    try:
        yield
    except UNREADABLE as error:
        raise ValueError(
            f"{folder} must hold a model and a record of this version of kmixup, could not be "
            f"read ({type(error).__name__}: {error}): train again, or copy it again"
        ) from error


def _network(
    name: str, shape: tuple[int, ...], outputs: int, entry: MethodEntry, weights: dict[str, Tensor]
) -> nn.Module:
    """Build a network with the given weights; raise if they have other names or shapes."""
    # the meta device takes no memory, however large the shape is
    device = torch.device("cpu" if OWN in name else "meta")
    with torch.random.fork_rng(devices=[]), device:
        net = build(name, in_shape=entry.seen_shape(shape), num_classes=outputs)
    net = net if entry.encoding is None else CleanEncoder(net, entry.encoding(shape))
    wanted = {key: value.shape for key, value in net.state_dict().items()}
    if {key: value.shape for key, value in weights.items()} != wanted:
        raise ValueError("it has weights of other names or shapes")
    if device.type == "meta":
        net.to_empty(device="cpu")
    net.load_state_dict(weights)
    return net


def _checksum(plain: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()
