"""The defaults of a data set: its kind, the paper's network for it, and its protocol."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kmixup.lab.data import ENTRIES, Dataset
from kmixup.lab.models.mlp import HIDDEN as PUBLISHED
from kmixup.lab.train.config import Protocol
from kmixup.table_defaults import HIDDEN, TableRule

SPEECH = Protocol(epochs=30, rate=3e-3, milestones=(1 / 3, 2 / 3))
# Batch sizes are nowhere in the paper. Those of the UCI tables are the ones, of 16, 32, 64 and
# 128, at which the error of ERM comes nearest to the paper's (results/settings).
UCI = Protocol(rate=0.005)
# The largest learning rate, of 0.1, 0.05 and 0.02, at which ERM learns all three toys with
# every batch size tried (results/settings).
TOY = Protocol(rate=0.02)
# LeNet on digits in [0, 1] did not always start to learn at the learning rate 0.1
# (results/settings/mnist).
DIGITS = Protocol(rate=0.05)
BY_KIND = {"toy": TOY, "table": UCI, "image": Protocol(), "speech": SPEECH}
BY_NAME = {
    "mnist": DIGITS,
    "fashion-mnist": DIGITS,
    "iris": replace(UCI, batch_size=32),
    "abalone": replace(UCI, batch_size=64),
}
CROPPED = ("cifar10", "cifar100")  # data sets of small photographs, cropped and flipped


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


def defaults_for(name: str, data: Dataset | None = None) -> Defaults:
    """Return the defaults for a data set by its name; for the user's own `data` by their shape.

    >>> defaults_for("iris").kind, defaults_for("iris").model
    ('table', 'mlp-iris')
    >>> defaults_for("cifar10").model, defaults_for("cifar10").protocol.augment
    ('preact-resnet18', True)
    """
    if name in ENTRIES:
        kind, shape = ENTRIES[name].kind, ENTRIES[name].shape
    elif data is None:
        raise ValueError(f"data {name!r} have no name of their own: load them first")
    else:
        shape = data.shape
        kind = "table" if len(shape) == 1 else "speech" if data.pixel_range is None else "image"
    if len(shape) > 1:
        model = "lenet" if shape[0] == 1 else "preact-resnet18"
    elif kind == "toy" and name in ENTRIES:
        model = "mlp-toy"
    elif name in PUBLISHED:
        model = f"mlp-{name}"
    else:
        model = f"mlp-{'-'.join(map(str, HIDDEN))}"
        n = ENTRIES[name].train if data is None else len(data.x_train)
        balance = 1.0 if data is None else balance_of(data)
        settings = TableRule().settings(n, balance=balance)
        return Defaults(kind, model, Protocol(**settings._asdict()))
    protocol = replace(BY_NAME.get(name, BY_KIND[kind]), augment=name in CROPPED)
    return Defaults(kind, model, protocol)
