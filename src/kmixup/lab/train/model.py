"""A trained network that can be used: all that prediction needs, in two plain files.

`model.safetensors` holds the weights and `model.json` the rest: the name of the network, the
classes, and how new samples become its inputs. Loading runs no code but the function that
builds the named network.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kmixup.lab.data import Dataset
from kmixup.lab.data.inputs import InputPipeline
from kmixup.lab.files import replace_content
from kmixup.lab.models import build
from kmixup.lab.train import record
from kmixup.lab.train.config import Trial
from kmixup.lab.train.methods import METHODS
from kmixup.lab.train.setup import CleanEncoder
from kmixup.modes import evaluating

WEIGHTS, SETTINGS = "model.safetensors", "model.json"
FORMAT = 2
BATCH = 512


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a network says of new samples.

    Attributes:
        names: what each sample is called: the number of its row, from 1, or its file.
        values: the predicted classes by name, or numbers in the target's own unit, `(n,)`.
        probabilities: of every class, `(n, classes)`; None in a regression.
        notes: what a user should know of how the samples were read.
    """

    names: tuple[str, ...]
    values: NDArray[Any]
    probabilities: NDArray[np.float64] | None
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Model:
    """A trained network, with all that prediction needs.

    Attributes:
        net: the network, on the CPU.
        name: of the network, as `kmixup.lab.models.build` takes it.
        inputs: how new samples become inputs.
        classes: their names; empty for a regression.
        target_mean: mean of the training targets of a regression.
        target_std: their standard deviation.
        record: of the run: `record["result"]` has its test error and other figures. Empty where
            it was not kept.
        rest: the method that shows samples to the network in a form of its own; None for the
            others.

    Returned by `fit`, and by `load` for a model that was saved.
    """

    net: nn.Module
    name: str
    inputs: InputPipeline
    classes: tuple[str, ...]
    target_mean: float
    target_std: float
    record: Mapping[str, Any]
    rest: str | None = None

    @classmethod
    def of(cls, net: nn.Module, trial: Trial, data: Dataset, written: Mapping[str, Any]) -> Model:
        """The model of a trial that has ended, with its record."""
        inputs = InputPipeline.of(data, trial.resize)
        rest = trial.method.name if trial.method.entry.encoding else None
        target = data.target_mean, data.target_std
        return cls(net, trial.model, inputs, data.classes, *target, written, rest)

    @property
    def outputs(self) -> int:
        """Numbers that the network gives for one input."""
        return len(self.classes) or 1

    def predict(self, X: Any) -> NDArray[Any]:
        """Names of the classes, or numbers in the target's own unit, `(n,)`.

        `X` is an array or a tensor, the path of a `.csv`, an `.npz` or a folder of images, a data
        frame, or a list of rows by the names of their columns.
        """
        return self.predictions(X).values

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities `(n, classes)` in the order of `classes`; `X` is as in `predict`."""
        probabilities = self.predictions(X).probabilities
        if probabilities is None:
            raise ValueError("a regression has no probabilities: use predict")
        return probabilities

    def predictions(self, X: Any) -> Predictions:
        """All that the network says of new samples; `X` is as in `predict`."""
        new = self.inputs.read(X)
        outputs = self._outputs(new.x).double()
        if not self.classes:
            numbers = outputs[:, 0] * self.target_std + self.target_mean
            return Predictions(new.names, numbers.numpy(), None, new.notes)
        probabilities = outputs.softmax(1).numpy()
        chosen = np.array(self.classes)[probabilities.argmax(1)]
        return Predictions(new.names, chosen, probabilities, new.notes)

    def _outputs(self, x: Tensor) -> Tensor:
        with evaluating(self.net), torch.no_grad():
            return torch.cat([self.net(batch) for batch in torch.split(x, BATCH)])

    def save(self, folder: str | Path) -> None:
        """Write both files into a folder, each whole or not at all."""
        from safetensors.torch import save

        folder = Path(folder).expanduser()
        weights = save(
            {
                name: value.detach().contiguous().clone()
                for name, value in self.net.state_dict().items()
            }
        )
        plain = {
            "format": FORMAT,
            "model": self.name,
            "classes": list(self.classes),
            "target": {"mean": self.target_mean, "std": self.target_std},
            "inputs": self.inputs.to_dict(),
            "weights": hashlib.sha256(weights).hexdigest(),
        }
        if self.rest is not None:
            plain["rest"] = self.rest
        replace_content(folder / WEIGHTS, weights)
        replace_content(folder / SETTINGS, json.dumps(plain, indent=2) + "\n")


def load(run: str | Path) -> Model:
    """The model in the folder of a run, as `kmixup train` or `Model.save` wrote it.

    >>> from tempfile import TemporaryDirectory
    >>> from kmixup.lab import fit
    >>> x = np.random.default_rng(0).normal(size=(60, 4))
    >>> with TemporaryDirectory() as folder:
    ...     quick = {"epochs": 1, "batch_size": 16}
    ...     model = fit(x, x[:, 0] > 0, k=4, protocol=quick, out=folder, progress=False)
    ...     load(folder).predict(x[:3]).shape
    (3,)
    """
    from safetensors import SafetensorError
    from safetensors.torch import load as weights_of

    folder = Path(run).expanduser()
    path = folder / SETTINGS
    if not path.is_file() or not (folder / WEIGHTS).is_file():
        raise ValueError(
            f"{folder} must be the folder of a run that has ended, it has no {SETTINGS} and "
            f"{WEIGHTS}: train with `kmixup train --out {folder}`"
        )
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        if plain["format"] != FORMAT:
            raise ValueError(f"format {plain['format']}, not {FORMAT}")
        inputs, target = InputPipeline.from_dict(plain["inputs"]), plain["target"]
        name, classes = str(plain["model"]), tuple(map(str, plain["classes"]))
        mean, std = float(target["mean"]), float(target["std"])
        digest = plain["weights"]
        rest = plain.get("rest")
        method = METHODS["erm" if rest is None else rest]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must be a model of this version of kmixup, could not be read: "
            f"{type(error).__name__} {error}"
        ) from error
    contents = (folder / WEIGHTS).read_bytes()
    if hashlib.sha256(contents).hexdigest() != digest:
        raise ValueError(
            f"{folder / WEIGHTS} must hold the weights that were written with {SETTINGS}, holds "
            "others, or is damaged: train again, or copy both files"
        )
    with torch.random.fork_rng(devices=[]):
        shape = method.seen_shape(inputs.shape)
        net = build(name, in_shape=shape, num_classes=len(classes) or 1)
    net = net if method.encoding is None else CleanEncoder(net, method.encoding(inputs.shape))
    try:
        net.load_state_dict(weights_of(contents))
    except (RuntimeError, SafetensorError) as error:
        raise ValueError(
            f"{folder / WEIGHTS} must fit the network {name!r}, which has changed since: "
            f"{' '.join(str(error).split())}"
        ) from error
    return Model(net, name, inputs, classes, mean, std, _record_in(folder), rest)


def _record_in(folder: Path) -> Mapping[str, Any]:
    path = folder / record.NAME
    if not path.is_file():
        return {}
    written: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return written
