"""Batch-norm statistics recomputed on clean data, for a network that was trained on mixed data.

Mixed inputs vary less than clean ones: at lam = 1/2 the average of two independent samples has half
their variance. So the statistics of mixed training inputs do not fit clean test inputs.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, TypeVar

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from kmixup._nests import over
from kmixup._networks import evaluating
from kmixup.mixer import mixers_in

Net = TypeVar("Net", bound=nn.Module)


def has_batchnorm(net: nn.Module) -> bool:
    """Return whether a network has batch norm that keeps statistics."""
    return bool(_layers(net))


@torch.no_grad()
def clean_batchnorm(net: Net, loader: Iterable[Any]) -> Net:
    """Recompute the running statistics of batch norm on clean data, in place.

    The statistics are averages over all batches of `loader`. Call this after training and before
    testing. If a batch fails, the network keeps its old statistics.

    Args:
        net: the trained network; its weights stay as they are.
        loader: batches of clean training inputs, or tuples that start with them; inputs are moved
            to the network's device. Augment them as in training, but do not mix them: the weights
            fit such statistics.

    Returns:
        The network.

    Raises:
        ValueError: if the network has no batch norm, or the loader mixes or has no batch.

    >>> net = nn.Sequential(nn.BatchNorm1d(1))
    >>> clean_batchnorm(net, [torch.tensor([[4.0], [6.0]])])[0].running_mean
    tensor([5.])
    """
    layers = _layers(net)
    if not layers:
        raise ValueError(
            f"net must have batch norm with running statistics, {type(net).__name__} has none: "
            "there is nothing to do, so leave clean_batchnorm out"
        )
    _check_clean(loader)
    batches = iter(loader)
    if (first := next(batches, None)) is None:
        raise ValueError("loader must have at least one batch, it had none")
    kept = [{name: value.clone() for name, value in layer.named_buffers()} for layer in layers]
    momenta = [layer.momentum for layer in layers]
    device = next(layers[0].buffers()).device
    with evaluating(net):
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None  # an equal average of all batches
            layer.train()
        try:
            for batch in chain([first], batches):
                inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
                net(over(lambda entry: entry.to(device), inputs))
            for layer, buffers in zip(layers, kept, strict=True):
                if not layer.num_batches_tracked:  # no batch has reached it
                    layer.load_state_dict(buffers, strict=False)
        except BaseException:
            for layer, buffers in zip(layers, kept, strict=True):
                layer.load_state_dict(buffers, strict=False)
            raise
        finally:
            for layer, momentum in zip(layers, momenta, strict=True):
                layer.momentum = momentum
    return net


def _check_clean(loader: Iterable[Any]) -> None:
    for mixer in mixers_in(loader):
        if mixer.training:
            raise ValueError(
                f"loader must yield clean batches, {type(mixer).__name__} mixes them: use a loader "
                "without it, or call its .eval() first"
            )


def _layers(net: nn.Module) -> list[_BatchNorm]:
    return [
        module
        for module in net.modules()
        if isinstance(module, _BatchNorm) and module.track_running_stats
    ]
