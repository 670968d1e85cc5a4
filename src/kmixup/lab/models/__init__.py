"""The networks of the paper by name, and a user's own by `package.module:function`."""

from kmixup.lab.models.building import build, check_model
from kmixup.lab.models.layers import MANIFOLD_LAYERS, layers_of
from kmixup.lab.models.registry import MODELS

__all__ = ["MANIFOLD_LAYERS", "MODELS", "build", "check_model", "layers_of"]
