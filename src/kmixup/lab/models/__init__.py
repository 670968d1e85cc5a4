"""The networks of the paper, two small ones for CPUs, and your own functions, by name.

A network is one entry of `MODELS`: a function that builds it, and where its blocks end. Fully
connected networks are also known by their hidden layers: `mlp-120-84` has two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from kmixup._networks import evaluating
from kmixup.lab.imports import import_callable, unknown_name
from kmixup.lab.models.convolutional import DenseNetBC, PreActResNet, WideBottleneckResNet, lenet
from kmixup.lab.models.mlp import HIDDEN, mlp

OWN = ":"  # between module and function in the name of your own model
SETS = ("input+first-block", "all-blocks", "deep-blocks")


@dataclass(frozen=True)
class Network:
    """A named network.

    A block is a stage of a residual network (the paper's "residual block", as in the code of Verma
    et al. 2019, where the first one ends after `layer1`), a dense block, or a hidden layer.

    Attributes:
        build: builds a fresh network from `in_shape` and `num_classes`.
        blocks: names of the modules that end a block, first to last.
    """

    build: Callable[..., nn.Module]
    blocks: tuple[str, ...]


def _mlp(hidden: tuple[int, ...]) -> Network:
    activations = tuple(str(2 * i) for i in range(1, len(hidden) + 1))
    return Network(partial(mlp, hidden=hidden), activations)


def _preact(stem: int, widths: tuple[int, ...], blocks: int, stride: int = 1) -> Network:
    build = partial(PreActResNet, stem=stem, widths=widths, blocks=blocks, stride=stride)
    return Network(build, tuple(f"layer{i}" for i in range(1, len(widths) + 1)))


MODELS: Mapping[str, Network] = MappingProxyType(
    {
        **{f"mlp-{data}": _mlp(hidden) for data, hidden in HIDDEN.items()},
        # 61,706 parameters on 1×28×28; the blocks are two pools and two activations
        "lenet": Network(lenet, ("3", "6", "8", "11")),
        # on RGB with 10 classes: 11,172,170 parameters
        "preact-resnet18": _preact(64, (64, 128, 256, 512), blocks=2),
        # a quarter as wide, for a CPU; 701,018
        "preact-resnet18-quarter": _preact(16, (16, 32, 64, 128), blocks=2),
        # halves images in its first convolution, six times faster than ResNet-20; 175,066
        "preact-resnet14": _preact(16, (16, 32, 64), blocks=2, stride=2),
        # small enough for a CPU; 272,282
        "preact-resnet20": _preact(16, (16, 32, 64), blocks=3),
        # 25,624,430; a block ends with the last layer of each dense block
        "densenet-bc-190": Network(partial(DenseNetBC, depth=190, growth=40), ("31", "63", "95")),
        # WRN-28-10; 36,479,194
        "wide-resnet28-10": _preact(16, (160, 320, 640), blocks=4),
        # the wide ResNet-101 for ImageNet; 124,858,186
        "wide-resnet101": Network(
            partial(WideBottleneckResNet, blocks=(3, 4, 23, 3)),
            ("layer1", "layer2", "layer3", "layer4"),
        ),
    }
)


def network(name: str) -> Network | None:
    """Return the network of that name, or None; the name may be a list of hidden layers.

    >>> network("mlp-64-32").blocks
    ('2', '4')
    """
    if name in MODELS:
        return MODELS[name]
    if re.fullmatch(r"mlp(-[1-9]\d{0,4})+", name):
        return _mlp(tuple(map(int, name.split("-")[1:])))
    return None


def build(name: str, *, in_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Build a fresh network, with weights from torch's global generator.

    Your own network is run once, in eval mode, on two samples of zeros, to check its output
    shape. This changes neither its weights nor the state of the generator.

    Args:
        name: one of `MODELS`, hidden layers such as `mlp-120-84`, or `package.module:name` for
            your own function, which is called with `in_shape` and `num_classes` as keywords.
        in_shape: shape of one sample, `(features,)` or `(channels, height, width)`.
        num_classes: length of the vector of logits.

    >>> build("lenet", in_shape=(1, 28, 28), num_classes=10)(torch.zeros(5, 1, 28, 28)).shape
    torch.Size([5, 10])
    """
    net: Any = check_model(name)(in_shape=in_shape, num_classes=num_classes)
    if not isinstance(net, nn.Module):
        raise TypeError(f"model {name!r} must return an nn.Module, got {type(net).__name__}")
    if OWN in name:
        _check_logits(name, net, (2, *in_shape), (2, num_classes))
    return net


def check_model(name: str) -> Callable[..., nn.Module]:
    """Return the function that builds the network of that name; raise if there is none."""
    if OWN in name:
        return import_callable(name, "model", in_shape=(1,), num_classes=1)
    known = network(name)
    if known is None:
        raise unknown_name("model", name, MODELS)
    return known.build


def _check_logits(
    name: str, net: nn.Module, batch: tuple[int, ...], wanted: tuple[int, int]
) -> None:
    """Check that a network turns two samples into two vectors of logits."""
    try:
        device = next((weight.device for weight in net.parameters()), torch.device("cpu"))
        # in eval mode batch norm does not update its statistics
        with evaluating(net), torch.random.fork_rng(devices=[]), torch.no_grad():
            logits = net(torch.zeros(batch, device=device))
    except Exception as error:
        raise ValueError(
            f"model {name!r} must take a batch of the shape {batch}, "
            f"got {type(error).__name__}: {' '.join(str(error).split())}: "
            "make its layers fit in_shape"
        ) from error
    got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
    if got != wanted:
        raise ValueError(
            f"model {name!r} must return logits of the shape {wanted} for a batch of the shape "
            f"{batch}, got {got}: give its last layer num_classes outputs"
        )


def layers_of(model: str, layers: str) -> tuple[str, ...]:
    """Return the names of the modules at which manifold mixup mixes, "" for the input.

    `layers` is "input+first-block" (the paper's), "all-blocks", "deep-blocks" (the last half of
    them), or comma-separated names of modules, "input" for the input.

    >>> layers_of("preact-resnet18", "input+first-block")
    ('', 'layer1')
    >>> layers_of("my.nets:small", "input,encoder.2")
    ('', 'encoder.2')
    """
    if layers not in SETS:
        names = (name.strip() for name in layers.split(","))
        return tuple("" if name == "input" else name for name in names)
    known = network(model)
    if known is None:
        raise ValueError(
            f"layers must name modules of the model {model!r}, whose blocks are not known, "
            f'got {layers!r}: pass e.g. "input,encoder.0"'
        )
    blocks = known.blocks
    first, every, deep = ("", blocks[0]), blocks, blocks[len(blocks) // 2 :]
    return dict(zip(SETS, (first, every, deep), strict=True))[layers]
