"""What a network is to the lab: a function that builds it, and where its blocks end.

Each family file lists its networks by name in `NETWORKS`; `registry` collects them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import nn


class Builder(Protocol):
    """Makes a network from the shape of one sample and the number of classes."""

    def __call__(self, *, in_shape: tuple[int, ...], num_classes: int) -> nn.Module: ...


@dataclass(frozen=True)
class Network:
    """A network that has a name.

    A block ends in a representation of its own: a stage of a residual network (the paper's
    "residual block", as in the code of Verma et al. 2019 that it points to, where the first
    one ends after `layer1`), a dense block, a hidden layer of an MLP.

    Attributes:
        build: makes a fresh network.
        blocks: names of the modules that end a block, first to last.
    """

    build: Builder
    blocks: tuple[str, ...]


def stages(count: int) -> tuple[str, ...]:
    """Blocks of a residual network.

    >>> stages(2)
    ('layer1', 'layer2')
    """
    return tuple(f"layer{i}" for i in range(1, count + 1))
