"""Where manifold mixup mixes: the blocks of a network, by the names of their modules."""

from __future__ import annotations

from kmixup.lab.models.registry import MODELS

INPUT = "input"
MANIFOLD_LAYERS = "input+first-block"  # those of the paper
SETS = (MANIFOLD_LAYERS, "all-blocks", "deep-blocks")


def layers_of(model: str, layers: str) -> tuple[str, ...]:
    """Names of the modules that `layers` stands for in a model, "" for the input.

    Args:
        model: one of `MODELS`, or `package.module:function` for a user's own model.
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
    if model not in MODELS:
        raise ValueError(
            f"the blocks of the model {model!r} are not known, and so not what {layers!r} is: "
            'pass layers as names of its modules, e.g. "input,encoder.0"'
        )
    blocks = MODELS[model].blocks
    first, every, deep = ("", blocks[0]), blocks, blocks[len(blocks) // 2 :]
    return dict(zip(SETS, (first, every, deep), strict=True))[layers]
