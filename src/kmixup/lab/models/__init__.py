"""The networks of the paper by name, and any other by `package.module:function`."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType, ModuleType
from typing import Any, Protocol

from torch import nn

from kmixup.lab.models.densenet import densenet_bc_190
from kmixup.lab.models.layers import layers_of
from kmixup.lab.models.lenet import lenet
from kmixup.lab.models.mlp import HIDDEN, mlp
from kmixup.lab.models.preact_resnet import preact_resnet18, preact_resnet20
from kmixup.lab.models.wide_resnet import wide_resnet28_10, wide_resnet101

__all__ = ["MODELS", "Builder", "build", "check_model", "layers_of"]


class Builder(Protocol):
    """Makes a network from the shape of one sample and the number of classes."""

    def __call__(self, *, in_shape: tuple[int, ...], num_classes: int) -> nn.Module: ...


MODELS: Mapping[str, Builder] = MappingProxyType(
    {f"mlp-{data}": partial(mlp, hidden=hidden) for data, hidden in HIDDEN.items()}
    | {
        "lenet": lenet,
        "preact-resnet18": preact_resnet18,
        "preact-resnet20": preact_resnet20,
        "densenet-bc-190": densenet_bc_190,
        "wide-resnet28-10": wide_resnet28_10,
        "wide-resnet101": wide_resnet101,
    }
)


def build(name: str, *, in_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """A fresh network, its weights drawn from torch's global generator.

    Args:
        name: one of `MODELS`, or `package.module:function` for a function of
            one's own, called with `in_shape` and `num_classes` as keywords.
        in_shape: shape of one sample, `(features,)` or `(channels, height, width)`.
        num_classes: length of the vector of logits.

    >>> import torch
    >>> build("lenet", in_shape=(1, 28, 28), num_classes=10)(torch.zeros(5, 1, 28, 28)).shape
    torch.Size([5, 10])
    """
    if not in_shape or not all(isinstance(size, int) and size >= 1 for size in in_shape):
        raise ValueError(
            "in_shape must be the shape of one sample in positive integers, "
            f"e.g. (4,) or (3, 32, 32), got {in_shape!r}"
        )
    if num_classes < 1:
        raise ValueError(f"num_classes must be at least 1, got {num_classes}")
    builder = check_model(name)
    net: Any = builder(in_shape=tuple(in_shape), num_classes=num_classes)
    if not isinstance(net, nn.Module):
        raise TypeError(f"model {name!r} must return an nn.Module, got {type(net).__name__}")
    return net


def check_model(name: str) -> Builder:
    """The function that builds a network of that name; refuses what is none."""
    return _own(name) if ":" in name else _named(name)


def _named(name: str) -> Builder:
    if name not in MODELS:
        close = difflib.get_close_matches(name.lower().replace("_", "-"), MODELS) or MODELS
        raise ValueError(
            f"model must be a known name or package.module:function, got {name!r}: "
            f"did you mean {' or '.join(close)}?"
        )
    return MODELS[name]


def _own(name: str) -> Builder:
    """The builder at `package.module:function`."""
    path, _, attribute = name.partition(":")
    if not path or not attribute.isidentifier():
        raise ValueError(f"a model of one's own is written package.module:function, got {name!r}")
    module = _imported(path, name)
    if not hasattr(module, attribute):
        close = difflib.get_close_matches(attribute, vars(module))
        hint = f": did you mean {' or '.join(close)}?" if close else ""
        raise ValueError(f"module {path!r} has no {attribute!r}, asked for by model {name!r}{hint}")
    builder = getattr(module, attribute)
    if not callable(builder):
        raise TypeError(f"model {name!r} must be a function, got {type(builder).__name__}")
    try:
        inspect.signature(builder).bind(in_shape=(1,), num_classes=1)
    except TypeError as error:
        raise TypeError(
            f"model {name!r} must take in_shape and num_classes as its only required "
            f"arguments, got the signature {inspect.signature(builder)}"
        ) from error
    found: Builder = builder
    return found


def _imported(path: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        # what the module itself fails to import is its own affair
        if error.name is None or not f"{path}.".startswith(f"{error.name}."):
            raise
        raise ValueError(
            f"no module named {error.name!r}, asked for by model {name!r}: "
            "install it, or put its folder on PYTHONPATH"
        ) from error
