"""Where manifold mixup mixes: the blocks of the networks, by the names of their modules.

A block is what ends in a representation of its own: a stage of a residual network (the
paper's "residual block", as in the code of Verma et al. 2019 that it points to, where the
first one ends after `layer1`), a dense block, a hidden layer of an MLP.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kmixup.lab.models.mlp import HIDDEN
from kmixup.lab.protocol import MANIFOLD_LAYERS

INPUT = "input"
SETS = (MANIFOLD_LAYERS, "all-blocks", "deep-blocks")


def _stages(count: int) -> tuple[str, ...]:
    return tuple(f"layer{i}" for i in range(1, count + 1))


BLOCKS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # the activations, in the order of the Sequential
        f"mlp-{data}": tuple(str(2 * i) for i in range(1, len(hidden) + 1))
        for data, hidden in HIDDEN.items()
    }
    | {
        "lenet": ("3", "6", "8", "11"),  # two pools, two activations
        "preact-resnet18": _stages(4),
        "preact-resnet20": _stages(3),
        "densenet-bc-190": ("31", "63", "95"),  # the last layer of each dense block
        "wide-resnet28-10": _stages(3),
        "wide-resnet101": _stages(4),
    }
)
"""Modules whose output is that of a block, first to last."""


def layers_of(model: str, layers: str) -> tuple[str, ...]:
    """Names of modules, "" for the input, that `layers` stands for in a model.

    Args:
        model: one of `MODELS`, or a model of one's own.
        layers: "input+first-block" (the paper's), "all-blocks", "deep-blocks" (the last
            half of them), or names of modules with commas between, "input" for the input.

    >>> layers_of("preact-resnet18", "input+first-block")
    ('', 'layer1')
    >>> layers_of("preact-resnet18", "deep-blocks")
    ('layer3', 'layer4')
    >>> layers_of("my.nets:small", "input,encoder.2")
    ('', 'encoder.2')
    """
    if layers not in SETS:
        names = (name.strip() for name in layers.split(","))
        return tuple("" if name == INPUT else name for name in names)
    if model not in BLOCKS:
        raise ValueError(
            f"the blocks of the model {model!r} are not known, and so not what {layers!r} is: "
            'pass layers as names of its modules, e.g. "input,encoder.0"'
        )
    blocks = BLOCKS[model]
    first, every, deep = ("", blocks[0]), blocks, blocks[len(blocks) // 2 :]
    return dict(zip(SETS, (first, every, deep), strict=True))[layers]
