"""The networks of the paper by name, and your own by `package.module:name`."""

from kmixup.lab.models.registry import (
    MANIFOLD_LAYERS,
    MODELS,
    build,
    check_model,
    layers_of,
    network,
)

__all__ = ["MANIFOLD_LAYERS", "MODELS", "build", "check_model", "layers_of", "network"]
