"""Helpers for networks: layers by name, eval mode, inputs and outputs of a layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from kmixup._checks import did_you_mean

# names of the only children of a wrapper: torch.compile, DistributedDataParallel, Lightning Fabric
WRAPPED = {"_orig_mod", "module", "_forward_module", "_original_module"}


def unwrapped(net: nn.Module) -> nn.Module:
    """Return the network inside compiled and distributed ones, whose layers have short names."""
    children = dict(net.named_children())
    while children and children.keys() <= WRAPPED:
        net = next(iter(children.values()))
        children = dict(net.named_children())
    return net


def check_layers(net: nn.Module, layers: Sequence[str]) -> tuple[str, ...]:
    """Return names of modules of a network, "" for its input; raise on any other name."""
    if isinstance(layers, str):
        raise ValueError(f"layers must be a list of names, got {layers!r}: use [{layers!r}]")
    if not layers:
        raise ValueError('layers must name at least one layer, e.g. [""] for the input')
    names = [name for name, _ in unwrapped(net).named_modules(remove_duplicate=False)]
    for layer in layers:
        if layer not in names:
            raise ValueError(
                f'layers must name modules of the network, or be "" for its input, got {layer!r}: '
                f"{did_you_mean(layer, names[1:])}"
            )
    return tuple(layers)


def passing(net: nn.Module, layer: nn.Module, x: Tensor) -> tuple[Any, Any]:
    """Return the first argument and the output of a layer's last call while `net` runs on `x`."""
    seen: list[tuple[Any, Any]] = []
    handle = layer.register_forward_hook(
        lambda module, inputs, output: seen.append((inputs[0], output))
    )
    try:
        net(x)
    finally:
        handle.remove()
    if not seen:
        raise RuntimeError(
            f"the network did not call its layer {type(layer).__name__}, so there is nothing to "
            "read: choose a layer that is always called"
        )
    return seen[-1]


def as_weights(module: nn.Module, x: Tensor) -> Tensor:
    """Return `x` in the precision of a module's weights."""
    weight = next(module.parameters(), None)
    return x if weight is None else x.to(weight.dtype)


@contextmanager
def evaluating(net: nn.Module) -> Iterator[None]:
    """Set eval mode inside, and every submodule back to its own mode outside."""
    modes = [(module, module.training) for module in net.modules()]
    net.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
