"""Statistics of batch norm from clean data, for a network that was trained on mixed data.

Batch norm divides by the variance of what it saw in training. Mixed inputs vary less than clean
ones: at lam = 1/2 an average of two independent samples has half their variance. So a network
that is tested on clean inputs reads statistics that do not fit them. Computing the statistics
afresh on clean training inputs, after training, mends this and changes no weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, TypeVar

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from kmixup.modes import evaluating

Net = TypeVar("Net", bound=nn.Module)


def has_batchnorm(net: nn.Module) -> bool:
    """Whether a network has batch norm that keeps statistics."""
    return bool(_layers(net))


def check_batchnorm(net: nn.Module) -> None:
    """Refuse a network without batch norm that keeps statistics."""
    if not has_batchnorm(net):
        raise ValueError(
            f"net must have batch norm with running statistics, {type(net).__name__} has none: "
            "there is nothing to do, so leave clean_batchnorm out"
        )


@torch.no_grad()
def clean_batchnorm(
    net: Net,
    loader: Iterable[Any],
    *,
    device: torch.device | str | None = None,
    call: Callable[[Any], object] | None = None,
) -> Net:
    """Compute the running statistics of batch norm afresh, in place; returns the network.

    The statistics are averages over all batches of `loader`. Call it once after training and
    before testing. Meanwhile batch norm alone is in training mode: dropout is off, as in a test.
    If a batch fails, the network keeps the statistics that it had.

    Args:
        net: the trained network; its weights stay as they are.
        loader: batches of clean training inputs, or tuples that start with them. Augment them
            as in training, and leave out the mixing alone: the weights fit such statistics.
        device: where the inputs are moved to; by default they stay where they are.
        call: runs the network on a batch of the loader, where `net(inputs)` is not the way.

    >>> net = nn.Sequential(nn.BatchNorm1d(1))
    >>> clean_batchnorm(net, [torch.tensor([[4.0], [6.0]])])[0].running_mean
    tensor([5.])
    """
    check_batchnorm(net)
    layers = _layers(net)
    batches = iter(loader)
    if (first := next(batches, None)) is None:
        raise ValueError("loader must have at least one batch, it had none")
    kept = [{name: value.clone() for name, value in layer.named_buffers()} for layer in layers]
    momenta = [layer.momentum for layer in layers]
    run = call or (lambda batch: net(_inputs(batch, device)))
    with evaluating(net):
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None  # an average of all batches alike
            layer.train()
        try:
            for batch in chain([first], batches):
                run(batch)
        except BaseException:
            for layer, buffers in zip(layers, kept, strict=True):
                layer.load_state_dict(buffers, strict=False)
            raise
        finally:
            for layer, momentum in zip(layers, momenta, strict=True):
                layer.momentum = momentum
    return net


def _layers(net: nn.Module) -> list[_BatchNorm]:
    return [
        module
        for module in net.modules()
        if isinstance(module, _BatchNorm) and module.track_running_stats
    ]


def _inputs(batch: Any, device: torch.device | str | None) -> Any:
    inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
    return inputs if device is None else inputs.to(device)
