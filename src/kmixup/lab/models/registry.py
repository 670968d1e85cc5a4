"""The networks of the paper, two small ones for CPUs, and your own functions, by name.

A network is one entry of `MODELS`: a function that builds it, and where its blocks end. Fully
connected networks are also known by their hidden layers: `mlp-120-84` has two.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from kmixup.lab.checks import SettingError
from kmixup.lab.imports import import_callable
from kmixup.lab.models.convolutional import DenseNetBC, lenet
from kmixup.lab.models.mlp import HIDDEN, mlp
from kmixup.lab.models.residual import PreActResNet, WideBottleneckResNet
from kmixup.networks import evaluating

OWN = ":"  # between module and function in the name of your own model
INPUT = "input"
MANIFOLD_LAYERS = "input+first-block"  # the paper's
SETS = (MANIFOLD_LAYERS, "all-blocks", "deep-blocks")


class Builder(Protocol):
    """Builds a network from the shape of one sample and the number of classes."""

    def __call__(self, *, in_shape: tuple[int, ...], num_classes: int) -> nn.Module: ...


@dataclass(frozen=True)
class Network:
    """A named network.

    A block ends in a representation of its own: a stage of a residual network (the paper's
    "residual block", as in the code of Verma et al. 2019 that it points to, where the first
    one ends after `layer1`), a dense block, a hidden layer of an MLP.

    Attributes:
        build: builds a fresh network.
        blocks: names of the modules that end a block, first to last.
    """

    build: Builder
    blocks: tuple[str, ...]


def _mlp(hidden: tuple[int, ...]) -> Network:
    activations = tuple(str(2 * i) for i in range(1, len(hidden) + 1))
    return Network(partial(mlp, hidden=hidden), activations)


THREE_STAGES = ("layer1", "layer2", "layer3")
FOUR_STAGES = (*THREE_STAGES, "layer4")
MODELS: Mapping[str, Network] = MappingProxyType(
    {
        **{f"mlp-{data}": _mlp(hidden) for data, hidden in HIDDEN.items()},
        # 61,706 parameters on 1×28×28; the blocks are two pools and two activations
        "lenet": Network(lenet, ("3", "6", "8", "11")),
        # on RGB with 10 classes: 11,172,170 parameters
        "preact-resnet18": Network(
            partial(PreActResNet, stem=64, widths=(64, 128, 256, 512), blocks=2), FOUR_STAGES
        ),
        # a quarter as wide, for a CPU; 701,018
        "preact-resnet18-quarter": Network(
            partial(PreActResNet, stem=16, widths=(16, 32, 64, 128), blocks=2), FOUR_STAGES
        ),
        # halves images in its first convolution, six times faster than ResNet-20; 175,066
        "preact-resnet14": Network(
            partial(PreActResNet, stem=16, widths=(16, 32, 64), blocks=2, stride=2), THREE_STAGES
        ),
        # small enough for a CPU; 272,282
        "preact-resnet20": Network(
            partial(PreActResNet, stem=16, widths=(16, 32, 64), blocks=3), THREE_STAGES
        ),
        # 25,624,430; a block ends with the last layer of each dense block
        "densenet-bc-190": Network(partial(DenseNetBC, depth=190, growth=40), ("31", "63", "95")),
        # WRN-28-10; 36,479,194
        "wide-resnet28-10": Network(
            partial(PreActResNet, stem=16, widths=(160, 320, 640), blocks=4), THREE_STAGES
        ),
        # the wide ResNet-101 for ImageNet; 124,858,186
        "wide-resnet101": Network(partial(WideBottleneckResNet, blocks=(3, 4, 23, 3)), FOUR_STAGES),
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
    """Return the function that builds the network of that name; raise if there is none."""
    if OWN in name:
        return import_callable(name, "model", in_shape=(1,), num_classes=1)
    known = network(name)
    if known is None:
        close = difflib.get_close_matches(name.lower().replace("_", "-"), MODELS)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(MODELS)}"
        raise SettingError(
            "model", f"must be a known name or package.module:name, got {name!r}: {hint}"
        )
    return known.build


def _check_logits(
    name: str, net: nn.Module, *, in_shape: tuple[int, ...], num_classes: int
) -> None:
    """Check that a network turns two samples into two vectors of logits."""
    batch = (2, *in_shape)
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


def layers_of(model: str, layers: str) -> tuple[str, ...]:
    """Return the names of the modules at which manifold mixup mixes, "" for the input.

    Args:
        model: one of `MODELS`, or `package.module:function` for your own model.
        layers: "input+first-block" (the paper's), "all-blocks", "deep-blocks" (the last
            half of them), or comma-separated names of modules, "input" for the input.

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
    known = network(model)
    if known is None:
        raise ValueError(
            f"layers must name modules of the model {model!r}, whose blocks are not known, "
            f'got {layers!r}: pass e.g. "input,encoder.0"'
        )
    blocks = known.blocks
    first, every, deep = ("", blocks[0]), blocks, blocks[len(blocks) // 2 :]
    return dict(zip(SETS, (first, every, deep), strict=True))[layers]
