"""The defaults of a data set: its kind, the paper's network for it, and its protocol."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kmixup.lab.data import ENTRIES, Dataset
from kmixup.lab.data.catalogue import SPEECH
from kmixup.lab.trial import Method, Protocol
from kmixup.tables.defaults import HIDDEN, TableRule


@dataclass(frozen=True)
class Defaults:
    """The default settings of a trial."""

    kind: str  # "toy", "table", "image" or "speech"
    model: str  # the paper's network for the data set
    protocol: Protocol  # the paper's, but for batch sizes and the rates of toys and digits


def balance_of(data: Dataset) -> float:
    """Return the size of the rarest class over the mean size; 1 for a regression."""
    if data.task == "regression":
        return 1.0
    counts = data.y_train.bincount(minlength=data.num_classes)
    return int(counts.min()) * data.num_classes / len(data.y_train)


def capped(method: Method, n: int) -> tuple[Method, list[str]]:
    """Return a method whose k suits `n` training samples, and a note if it was lowered.

    >>> from kmixup.lab.trial import Method
    >>> method, notes = capped(Method("kmixup", k=16), 13)
    >>> method.k, notes
    (13, ['k = 16 needs 16 training samples, there are 13: k = 13 is used'])
    """
    if method.smallest <= max(2, n):
        return method, []
    lower = replace(method, k=max(1, n * method.k // method.smallest))
    needed = f"k = {method.k} needs {method.smallest} training samples, there are {n}"
    return lower, [f"{needed}: k = {lower.k} is used"]


def defaults_for(name: str, data: Dataset | None = None) -> Defaults:
    """Return the defaults for a data set by its name; for the user's own `data` by their shape.

    >>> defaults_for("iris").kind, defaults_for("iris").model
    ('table', 'mlp-iris')
    >>> defaults_for("cifar10").model, defaults_for("cifar10").protocol.augment
    ('preact-resnet18', True)
    """
    entry = ENTRIES.get(name)
    if entry is not None and entry.model is not None:
        return Defaults(entry.kind, entry.model, Protocol(**entry.protocol))
    if data is None and entry is None:
        raise ValueError(f"data {name!r} have no name: load them first")
    if data is not None and len(data.shape) > 1:
        model = "lenet" if data.shape[0] == 1 else "preact-resnet18"
        if data.pixel_range is None:
            return Defaults("speech", model, Protocol(**SPEECH))
        return Defaults("image", model, Protocol())
    n = ENTRIES[name].train if data is None else len(data.x_train)
    balance = 1.0 if data is None else balance_of(data)
    settings = TableRule().settings(n, balance=balance)
    return Defaults("table", f"mlp-{'-'.join(map(str, HIDDEN))}", Protocol(**settings._asdict()))
