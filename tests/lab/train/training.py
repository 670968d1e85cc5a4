"""What the tests of training share: short runs, runs that stop, and networks to compare."""

import sys

import pytest
import torch

from kmixup.lab.train import checkpoint
from kmixup.lab.train.loop import train


def run(trial, data=None, **options):
    return train(trial, data=data, device="cpu", progress=False, **options)


def same(first, second):
    """Whether two trained networks have bitwise identical weights."""
    states = first.net.state_dict().values(), second.net.state_dict().values()
    return all(torch.equal(a, b) for a, b in zip(*states, strict=True))


def own_network(folder, monkeypatch, layers):
    """Write a module with a network of one's own; return its name as a model."""
    (folder / "own.py").write_text(
        f"from torch import nn\ndef net(*, in_shape, num_classes):\n    return {layers}\n"
    )
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "own", raising=False)
    return "own:net"


class StopError(Exception):
    pass


def stopped_after(monkeypatch, epochs, *args, **options):
    """Run until the checkpoint of some epoch is on the disk."""
    save, count = checkpoint.save, iter(range(1, 100))

    def save_and_stop(path, state):
        save(path, state)
        if next(count) == epochs:
            raise StopError

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", save_and_stop)
        with pytest.raises(StopError):
            run(*args, **options)
