"""From a model's name to a fresh network: a named one, or a user's own function."""

from __future__ import annotations

import difflib
from typing import Any

import torch
from torch import Tensor, nn

from kmixup.lab.imports import import_callable
from kmixup.lab.models.network import Builder
from kmixup.lab.models.registry import MODELS

OWN = ":"  # stands between module and function in the name of a user's own model


def build(name: str, *, in_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """A fresh network, its weights drawn from torch's global generator.

    A user's own network is run once, in eval mode, on two samples of zeros, so that a wrong
    size is refused here. This changes neither its weights nor the state of the generator.

    Args:
        name: one of `MODELS`, or `package.module:name` for a user's own function,
            called with `in_shape` and `num_classes` as keywords.
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
    in_shape = tuple(in_shape)
    net: Any = check_model(name)(in_shape=in_shape, num_classes=num_classes)
    if not isinstance(net, nn.Module):
        raise TypeError(f"model {name!r} must return an nn.Module, got {type(net).__name__}")
    if OWN in name:
        _check_logits(name, net, in_shape=in_shape, num_classes=num_classes)
    return net


def check_model(name: str) -> Builder:
    """The function that builds the network of that name; refuses a name that has none."""
    if OWN in name:
        return import_callable(name, "model", in_shape=(1,), num_classes=1)
    if name not in MODELS:
        close = difflib.get_close_matches(name.lower().replace("_", "-"), MODELS)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(MODELS)}"
        raise ValueError(f"model must be a known name or package.module:name, got {name!r}: {hint}")
    return MODELS[name].build


def _check_logits(
    name: str, net: nn.Module, *, in_shape: tuple[int, ...], num_classes: int
) -> None:
    """Refuse a network that does not turn two samples into two vectors of logits."""
    batch = (2, *in_shape)
    try:
        logits = _on_zeros(net, batch)
    except Exception as error:
        raise ValueError(
            f"model {name!r} must take a batch of the shape {batch}, "
            f"got {type(error).__name__}: {' '.join(str(error).split())}: "
            "make its layers fit in_shape"
        ) from error
    wanted = (2, num_classes)
    if not isinstance(logits, Tensor):
        raise TypeError(
            f"model {name!r} must return logits as one tensor of the shape {wanted} for a batch "
            f"of the shape {batch}, got {type(logits).__name__}"
        )
    if logits.shape != wanted:
        raise ValueError(
            f"model {name!r} must return logits of the shape {wanted} for a batch of the shape "
            f"{batch}, got {tuple(logits.shape)}: give its last layer num_classes outputs"
        )


def _on_zeros(net: nn.Module, shape: tuple[int, ...]) -> object:
    """The output for zeros in eval mode; modes and random state are as before afterwards."""
    modes = [(module, module.training) for module in net.modules()]
    device = next((weight.device for weight in net.parameters()), torch.device("cpu"))
    net.eval()  # batch norm reads its statistics and does not update them
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            return net(torch.zeros(shape, device=device))
    finally:
        for module, training in modes:
            module.training = training
